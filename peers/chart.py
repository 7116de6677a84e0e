# SPDX-License-Identifier: MIT
"""A document as a chart: a line per case and a mark per library, at its ratio to ours.

Right of 1, ours is faster. Whiskers are quartiles; the grey tick is the goal. Marks of libraries
differ in shape as well as in colour, and all colours are readable on white and on black.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape

from .cases import title
from .report import by_section, libraries
from .summary import Document, best_of

MARGIN, LEFT, RIGHT, LINE, TOP = 12, 292, 640, 17, 64
LEAST, MOST = 0.5, 32.0
COLOURS = {
    "torch": "#e8590c",
    "onnxruntime": "#1c7ed6",
    "jax": "#ae3ec9",
    "openblas": "#868e96",
    "llama.cpp": "#2b8a3e",
    "openvino": "#c2255c",
    "ctranslate2": "#0c8599",
}


def place(ratio: float) -> float:
    """The position of a ratio on the logarithmic axis; ratios out of range are at its ends."""
    inside = min(max(ratio, LEAST), MOST)
    share = math.log(inside / LEAST) / math.log(MOST / LEAST)
    return LEFT + share * RIGHT


def _circle(x: float, y: float) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>'


def _polygon(*corners: tuple[float, float]) -> Callable[[float, float], str]:
    def draw(x: float, y: float) -> str:
        points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
        return f'<polygon points="{points}"/>'

    return draw


SHAPES: dict[str, Callable[[float, float], str]] = {
    "torch": _circle,
    "onnxruntime": _polygon((-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)),
    "jax": _polygon((0, -5), (5, 0), (0, 5), (-5, 0)),
    "openblas": _polygon((-4.4, 3.6), (4.4, 3.6), (0, -4.8)),
    "llama.cpp": _polygon((-4.4, -3.6), (4.4, -3.6), (0, 4.8)),
    "ctranslate2": _polygon((-4.6, -2.4), (0, -5), (4.6, -2.4), (4.6, 2.4), (0, 5), (-4.6, 2.4)),
    "openvino": _polygon((-5, 0), (-2.5, -4.4), (2.5, -4.4), (5, 0), (2.5, 4.4), (-2.5, 4.4)),
}


def _text(x: float, y: float, words: str, kind: str = "") -> str:
    attribute = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{attribute}>{escape(words)}</text>'


def _vertical(x: float, top: float, bottom: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x:.1f}" y1="{top:.1f}" x2="{x:.1f}" y2="{bottom:.1f}"/>'


def _mark(peer: Document, y: float) -> str:
    """The mark of one library in one row; its title has the numbers."""
    low, middle, high = peer["ratio"]
    name = peer["library"]
    about = escape(f"{name} {peer['name']}: {middle:.2f} ({low:.2f} to {high:.2f})")
    whisker = f'<path d="M{place(low):.1f} {y:.1f}H{place(high):.1f}"/>'
    shape = SHAPES[name](place(middle), y)
    colour = COLOURS[name]
    return f'<g fill="{colour}" stroke="{colour}"><title>{about}</title>{whisker}{shape}</g>'


def _row(row: Document, names: list[str], y: float) -> list[str]:
    kind = {"lost": "lost", "missed": "missed"}.get(row["verdict"], "")
    parts = [_text(LEFT - MARGIN, y + 4, row["case"], f"case {kind}".strip())]
    parts.append(_vertical(place(row["goal"]), y - 6, y + 6, "goal"))
    for name in names:
        peer = best_of(row, name)
        if peer is not None and "ratio" in peer:
            parts.append(_mark(peer, y))
    return parts


def _legend(names: list[str]) -> list[str]:
    parts = []
    for n, name in enumerate(names):
        x = LEFT + 118 * n
        colour = COLOURS[name]
        parts.append(f'<g fill="{colour}">{SHAPES[name](x, 40)}</g>')
        parts.append(_text(x + 9, 44, name))
    return parts


def _axis(bottom: float) -> list[str]:
    parts = []
    for ratio in (0.5, 1, 2, 4, 8, 16, 32):
        x = place(ratio)
        parts.append(_vertical(x, TOP, bottom, "one" if ratio == 1 else "grid"))
        parts.append(_text(x, bottom + 16, f"{ratio:g}x", "tick"))
    return parts


STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#868e96}"
    ".case{font:11px ui-monospace,monospace;text-anchor:end}"
    ".lost{fill:#e03131;font-weight:bold}.missed{font-style:italic}"
    ".above{font-weight:bold}.tick{text-anchor:middle}"
    ".grid{stroke:#868e96;stroke-opacity:.25}.one{stroke:#868e96;stroke-width:1.5}"
    ".goal{stroke:#868e96;stroke-width:3;stroke-opacity:.55}"
)


def svg(document: Document) -> str:
    """The chart; it needs no script and no other file."""
    names, y, body = libraries(document), TOP + 6.0, []
    for section, rows in by_section(document).items():
        y += LINE
        what = " (memory: how many times ours)" if rows[0]["unit"] == "MB" else ""
        body.append(_text(MARGIN, y, title(section) + what, "above"))
        for row in rows:
            y += LINE
            body += _row(row, names, y - 4)
        y += 6
    threads = document["threads"]
    above = (
        f"Time of each peer / time of libmha, {threads} thread{'s' if threads > 1 else ''}, "
        f"{document['machine']['cpu']}. Right of 1x libmha is faster; grey ticks are goals "
        "(missed: italic, lost: red)"
    )
    width, height = LEFT + RIGHT + 30, y + 34
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" '
            f'width="{width}" height="{height:.0f}" role="img">',
            f"<title>{escape(above)}</title><style>{STYLE}</style>",
            _text(MARGIN, 20, above),
            *_legend(names),
            *_axis(y + 4),
            *body,
            "</svg>",
            "",
        ]
    )
