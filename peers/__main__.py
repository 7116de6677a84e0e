# SPDX-License-Identifier: MIT
"""python -m peers: measures libmha and its peers. --help lists the options."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from . import cases, registry

OWN = "own"  # the section of words that are given on the command line


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench-peers",
        description="Measures libmha beside PyTorch, ONNX Runtime, JAX, OpenBLAS, llama.cpp, "
        "OpenVINO and CTranslate2. Results are compared first; then all take turns in interleaved rounds. Numbers "
        "are the peer's time divided by ours in the same round: above 1, ours is faster.",
        epilog=f"Sections: {', '.join(cases.SECTIONS)}. Words: b1h12l1024d64:causal, "
        "cache:b1h32g8s4096d128, layer:bert-base:l512, decode:gpt2-small:s1024, "
        "model:minilm:l128, model:vit-tiny:b64, translate:b64:beam=4 and the like.",
    )
    add = parser.add_argument
    add("words", nargs="*", metavar="WORD", help="cases to measure instead of the table")
    add("--only", action="append", metavar="TEXT", help="sections of this name, words with TEXT")
    add("--all", action="store_true", help="the long cases too (GPT-3 at 512 and 1024 tokens)")
    add("--peers", metavar="A,B", help=f"of {','.join(registry.PEERS)}; all unless given")
    add("--threads", type=int, default=1, metavar="N", help="of every contender; 1 unless given")
    add("--rounds", type=int, default=15, metavar="N", help="at most so many; 15 unless given")
    add("--seconds", type=float, default=4.0, metavar="S", help="for a case; 4 unless given")
    add("--translator", metavar="FOLDER", help="the model that translates; models/en-fr")
    add("--classifier", metavar="FOLDER", help="the model vit-fashion; models/vit-fashion")
    add("--texts", metavar="FILE",
        help="what it translates: its first column; tests/data/everyday.tsv")  # fmt: skip
    add("--json", type=Path, metavar="FILE", help="write all numbers there")
    add(
        "--markdown", type=Path, metavar="FILE", help="write tables there, between its marks if any"
    )
    add("--svg", type=Path, metavar="FILE", help="write a chart there")
    add("--from", type=Path, dest="sources", action="append", metavar="FILE",
        help="measure nothing, read that JSON; of several, later ones replace rows")  # fmt: skip
    add("--list", action="store_true", help="list the cases and their goals, measure nothing")
    return parser


def _peers(parser: argparse.ArgumentParser, text: str | None) -> tuple[str, ...]:
    names = registry.PEERS if text is None else tuple(text.split(","))
    for name in names:
        if name not in registry.PEERS:
            parser.error(f'no peer is called "{name}"; there are {", ".join(registry.PEERS)}')
    return (registry.OURS, *names)


def chosen(
    words: list[str], only: list[str] | None, everything: bool
) -> dict[str, list[cases.Case]]:
    """The cases to measure, by section; sections without a case are left out."""
    if words:
        return {OWN: [cases.parse(word) for word in words]}
    table = cases.table(everything)
    if only:
        table = {
            name: [c for c in rows if name in only or any(text in c.word for text in only)]
            for name, rows in table.items()
        }
    return {name: rows for name, rows in table.items() if rows}


def _limit_threads(threads: int) -> None:
    """Called before any library is imported: XLA uses all processors of the process."""
    allowed = sorted(os.sched_getaffinity(0))
    if threads > len(allowed):
        sys.exit(f"bench-peers: {threads} threads, but only {len(allowed)} processors")
    os.sched_setaffinity(0, allowed[:threads])
    os.environ["OMP_NUM_THREADS"] = str(threads)
    os.environ["JAX_PLATFORMS"] = "cpu"


def _name_files(arguments: argparse.Namespace) -> None:
    """For translation.py and pictures.py, here and in child processes."""
    if arguments.translator:
        os.environ["PEERS_TRANSLATOR"] = arguments.translator
    if arguments.texts:
        os.environ["PEERS_TEXTS"] = arguments.texts
    if arguments.classifier:
        os.environ["PEERS_PICTURES"] = arguments.classifier


def _measure_all(
    table: dict[str, list[cases.Case]], names: tuple[str, ...], arguments: argparse.Namespace
) -> dict:
    from . import report, run  # after _limit_threads()

    found = registry.find(names)
    print("\n".join(report.head(run.document(found, arguments.threads, []))))
    return run.run(
        table,
        found,
        arguments.threads,
        arguments.rounds,
        arguments.seconds,
        lambda document: _write_json(document, arguments.json),
    )


def _write_json(document: dict, path: Path | None) -> None:
    if path:
        path.write_text(json.dumps(document, indent=1) + "\n")


def _write(document: dict, arguments: argparse.Namespace) -> None:
    from . import chart, report

    _write_json(document, arguments.json)
    if arguments.markdown:
        page = arguments.markdown.read_text() if arguments.markdown.exists() else ""
        arguments.markdown.write_text(report.insert(page, report.markdown(document)))
    if arguments.svg:
        arguments.svg.write_text(chart.svg(document))


def main() -> int:
    parser = _parser()
    arguments = parser.parse_args()
    names = _peers(parser, arguments.peers)
    if arguments.threads < 1 or arguments.rounds < 1 or arguments.seconds <= 0:
        parser.error("--threads, --rounds and --seconds are above 0")
    try:
        table = chosen(arguments.words, arguments.only, arguments.all)
    except cases.WordError as error:
        parser.error(str(error))
    if not table:
        parser.error("no case has that in its word; --list shows them")
    if arguments.list:
        for name, rows in table.items():
            print(*(f"{name:10} {case.goal:5.2f}  {case.word}" for case in rows), sep="\n")
        return 0
    if arguments.sources:
        from .summary import merge

        document = merge([json.loads(source.read_text()) for source in arguments.sources])
    else:
        _limit_threads(arguments.threads)
        _name_files(arguments)
        document = _measure_all(table, names, arguments)
    _write(document, arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
