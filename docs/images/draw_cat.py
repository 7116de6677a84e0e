#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws cat.png, the picture that `mha conv` is shown with: a cat on a wall, before the moon.

    python3 docs/images/draw_cat.py docs/images/cat.png

Needs nothing but Python. Shapes are functions of a point, coloured from back to front; nine
samples a pixel make their edges smooth.
"""
import math
import struct
import sys
import zlib

WIDTH, HEIGHT, SAMPLES = 288, 216, 3


def ellipse(x, y, cx, cy, rx, ry, turn=0.0):
    c, s = math.cos(turn), math.sin(turn)
    u, v = (x - cx) * c + (y - cy) * s, (y - cy) * c - (x - cx) * s
    return (u / rx) ** 2 + (v / ry) ** 2 <= 1


def polygon(x, y, corners):
    """Whether (x, y) lies in a convex polygon, corners clockwise on the screen."""
    for n, (ax, ay) in enumerate(corners):
        bx, by = corners[(n + 1) % len(corners)]
        if (bx - ax) * (y - ay) - (by - ay) * (x - ax) < 0:
            return False
    return True


def stroke(x, y, points, thick):
    """Whether (x, y) is near a line through points."""
    for (ax, ay), (bx, by) in zip(points, points[1:]):
        length = (bx - ax) ** 2 + (by - ay) ** 2
        t = max(0.0, min(1.0, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length))
        if math.hypot(x - ax - t * (bx - ax), y - ay - t * (by - ay)) <= thick:
            return True
    return False


# A tail that hangs down from the wall and curls.
TAIL = [(172 + 9 * math.sin(t / 2.4) + 1.6 * t, 150 + 4.6 * t) for t in range(0, 12)]
STARS = [(18, 22), (52, 58), (38, 104), (96, 24), (74, 92), (268, 34), (252, 116), (12, 66),
         (276, 82), (118, 70), (242, 18)]
FUR, DARK = (34, 30, 44), (20, 18, 28)


def cat(x, y):
    if stroke(x, y, TAIL, 5.2):
        return FUR
    for side in (-1, 1):
        # Ears, with the pink inside; eyes; whiskers, on a head around (148, 72).
        outer = [(148 + side * 27, 36), (148 + side * 29, 70), (148 + side * 5, 54)]
        inner = [(148 + side * 24, 44), (148 + side * 26, 64), (148 + side * 11, 55)]
        if side < 0:
            outer, inner = outer[::-1], inner[::-1]
        if ellipse(x, y, 148 + side * 12, 71, 6.2, 5.0):
            return DARK if ellipse(x, y, 148 + side * 12, 71, 1.8, 4.8) else (238, 200, 64)
        for rise in (-5, 0, 5):
            ends = [(148 + side * 12, 86), (148 + side * 44, 84 + rise * 1.6)]
            if stroke(x, y, ends, 0.7):
                return (226, 222, 214)
        if polygon(x, y, inner):
            return (196, 118, 122)
        if polygon(x, y, outer):
            return FUR
    if polygon(x, y, [(144.5, 81), (151.5, 81), (148, 85.5)]):
        return (214, 130, 132)
    if ellipse(x, y, 148, 74, 29, 23):
        return FUR
    if ellipse(x, y, 148, 118, 15, 19):
        return (222, 214, 206)
    if ellipse(x, y, 148, 130, 31, 42) or ellipse(x, y, 170, 146, 22, 20):
        return FUR
    return None


def wall(x, y):
    """Bricks in rows, every other row shifted by half a brick."""
    row = math.floor((y - 152) / 16)
    u = (x + (16 if row % 2 else 0)) % 32
    v = (y - 152) % 16
    if u < 2 or v < 2:
        return (92, 84, 86)
    shade = 18 * ((7 * row + 5 * math.floor((x + (16 if row % 2 else 0)) / 32)) % 3)
    return (128 + shade, 62 + shade // 2, 52 + shade // 3)


def moon(x, y):
    for cx, cy, r in ((186, 44, 9), (222, 62, 6), (204, 92, 8), (176, 76, 5), (218, 34, 4)):
        if ellipse(x, y, cx, cy, r, r):
            return (222, 212, 176)
    return (250, 242, 208)


def sky(x, y):
    for cx, cy in STARS:
        if abs(x - cx) + abs(y - cy) < 2.6:
            return (255, 250, 224)
    t = y / 152
    return (22 + 92 * t * t, 34 + 62 * t, 84 + 66 * t)


def colour(x, y):
    found = cat(x, y)
    if found is not None:
        return found
    if y >= 152:
        return wall(x, y)
    hill = 132 + 12 * math.sin(x / 37) + 7 * math.sin(x / 13 + 1)
    if y > hill:
        return (26, 52, 62)
    return moon(x, y) if ellipse(x, y, 200, 62, 50, 50) else sky(x, y)


def row_bytes(y):
    row = bytearray()
    for x in range(WIDTH):
        total = [0.0, 0.0, 0.0]
        for n in range(SAMPLES * SAMPLES):
            dx, dy = (n % SAMPLES + 0.5) / SAMPLES, (n // SAMPLES + 0.5) / SAMPLES
            total = [a + b for a, b in zip(total, colour(x + dx, y + dy))]
        row += bytes(round(c / SAMPLES / SAMPLES) for c in total)
    return row


def chunk(kind, data):
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def main():
    above, data = bytes(3 * WIDTH), bytearray()
    for y in range(HEIGHT):
        row = row_bytes(y)
        data.append(2)  # filter: the difference from the row above
        data += bytes((a - b) & 255 for a, b in zip(row, above))
        above = row
    with open(sys.argv[1], "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        file.write(chunk(b"IHDR", struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)))
        file.write(chunk(b"IDAT", zlib.compress(bytes(data), 9)))
        file.write(chunk(b"IEND", b""))


main()
