# SPDX-License-Identifier: MIT
"""Heat maps of heads: what is drawn, how labels are written, and files."""

from __future__ import annotations

import json
import os
import re
import stat
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import mha
from mha import Heatmap

SVG = "{http://www.w3.org/2000/svg}"
WORDS = ["the", "cat"]
WEIGHTS = [[1.0, 0.0], [0.25, 0.75]]


def drawn(picture: Heatmap) -> ElementTree.Element:
    """The picture, parsed: it must be XML."""
    return ElementTree.fromstring(picture.svg)


def texts(picture: Heatmap, tag: str) -> list[str]:
    return [element.text or "" for element in drawn(picture).iter(SVG + tag)]


def cells(picture: Heatmap) -> dict[tuple[int, int], str]:
    """The colour of every cell that is not white, by row and column."""
    found = {}
    for path in drawn(picture).iter(SVG + "path"):
        for start, row, count in re.findall(r"M(\d+) (\d+)\.5h(\d+)", path.get("d", "")):
            for column in range(int(start), int(start) + int(count)):
                found[int(row), column] = path.get("stroke", "")
    return found


def darkness(colour: str) -> int:
    return -sum(int(part) for part in re.findall(r"\d+", colour))


def test_cells_that_weigh_more_are_darker() -> None:
    found = cells(Heatmap(WEIGHTS))
    assert set(found) == {(0, 0), (1, 0), (1, 1)}
    assert darkness(found[1, 0]) < darkness(found[1, 1]) < darkness(found[0, 0])


def test_colours_are_those_of_the_program() -> None:
    golden = Path(__file__).parents[2] / "tests" / "golden" / "color_scale.json"
    wanted = json.loads(golden.read_text())["light"]
    found = cells(Heatmap([[n / 16 for n in range(1, 17)]]))
    for n in range(1, 17):
        red, green, blue = bytes.fromhex(wanted[2 * n][1:])
        assert found[0, n - 1] == f"rgb({red},{green},{blue})"


def test_neighbours_of_one_shade_are_one_stroke() -> None:
    assert len(re.findall(r"h\d+", Heatmap([[0.5] * 100]).svg)) == 1


def test_nothing_is_drawn_for_nan_and_minus_infinity() -> None:
    assert set(cells(Heatmap([[float("nan"), -float("inf"), 2.0]]))) == {(0, 2)}


def test_rows_of_zeros_are_white() -> None:
    assert cells(Heatmap([[0.0, 0.0]])) == {}


def test_one_map_a_head() -> None:
    picture = Heatmap([[WEIGHTS, WEIGHTS, WEIGHTS]], across=2)
    assert [text for text in texts(picture, "text")] == ["head 0", "head 1", "head 2"]
    places = [group.get("transform") for group in drawn(picture).findall(SVG + "g")]
    assert len(set(places)) == 3


def test_labels_are_escaped() -> None:
    evil = ['<script>alert("1")</script>', "a & b"]
    picture = Heatmap(WEIGHTS, rows=evil, columns=evil, titles=["<b>"])
    assert "<script" not in picture.svg and "<b>" not in picture.svg
    assert "a & b" in texts(picture, "text")


def test_long_labels_are_cut_but_told_in_the_hint() -> None:
    picture = Heatmap(WEIGHTS, rows=["w" * 50, "x"], columns=WORDS)
    assert "w" * 50 not in texts(picture, "text")
    assert any(text.startswith("w" * 50 + ": the 1") for text in texts(picture, "title"))


def test_hints_name_the_largest_weights_first() -> None:
    assert "cat: cat 0.75, the 0.25" in texts(Heatmap(WEIGHTS, WORDS, WORDS), "title")
    assert "0: nothing" in texts(Heatmap([[0.0, 0.0]]), "title")


def test_arrays_of_numpy_and_torch() -> None:
    numpy = pytest.importorskip("numpy")
    assert Heatmap(numpy.array(WEIGHTS, "float32")).svg == Heatmap(WEIGHTS).svg


@pytest.mark.parametrize(
    ("weights", "labels", "text"),
    [
        ([[[WEIGHTS]], [[WEIGHTS]]], None, "axes"),
        ([[WEIGHTS], [WEIGHTS]], None, "weights[0]"),
        ([1.0, 2.0], None, "axes"),
        ([[1.0], [1.0, 2.0]], None, "unequal"),
        (WEIGHTS, ["one"], "1 labels for 2 rows"),
        ([[0.0] * 2000], None, "too fine"),
    ],
)
def test_what_cannot_be_drawn(weights: object, labels: list[str] | None, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        Heatmap(weights, rows=labels)


def test_results_and_layers_are_told_from_weights() -> None:
    np = pytest.importorskip("numpy")
    x = np.ones((2, 3, 4), np.float32)
    result = mha.attention(x, x, x, return_weights=True)
    with pytest.raises(TypeError, match=r"weights is a Result of arrays: draw .* result.weights"):
        Heatmap(result)
    with pytest.raises(TypeError, match="weights is a list of arrays"):
        Heatmap([result.weights])


def test_an_array_that_is_too_large_is_not_unpacked() -> None:
    class Large:
        shape = (2, 5000, 5000)

        def tolist(self) -> None:
            raise AssertionError("50 million numbers")

    with pytest.raises(ValueError, match="5000 rows"):
        Heatmap(Large())


def test_a_notebook_shows_statistics() -> None:
    numpy = pytest.importorskip("numpy")
    x = numpy.ones((2, 3, 4, 8), "float32")
    html = mha.head_statistics(x, x, statistics=["heads", "columns"])._repr_html_()
    assert html.startswith("<table>") and "batch 1" in html and "head 2" in html
    long = numpy.ones((1, 3000, 8), "float32")
    assert "too many" in mha.head_statistics(x[0, :1], long, statistics=["columns"])._repr_html_()


def test_a_notebook_shows_the_picture() -> None:
    picture = Heatmap(WEIGHTS)
    assert picture._repr_html_() == picture.svg
    assert "http" not in picture.svg.replace("http://www.w3.org/2000/svg", "")


def test_files(tmp_path: Path) -> None:
    picture = Heatmap(WEIGHTS, WORDS, WORDS)
    for name in ("a.svg", "a.html"):
        (tmp_path / name).write_text("old")
        picture.save(tmp_path / name)
        assert picture.svg in (tmp_path / name).read_text(encoding="utf-8")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.html", "a.svg"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "a.svg").stat().st_mode) == 0o666 & ~mask


def test_a_name_without_a_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=".svg or .html"):
        Heatmap(WEIGHTS).save(tmp_path / "a.png")


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.svg").mkdir()
    with pytest.raises(OSError):
        Heatmap(WEIGHTS).save(tmp_path / "a.svg")
    assert [file.name for file in tmp_path.iterdir()] == ["a.svg"]
