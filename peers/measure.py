# SPDX-License-Identifier: MIT
"""Compares the results, then times the contenders that agree in interleaved rounds.

A round runs every contender once, in random order, with the same inputs and number of threads; what
counts is the ratio of two times of the same round. The speed of a shared machine varies, but both
times of a ratio are affected alike.

With one thread, CPU time of the process is measured, which does not count while other programs use
the processor; on an idle machine it equals wall time, which is measured for several threads.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from .cases import Case
from .contender import Contender, Results, Runner, Unable, reason_of
from .inputs import Inputs, counting_rows, make
from .registry import OURS

LEAST_ROUNDS = 5
LEAST_SECONDS = 1e-7  # time of a run if the clock is too coarse to measure it
# Before each turn, so that threads of the last contender stop polling for work and leave their
# processor. Those of ONNX Runtime do so for 60 ms after a run.
REST_SECONDS = 0.003
REST_SECONDS_OF_THREADS = 0.1
SPARE_BYTES = 2 << 30  # memory that is left free
READ_BYTES = 1 << 28
READ_ROUNDS = 7
SMALL_BYTES = 1 << 28  # by cases that need more than this

# The largest allowed difference of a result from ours, as a share of its largest number.
TOLERANCES = {"f32": 2e-4, "f16": 4e-2, "bf16": 4e-2, "q4": 8e-2}

# The largest allowed share of translations that differ: rounding decides between hypotheses of
# nearly the same score. With weights in i8 the share is reported, whatever it is.
TRANSLATION_TOLERANCES = {"f32": 0.05, "i8": 1.0}

# The largest allowed 1 - cosine of a model in bf16 or i8 to the same model in f32, the mean over its
# rows.
LOWERED_TOLERANCE = 0.05


@dataclass
class Row:
    """One contender in one case: a time per round, or the reason why there is none."""

    contender: Contender
    reason: str = ""
    difference: float = 0.0  # from ours, as a share of the largest number
    differs: bool = False
    repeats: int = 1
    bytes_read: int = 0
    seconds: list[float] = field(default_factory=list)


@dataclass
class CaseResult:
    case: Case
    rows: list[Row]
    read_rate: float = 0.0  # bytes per second that memory can be read, 0: not measured

    @property
    def ours(self) -> Row | None:
        """Our fastest; None if we cannot do the case."""
        own = [row for row in self.rows if row.contender.library == OURS and row.seconds]
        return min(own, key=lambda row: np.median(row.seconds), default=None)


def progress(text: str) -> None:
    """One line on stderr that is overwritten, if stderr is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text[:110]}")
        sys.stderr.flush()


# ------------------------------------------------------------- comparison -----


def _compared_part(name: str, x: np.ndarray, rows: np.ndarray, is_layer: bool) -> np.ndarray:
    """A result without the rows that are padding; all rows of d_key and the like count."""
    if name not in ("output", "weights", "mean", "entropy"):
        return x
    if name == "mean" or (name == "output" and is_layer):
        return x[rows]
    return x[np.broadcast_to(rows[:, None, :], x.shape[:3])]


def tolerance(case: Case) -> float:
    if case.is_lowered:
        return LOWERED_TOLERANCE
    tolerances = TRANSLATION_TOLERANCES if case.is_translation else TOLERANCES
    return tolerances[case.dtype]


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    """The mean over rows."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    lengths = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return float(np.mean((a * b).sum(-1) / lengths))


def difference(case: Case, inputs: Inputs, ours: Results, theirs: Results) -> float:
    """The largest difference of common results, as a share of our largest number; inf for NaN. Of
    translations, the share of sentences that have another one; of models in bf16 and i8, 1 - the
    cosine to f32."""
    if case.is_translation:
        return float(np.mean(ours["translations"] != theirs["translations"]))
    if case.is_lowered:
        return 1.0 - _cosine(ours["hidden"], theirs["hidden"])
    rows = counting_rows(case, inputs)
    worst = 0.0
    for name in ours.keys() & theirs.keys():
        if ours[name].shape != theirs[name].shape:
            return float("inf")
        a = _compared_part(name, ours[name], rows, case.is_layer)
        b = _compared_part(name, theirs[name], rows, case.is_layer)
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            return float("inf")
        worst = max(worst, float(np.abs(a - b).max()) / max(float(np.abs(a).max()), 1e-30))
    return worst


def _read(runner: Runner) -> Results:
    """A copy, since contenders reuse the memory of their results."""
    return {name: np.array(x, copy=True) for name, x in runner.read(runner.run()).items()}


# ------------------------------------------------------------ preparation -----


def free_bytes() -> int:
    with open("/proc/meminfo", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 1 << 62


def _check_memory(case: Case) -> None:
    """The memory of a case: weights count twice, as given and as packed by the library; scores may
    be stored too."""
    needed = 2 * 4 * (4 * case.E * case.E + case.B * case.H * case.L * case.S)
    if needed > SMALL_BYTES and needed + SPARE_BYTES > free_bytes():
        raise Unable(f"needs {needed >> 20} MB of memory, {free_bytes() >> 20} MB are free")


def _prepare(row: Row, case: Case, inputs: Inputs, threads: int) -> tuple[Runner, Results] | None:
    try:
        _check_memory(case)
        runner = row.contender.prepare(case, inputs, threads)
        return runner, _read(runner)
    except Exception as error:
        row.reason = reason_of(error)
    return None


def _exact(
    case: Case, inputs: Inputs, contenders: list[Contender], threads: int
) -> Results | None:
    """The same case in f32, by the first contender, which is ours."""
    ready = _prepare(Row(contenders[0]), replace(case, dtype="f32"), inputs, threads)
    return ready[1] if ready else None


def _ready_rows(
    case: Case, inputs: Inputs, contenders: list[Contender], threads: int
) -> tuple[list[Row], list[tuple[Row, Runner]]]:
    """All rows, and those that may be timed, after comparing each with the first that is ready."""
    rows = [Row(contender) for contender in contenders]
    timed: list[tuple[Row, Runner]] = []
    reference = _exact(case, inputs, contenders, threads) if case.is_lowered else None
    for row in rows:
        progress(f"{case.word}: {row.contender.label}")
        ready = _prepare(row, case, inputs, threads)
        if ready is None:
            continue
        runner, results = ready
        reference = reference or results
        row.difference = difference(case, inputs, reference, results)
        row.differs = not row.difference <= tolerance(case)
        if row.differs:
            row.reason = f"differs by {row.difference:.1e}"
        else:
            row.bytes_read = runner.bytes_read
            timed.append((row, runner))
    return rows, timed


# ----------------------------------------------------------------- rounds -----


Clock = Callable[[], float]


def clock_for(threads: int) -> Clock:
    return time.process_time if threads == 1 else time.perf_counter


def _seconds(runner: Runner, repeats: int, clock: Clock) -> float:
    begin = clock()
    for _ in range(repeats):
        runner.run()
    return (clock() - begin) / repeats


def _plan(timed: list[tuple[Row, Runner]], rounds: int, seconds: float, clock: Clock) -> int:
    """The repeats of each contender, so that all turns take about the same time, and the number of
    rounds that fit."""
    turn = seconds / rounds / len(timed)
    total = 0.0
    for row, runner in timed:
        once = max(min(_seconds(runner, 1, clock) for _ in range(2)), LEAST_SECONDS)
        row.repeats = max(1, round(turn / once))
        total += once * row.repeats
    return max(LEAST_ROUNDS, min(rounds, int(seconds / total)))


def _rounds(
    case: Case, timed: list[tuple[Row, Runner]], threads: int, rounds: int, seconds: float
) -> None:
    order = random.Random(case.word)
    clock = clock_for(threads)
    rest = REST_SECONDS if threads == 1 else REST_SECONDS_OF_THREADS
    planned = _plan(timed, rounds, seconds, clock)
    turns = list(timed)
    for number in range(planned):
        order.shuffle(turns)
        progress(f"{case.word}: round {number + 1} of {planned}")
        for row, runner in turns:
            time.sleep(rest)
            row.seconds.append(_seconds(runner, row.repeats, clock))


def read_rate(clock: Clock) -> float:
    """Bytes per second of a scalar product of long vectors, which only memory limits."""
    x = np.ones(READ_BYTES // 4, dtype=np.float32)
    times = []
    for _ in range(READ_ROUNDS):
        begin = clock()
        np.dot(x, x)
        times.append(clock() - begin)
    return x.nbytes / max(min(times), LEAST_SECONDS)


def measure(
    case: Case, contenders: list[Contender], threads: int, rounds: int, seconds: float
) -> CaseResult:
    """Measures one case with all contenders, ours first, in about so many seconds."""
    inputs = make(case)
    rows, timed = _ready_rows(case, inputs, contenders, threads)
    result = CaseResult(case, rows)
    if timed:
        gc.collect()
        gc.disable()
        _rounds(case, timed, threads, rounds, seconds)
        if any(row.bytes_read for row in rows):
            result.read_rate = read_rate(clock_for(threads))
        gc.enable()
    progress("")
    return result
