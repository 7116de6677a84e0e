# SPDX-License-Identifier: MIT
"""mha.show() and mha.view(): pictures of a small model, and pages by the program."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

import mha

np = pytest.importorskip("numpy")
if not hasattr(mha._core, "Model"):
    pytest.skip("built without libmha_model", allow_module_level=True)

from model_folders import write_bert, write_llama  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return mha.Model.open(write_bert(tmp_path_factory.mktemp("bert")))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that writes its arguments into the page, and keeps the files that it was given."""
    path = tmp_path / "mha-stand-in"
    path.write_text(
        '#!/bin/sh\nfor a in "$@"; do out=$next; next=$a; [ "$out" = -o ] && file=$a; '
        f'[ "$out" = --weights ] && cp "$a" {tmp_path}/weights; '
        f'[ "$out" = --tokens ] && cp "$a" {tmp_path}/tokens; done\n'
        '[ "$MHA_STAND_IN_FAILS" ] && { echo "mha: it fails" >&2; exit 2; }\n'
        'printf "%s\\n" "$@" >"$file"\n',
        encoding="utf-8",
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_show(bert: Any, tmp_path: Path) -> None:
    shown = mha.show(bert, "the cat sat", layers=[1], heads=[2, 3])
    html = shown._repr_html_()
    assert html.count("<svg") == 1 and "encoder 1, head 3" in html and "layer 0" not in html
    shown.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    again = mha.show(shown.capture, heads=[3])._repr_html_()
    assert "head 3" in again and "head 2" not in again
    assert mha.show(bert, "the cat", gates={(0, 0): "uniform"}).capture[0].weights[0, 0, 0] == 0.25
    with pytest.raises(ValueError, match="nothing of that"):
        mha.show(shown.capture, layers=[0])
    with pytest.raises(TypeError, match="mha.Model"):
        mha.show(3, "the cat")
    with pytest.raises(ValueError, match="gates"):
        mha.show(shown.capture, gates={(0, 0): 0.0})


def test_view_of_a_model(bert: Any, program: Path, tmp_path: Path) -> None:
    page = mha.view(bert, "-- the <cat>", program=program, height=300, options=("--words",))
    words = page.html.splitlines()
    assert (
        words[0] == "view" and "--words" in words and words[words.index("--model") + 1] == bert.path
    )
    assert words[-2:] == ["--", "-- the <cat>"]
    html = page._repr_html_()
    assert html.startswith("<iframe srcdoc=") and "&lt;cat&gt;" in html and 'height="300"' in html
    page.save(tmp_path / "view.html")
    assert (tmp_path / "view.html").read_text(encoding="utf-8") == page.html


def test_view_of_what_was_captured(bert: Any, program: Path, tmp_path: Path) -> None:
    with bert.gates({(0, 0): 0.0}):
        page = mha.view(bert, "the cat", program=program)
    assert "--weights" in page.html and "--model" not in page.html
    assert json.loads((tmp_path / "tokens").read_text()) == ["[CLS]", "the", "cat", "[SEP]"]
    data = (tmp_path / "weights").read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    assert header["layer.1"]["shape"] == [4, 4, 4] and header["layer.0.q"]["shape"] == [4, 4, 8]
    begin, end = header["layer.0"]["data_offsets"]
    weights = np.frombuffer(data[8 + length :][begin:end], np.float32).reshape(4, 4, 4)
    with bert.gates({(0, 0): 0.0}):
        assert np.array_equal(weights, bert.capture("the cat")[0].weights)


def test_a_program_that_fails_or_is_missing(
    bert: Any, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MHA_PROGRAM", str(program))
    assert "the cat" in mha.view(bert, "the cat").html
    monkeypatch.setenv("MHA_STAND_IN_FAILS", "1")
    with pytest.raises(RuntimeError, match="it fails"):
        mha.view(bert, "the cat")
    monkeypatch.delenv("MHA_PROGRAM")
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(FileNotFoundError, match="MHA_PROGRAM"):
        mha.view(bert, "the cat")
    with pytest.raises(ValueError, match="empty"):
        mha.view(bert, " ", program=program)


def real_program() -> str:
    path = os.environ.get("MHA_PROGRAM") or shutil.which("mha") or str(ROOT / "build" / "mha")
    if not os.access(path, os.X_OK):
        pytest.skip("the program mha is not built")
    return path


def test_the_real_program(bert: Any, tmp_path: Path) -> None:
    program = real_program()
    page = mha.view(bert.capture("the cat sat", vectors=True), program=program)
    assert page.html.lstrip().lower().startswith("<!doctype html>") and "cat" in page.html
    llama = mha.Model.open(write_llama(tmp_path / "llama"))
    assert "cat" in mha.view(llama.capture("the cat", vectors=True), program=program).html


def test_models_of_transformers(bert: Any, program: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    hf = pytest.importorskip("mha.hf")
    model = transformers.BertModel.from_pretrained(bert.path).train()
    tokenizer = transformers.BertTokenizer(str(Path(bert.path) / "vocab.txt"))
    before = model.config._attn_implementation
    capture = hf.capture(model, tokenizer, "the cat sat")
    assert model.training and model.config._attn_implementation == before
    ours = bert.capture("the cat sat")
    assert capture.tokens == ours.tokens
    for layer in range(2):
        assert abs(capture[layer].weights - ours[layer].weights).max() < 1e-5
    shown = mha.show(model, "the cat sat", tokenizer=tokenizer, layers=[0])
    assert "head 3" in shown._repr_html_()
    assert "--weights" in mha.view(model, "the cat", tokenizer=tokenizer, program=program).html
    with pytest.raises(TypeError, match="tokenizer="):
        mha.show(model, "the cat")
    config = transformers.LlamaConfig(
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=32,
        vocab_size=tokenizer.vocab_size,
    )
    decoder = hf.capture(transformers.LlamaModel(config), tokenizer, "the cat")
    assert set(decoder.layers) == {("decoder", 0)}
    assert not np.triu(decoder[0].weights[0], 1).any()
