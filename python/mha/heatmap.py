# SPDX-License-Identifier: MIT
"""Attention weights as pictures: one small map for each head, in a notebook or in a file.

A picture is one SVG without scripts, fonts or links to anywhere: it can be mailed and printed.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

MOST_CELLS = 1024  # rows or columns of a map; more than a screen can show
_LEVELS = 48  # shades, so that neighbours of one shade are one stroke
# The scale of the mha program for light grounds (src/draw/color_scale.c), at equal distances.
_ANCHORS = "f6f4ef e0e8ed c9dbea aac7e0 8bb3d6 6c9bc7 4d82b8 3b69a5 2a4f92 233672 1a1d52"
_SCALE = [bytes.fromhex(anchor) for anchor in _ANCHORS.split()]
_SIDE = 224.0  # preferred size of a map in pixels
_GAP = 18.0
_TITLE = 20.0
_LETTER = 0.62  # width of a letter, as a part of its height
_LONGEST = 18  # letters of a label; longer ones are cut


def _nested(values: Any) -> Any:
    """The numbers of an array of any kind as lists in lists; large arrays are refused before."""
    if isinstance(values, (list, tuple)) and any(hasattr(part, "shape") for part in values):
        raise TypeError(
            f"weights is a {type(values).__name__} of arrays: draw one of them, such as "
            "result.weights or attentions[0]"
        )
    _check_extents(*tuple(getattr(values, "shape", ()))[-2:])
    return values.tolist() if hasattr(values, "tolist") else values


def _check_extents(height: int = 0, width: int = 0) -> None:
    if max(height, width) > MOST_CELLS:
        raise ValueError(
            f"a map of {height} rows and {width} columns is too fine to see: "
            f"choose up to {MOST_CELLS} of them, weights[..., :{MOST_CELLS}, :{MOST_CELLS}]"
        )


def _depth(values: Any) -> int:
    depth = 0
    while isinstance(values, (list, tuple)):
        depth, values = depth + 1, values[0] if values else None
    return depth


def _heads_of(weights: Any) -> list[list[list[float]]]:
    """Weights (rows, columns), (heads, rows, columns) or (1, heads, rows, columns) as heads."""
    maps = _nested(weights)
    depth = _depth(maps)
    if depth == 4 and len(maps) == 1:
        return maps[0]
    if depth == 4:
        raise ValueError(f"weights hold a batch of {len(maps)}: draw one of it, weights[0]")
    if depth == 3:
        return maps
    if depth == 2:
        return [maps]
    raise ValueError(
        f"a map needs weights (rows, columns) or (heads, rows, columns), not {depth} axes"
    )


def _labels(words: Sequence[Any] | None, count: int, axis: str) -> list[str] | None:
    if words is None:
        return None
    words = [str(word) for word in words]
    if len(words) != count:
        raise ValueError(f"{len(words)} labels for {count} {axis}: give one for each, or none")
    return words


def _short(word: str) -> str:
    return word if len(word) <= _LONGEST else word[: _LONGEST - 1] + "…"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _colour(share: float) -> str:
    """The colour of a share from 0 to 1, the same as in the mha program."""
    place = math.floor(255 * min(1.0, max(0.0, share)) + 0.5) * (len(_SCALE) - 1)
    start = min(place // 255, len(_SCALE) - 2)
    part = place - 255 * start
    mixed = (
        (a * (255 - part) + b * part + 127) // 255
        for a, b in zip(_SCALE[start], _SCALE[start + 1], strict=True)
    )
    return f"rgb({','.join(map(str, mixed))})"


class Heatmap:
    """Weights drawn as one map a head: rows are queries, columns are keys, dark is much.

    weights: (rows, columns), (heads, rows, columns), or a batch of one of that; an array of any
        kind, or lists. rows, columns: labels, such as the words. titles: one for each head.
    largest: the number that is darkest; the largest finite one that is there if it is not given.
        Numbers of 0 or less, and NaN, stay white. across: maps side by side.

    In a notebook the object shows itself; `save()` writes an SVG file or an HTML page.

    >>> picture = Heatmap([[1.0, 0.0], [0.25, 0.75]], rows=["le", "chat"], columns=["the", "cat"])
    >>> picture.svg.startswith("<svg ")
    True
    >>> "chat: cat 0.75, the 0.25" in picture.svg
    True
    """

    def __init__(
        self,
        weights: Any,
        rows: Sequence[Any] | None = None,
        columns: Sequence[Any] | None = None,
        *,
        titles: Sequence[Any] | None = None,
        largest: float | None = None,
        across: int = 4,
    ) -> None:
        self._heads = _heads_of(weights)
        self._height = len(self._heads[0]) if self._heads else 0
        self._width = len(self._heads[0][0]) if self._height else 0
        self._check()
        self._rows = _labels(rows, self._height, "rows")
        self._columns = _labels(columns, self._width, "columns")
        names = [f"head {number}" for number in range(len(self._heads))]
        self._titles = _labels(titles, len(self._heads), "heads") or names
        self._largest = self._largest_weight() if largest is None else float(largest)
        self._across = max(1, min(int(across), len(self._heads)))
        self._cell = min(20.0, max(1.0, _SIDE / max(self._height, self._width, 1)))

    def _check(self) -> None:
        _check_extents(self._height, self._width)
        for head in self._heads:
            if len(head) != self._height or any(len(row) != self._width for row in head):
                raise ValueError("weights have rows of unequal length")

    def _largest_weight(self) -> float:
        numbers = (w for head in self._heads for row in head for w in row if math.isfinite(w))
        return max(numbers, default=0.0)

    # -------------------------------------------------------------- drawing -----

    @property
    def svg(self) -> str:
        """The picture as text."""
        left = self._margin(self._rows)
        top = _TITLE + self._margin(self._columns)
        step_x = left + self._width * self._cell + _GAP
        step_y = top + self._height * self._cell + _GAP
        down = -(-len(self._heads) // self._across)
        size = f"{_number(self._across * step_x)} {_number(down * step_y)}"
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}"'
            f' width="{size.split()[0]}" style="max-width:100%;height:auto;background:#fff"'
            ' font-family="sans-serif" role="img" aria-label="attention weights of each head">'
        ]
        for number, head in enumerate(self._heads):
            x = number % self._across * step_x + left
            y = number // self._across * step_y + top
            parts.append(f'<g transform="translate({_number(x)} {_number(y)})">')
            parts.extend(self._map(number, head))
            parts.append("</g>")
        return "".join((*parts, "</svg>"))

    @property
    def _letter_height(self) -> float:
        return min(12.0, self._cell * 0.85)

    def _shows(self, words: list[str] | None) -> bool:
        """Labels that would be too small to read are left out."""
        return words is not None and self._letter_height >= 5.0

    def _margin(self, words: list[str] | None) -> float:
        if not self._shows(words):
            return 6.0
        longest = max((len(_short(word)) for word in words or ()), default=0)
        return 8.0 + longest * self._letter_height * _LETTER

    def _map(self, number: int, head: list[list[float]]) -> Iterator[str]:
        width, height = self._width * self._cell, self._height * self._cell
        title_y = -self._margin(self._columns) - 4.0
        yield (
            f'<text x="0" y="{_number(title_y)}" font-size="12" font-weight="600" fill="#222">'
            f"{escape(self._titles[number])}</text>"
        )
        yield f'<g transform="scale({_number(self._cell)})" shape-rendering="crispEdges">'
        yield from self._shades(head)
        yield "</g>"
        yield from self._hints(head)
        yield (
            f'<rect width="{_number(width)}" height="{_number(height)}" fill="none"'
            ' stroke="#999" stroke-width="1"/>'
        )
        yield from self._row_words()
        yield from self._column_words()

    def _level(self, weight: float) -> int:
        if not (weight > 0.0 and self._largest > 0.0):
            return 0
        return min(_LEVELS, math.ceil(min(1.0, weight / self._largest) * _LEVELS))

    def _shades(self, head: list[list[float]]) -> Iterator[str]:
        """One path for each shade, of strokes over neighbouring cells."""
        strokes: dict[int, list[str]] = {}
        for i, row in enumerate(head):
            levels = [self._level(weight) for weight in row]
            start = 0
            for j in range(1, len(levels) + 1):
                if j < len(levels) and levels[j] == levels[start]:
                    continue
                strokes.setdefault(levels[start], []).append(f"M{start} {i}.5h{j - start}")
                start = j
        strokes.pop(0, None)
        for level, moves in sorted(strokes.items()):
            yield f'<path d="{"".join(moves)}" stroke="{_colour(level / _LEVELS)}"/>'

    def _hints(self, head: list[list[float]]) -> Iterator[str]:
        """What a row attends to most, shown while the pointer is over it."""
        width, height = _number(self._width * self._cell), _number(self._cell)
        for i, row in enumerate(head):
            order = sorted((j for j, w in enumerate(row) if w > 0.0), key=lambda j: -row[j])[:3]
            most = ", ".join(f"{self._name(self._columns, j)} {row[j]:.3g}" for j in order)
            hint = escape(f"{self._name(self._rows, i)}: {most or 'nothing'}")
            yield (
                f'<rect y="{_number(i * self._cell)}" width="{width}" height="{height}"'
                f' fill="#000" fill-opacity="0"><title>{hint}</title></rect>'
            )

    @staticmethod
    def _name(words: list[str] | None, index: int) -> str:
        return words[index] if words else str(index)

    def _row_words(self) -> Iterator[str]:
        size = self._letter_height
        for i, word in enumerate(self._rows or () if self._shows(self._rows) else ()):
            y = (i + 0.5) * self._cell + 0.35 * size
            yield (
                f'<text x="-4" y="{_number(y)}" font-size="{_number(size)}" text-anchor="end"'
                f' fill="#222">{escape(_short(word))}</text>'
            )

    def _column_words(self) -> Iterator[str]:
        size = self._letter_height
        for j, word in enumerate(self._columns or () if self._shows(self._columns) else ()):
            x = (j + 0.5) * self._cell + 0.35 * size
            yield (
                f'<text transform="translate({_number(x)} -4) rotate(-90)"'
                f' font-size="{_number(size)}" fill="#222">{escape(_short(word))}</text>'
            )

    # -------------------------------------------------------------- showing -----

    def _repr_html_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Heatmap of {len(self._heads)} heads, {self._height} rows, {self._width} columns>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file, `.svg` or `.html`, whole or not at all."""
        path = Path(path)
        if path.suffix == ".svg":
            text = self.svg
        elif path.suffix == ".html":
            text = f'<!doctype html><meta charset="utf-8"><title>heads</title>{self.svg}'
        else:
            raise ValueError(f"{path.name}: the name of a picture ends in .svg or .html")
        _replace(path, text)


def _replace(path: Path, text: str) -> None:
    """Put text into a new file beside the old one, then into its place."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
