# SPDX-License-Identifier: MIT
"""A copy of the tree with its own build, in which one mutant after another is built and tested."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from mutants import Mutant

CONFIGURE = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O1", "-DMHA_HARDEN=OFF",
             "-DMHA_MPICC_openmpi=OFF", "-DMHA_MPICC_mpich=OFF", "-DMHA_MPICC_mpi=OFF"]  # fmt: skip
EFFORT = "0.1"  # the share of random cases
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}


def copy_tree(root: Path, to: Path) -> None:
    """The files that git knows, as they are now; those that did not change keep their times."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True)
    for name in listed.stdout.decode().split("\0"):
        source, target = root / name, to / name
        if not name or not source.is_file():
            continue
        if target.exists() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def passes(tree: Path, out: Path, name: str, cpu_seconds: int) -> bool:
    """Whether a test program succeeds within this CPU time and without standing still."""
    command = f'ulimit -t {cpu_seconds}; exec tests/support/until_stalled.sh 60 "$0"'
    environment = {"MHA_TEST_EFFORT": EFFORT, "PATH": "/usr/bin:/bin"}
    program = str(out / "tests" / name)
    return subprocess.run(["bash", "-c", command, program], cwd=tree, env=environment, **QUIET).returncode == 0


def build(out: Path, *targets: str, jobs: int = 1) -> bool:
    return subprocess.run(["ninja", "-C", str(out), f"-j{jobs}", *targets], **QUIET).returncode == 0


def cpu_time(tree: Path, out: Path, name: str) -> float | None:
    """The seconds that a test program takes; None if it fails."""
    script = f'TIMEFORMAT="%U %S"; {{ time MHA_TEST_EFFORT={EFFORT} "{out}/tests/{name}" >/dev/null 2>&1; }} 2>&1'
    done = subprocess.run(["bash", "-c", script + "; exit $?"], cwd=tree, capture_output=True, text=True)
    if done.returncode != 0:
        return None
    return sum(map(float, done.stdout.split()[-2:]))


def baseline(root: Path, folder: Path, workers: int) -> dict[str, float]:
    """Builds the trees of all workers; the time of every test that passes without a mutant."""
    for n in range(workers):
        tree, out = folder / str(n) / "tree", folder / str(n) / "out"
        copy_tree(root, tree)
        subprocess.run(["cmake", "-S", str(tree), "-B", str(out), *CONFIGURE], check=True, **QUIET)
        if not build(out, "all", jobs=2):
            raise SystemExit(f"mutation: the tree in {tree} does not build")
    kept = folder / "times.json"
    if kept.exists():
        return json.loads(kept.read_text())
    tree, out = folder / "0/tree", folder / "0/out"
    names = [path.stem for path in sorted(tree.glob("tests/*/*.c"))
             if path.stem.startswith(("test_", "fuzz_")) and (out / "tests" / path.stem).exists()]  # fmt: skip
    times = {name: seconds for name in names if (seconds := cpu_time(tree, out, name)) is not None}
    kept.write_text(json.dumps(times, indent=1))
    return times


class Worker:
    def __init__(self, root: Path, folder: Path, times: dict[str, float]) -> None:
        self.root, self.times = root, times
        self.tree, self.out = folder / "tree", folder / "out"
        self.rooms = {path.stem: path.parent.name for path in self.tree.glob("tests/*/*.c")}

    def order(self, file: str) -> list[str]:
        """Tests that are named after the file first, then those of its room; quick ones before slow."""
        room, stem = Path(file).parent.name, Path(file).stem

        def key(name: str) -> tuple[bool, bool, float]:
            return (stem not in name, self.rooms.get(name) != room, self.times[name])

        return sorted(self.times, key=key)

    def object_of(self, file: str) -> Path | None:
        room = Path(file).parent
        found = list((self.out / room).glob(f"CMakeFiles/*/{Path(file).name}.o"))
        return found[0] if found else None

    def judge(self, mutant: Mutant) -> str:
        """ "killed by TEST", "survived", "not compiled" or "same code"."""
        path = self.tree / mutant.file
        text = path.read_text(encoding="utf-8")
        compiled = self.object_of(mutant.file)
        if compiled is None:
            return "not compiled"
        before = compiled.read_bytes()
        try:
            path.write_text(mutant.applied(text), encoding="utf-8")
            if not build(self.out, str(compiled.relative_to(self.out))):
                return "not compiled"
            if compiled.read_bytes() == before:
                return "same code"
            for name in self.order(mutant.file):
                limit = int(10 * self.times[name]) + 10
                if not build(self.out, f"tests/{name}") or not passes(self.tree, self.out, name, limit):
                    return f"killed by {name}"
            return "survived"
        finally:
            path.write_text(text, encoding="utf-8")
            build(self.out, str(compiled.relative_to(self.out)))
