# SPDX-License-Identifier: MIT
"""python -m mha: what is installed, what it runs on, and whether it computes correctly here."""

from __future__ import annotations

import argparse
import math
import sys
import time
from array import array
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import mha

_PARTS = {"numpy": "models", "torch": "mha.torch", "transformers": "mha.hf", "onnx": "mha.onnx"}
_CASES: tuple[dict[str, Any], ...] = (
    {},
    {"causal": True},
    {"causal": True, "window": (3, None), "softcap": 2.0},
    {"scale": 0.3, "key_lengths": [5, 9]},
)
_BATCH, _HEADS, _ROWS, _WIDTH = 2, 2, 9, 16


def _numbers(count: int, seed: int) -> list[float]:
    """Numbers from -1 to 1 that every format holds exactly."""
    found = []
    for _ in range(count):
        seed = (seed * 1103515245 + 12345) % 2**31
        found.append((seed >> 16) % 256 / 128 - 1)
    return found


def _row(
    query: list[float], keys: list[list[float]], values: list[list[float]], options: dict[str, Any]
) -> list[float]:
    """One row by the formula, over the keys that it sees."""
    scale, cap = options.get("scale", _WIDTH**-0.5), options.get("softcap")
    scores = [scale * sum(a * b for a, b in zip(query, key)) for key in keys]
    if cap:
        scores = [cap * math.tanh(score / cap) for score in scores]
    powers = [math.exp(score - max(scores)) for score in scores]
    total = sum(powers)
    return [sum(p * v[c] for p, v in zip(powers, values)) / total for c in range(_WIDTH)]


def _seen(options: dict[str, Any], batch: int, row: int) -> range:
    first = max(0, row - options["window"][0]) if "window" in options else 0
    last = row + 1 if options.get("causal") else _ROWS
    return range(first, min(last, options.get("key_lengths", [_ROWS] * _BATCH)[batch]))


def _expected(x: list[list[list[list[float]]]], options: dict[str, Any]) -> Iterator[float]:
    """Self-attention by the formula, row after row."""
    for batch, heads in enumerate(x):
        for rows in heads:
            for number, query in enumerate(rows):
                keys = [rows[j] for j in _seen(options, batch, number)]
                yield from _row(query, keys, keys, options)


def check() -> tuple[int, float]:
    """Compare the library with the formula: the number of cases, and the largest error relative to
    what the element type allows. Above 1 the library is wrong."""
    worst, cases = 0.0, 0
    for kind, bound in (("f", 2e-6), ("d", 2e-14)):
        shape = (_BATCH, _HEADS, _ROWS, _WIDTH)
        numbers = array(kind, _numbers(math.prod(shape), 7))
        x = memoryview(numbers).cast("B").cast(kind, shape)
        for options in _CASES:
            found = memoryview(mha.attention(x, x, x, **options)).cast("B").cast(kind)
            errors = (abs(a - b) for a, b in zip(found, _expected(x.tolist(), options)))
            worst, cases = max(worst, max(errors) / bound), cases + 1
    return cases, worst


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return f"not installed; {_PARTS[name]} would need it"


def _has_models() -> str:
    core = import_module("mha._core")
    return "yes" if hasattr(core, "Model") else "no: built without PCRE2 and utf8proc"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mha", description=__doc__)
    parser.add_argument("--version", action="version", version=mha.__version__)
    parser.parse_args(arguments)
    lines = {
        "mha": mha.__version__,
        "instruction set": mha.isa(),
        "threads": mha.get_threads(),
        "models": _has_models(),
        "Python": ".".join(map(str, sys.version_info[:3])),
        **{name: _installed(name) for name in _PARTS},
    }
    for name, value in lines.items():
        print(f"{name:16} {value}")
    start = time.perf_counter()
    cases, worst = check()
    seconds = time.perf_counter() - start
    verdict = "ok" if worst <= 1 else f"FAILED, {worst:.3g} times the bound"
    print(f"{'self-check':16} {verdict} ({cases} cases, {seconds:.2f} s)")
    return 0 if worst <= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
