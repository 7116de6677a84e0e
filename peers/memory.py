# SPDX-License-Identifier: MIT
"""High-water marks of memory: what one call uses in addition to its inputs.

Every contender runs once, in its own process. Its mark is the peak of resident memory during the
first call minus the resident memory when all inputs (including masks in the form the library needs)
were ready. So the outputs count, and whatever the library keeps for later.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from dataclasses import dataclass, replace

from . import registry
from .cases import Case, parse
from .contender import Contender, Runner, Unable, reason_of
from .inputs import make

WARM_UP_LENGTH = 64
SECONDS = 300

# Large blocks are mapped from the system and unmapped when they are freed; otherwise a later call
# could reuse memory of an earlier one without being counted.
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "131072"}


@dataclass
class Mark:
    """Bytes of one contender, or the reason why there are none."""

    contender: Contender
    size: int | None = None
    reason: str = ""


def _status(name: str) -> int:
    with open("/proc/self/status", encoding="ascii") as lines:
        for line in lines:
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    return 0


def _forget_peak() -> None:
    """Resets the high-water mark to the resident memory, if the system permits it."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        pass


def _peak() -> int:
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _prepare_short(case: Case, contender: Contender, threads: int) -> Runner:
    short = replace(case, L=WARM_UP_LENGTH, S=WARM_UP_LENGTH)
    return contender.prepare(short, make(short), threads)


def _measure_here(case: Case, contender: Contender, threads: int) -> int:
    """Runs a short case first, so that starting threads and loading code is not counted."""
    _prepare_short(case, contender, threads).run()
    inputs = make(case)
    runner = contender.prepare(case, inputs, threads)
    _forget_peak()
    before = _status("VmRSS")
    result = runner.run()
    size = max(0, _peak() - before)
    del result
    return size


def main(word: str, label: str, threads: str) -> None:
    """In the child: prints one line of JSON."""
    found = registry.find((label.split(":")[0],))
    try:
        if found.missing:
            raise Unable(*found.missing.values())
        contender = next(c for c in found.contenders if c.label == label)
        print(json.dumps({"bytes": _measure_here(parse(word), contender, int(threads))}))
    except Exception as error:
        print(json.dumps({"reason": reason_of(error)}))


def mark(case: Case, contender: Contender, threads: int) -> Mark:
    """The high-water mark of one contender, measured in a child of this process."""
    try:
        _prepare_short(case, contender, threads)
    except Exception as error:  # no need to start a child for that
        return Mark(contender, reason=reason_of(error))
    command = [sys.executable, "-m", f"{__package__}.memory", case.word, contender.label]
    try:
        child = subprocess.run(
            [*command, str(threads)],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=os.environ | ALLOCATOR,
        )
        answer = json.loads(child.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return Mark(contender, reason=f"took more than {SECONDS} s")
    except (IndexError, json.JSONDecodeError):
        return Mark(contender, reason=f"ended with status {child.returncode}")
    return Mark(contender, answer.get("bytes"), answer.get("reason", ""))


if __name__ == "__main__":
    main(*sys.argv[1:])
