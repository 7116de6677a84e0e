# SPDX-License-Identifier: MIT
"""What calls return: named tuples of arrays, and the statistics of heads."""

from __future__ import annotations

from html import escape
from typing import Any, NamedTuple


class Result(NamedTuple):
    """The output, and what else was requested; None for what was not."""

    output: Any
    lse: Any
    weights: Any
    statistics: Statistics | Any  # Any instead of None: if requested, they are always there


class Gradients(NamedTuple):
    """Gradients in f32, each with the shape of its input; None if not requested."""

    query: Any
    key: Any
    value: Any
    bias: Any
    mask: Any
    alibi_slopes: Any
    sinks: Any
    gates: Any


class RowStatistics(NamedTuple):
    """What every row of a head attends to: arrays (B, H, L). Rows without keys have 0, key -1."""

    entropy: Any  # -sum of w ln w, in nats
    largest: Any  # the largest weight
    distance: Any  # sum of w |i + offset - j|, in tokens
    self: Any  # weight of the key at the row's own position,
    previous: Any  # of the key before it,
    next: Any  # and of the key after it
    first: Any  # sum of the weights of the first keys
    mass: Any  # sum of all weights: 1 unless there are sinks
    key: Any  # the key with the largest weight


class HeadStatistics(NamedTuple):
    """Means over the rows of a head that attend to a key: arrays (B, H)."""

    entropy: Any
    largest: Any
    distance: Any
    self: Any
    previous: Any
    next: Any
    first: Any
    mass: Any
    rows: Any  # the number of these rows


class Statistics:
    """What heads attend to, collected while the output was computed; None if not requested.

    rows         RowStatistics, arrays (B, H, L)
    heads        HeadStatistics, arrays (B, H)
    columns      (B, H, S), what each key receives from all rows together
    top_keys     (B, H, L, top), the keys with the largest weights of each row; -1: no more
    top_weights  (B, H, L, top), those weights

    The batch or head axis is missing if the query has none.
    """

    __slots__ = ("columns", "heads", "rows", "top_keys", "top_weights")

    def __init__(self, rows: Any, heads: Any, columns: Any, top_keys: Any, top_weights: Any):
        self.rows: RowStatistics | Any = rows and RowStatistics(**rows)
        self.heads: HeadStatistics | Any = heads and HeadStatistics(**heads)
        self.columns = columns
        self.top_keys = top_keys
        self.top_weights = top_weights

    def __repr__(self) -> str:
        parts = (f"{name}={_shape(getattr(self, name))}" for name in self.__slots__)
        return f"mha.Statistics({', '.join(parts)})"

    def _repr_html_(self) -> str:
        """A table of heads, and what each key receives as a heat map, for notebooks."""
        table = _head_table(self.heads) if self.heads else ""
        return table + (_columns_html(self.columns) if self.columns is not None else "")


def _shape(part: Any) -> Any:
    """The shape of an array, or of the arrays of a named tuple."""
    first = part[0] if isinstance(part, tuple) else part
    return None if first is None else tuple(first.shape)


def _flat(numbers: Any) -> list[float]:
    """The numbers of nested lists, one after another."""
    if not isinstance(numbers, list):
        return [numbers]
    return [number for part in numbers for number in _flat(part)]


def _head_table(heads: HeadStatistics) -> str:
    """One line per head, as HTML."""
    names = heads._fields
    columns = [_flat(array.tolist()) for array in heads]
    head_count = tuple(heads.entropy.shape or (1,))[-1]
    lines = [
        f"<tr><th>batch</th><th>head</th>{''.join(f'<th>{escape(n)}</th>' for n in names)}</tr>"
    ]
    for number, values in enumerate(zip(*columns)):
        cells = "".join(f"<td>{value:.3g}</td>" for value in values)
        place = f"<td>{number // head_count}</td><td>{number % head_count}</td>"
        lines.append(f"<tr>{place}{cells}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _columns_html(columns: Any) -> str:
    """What each key receives: a map per batch, with a row per head."""
    from .heatmap import MOST_CELLS, Heatmap

    if columns.shape[-1] > MOST_CELLS:
        return f"<p>{columns.shape[-1]} columns, too many to draw</p>"
    numbers = columns.tolist()
    for _ in range(3 - len(columns.shape)):
        numbers = [numbers]
    rows = [f"head {head}" for head in range(len(numbers[0]))] if numbers else []
    titles = [f"batch {batch}" for batch in range(len(numbers))]
    return Heatmap(numbers, rows=rows, titles=titles)._repr_html_()
