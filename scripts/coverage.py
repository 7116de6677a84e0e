#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""coverage.py [ROOM...]: which lines and branches of src/ the test programs run.

Builds the preset "coverage", runs every test program with each instruction set of this CPU and few
random cases, and adds up the counts of gcov. A file that is compiled several times, as the kernels
are, counts a line as run if one of its copies ran it. Prints a table per room; what was not run is
listed in build/coverage/missing.txt. Fails if a goal is missed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build/coverage"
ISAS = ["c", "avx2", "avx512", "avx512bf16", "neon", "neonbf16"]
GOALS = {"core": (95, 90), "format": (95, 90), "model": (95, 90)}  # lines, branches, in percent
EFFORT = "0.1"  # the share of random cases


class File:
    """What is known of one source: how often each line and each branch of it ran."""

    def __init__(self) -> None:
        self.lines: dict[int, int] = defaultdict(int)
        self.branches: dict[tuple[int, int], int] = defaultdict(int)

    def add(self, lines: list[dict]) -> None:
        for line in lines:
            number = line["line_number"]
            self.lines[number] += line["count"]
            for n, branch in enumerate(line["branches"]):
                self.branches[number, n] += branch["count"]

    def share(self) -> tuple[int, int, int, int]:
        """Lines run, lines, branches taken, branches."""
        counts = list(self.lines.values()), list(self.branches.values())
        return tuple(n for some in counts for n in (sum(count > 0 for count in some), len(some)))


def build() -> None:
    print("building", flush=True)
    for command in (["cmake", "--preset", "coverage"], ["cmake", "--build", "--preset", "coverage", "--parallel", "2"]):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"coverage: {' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    for counts in OUT.rglob("*.gcda"):
        counts.unlink()


def runs_here(isa: str) -> bool:
    environment = {**os.environ, "MHA_ISA": isa}
    done = subprocess.run([OUT / "examples/readme"], env=environment, capture_output=True)
    return done.returncode == 0


def run_tests() -> None:
    isas = [isa for isa in ISAS if runs_here(isa)]
    names = sorted(path.stem for pattern in ("test_*.c", "fuzz_*.c") for path in ROOT.glob(f"tests/*/{pattern}"))
    print(f"running {len(names)} programs with {', '.join(isas)}", flush=True)

    def run(isa: str, name: str) -> str:
        environment = {**os.environ, "MHA_ISA": isa, "MHA_TEST_EFFORT": EFFORT}
        done = subprocess.run([OUT / "tests" / name], cwd=ROOT, env=environment, capture_output=True)
        return "" if done.returncode == 0 else f"{name} failed with {isa}"

    with ThreadPoolExecutor(2) as pool:
        for problem in pool.map(lambda both: run(*both), [(isa, name) for isa in isas for name in names]):
            if problem:
                print(f"coverage: {problem}", flush=True)


def read_counts() -> dict[str, File]:
    files: dict[str, File] = defaultdict(File)
    for counts in sorted((OUT / "src").rglob("*.gcda")):
        done = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", counts],
                              cwd=OUT, capture_output=True, text=True, check=True)  # fmt: skip
        for document in done.stdout.splitlines():
            for file in json.loads(document)["files"]:
                path = Path(os.path.normpath(OUT / file["file"]))
                if path.is_relative_to(ROOT / "src"):
                    files[str(path.relative_to(ROOT))].add(file["lines"])
    return files


def write_missing(files: dict[str, File]) -> None:
    with (OUT / "missing.txt").open("w", encoding="utf-8") as to:
        for name, file in sorted(files.items()):
            source = (ROOT / name).read_text(encoding="utf-8").splitlines()
            halves = {line for (line, _), count in file.branches.items() if count == 0}
            for line, count in sorted(file.lines.items()):
                if count == 0 or line in halves:
                    what = "never run" if count == 0 else "one way only"
                    to.write(f"{name}:{line}: {what}: {source[line - 1].strip()}\n")


def percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 100.0


def report(files: dict[str, File], chosen: list[str]) -> bool:
    """Prints the table; True if all goals are reached."""
    rooms: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for name, file in files.items():
        room = rooms[name.split("/")[1]]
        room[:] = [a + b for a, b in zip(room, file.share())]
    reached = True
    print(f"{'room':12} {'lines':>7} {'run':>7} {'branches':>9} {'taken':>7}")
    for room, (run, lines, taken, branches) in sorted(rooms.items()):
        if chosen and room not in chosen:
            continue
        shares = percent(run, lines), percent(taken, branches)
        missed = any(share < goal for share, goal in zip(shares, GOALS.get(room, (0, 0))))
        reached = reached and not missed
        mark = "  below the goal" if missed else ""
        print(f"{room:12} {lines:7} {shares[0]:6.1f}% {branches:9} {shares[1]:6.1f}%{mark}")
    print(f"what was not run: {OUT.relative_to(ROOT)}/missing.txt")
    return reached


def main() -> int:
    build()
    run_tests()
    files = read_counts()
    write_missing(files)
    return 0 if report(files, sys.argv[1:]) else 1


if __name__ == "__main__":
    sys.exit(main())
