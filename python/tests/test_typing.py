# SPDX-License-Identifier: MIT
"""The types that mypy infers for calls."""

from __future__ import annotations

from pathlib import Path

import pytest

import mha

api = pytest.importorskip("mypy.api")

# A line with a comment is a mistake; the comment is part of the message of mypy. Native stands for
# an array of NumPy or PyTorch.
PROGRAM = """
from array import array
from typing import Any, assert_type
import mha

class Native:
    def __array_wrap__(self, array: Any) -> Any: ...

class Foreign:
    def __dlpack__(self) -> Any: ...

def operator(x: Native, other: Foreign, unknown: Any, out: list[int], flag: bool) -> None:
    assert_type(mha.attention(x, x, x), Native)
    assert_type(mha.attention(x, other, other, causal=True, return_lse=False, out=None), Native)
    assert_type(mha.attention(other, x, x), mha.Array)
    assert_type(mha.attention(memoryview(array("f")), x, x), mha.Array)
    assert_type(mha.attention(x, x, x, out=out), list[int])
    assert_type(mha.attention(x, x, x, return_lse=True), mha.Result)
    assert_type(mha.attention(x, x, x, out=out, return_weights=True, causal=True), mha.Result)
    assert_type(mha.attention(x, x, x, return_weights="raw", return_lse=True), mha.Result)
    assert_type(mha.attention(x, x, x, statistics={"top": 3}), mha.Result)
    assert_type(mha.attention(unknown, x, x), Any)
    assert_type(mha.attention(x, x, x, return_lse=flag), Any)
    mha.attention(x, x, x, statistics=True).statistics.heads.entropy
    assert_type(mha.attention_weights(x, x, heads=[0], out=out), list[int])

def objects(layer: mha.Layer, cache: mha.KVCache, x: Native, out: list[int]) -> None:
    assert_type(layer(x, causal=True), Native)
    assert_type(layer(x, cache=cache, cache_use="recall"), Native)
    assert_type(layer(x, x, out=out), list[int])
    assert_type(layer(x, cache=cache, return_weights=True), mha.Result)
    assert_type(layer(key=x, cache=cache, cache_use="store"), None)
    assert_type(cache.attention(x, sequences=[0]), Native)
    assert_type(cache.attention(x, return_lse=True), mha.Result)

def models(model: mha.Model, tokenizer: mha.Tokenizer, x: Native, out: list[int]) -> None:
    assert_type(mha.Model.open("path", store="q8"), mha.Model)
    assert_type(model.info.layers, dict[str, int])
    assert_type(model.tokenizer, mha.Tokenizer | None)
    assert_type(tokenizer.encode("text"), list[int])
    assert_type(tokenizer.tokens("text")[0].begin, int)
    assert_type(model.capture("text")[0].rows, list[str])
    assert_type(model.state(2), mha.State)
    assert_type(model.run("text").hidden, Any)
    assert_type(mha.show(model, "text"), mha.Shown)
    assert_type(mha.view(model, "text").html, str)
    for piece in model.stream("text", most=3):
        assert_type(piece, str)

def linears(linear: mha.Linear, ff: mha.FeedForward, x: Native, out: list[int]) -> None:
    assert_type(mha.Linear(x, activation="gelu", store="q4"), mha.Linear)
    assert_type(linear(x, residual=x), Native)
    assert_type(ff(x, out=out), list[int])
    mha.Linear(x, store="f8")  # incompatible type
    mha.norm(x, kind="batch")  # incompatible type

def mistakes(layer: mha.Layer, x: Native) -> None:
    mha.attention(x, x, x, casual=True)  # did you mean "causal"?
    mha.attention(x, x, x, return_weights="logits")  # No overload variant
    mha.attention(x, x, x).lse  # "Native" has no attribute "lse"
    mha.attention_weights(x, x, weights_heads=[0])  # weights_heads
    layer(x, cache_use="keep")  # No overload variant
"""


def test_types_of_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = Path(mha.__file__).parents[1]
    if package.name != "site-packages":
        monkeypatch.setenv("MYPYPATH", str(package))
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    report, failure, _ = api.run(["--no-incremental", "program.py"])
    assert not failure
    said: dict[int, str] = {}
    for line in report.splitlines():
        place, kind, words = line.partition(": error: ")
        if kind:
            number = int(place.rpartition(":")[2])
            said[number] = said.get(number, "") + words
    for number, line in enumerate(PROGRAM.splitlines(), 1):
        _, wrong, wanted = line.partition("  # ")
        if wrong:
            assert wanted in said.pop(number, ""), line
    assert said == {}
