# SPDX-License-Identifier: MIT
"""All cases, one after the other, each printed as soon as it is measured."""

from __future__ import annotations

from collections.abc import Callable

from .cases import Case, title
from .contender import Contender
from .measure import measure, progress
from .memory import mark
from .registry import Found
from .report import counts, libraries, text_head, text_row
from .summary import Document, document, of_memory, of_times

MEMORY = "memory"


def _memory_row(case: Case, contenders: list[Contender], threads: int) -> Document:
    marks = []
    for contender in contenders:
        progress(f"{case.word}: memory of {contender.label}")
        marks.append(mark(case, contender, threads))
    progress("")
    return of_memory(case, marks, MEMORY)


def run(
    table: dict[str, list[Case]],
    found: Found,
    threads: int,
    rounds: int,
    seconds: float,
    keep: Callable[[Document], None],
) -> Document:
    """Measures every case of the table and prints it; returns the document of all.

    keep() is called with the document after each case, so that an interrupted run has a result.
    """
    rows: list[Document] = []
    names = libraries({"versions": found.versions})
    for section, section_cases in table.items():
        print(text_head(names, title(section)), flush=True)
        for case in section_cases:
            if section == MEMORY:
                row = _memory_row(case, found.contenders, threads)
            else:
                result = measure(case, found.contenders, threads, rounds, seconds)
                row = of_times(result, section)
            rows.append(row)
            print(text_row(row, names), flush=True)
            keep(document(found, threads, rows))
    print(f"\n{counts(rows)}")
    return document(found, threads, rows)
