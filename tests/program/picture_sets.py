# SPDX-License-Identifier: MIT
"""picture_sets.py: small sets of pictures in the current folder, in every form that mha train reads:
idx/ and idx-gz/ (two classes: a bright left or right half), cifar/, png/ and the pictures shoe.png, of
28 x 28, and large.png, of 60 x 45 and in colour; damaged/ is idx/ with a file that is cut off."""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from pathlib import Path

SIDE = 12


def picture(rng: random.Random, label: int, side: int = SIDE) -> bytes:
    """Noise, and a bright half: left for 0, right for 1."""
    return bytes(
        rng.randrange(90) + (120 if (x >= side // 2) == bool(label) else 0)
        for _ in range(side)
        for x in range(side)
    )


def png(path: Path, pixels: bytes, width: int, height: int, channels: int) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    line = width * channels
    rows = b"".join(b"\0" + pixels[y * line : (y + 1) * line] for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def idx(rng: random.Random) -> dict[str, bytes]:
    files = {}
    for part, count in (("train", 300), ("t10k", 60)):
        labels = bytes(n % 2 for n in range(count))
        pixels = b"".join(picture(rng, label) for label in labels)
        files[f"{part}-images-idx3-ubyte"] = struct.pack(">IIII", 0x803, count, SIDE, SIDE) + pixels
        files[f"{part}-labels-idx1-ubyte"] = struct.pack(">II", 0x801, count) + labels
    return files


def main() -> None:
    rng = random.Random(5)
    for name, data in idx(rng).items():
        for folder, content, end in (("idx", data, ""), ("idx-gz", gzip.compress(data), ".gz")):
            Path(folder).mkdir(exist_ok=True)
            Path(folder, name + end).write_bytes(content)
        Path("damaged").mkdir(exist_ok=True)
        Path("damaged", name).write_bytes(data[:-1] if "train-images" in name else data)
    Path("cifar").mkdir(exist_ok=True)
    for name, count in (("data_batch_1.bin", 40), ("test_batch.bin", 20)):
        records = (bytes([n % 2]) + 3 * picture(rng, n % 2, 32) for n in range(count))
        Path("cifar", name).write_bytes(b"".join(records))
    for n in range(40):
        path = Path("png", "train" if n < 30 else "test", "right" if n % 2 else "left", f"{n}.png")
        png(path, picture(rng, n % 2), SIDE, SIDE, 1)
    png(Path("right.png"), picture(rng, 1), SIDE, SIDE, 1)
    png(Path("large.png"), bytes(90 if x < 90 else 220 for _ in range(45) for x in range(180)), 60, 45, 3)


if __name__ == "__main__":
    main()
