# SPDX-License-Identifier: MIT
"""The comparison with peers: its cases, inputs, comparison, rounds, report and chart.

These tests do not measure speed. The contenders of each installed library are compared with
attention in float64, for small cases.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

np = pytest.importorskip("numpy")
ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "peers").is_dir():
    pytest.skip("no peers/ here", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from peers import cases, chart, inputs, measure, memory, registry, report, summary  # noqa: E402
from peers.contender import Contender, Runner, Unable  # noqa: E402

# ------------------------------------------------------------------ cases -----


def test_a_word_says_everything() -> None:
    case = cases.parse("b2h32g8l1s4096d128:bf16")
    assert (case.B, case.H, case.G, case.L, case.S, case.D) == (2, 32, 8, 1, 4096, 128)
    assert (case.kind, case.dtype, case.one_token) == ("attention", "bf16", True)
    case = cases.parse("layer:gpt2-large:b2l64:causal:train")
    assert (case.E, case.H, case.D, case.B, case.L, case.S) == (1280, 20, 64, 2, 64, 64)
    assert (case.want, case.causal, case.is_layer) == ("train", True, True)
    case = cases.parse("decode:gpt2-small:s100")
    assert (case.L, case.S, case.causal, case.one_token) == (1, 100, True, True)
    case = cases.parse("b1h2l8d4:causal:window=3:mask=bool50:padk:weights")
    assert (case.window, case.mask, case.pad, case.want) == (3, "bool", "padk", "weights")


@pytest.mark.parametrize(
    ("word", "goal"),
    [
        ("b1h12l1024d64", 1.15),
        ("b1h12l1024d64:grad", 1.15),
        ("layer:bert-base:l128", 1.15),
        ("b1h12l1024d64:causal", 1.5),
        ("b8h12l512d64:padk", 1.5),
        ("b32h12l128d64", 2.0),
        ("b1h32g8l1s4096d128", 2.0),
        ("cache:b1h32g8s4096d128", 2.0),
        ("decode:gpt2-small:s1024", 2.0),
        ("b1h12l1024d64:causal:weights", 2.0),
        ("b1h12l1024d64:stats", 2.0),
    ],
)
def test_goals(word: str, goal: float) -> None:
    assert cases.parse(word).goal == goal


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("b1h", "numbers after"),
        ("b1h4d8", "has no l"),
        ("b1h4l8d8:casual", '"casual" is no option'),
        ("b1h4g3l8d8", "evenly"),
        ("layer:bert:l8", "one of bert-base"),
        ("layer:bert-base:b2", "number of tokens"),
        ("b1h4l8s9d8:causal", "as many keys"),
        ("b1h4l8d8:train", "for layers"),
        ("layer:bert-base:l8:grad", "without projections"),
    ],
)
def test_a_wrong_word_is_explained(word: str, says: str) -> None:
    with pytest.raises(cases.WordError, match=says):
        cases.parse(word)


def test_the_table_has_each_word_once() -> None:
    for everything in (False, True):
        table = cases.table(everything)
        assert set(table) == set(cases.SECTIONS)
        for rows in table.values():
            words = [case.word for case in rows]
            assert words and len(words) == len(set(words))
    assert sum(map(len, cases.table(True).values())) > sum(map(len, cases.table().values()))


# ----------------------------------------------------------------- inputs -----


def test_inputs_depend_on_the_word_alone() -> None:
    case = cases.parse("b2h2l3d4:mask=add")
    one, two = inputs.make(case), inputs.make(case)
    assert np.array_equal(one.query, two.query) and np.array_equal(one.mask, two.mask)
    assert not np.array_equal(one.query, one.key)
    assert np.array_equal(one.mask, one.mask.astype(np.float16).astype(np.float32))


def test_lengths_rise_to_the_longest() -> None:
    assert inputs.lengths_of(cases.parse("b4h1l64d4:pad")).tolist() == [16, 32, 48, 64]
    assert inputs.lengths_of(cases.parse("b4h1l64d4")) is None


@pytest.mark.parametrize(
    "word", ["b1h1l7d4:causal:window=2", "b1h1l7d4:window=2", "b1h1l7d4:causal"]
)
def test_the_band_is_causal_and_window(word: str) -> None:
    case = cases.parse(word)
    for i, row in enumerate(inputs.band(case)):
        for j, seen in enumerate(row):
            near = case.window < 0 or abs(i - j) <= case.window
            assert seen == (near and (j <= i or not case.causal))


# ------------------------------------------------------------- comparison -----

SMALL = cases.parse("b2h1l4d2:pad")


def small_output() -> dict[str, np.ndarray]:
    return {"output": np.arange(1, 17, dtype=np.float32).reshape(2, 1, 4, 2)}


def changed(at: tuple[int, ...], value: float) -> dict[str, np.ndarray]:
    other = small_output()
    other["output"][at] = value
    return other


def test_a_difference_is_a_share_of_the_largest() -> None:
    got = measure.difference(SMALL, inputs.make(SMALL), small_output(), changed((1, 0, 3, 1), 12))
    assert got == pytest.approx(4 / 16)


def test_padded_rows_are_not_compared() -> None:
    given = inputs.make(SMALL)
    assert given.lengths.tolist() == [2, 4]
    assert measure.difference(SMALL, given, small_output(), changed((0, 0, 2, 0), 99)) == 0
    assert measure.difference(SMALL, given, small_output(), changed((0, 0, 1, 0), 99)) > 1


def test_nan_and_other_shapes_differ() -> None:
    given = inputs.make(SMALL)
    assert measure.difference(SMALL, given, small_output(), changed((1, 0, 0, 0), np.nan)) == np.inf
    other = {"output": small_output()["output"][:1]}
    assert measure.difference(SMALL, given, small_output(), other) == np.inf


# ----------------------------------------------------------------- rounds -----


def fake(library: str, name: str, value: float, calls: list[str]) -> Contender:
    def prepare(case: cases.Case, given: inputs.Inputs, threads: int) -> Runner:
        output = np.full((case.B, case.H, case.L, case.D), value, dtype=np.float32)

        def run() -> np.ndarray:
            calls.append(name)
            return output

        return Runner(run, lambda o: {"output": o})

    return Contender(library, name, prepare)


def failing(error: Exception) -> Contender:
    def prepare(case: cases.Case, given: inputs.Inputs, threads: int) -> Runner:
        raise error

    return Contender("torch", type(error).__name__, prepare)


def measured(calls: list[str]) -> measure.CaseResult:
    contenders = [
        fake(registry.OURS, "ours", 1.0, calls),
        fake("torch", "right", 1.0, calls),
        fake("jax", "wrong", 1.5, calls),
        failing(Unable("has no such thing")),
        failing(RuntimeError("two\nlines")),
    ]
    return measure.measure(cases.parse("b1h1l2d2"), contenders, 1, rounds=6, seconds=0.01)


def test_only_those_that_agree_are_timed() -> None:
    calls: list[str] = []
    rows = {row.contender.name: row for row in measured(calls).rows}
    assert len(rows["ours"].seconds) == len(rows["right"].seconds) >= measure.LEAST_ROUNDS
    assert rows["wrong"].differs and not rows["wrong"].seconds
    assert rows["wrong"].reason == "differs by 5.0e-01"
    assert calls.count("wrong") == 1
    assert rows["Unable"].reason == "has no such thing"
    assert rows["RuntimeError"].reason == "RuntimeError: two"


def test_large_cases_leave_memory_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "free_bytes", lambda: 1 << 20)
    case = cases.parse("b1h1l2d2")
    calls: list[str] = []
    ours = [fake(registry.OURS, "ours", 1.0, calls)]
    assert measure.measure(case, ours, 1, 1, 0.001).ours is not None
    large = measure.measure(replace(case, E=12288), ours, 1, 1, 0.001)
    assert "MB of memory" in large.rows[0].reason


def test_contenders_take_turns() -> None:
    calls: list[str] = []
    result = measured(calls)
    repeats = {row.contender.name: row.repeats for row in result.rows}
    turns = calls[-len(result.ours.seconds) * (repeats["ours"] + repeats["right"]) :]
    rounds = 0
    while turns:
        one = turns[: repeats["ours"] + repeats["right"]]
        assert one.count("ours") == repeats["ours"] and one.count("right") == repeats["right"]
        turns = turns[len(one) :]
        rounds += 1
    assert rounds == len(result.ours.seconds)


def test_a_ratio_is_of_the_same_round() -> None:
    slow_and_fast = [1.0, 10.0, 1.0, 10.0, 1.0]
    assert summary.ratios([2 * t for t in slow_and_fast], slow_and_fast) == [2.0, 2.0, 2.0]
    assert summary.ratios([1, 2, 3, 4, 5], [1, 1, 1, 1, 1]) == [2.0, 3.0, 4.0]


def test_verdicts() -> None:
    words = [summary.verdict(ratio, 1.5) for ratio in (0.99, 1.0, 1.49, 1.5)]
    assert words == ["lost", "missed", "missed", "reached"]


# ----------------------------------------------------------------- report -----


def document() -> summary.Document:
    calls: list[str] = []
    result = measured(calls)
    for row in result.rows:
        if row.seconds:
            row.seconds[:] = [3.0 if row.contender.name == "right" else 2.0] * 5
    found = registry.Found({name: f"{name} 1 <&>" for name in registry.MODULES}, {"jax": "gone"})
    word = memory.Mark(fake(registry.OURS, "ours", 1, calls), 1 << 21)
    other = memory.Mark(fake("torch", "right", 1, calls), 1 << 26)
    case = cases.parse("b1h1l64d8:mean")
    rows = [summary.of_times(result, "short"), summary.of_memory(case, [word, other], "memory")]
    return summary.document(found, 2, rows)


def test_the_best_peer_is_judged() -> None:
    row, mark = document()["rows"]
    assert row["peers"][row["best"]]["name"] == "right"
    assert row["peers"][row["best"]]["ratio"] == [1.5, 1.5, 1.5]
    assert (row["goal"], row["verdict"]) == (2.0, "missed")
    assert (mark["ours"]["value"], mark["goal"], mark["verdict"]) == (2.097152, 10.0, "reached")
    assert summary.best_of(row, "jax")["reason"] == "differs by 5.0e-01"
    assert summary.best_of(row, "openblas") is None


def test_a_document_survives_json() -> None:
    whole = document()
    assert json.loads(json.dumps(whole)) == whole


def test_text_and_markdown() -> None:
    whole = document()
    names = report.libraries(whole)
    line = report.text_row(whole["rows"][0], names)
    assert line.startswith("b1h1l2d2 ") and "1.50" in line and "differs" in line
    assert "missed: torch right (1.50 to 1.50)" in line
    text = report.markdown(whole)
    assert "- jax is not installed: gone" in text
    assert "| `b1h1l2d2` | 2.00 | 2000 ms | 1.50 |" in text and "differs by 5.0e-01" in text
    widths = {row.count("|") for row in text.splitlines() if row.startswith("|")}
    assert widths == {len(names) + 6}
    assert text.endswith("1 reached, 1 missed, 0 lost.\n")


def test_tables_go_between_the_marks() -> None:
    page = f"before\n{report.BEGIN}\nold\n{report.END}\nafter"
    assert report.insert(page, "new\n") == page.replace("old", "new")
    assert report.insert("no marks", "new\n") == "new\n"


def test_later_rows_replace_earlier_ones() -> None:
    one, two = document(), document()
    two["rows"] = [row | {"verdict": "lost"} for row in two["rows"][:1]]
    merged = summary.merge([one, two])["rows"]
    assert [row["verdict"] for row in merged if row["case"] == "b1h1l2d2"] == ["lost"]
    assert len(merged) == 2


def test_merged_rows_stand_as_in_the_table() -> None:
    first, second = (case.word for case in cases.table()["masked"][:2])
    whole = document()
    row = whole["rows"][0] | {"section": "masked"}
    parts = [whole | {"rows": [row | {"case": word}]} for word in (second, first)]
    assert [row["case"] for row in summary.merge(parts)["rows"]] == [first, second]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (1234.5, "1234 ms"),
        (12.34, "12.3 ms"),
        (1.234, "1.23 ms"),
        (0.1234, "0.123 ms"),
    ],
)
def test_amounts_have_three_digits(value: float | None, text: str) -> None:
    assert report.amount(value, "ms") == text


def test_the_chart_is_a_picture() -> None:
    whole = document()
    root = ElementTree.fromstring(chart.svg(whole))
    titles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
    assert "torch right: 1.50 (1.50 to 1.50)" in titles
    assert sum("jax" in t for t in titles) == 0
    assert set(chart.COLOURS) == set(chart.SHAPES) == set(registry.PEERS)


def test_places_on_the_axis() -> None:
    assert chart.place(chart.LEAST / 2) == chart.place(chart.LEAST) == chart.LEFT
    assert chart.place(1000) == chart.place(chart.MOST) == chart.LEFT + chart.RIGHT
    assert chart.place(2) - chart.place(1) == pytest.approx(chart.place(8) - chart.place(4))


# ---------------------------------------------------------------- program -----


def program(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "peers", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


def test_the_program_lists_and_refuses() -> None:
    listed = program("--list", "--only", "gradients")
    assert listed.returncode == 0 and "b1h12l512d64:grad" in listed.stdout
    assert all(line.startswith("gradients") for line in listed.stdout.splitlines())
    for arguments, says in (
        (["--peers", "numpy"], 'no peer is called "numpy"'),
        (["--only", "nothing"], "--list shows them"),
        (["b1h4l8d8:foo"], '"foo" is no option'),
        (["--threads", "0"], "above 0"),
    ):
        refused = program(*arguments)
        assert refused.returncode == 2 and says in refused.stderr


def test_a_document_is_drawn_again(tmp_path: Path) -> None:
    source, picture, table = (tmp_path / name for name in ("a.json", "a.svg", "a.md"))
    source.write_text(json.dumps(document()))
    done = program("--from", str(source), "--svg", str(picture), "--markdown", str(table))
    assert done.returncode == 0, done.stderr
    assert picture.read_text().startswith("<svg") and "b1h1l2d2" in table.read_text()


# -------------------------------------------------------------- contenders ----

WORDS = (
    "b2h4l9d8",
    "b1h4g2l9d8:causal",
    "b1h2l9d8:causal:window=3",
    "b1h2l9d8:mask=bool50",
    "b1h2l9d8:mask=add",
    "b3h2l9d8:pad",
    "b3h2l9d8:padk",
    "b1h4g2l1s9d8",
    "cache:b2h4g2s9d8",
    "b1h2l9d8:weights",
    "b1h2l9d8:causal:weights",
    "b1h2l9d8:mean",
    "b1h2l9d8:stats",
)
SLOW = ("flex_attention", "written out, compiled")  # half a minute of compiling


def plain(case: cases.Case, given: inputs.Inputs) -> dict[str, np.ndarray]:
    """The case in float64, plain and slow."""
    group = case.H // case.G
    k, v = (np.repeat(x, group, axis=1).astype(np.float64) for x in (given.key, given.value))
    scores = given.query.astype(np.float64) @ k.transpose(0, 1, 3, 2) / np.sqrt(case.D)
    if case.mask == "add":
        scores += given.mask
    hidden = ~inputs.band(case) if not case.one_token else np.zeros((1, case.S), bool)
    if case.mask == "bool":
        hidden = hidden | ~given.mask
    if case.pad:
        hidden = hidden | ~inputs.key_mask(case, given)[:, None, None, :]
    scores = np.where(hidden, -np.inf, scores)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    logs = np.log(np.where(weights > 0, weights, 1))
    return {
        "output": weights @ v,
        "weights": weights,
        "mean": weights.mean(axis=1),
        "entropy": -(weights * logs).sum(axis=-1),
    }


def found_of(library: str) -> registry.Found:
    """The contenders of a library; skips if it is not installed, fails if it is broken."""
    found = registry.find((library,))
    reason = found.missing.get(library, "")
    if reason.startswith(("ModuleNotFoundError", "ImportError")):
        pytest.skip(reason)
    assert not reason
    return found


WHOLE_MODELS = ("openvino", "ctranslate2")  # or attention without options
WITH_ATTENTION = [name for name in registry.MODULES if name not in WHOLE_MODELS]


def compute_attention(library: str, words: list[str], bound: float) -> int:
    """Compares all contenders of a library with the formula; returns how many took part."""
    ways = [c for c in found_of(library).contenders if c.name not in SLOW]
    done = 0
    for word in words:
        case = cases.parse(word)
        given = inputs.make(case)
        expected = plain(case, given)
        for contender in ways:
            try:
                runner = contender.prepare(case, given, 1)
            except Unable:
                continue
            got = runner.read(runner.run())
            assert measure.difference(case, given, expected, got) < bound, (contender.label, word)
            done += 1
    return done


@pytest.mark.parametrize("library", WITH_ATTENTION)
def test_contenders_compute_attention(library: str) -> None:
    assert compute_attention(library, WORDS, 1e-5) >= len(WORDS) / 2


@pytest.mark.parametrize("library", [*WITH_ATTENTION, "openvino"])
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_contenders_read_their_own_halves(library: str, dtype: str) -> None:
    """Results in 16 bits are read as the type that they have."""
    if dtype == "bf16" and inputs.bfloat16 is None:
        pytest.skip("needs ml_dtypes")
    compute_attention(library, [f"b1h2l24d32:{dtype}", f"b2h1l9d16:causal:{dtype}"], 2e-2)


@pytest.mark.parametrize(
    "word", ["layer:transformer-base:b2l5:pad", "layer:transformer-base:l6:causal"]
)
def test_layers_agree(word: str) -> None:
    found = registry.find()
    case = cases.parse(word)
    result = measure.measure(case, found.contenders, 1, rounds=1, seconds=0.001)
    assert not [(row.contender.label, row.reason) for row in result.rows if row.differs]


def test_memory_is_measured_in_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    found = found_of(registry.OURS)
    monkeypatch.setenv("PYTHONPATH", ":".join([str(ROOT), *filter(None, sys.path)]))
    case = cases.parse("b1h2l512d64:weights")
    ways = {c.name: memory.mark(case, c, 1) for c in found.contenders}
    weights_bytes = 2 * 512 * 512 * 4
    assert weights_bytes <= ways["attention"].size < 20 * weights_bytes
    output_bytes = 64 * 512 * 64 * 4
    plain_way = memory.mark(cases.parse("b1h64l512d64"), found.contenders[0], 1)
    assert output_bytes <= plain_way.size < 2 * output_bytes
    assert ways["KVCache"].size is None and ways["KVCache"].reason == "is for caches"


def test_memory_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ":".join([str(ROOT), *filter(None, sys.path)]))
    unknown = fake(registry.OURS, "no such way", 1, [])
    failed = memory.mark(cases.parse("b1h1l64d8"), unknown, 1)
    assert failed.size is None and failed.reason
    refused = memory.mark(cases.parse("b1h1l64d8"), failing(Unable("never")), 1)
    assert (refused.size, refused.reason) == (None, "never")
