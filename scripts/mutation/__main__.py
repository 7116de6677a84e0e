# SPDX-License-Identifier: MIT
"""Mutation testing: change one place of the sources at a time and see whether a test fails.

    python3 scripts/mutation [--count N] [--seed S] [--rooms ROOM ...]

Works on copies below build/mutation, one per worker; the tree itself is never touched. A mutant that
does not compile, or compiles to the same object, says nothing and is replaced by another. Results
go to build/mutation/results.tsv; a run that was stopped continues there.
"""

from __future__ import annotations

import argparse
import queue
import sys
import threading
from collections import Counter
from pathlib import Path

from mutants import Mutant, choose
from worker import Worker, baseline

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build/mutation"
ROOMS = ["base", "core", "format", "text", "model"]


def sources(rooms: list[str]) -> list[str]:
    """The C files of these rooms. Kernels are compiled once per instruction set, from files that they
    include; those are not among them."""
    files = [path for room in rooms for path in sorted((ROOT / "src" / room).glob("*.c"))]
    return [str(path.relative_to(ROOT)) for path in files]


def read_results(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return {name: result for result, name in rows}


def report(results: dict[str, str]) -> bool:
    """Prints a table and the survivors. True if at least 95 of 100 are killed."""
    rooms: dict[str, Counter] = {}
    for name, result in results.items():
        kind = "survived" if result == "survived" else "killed" if result.startswith("killed") else "none"
        rooms.setdefault(name.split("/")[1], Counter())[kind] += 1
    total = sum(rooms.values(), Counter())
    print(f"{'room':10} {'killed':>7} {'survived':>9} {'share':>7}")
    for room, counts in [*sorted(rooms.items()), ("all", total)]:
        judged = counts["killed"] + counts["survived"]
        share = f"{100 * counts['killed'] / judged:6.1f}%" if judged else "      -"
        print(f"{room:10} {counts['killed']:7} {counts['survived']:9} {share}")
    print(f"{total['none']} more did not compile or compile to the same code")
    for name in sorted(name for name, result in results.items() if result == "survived"):
        print(f"survived: {name}")
    judged = total["killed"] + total["survived"]
    return judged > 0 and total["killed"] >= 0.95 * judged


def run(mutants: list[Mutant], count: int, workers: int) -> dict[str, str]:
    """Judges mutants in their order until `count` are killed or survived."""
    path = FOLDER / "results.tsv"
    results = read_results(path)
    waiting: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
    for mutant in mutants:
        if mutant.name not in results:
            waiting.put(mutant)
    lock = threading.Lock()

    def judged() -> int:
        return sum(result == "survived" or result.startswith("killed") for result in results.values())

    def work(number: int) -> None:
        worker = Worker(ROOT, FOLDER / str(number), times)
        while True:
            with lock:
                if judged() >= count or waiting.empty():
                    return
                mutant = waiting.get()
            result = worker.judge(mutant)
            with lock:
                results[mutant.name] = result
                with path.open("a", encoding="utf-8") as file:
                    file.write(f"{result}\t{mutant.name}\n")
                print(f"{judged()}/{count} {result}: {mutant.name}", flush=True)

    times = baseline(ROOT, FOLDER, workers)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutation", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300, help="mutants to judge (300)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument("--rooms", nargs="+", default=ROOMS, choices=ROOMS, help="rooms of src/")
    parser.add_argument("--workers", type=int, default=2, help="how many at once (2)")
    options = parser.parse_args()
    mutants = choose(ROOT, sources(options.rooms), 3 * options.count, options.seed)
    FOLDER.mkdir(parents=True, exist_ok=True)
    return 0 if report(run(mutants, options.count, options.workers)) else 1


if __name__ == "__main__":
    sys.exit(main())
