# SPDX-License-Identifier: MIT
"""Makes a document from times: plain dictionaries, as --json writes them and --from reads them.

{"machine": {...}, "versions": {...}, "missing": {...}, "threads": 1,
 "rows": [{"case": word, "section": name, "goal": 1.5, "unit": "ms", "MB" or "/s",
           "ours": {"name": ..., "value": ..., "read_share": of the bandwidth, where it matters},
           "peers": [{"library": ..., "name": ..., "value": ...,
                      "ratio": [lower quartile, median, upper quartile],
                      "same": share of translations that are those of weights in f32} or
                     {"library": ..., "name": ..., "reason": ..., "differs": bool}],
           "best": index into peers or null, "verdict": "reached", "missed", "lost" or ""}]}
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from typing import Any

import numpy as np

from .cases import SECTIONS, Case, table
from .measure import CaseResult, Row
from .memory import Mark
from .registry import OURS, Found
from .translation import sentences

Document = dict[str, Any]


def quartiles(values: Sequence[float]) -> list[float]:
    """Lower quartile, median, upper quartile."""
    return [float(q) for q in np.quantile(values, (0.25, 0.5, 0.75))]


def ratios(theirs: Sequence[float], ours: Sequence[float]) -> list[float]:
    """Quartiles of the ratios of all rounds; above 1, ours was faster."""
    return quartiles([a / b for a, b in zip(theirs, ours)])


def verdict(ratio: float, goal: float) -> str:
    if ratio >= goal:
        return "reached"
    return "missed" if ratio >= 1.0 else "lost"


def _value(case: Case, row: Row) -> float:
    """Milliseconds, or sentences per second."""
    seconds = float(np.median(row.seconds))
    return len(sentences()) / seconds if case.is_translation else 1e3 * seconds


def _same(case: Case, row: Row) -> Document:
    """Of translations, the share that is as ours; of models in bf16 and i8, the cosine to f32."""
    if case.is_lowered:
        return {"cosine": 1.0 - row.difference}
    return {"same": 1.0 - row.difference} if case.is_translation else {}


def _peer(case: Case, row: Row, ours: Row | None) -> Document:
    entry: Document = {"library": row.contender.library, "name": row.contender.name}
    if not row.seconds:
        return entry | {"reason": row.reason, "differs": row.differs}
    entry |= {"value": _value(case, row), "difference": row.difference} | _same(case, row)
    return entry | ({"ratio": ratios(row.seconds, ours.seconds)} if ours else {})


def _judge(row: Document) -> Document:
    """Adds which peer is the best, and whether the goal is reached against it."""
    rated = [(peer["ratio"][1], n) for n, peer in enumerate(row["peers"]) if "ratio" in peer]
    ratio, best = min(rated, default=(0.0, None))
    return row | {
        "best": best,
        "verdict": "" if best is None else verdict(ratio, row["goal"]),
    }


def read_share(result: CaseResult) -> Document:
    """The share of the bandwidth at which our fastest reads memory, if that limits it."""
    ours = result.ours
    if ours is None or not ours.bytes_read or not result.read_rate:
        return {}
    return {"read_share": ours.bytes_read / float(np.median(ours.seconds)) / result.read_rate}


def of_times(result: CaseResult, section: str) -> Document:
    """The row of a case that was timed."""
    ours, case = result.ours, result.case
    value = _value(case, ours) if ours else None
    own_reasons = [r.reason for r in result.rows if r.contender.library == OURS and r.differs]
    return _judge(
        {
            "case": case.word,
            "section": section,
            "goal": case.goal,
            "unit": "/s" if case.is_translation else "ms",
            "ours": {
                "name": ours.contender.name if ours else " ".join(own_reasons),
                "value": value,
                "rounds": len(ours.seconds) if ours else 0,
            }
            | (_same(case, ours) if ours else {})
            | read_share(result),
            "peers": [_peer(case, r, ours) for r in result.rows if r.contender.library != OURS],
        }
    )


MEMORY_FLOOR = 1 << 20  # smaller marks depend on pages and chance


def memory_goal(case: Case) -> float:
    """The goal for memory: a tenth of the peers' if weights are requested, else no more than
    theirs."""
    return 10.0 if case.wants_weights else 1.0


def _memory_peer(mark: Mark, ours: int | None) -> Document:
    entry: Document = {"library": mark.contender.library, "name": mark.contender.name}
    if mark.size is None:
        return entry | {"reason": mark.reason, "differs": False}
    entry["value"] = mark.size / 1e6
    if ours is None:
        return entry
    ratio = max(mark.size, MEMORY_FLOOR) / max(ours, MEMORY_FLOOR)
    return entry | {"ratio": [ratio] * 3}


def of_memory(case: Case, marks: list[Mark], section: str) -> Document:
    """The row of a case whose memory was measured."""
    own = [m for m in marks if m.contender.library == OURS and m.size is not None]
    ours = min(own, key=lambda m: m.size, default=None)
    size = ours.size if ours else None
    return _judge(
        {
            "case": case.word,
            "section": section,
            "goal": memory_goal(case),
            "unit": "MB",
            "ours": {
                "name": ours.contender.name if ours else "",
                "value": None if size is None else size / 1e6,
                "rounds": 1,
            },
            "peers": [_memory_peer(m, size) for m in marks if m.contender.library != OURS],
        }
    )


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
        return names[0] if names else platform.machine()
    except OSError:
        return platform.machine()


def document(found: Found, threads: int, rows: list[Document]) -> Document:
    return {
        "machine": {
            "cpu": _cpu_name(),
            "processors": os.cpu_count(),
            "system": platform.platform(),
            "python": platform.python_version(),
        },
        "versions": found.versions,
        "missing": found.missing,
        "threads": threads,
        "rows": rows,
    }


def best_of(row: Document, library: str) -> Document | None:
    """A library's fastest way in a row; if it has none, one that differs; else None."""
    own = [peer for peer in row["peers"] if peer["library"] == library]
    timed = [peer for peer in own if "value" in peer]
    if timed:
        return min(timed, key=lambda peer: peer["ratio"][1] if "ratio" in peer else peer["value"])
    return next((peer for peer in own if peer.get("differs")), None)


def _order(row: Document) -> tuple[int, int]:
    """The position of a row in the table; words of the command line come after it."""
    for place, (name, cases) in enumerate(table(everything=True).items()):
        for number, case in enumerate(cases):
            if (name, case.word) == (row["section"], row["case"]):
                return place, number
    return len(SECTIONS), 0


def merge(documents: list[Document]) -> Document:
    """Merges documents of one machine: later rows replace earlier ones of the same case."""
    rows = {(r["section"], r["case"]): r for document in documents for r in document["rows"]}
    whole = {key: documents[-1][key] for key in ("machine", "missing", "threads")}
    versions = {name: text for d in documents for name, text in d["versions"].items()}
    return whole | {"versions": versions, "rows": sorted(rows.values(), key=_order)}
