# SPDX-License-Identifier: MIT
"""Heads in a notebook: `show` draws their weights as maps, `view` embeds the page of `mha view`.

Both take an mha.Model and a text, a model of transformers with its tokenizer and a text, or what
Model.capture() has returned. `view` needs the program mha: an argument, the environment variable
MHA_PROGRAM, or PATH say where it is.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from html import escape
from pathlib import Path
from typing import Any

from ._captured import Capture
from .model import Model

_TIME_LIMIT = 600  # seconds for the program


class Shown:
    """Maps of captured heads; shows itself in a notebook."""

    def __init__(self, capture: Capture, across: int) -> None:
        self.capture = capture
        self._across = across

    def _repr_html_(self) -> str:
        parts = []
        for entry in self.capture:
            picture = entry.heatmap(across=self._across)._repr_html_()
            title = f"{entry.kind} layer {entry.layer}"
            parts.append(f"<details open><summary>{escape(title)}</summary>{picture}</details>")
        return "".join(parts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an HTML page."""
        title = escape(self.capture.text or "attention")
        page = (
            f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            f"</head><body>{self._repr_html_()}</body></html>\n"
        )
        _write(Path(path), page.encode())

    def __repr__(self) -> str:
        return f"<mha.Shown: {len(self.capture)} layers, {len(self.capture.tokens)} tokens>"


class Page:
    """A page of `mha view`; shows itself in a notebook, in a frame."""

    def __init__(self, html: str, height: int) -> None:
        self.html = html
        self._height = height

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.html)}" width="100%" height="{self._height}" '
            'style="border:1px solid #ccc" title="attention heads"></iframe>'
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, which a browser opens from disk."""
        _write(Path(path), self.html.encode())

    def __repr__(self) -> str:
        return f"<mha.Page: {len(self.html)} characters>"


def show(
    model: Any,
    text: Any = None,
    *,
    tokenizer: Any = None,
    kinds: Any = None,
    layers: Any = None,
    heads: Any = None,
    target: Any = None,
    gates: Any = None,
    across: int = 4,
) -> Shown:
    """What the heads of a model attend to in a text, as maps for a notebook.

    model: an mha.Model, or a Capture; a model of transformers needs its tokenizer. kinds, layers,
    heads, target and gates are those of Model.capture(); across: maps side by side.
    """
    if isinstance(model, Model):
        capture = model.capture(text, kinds, layers, heads, target=target, gates=gates)
    else:
        if gates is not None:
            raise ValueError("gates are for an mha.Model; use mha.hf.gates() for transformers")
        capture = _captured(model, text, tokenizer, target).select(kinds, layers, heads)
    return Shown(capture, across)


def view(
    model: Any,
    text: Any = None,
    *,
    tokenizer: Any = None,
    target: str | None = None,
    gates: Any = None,
    program: str | os.PathLike[str] | None = None,
    height: int = 720,
    options: tuple[str, ...] = (),
) -> Page:
    """The page of `mha view` for a text, in a frame for a notebook.

    model: an mha.Model, whose file the program reads itself; or a Capture, or a model of
    transformers with its tokenizer, whose weights are given to the program. With gates, or for a
    pruned model, the weights of an mha.Model are captured too. program: where the program mha is;
    None is MHA_PROGRAM of the environment, or PATH. options: more options of `mha view`.
    """
    command = [find_program(program), "view", *options]
    with tempfile.TemporaryDirectory(prefix="mha-") as folder:
        out = Path(folder) / "view.html"
        if isinstance(model, Model) and isinstance(text, str) and not model.is_changed(gates):
            _check_text(text)
            command += ["--model", model.path, "--study", "0"]
            if target is not None:
                command += ["--to", target]
            command += ["-o", str(out), "--", text]
        else:
            if isinstance(model, Model):
                capture = model.capture(text, target=target, vectors=True, gates=gates)
            else:
                capture = _captured(model, text, tokenizer, target)
            weights, tokens = Path(folder) / "weights.safetensors", Path(folder) / "tokens.json"
            write_capture(capture, weights, tokens)
            command += ["--weights", str(weights), "--tokens", str(tokens), "-o", str(out)]
        try:
            _run(command)
        except RuntimeError as error:
            # A program of an older version does not read queries, keys and values.
            if "--weights" not in command or ".q" not in str(error):
                raise
            write_capture(capture, weights, tokens, vectors=False)
            _run(command)
        return Page(out.read_text(encoding="utf-8"), height)


def find_program(program: str | os.PathLike[str] | None = None) -> str:
    """The path of the program mha; FileNotFoundError if there is none."""
    name = program or os.environ.get("MHA_PROGRAM") or "mha"
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(
            f"there is no program {os.fspath(name)!r}: install libmha's program mha, or say where "
            "it is with program= or the environment variable MHA_PROGRAM; mha.show() needs none"
        )
    return found


def _check_text(text: str) -> None:
    if "\0" in text or not text.strip():
        raise ValueError("text is empty, or has a zero byte")


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_TIME_LIMIT,
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip() or f"exit status {done.returncode}"
        raise RuntimeError(f"mha view: {said}")


def _captured(model: Any, text: Any, tokenizer: Any, target: Any) -> Capture:
    """A Capture as it is, or that of a model of transformers."""
    if isinstance(model, Capture):
        return model
    if not hasattr(model, "state_dict"):
        raise TypeError(
            f"model is a {type(model).__name__}; give an mha.Model, a Capture, or a model of "
            "transformers"
        )
    if tokenizer is None:
        raise TypeError("a model of transformers needs its tokenizer: tokenizer=")
    from .hf import capture

    return capture(model, tokenizer, text, target=target)


def write_capture(
    capture: Capture,
    weights: str | os.PathLike[str],
    tokens: str | os.PathLike[str],
    vectors: bool = True,
) -> None:
    """Write captured weights and tokens as `mha view --weights --tokens` reads them.

    vectors: queries, keys and values too, if they were captured.
    """
    import numpy as np

    arrays: dict[str, Any] = {}
    single = {kind for kind, _ in capture.layers} == {"encoder"} or capture.target_tokens is None
    places: dict[str, int] = {}
    for entry in capture:
        kind = "layer" if single else entry.kind
        name = f"{kind}.{places.setdefault(kind, 0)}"
        places[kind] += 1
        if entry.weights is None:
            raise ValueError("the weights were not captured: capture(..., weights=True)")
        arrays[name] = entry.weights
        if vectors and entry.q is not None and len(entry.numbers) == entry.q.shape[0]:
            repeat = entry.q.shape[0] // entry.k.shape[0]
            arrays[f"{name}.q"] = entry.q
            arrays[f"{name}.k"] = np.repeat(entry.k, repeat, axis=0)
            arrays[f"{name}.v"] = np.repeat(entry.v, repeat, axis=0)
    header: dict[str, Any] = {}
    start = 0
    for name, array in arrays.items():
        end = start + 4 * array.size
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    parts = [np.ascontiguousarray(array, np.float32).tobytes() for array in arrays.values()]
    _write(Path(weights), b"".join((len(text).to_bytes(8, "little"), text, *parts)))
    words: Any = capture.tokens
    if not single:
        words = {"source": capture.tokens, "target": capture.target_tokens}
    _write(Path(tokens), json.dumps(words).encode())


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)
