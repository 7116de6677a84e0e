# SPDX-License-Identifier: MIT
"""A step of training a model of pictures: "mha train --images" and "--scenes" beside plain modules.

    python -m peers.train_pictures --program build/mha --threads 1
    python -m peers.train_pictures --model captions --arithmetic native

The classifier has the sizes of models/vit-fashion: 28 x 28 grey pixels in 49 patches, 6 layers of width
128, 4 heads, 512 inside. The model of captions has the defaults of "mha train --scenes": 81 patches,
4 layers of encoder and 2 of decoder, 8 heads, 256 inside. Both train with AdamW, a limit of the gradient's
norm and, the classifier, a moving average of the weights. Pictures are noise and not changed; libmha
draws the scenes that it trains on, PyTorch reads pixels of noise, with captions of such scenes.

Times are taken as in train_step.py. PyTorch's own part of this file is the process that it starts:

    python -m peers.train_pictures --torch STEPS ...
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from .train_step import cpu_seconds

SIDE, CLASSES, PICTURES = 28, 10, 2000
SCENES = 1000
CLASSIFIER = {"width": 128, "heads": 4, "inner": 512, "layers": 6, "relu": True, "epsilon": 1e-5,
              "channels": 1, "patch": 4, "stride": 4}  # fmt: skip
CAPTIONS = CLASSIFIER | {"heads": 8, "inner": 256, "layers": 4, "channels": 3, "patch": 8}
BATCHES = {"images": 128, "captions": 64}
MARKS = 3  # numbers before those of words: the end, and the mark of each language


# ---------------------------------------------------------------------- files


def make_pictures(folder: Path) -> None:
    """A set in MNIST's form, of noise."""
    draw = random.Random(1)
    for part, count in (("train", PICTURES), ("t10k", 10)):
        pixels, labels = draw.randbytes(count * SIDE * SIDE), bytes(n % CLASSES for n in range(count))
        head = struct.pack(">IIII", 0x803, count, SIDE, SIDE)
        (folder / f"{part}-images-idx3-ubyte").write_bytes(head + pixels)
        head = struct.pack(">II", 0x801, count)
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(head + labels)


def make_captions(program: str, path: Path) -> None:
    """Captions of scenes as numbers of words; those with even numbers are in English."""
    command = [program, "scenes", "--json", "--count", str(SCENES)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    words: dict[str, int] = {}
    rows = []
    for n, scene in enumerate(json.loads(lines)):
        text = scene["french" if n % 2 else "english"]
        numbers = [MARKS + words.setdefault(word, len(words)) for word in text.split()]
        rows.append([1 + n % 2, *numbers, 0])
    path.write_text(json.dumps({"words": MARKS + len(words), "rows": rows}))


# -------------------------------------------------------------------- PyTorch


def classifier_step(options: argparse.Namespace) -> tuple[object, Callable]:
    """The module, and the loss of a batch."""
    import torch
    from torch.nn import functional as F

    from .torch_pictures import Vision

    made = Vision(CLASSIFIER, CLASSES, (SIDE // 4) ** 2, pooled=True)
    folder = Path(options.data)
    raw = (folder / "train-images-idx3-ubyte").read_bytes()[16:]
    pixels = torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(-1, 1, SIDE, SIDE)
    raw = (folder / "train-labels-idx1-ubyte").read_bytes()[8:]
    labels = torch.frombuffer(bytearray(raw), dtype=torch.uint8).long()

    def loss(chosen: torch.Tensor) -> torch.Tensor:
        given = (pixels[chosen].float() / 255 - 0.5) / 0.3
        return F.cross_entropy(made(given), labels[chosen], label_smoothing=0.1)

    return made, loss


def captions_step(options: argparse.Namespace) -> tuple[object, Callable]:
    import torch
    from torch import nn

    from .torch_captions import Captioner

    said = json.loads(Path(options.data).read_text())
    made = Captioner(CAPTIONS, said["words"], side=40, layers=2)
    pixels = torch.randint(256, (SCENES, 3, 40, 40), dtype=torch.uint8)
    longest = max(map(len, said["rows"]))
    rows = torch.tensor([row + [-100] * (longest - len(row)) for row in said["rows"]])
    lengths = torch.tensor([len(row) for row in said["rows"]])

    def loss(chosen: torch.Tensor) -> torch.Tensor:
        wanted = rows[chosen, : int(lengths[chosen].max())]
        given = (pixels[chosen].float() / 255 - 0.5) / 0.3
        logits = made(given, wanted[:, :-1].clamp(min=0))
        return nn.functional.cross_entropy(logits.flatten(0, 1), wanted[:, 1:].flatten())

    return made, loss


def train(options: argparse.Namespace) -> None:
    import torch
    from torch import nn

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    captions = options.model == "captions"
    made, loss_of = (captions_step if captions else classifier_step)(options)
    count, size = (SCENES if captions else PICTURES), BATCHES[options.model]
    optimizer = torch.optim.AdamW(made.parameters(), lr=1e-4, betas=(0.9, 0.99), fused=True)
    average = [p.detach().clone() for p in made.parameters()]
    for _ in range(options.torch):
        chosen = torch.randint(count, (size,))
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=options.arithmetic == "native"):
            loss = loss_of(chosen)
        loss.backward()
        nn.utils.clip_grad_norm_(made.parameters(), 1.0)
        optimizer.step()
        if not captions:
            torch._foreach_lerp_(average, [p.detach() for p in made.parameters()], 0.001)
    print(f"{sum(p.numel() for p in made.parameters())} parameters, loss {loss.item():.3f}")


# ---------------------------------------------------------------- both, timed


class Trainings:
    """Both trainings, as commands with a number of steps."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self.options, self.folder = options, folder
        self.both = ["--threads", str(options.threads), "--arithmetic", options.arithmetic]
        if options.model == "images":
            self.data = folder
            make_pictures(folder)
            c = CLASSIFIER
            self.kind = ["--images", str(folder), "--crop", "0", "--flip", "0", "--erase", "0",
                         "--width", str(c["width"]), "--heads", str(c["heads"]), "--layers",
                         str(c["layers"]), "--ff", str(c["inner"]), "--patch", "4"]  # fmt: skip
        else:
            self.data = folder / "captions.json"
            make_captions(options.program, self.data)
            self.kind = ["--scenes", "--dropout", "0"]

    def ours(self, steps: int) -> list[str]:
        return [self.options.program, "train", *self.kind, "-o", str(self.folder / "ours"),
                "--force", "--quiet", "--evaluate", "1", "--batch",
                str(BATCHES[self.options.model]), "--steps", str(steps), *self.both]  # fmt: skip

    def torch(self, steps: int) -> list[str]:
        return [sys.executable, "-m", "peers.train_pictures", "--torch", str(steps), "--data",
                str(self.data), "--model", self.options.model, *self.both]  # fmt: skip


def compare(options: argparse.Namespace) -> None:
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
    times = BATCHES[options.model] / statistics.median(row[0] for row in rows)
    print(f"{options.model}, {options.arithmetic}: ours {times:.0f} pictures/s; median: torch takes "
          f"{statistics.median(row[2] for row in rows):.2f} x the time of ours")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="peers.train_pictures", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--program", default="build/mha", help="the program mha; build/mha unless given")
    add("--model", choices=[*BATCHES], default="images", help="images, the classifier, unless given")
    add("--threads", type=int, default=1, metavar="N", help="of both; 1 unless given")
    add("--arithmetic", choices=["exact", "native"], default="exact", help="exact unless given")
    add("--short", type=int, default=5, metavar="N", help="steps of the short training; 5")
    add("--steps", type=int, default=20, metavar="N", help="measured steps per round; 20")
    add("--rounds", type=int, default=5, metavar="N", help="rounds; 5 unless given")
    add("--torch", type=int, metavar="STEPS", help="only train, by PyTorch, on --data")
    add("--data", help="for --torch: the folder of pictures, or the file of captions")
    options = parser.parse_args()
    if options.torch and not options.data:
        parser.error("--torch needs --data, what --torch trains on")
    train(options) if options.torch else compare(options)


if __name__ == "__main__":
    main()
