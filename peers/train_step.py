# SPDX-License-Identifier: MIT
"""A training step of a translator: "mha train --pairs" beside the nn.Transformer of control.py.

    python -m peers.train_step --program build/mha --threads 1

    python -m peers.train_step --width 512 --arithmetic native

With --arithmetic native, products of both are those of bf16: "mha train --arithmetic native" beside
torch.autocast. Both train the same sizes on the same pairs with the same batches of tokens, as processes that take
turns. The time of a step is the CPU time of a long training minus that of a short one, divided by
the number of steps between them, so that reading files and starting cancel out. The pairs are made
of random words, as long as sentences of everyday language.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PAIRS, WORDS = 20000, 6000


def make_pairs(path: Path, count: int, seed: int) -> None:
    """Sentences of 2 to 14 words, of which a few are frequent and most are rare."""
    draw = random.Random(seed)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = [
        "".join(letters[min(25, int(draw.expovariate(0.2)))] for _ in range(draw.randint(2, 9)))
        for _ in range(WORDS)
    ]
    with path.open("w", encoding="utf-8") as file:
        for _ in range(count):
            sides = (
                " ".join(words[int(WORDS * draw.random() ** 3)] for _ in range(draw.randint(2, 14)))
                for _ in range(2)
            )
            print(*sides, sep="\t", file=file)


def cpu_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Trainings:
    """Both trainings, as commands with a number of steps."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        make_pairs(folder / "train.tsv", PAIRS, 1)
        make_pairs(folder / "valid.tsv", 1, 2)
        self.data = ["--pairs", str(folder / "train.tsv"), "--valid", str(folder / "valid.tsv")]
        self.folder, self.program = folder, options.program
        self.both = ["--threads", str(options.threads), "--arithmetic", options.arithmetic,
                     "--batch-tokens", str(options.batch_tokens)]  # fmt: skip
        self.sizes = ["--width", str(options.width), "--ff", str(4 * options.width)]
        self.like = folder / "ours"

    def ours(self, steps: int) -> list[str]:
        return [self.program, "train", *self.data, "-o", str(self.like), "--force", "--quiet",
                "--steps", str(steps), "--bpe-dropout", "0", "--copy", "0", "--translate", "1",
                "--evaluate", "1", *self.sizes, *self.both]  # fmt: skip

    def torch(self, steps: int) -> list[str]:
        return [sys.executable, "-m", "peers.control", "--like", str(self.like), *self.data, "-o",
                str(self.folder / "torch"), "--steps", str(steps), *self.both]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="peers.train_step", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--program", default="build/mha", help="the program mha; build/mha unless given")
    add("--threads", type=int, default=1, metavar="N", help="of both; 1 unless given")
    add("--width", type=int, default=256, metavar="N", help="of the model; 256 unless given")
    add("--batch-tokens", type=int, default=2048, metavar="N", help="of a step; 2048 unless given")
    add("--arithmetic", choices=["exact", "native"], default="exact", help="exact unless given")
    add("--short", type=int, default=10, metavar="N", help="steps of the short training; 10")
    add("--steps", type=int, default=30, metavar="N", help="measured steps per round")
    add("--rounds", type=int, default=5, metavar="N", help="rounds; 5 unless given")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        both = Trainings(Path(folder), options)
        rows = []
        for _ in range(options.rounds):
            seconds = []
            for command in (both.ours, both.torch):
                short = cpu_seconds(command(options.short))
                long = cpu_seconds(command(options.short + options.steps))
                seconds.append((long - short) / options.steps)
            rows.append((*seconds, seconds[1] / seconds[0]))
            print("ours {:.3f} s, torch {:.3f} s per step: {:.2f} x".format(*rows[-1]), flush=True)
    print(f"median: torch takes {statistics.median(row[2] for row in rows):.2f} x the time of ours")


if __name__ == "__main__":
    main()
