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


# As much of torch as the signatures of mha.torch need; to read all of it takes mypy minutes.
TORCH = """
from typing import Any
class Tensor: ...
class Generator: ...
def __getattr__(name: str) -> Any: ...
"""

TORCH_PROGRAM = """
from typing import Any, assert_type
from torch import Tensor
import mha.torch
from mha.torch import Result, attention, scaled_dot_product_attention

def drop_in(x: Tensor, flag: bool) -> None:
    assert_type(scaled_dot_product_attention(x, x, x), Tensor)
    assert_type(scaled_dot_product_attention(x, x, x, None, 0.0, True, scale=0.1), Tensor)
    assert_type(scaled_dot_product_attention(x, x, x, need_weights=True), tuple[Tensor, Tensor])
    assert_type(
        scaled_dot_product_attention(x, x, x, need_weights=flag), Tensor | tuple[Tensor, Tensor]
    )

def options(x: Tensor, flag: bool) -> None:
    assert_type(attention(x, x, x), Tensor)
    assert_type(mha.torch.attention(x, x, x, causal=True, position=x, layout="blhd"), Tensor)
    assert_type(attention(x, x, x, return_lse=True), Result)
    assert_type(attention(x, x, x, return_weights=True, average_weights=True), Result)
    assert_type(attention(x, x, x, statistics={"top": 3}), Result)
    assert_type(attention(x, x, x, return_lse=flag), Any)
    assert_type(attention(x, x, x, return_lse=True).output, Tensor)

def mistakes(x: Tensor) -> None:
    attention(x, x, x, casual=True)  # No overload variant
    attention(x, x, x, layout="lbhd")  # No overload variant
    attention(x, x, x).lse  # "Tensor" has no attribute "lse"
    mha.tensor  # Module has no attribute "tensor"
"""


@pytest.mark.parametrize("text", [PROGRAM, TORCH_PROGRAM], ids=["arrays", "tensors"])
def test_types_of_results(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stubs = tmp_path / "stubs"
    (stubs / "torch").mkdir(parents=True)
    (stubs / "torch" / "__init__.pyi").write_text(TORCH, encoding="utf-8")
    (stubs / "mha").symlink_to(Path(mha.__file__).parent)
    monkeypatch.setenv("MYPYPATH", str(stubs))
    (tmp_path / "program.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    alone = ["--no-incremental", "--no-site-packages", "--follow-imports=silent"]
    report, failure, _ = api.run([*alone, "--ignore-missing-imports", "program.py"])
    assert not failure
    said: dict[int, str] = {}
    for line in report.splitlines():
        place, kind, words = line.partition(": error: ")
        if kind:
            assert place.startswith("program.py"), line
            number = int(place.rpartition(":")[2])
            said[number] = said.get(number, "") + words
    for number, line in enumerate(text.splitlines(), 1):
        _, wrong, wanted = line.partition("  # ")
        if wrong:
            assert wanted in said.pop(number, ""), line
    assert said == {}
