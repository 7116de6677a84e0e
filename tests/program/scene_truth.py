# SPDX-License-Identifier: MIT
"""scene_truth.py FOLDER: the pictures that "mha scenes -o FOLDER" wrote agree with truth.json: the boxes
and numbers of pixels are those of the masks, and shapes differ from the ground."""

import json
import struct
import sys
import zlib
from pathlib import Path


def paeth(a: int, b: int, c: int) -> int:
    p = a + b - c
    return min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]


def read_png(path: Path) -> tuple[int, list[bytearray]]:
    """The channels and the lines of a picture of 8 bits a channel."""
    data = path.read_bytes()
    at, packed, header = 8, b"", b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        header = body if kind == b"IHDR" else header
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    width, height, depth, color = struct.unpack(">IIBB", header[:10])
    channels = {0: 1, 2: 3}[color]
    assert depth == 8
    raw, lines, above = zlib.decompress(packed), [], bytearray(width * channels)
    for y in range(height):
        start = y * (width * channels + 1)
        method, line = raw[start], bytearray(raw[start + 1 : start + 1 + width * channels])
        for x in range(len(line)):
            left = line[x - channels] if x >= channels else 0
            corner = above[x - channels] if x >= channels else 0
            guess = [0, left, above[x], (left + above[x]) // 2, paeth(left, above[x], corner)][method]
            line[x] = (line[x] + guess) % 256
        lines.append(line)
        above = line
    return channels, lines


def agrees(folder: Path, truth: dict) -> bool:
    channels, picture = read_png(folder / truth["picture"])
    grey, mask = read_png(folder / truth["shapes_picture"])
    fine = channels == 3 and grey == 1 and len(picture) == len(mask) == 40
    fine &= max(max(line) for line in mask) == len(truth["shapes"])
    for number, shape in enumerate(truth["shapes"], 1):
        places = [(x, y) for y in range(40) for x in range(40) if mask[y][x] == number]
        across, down = [x for x, _ in places], [y for _, y in places]
        fine &= shape["box"] == [min(across), min(down), max(across) + 1, max(down) + 1]
        fine &= shape["pixels"] == len(places)
        fine &= all(max(picture[y][3 * x : 3 * x + 3]) > 90 for x, y in places)
    return fine


def main() -> None:
    folder = Path(sys.argv[1])
    truths = json.loads((folder / "truth.json").read_text())
    print(sum(agrees(folder, truth) for truth in truths), "pictures agree")


if __name__ == "__main__":
    main()
