# SPDX-License-Identifier: MIT
"""The comparison of translations with peers: words, goals, files, agreement and report.

Nothing here opens a real model or measures speed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "peers").is_dir():
    pytest.skip("no peers/ here", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from peers import cases, measure, registry, report, summary, translation  # noqa: E402
from peers.contender import Contender, Runner, Unable  # noqa: E402


def test_words_of_translations() -> None:
    case = cases.parse("translate:b64:beam=4")
    assert (case.B, case.beams, case.dtype, case.goal) == (64, 4, "f32", 1.2)
    assert (case.is_translation, case.is_model, case.is_layer) == (True, False, False)
    case = cases.parse("translate:b1:i8")
    assert (case.B, case.beams, case.dtype, case.goal) == (1, 1, "i8", 1.0)
    assert len(cases.table()["translate"]) == 8


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("translate:l8", "numbers after b"),
        ("translate:b0", "at once"),
        ("translate:b1:beam=0", "beam=N and i8"),
        ("translate:b1:f16", "beam=N and i8"),
    ],
)
def test_wrong_words_are_explained(word: str, says: str) -> None:
    with pytest.raises(cases.WordError, match=says):
        cases.parse(word)


def test_files_are_named_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEERS_TRANSLATOR", str(tmp_path))
    with pytest.raises(Unable, match="--translator names one"):
        translation.folder()
    (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": 0, "pad_token_id": 2}))
    assert translation.folder() == tmp_path
    monkeypatch.setenv("PEERS_TEXTS", str(tmp_path / "texts.tsv"))
    (tmp_path / "texts.tsv").write_text("one\teins\n\ntwo\tzwei\n")
    translation.sentences.cache_clear()
    translation.config.cache_clear()
    assert translation.sentences() == ("one", "two")
    made = translation.results([[2, 5, 6, 0, 2], [5, 0]])["translations"]
    assert made.tolist() == ["5 6", "5"]
    translation.sentences.cache_clear()
    translation.config.cache_clear()


def test_groups_of_sentences() -> None:
    ids = [[1], [2], [3], [4], [5]]
    assert translation.groups(cases.parse("translate:b2"), ids) == [[[1], [2]], [[3], [4]], [[5]]]


def fake(library: str, changed: int) -> Contender:
    """100 translations, some of which are others."""

    def prepare(case: cases.Case, given: object, threads: int) -> Runner:
        made = np.array([f"{n} x" if n < changed else f"{n}" for n in range(100)])
        return Runner(lambda: made, lambda x: {"translations": x})

    return Contender(library, "fake", prepare)


@pytest.mark.parametrize(
    ("word", "changed", "differs"),
    [("translate:b1", 5, False), ("translate:b1", 6, True), ("translate:b1:i8", 60, False)],
)
def test_few_sentences_may_differ(word: str, changed: int, differs: bool) -> None:
    contenders = [fake(registry.OURS, 0), fake("ctranslate2", changed)]
    result = measure.measure(cases.parse(word), contenders, 1, rounds=5, seconds=0.001)
    assert result.rows[1].differs == differs
    assert result.rows[1].difference == pytest.approx(changed / 100)


def test_sentences_per_second_and_agreement_are_reported() -> None:
    contenders = [fake(registry.OURS, 0), fake("ctranslate2", 3)]
    result = measure.measure(cases.parse("translate:b1"), contenders, 1, rounds=5, seconds=0.001)
    for row in result.rows:
        row.seconds[:] = [0.5 if row.contender.library == registry.OURS else 0.8] * 5
    row = summary.of_times(result, "translate")
    assert row["ours"]["value"] == pytest.approx(len(translation.sentences()) / 0.5)
    assert row["unit"] == "/s" and row["verdict"] == "reached"
    assert "(1.60 to 1.60), 97 % the same" in report.text_row(row, ["ctranslate2"])
    found = registry.Found({"ctranslate2": "1"})
    text = report.markdown(summary.document(found, 1, [row]))
    assert "| 1.60, 97 % the same |" in text and "### Translation" in text
