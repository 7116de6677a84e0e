# SPDX-License-Identifier: MIT
"""A document as text for a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from .cases import title
from .registry import PEERS
from .summary import Document, best_of

WIDTH = 12


def libraries(document: Document) -> list[str]:
    return [name for name in PEERS if name in document["versions"]]


def head(document: Document) -> list[str]:
    """What was measured, and on which machine; missing libraries with their reasons."""
    machine, threads = document["machine"], document["threads"]
    lines = [
        f"{machine['cpu']}, {machine['processors']} processors, "
        f"{threads} thread{'s' if threads > 1 else ''}, Python {machine['python']}"
    ]
    lines += list(document["versions"].values())
    lines += [f"{name} is not installed: {reason}" for name, reason in document["missing"].items()]
    return lines


def by_section(document: Document) -> dict[str, list[Document]]:
    """Rows in the order in which they were measured."""
    sections: dict[str, list[Document]] = {}
    for row in document["rows"]:
        sections.setdefault(row["section"], []).append(row)
    return sections


def amount(value: float | None, unit: str) -> str:
    """Three digits and the unit."""
    if value is None:
        return "-"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:.{digits}f} {unit}"


def _number(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 9.995 else f"{ratio:.1f}" if ratio < 99.95 else f"{ratio:.0f}"


# ------------------------------------------------------------------- text -----


def text_head(names: list[str], above: str) -> str:
    columns = "".join(f"{name:>{WIDTH}}" for name in names)
    return f"\n{above}\n{'':36}{'goal':>6}{'ours':>10}{columns}  best peer (quartiles)"


def _text_cell(peer: Document | None) -> str:
    if peer is None:
        return "-"
    if peer.get("differs"):
        return "differs"
    return _number(peer["ratio"][1]) if "ratio" in peer else amount(peer["value"], "")


def _same(entry: Document) -> str:
    """Of translations, how many are the same as ours with weights in f32; of models in bf16 and i8,
    how near they are to f32."""
    if "cosine" in entry:
        return f", cosine {entry['cosine']:.4f}"
    share = entry.get("same")
    return "" if share is None else f", {100 * share:.0f} % the same"


def _reads(row: Document) -> str:
    share = row["ours"].get("read_share")
    return "" if share is None else f", {share:.2f} of the read bandwidth"


def _best_text(row: Document) -> str:
    if row["best"] is None:
        return ""
    peer = row["peers"][row["best"]]
    low, _, high = map(_number, peer["ratio"])
    more = _reads(row) + _same(peer)
    return f"{row['verdict']}: {peer['library']} {peer['name']} ({low} to {high}){more}"


def text_row(row: Document, names: list[str]) -> str:
    cells = "".join(f"{_text_cell(best_of(row, name)):>{WIDTH}}" for name in names)
    ours = amount(row["ours"]["value"], row["unit"])
    return f"{row['case']:<36}{row['goal']:>6.2f}{ours:>10}{cells}  {_best_text(row)}"


def counts(rows: Iterable[Document]) -> str:
    """The last line: how many rows reach their goal, miss it, lose."""
    verdicts = [row["verdict"] for row in rows]
    parts = [f"{verdicts.count(word)} {word}" for word in ("reached", "missed", "lost")]
    alone = verdicts.count("")
    return ", ".join(parts) + (f", {alone} without a comparison" if alone else "")


# --------------------------------------------------------------- Markdown -----


def _markdown_cell(peer: Document | None) -> str:
    if peer is None:
        return ""
    if peer.get("differs"):
        return peer["reason"]
    if "ratio" not in peer:
        return amount(peer["value"], "")
    low, middle, high = peer["ratio"]
    spread = "" if low == high else f" ({_number(low)} to {_number(high)})"
    return f"{_number(middle)}{spread}{_same(peer)}"


def _best_name(row: Document, names: list[str]) -> str:
    """With its ratio, if the library has no column."""
    if row["best"] is None:
        return ""
    peer = row["peers"][row["best"]]
    return peer["name"] + ("" if peer["library"] in names else f" {_markdown_cell(peer)}")


def _markdown_row(row: Document, names: list[str]) -> str:
    cells = " | ".join(_markdown_cell(best_of(row, name)) for name in names)
    best = _best_name(row, names)
    ours = amount(row["ours"]["value"], row["unit"]) + _reads(row) + _same(row["ours"])
    return f"| `{row['case']}` | {row['goal']:.2f} | {ours} | {cells} | {best} | {row['verdict']} |"


def markdown(document: Document) -> str:
    """A table per section: ratios to the fastest way of each library, median and quartiles."""
    names = libraries(document)
    lines = [f"- {line}" for line in head(document)]
    for section, rows in by_section(document).items():
        lines += ["", f"### {title(section)}", ""]
        lines.append(f"| case | goal | ours | {' | '.join(names)} | best peer | |")
        lines.append("|---" * (len(names) + 5) + "|")
        lines += [_markdown_row(row, names) for row in rows]
    return "\n".join([*lines, "", counts(document["rows"]) + ".", ""])


BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def insert(page: str, tables: str) -> str:
    """The page with new tables between its marks; the tables alone if it has none.

    >>> insert(f"a\\n{BEGIN}\\nold\\n{END}\\nz", "new\\n") == f"a\\n{BEGIN}\\nnew\\n{END}\\nz"
    True
    """
    before, begin, rest = page.partition(BEGIN + "\n")
    _, end, after = rest.partition(END)
    return f"{before}{begin}{tables}{end}{after}" if begin and end else tables
