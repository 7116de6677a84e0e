# SPDX-License-Identifier: MIT
"""half_blocks.py SHEET.png SIDE: heads that "mha see --heads -" drew by half blocks, read from standard
input, beside the same ones that --heads SHEET.png drew larger: how many of the colours are the same."""

import re
import sys
from pathlib import Path

from scene_truth import read_png

CELL, GAP = 112, 8
HALF = re.compile("\x1b\\[38;2;(\\d+);(\\d+);(\\d+)m\x1b\\[48;2;(\\d+);(\\d+);(\\d+)m\u2580")


def main() -> None:
    side = int(sys.argv[2])
    channels, sheet = read_png(Path(sys.argv[1]))
    assert channels == 3
    lines = [line for line in sys.stdin.read().splitlines() if "\u2580" in line]
    same = count = 0
    for n, line in enumerate(lines):
        layer, row = n // (side // 2), n % (side // 2) * 2
        for k, found in enumerate(HALF.findall(line)):
            for half in range(2):
                # The middle of a pixel, where it is in the sheet.
                y = GAP + layer * (CELL + GAP) + (2 * (row + half) + 1) * CELL // (2 * side)
                x = GAP + k // side * (CELL + GAP) + (2 * (k % side) + 1) * CELL // (2 * side)
                colors = [int(one) for one in found[3 * half : 3 * half + 3]]
                same += sum(a == b for a, b in zip(colors, sheet[y][3 * x : 3 * x + 3]))
                count += 3
    print(f"{same} of {count} colours")


if __name__ == "__main__":
    main()
