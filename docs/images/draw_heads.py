#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws heads.svg, the picture of the README: five heads of the translator on one sentence.

    python3 docs/images/draw_heads.py build/mha docs/images/heads.svg

`mha show` draws each head; this program only puts the five maps into one picture, with a line
above each that says what it shows.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

SENTENCE = "the small black cat sleeps because it is tired"
HEADS = [
    ("encoder 2.8", "the noun of the phrase, or the next word"),
    ("encoder 2.1", 'article, adjectives and "it" attend to "cat"'),
    ("encoder 2.3", "half of the weight on the previous word"),
    ("decoder 2.2", "mostly the word itself"),
    ("cross 2.7", "the English word that is translated"),
]
NOTES = [
    "A row attends, a column is attended to;",
    "bright cells are large weights.",
    "",
    "Encoder: English attends to English.",
    "Decoder: French attends to French so far.",
    "Cross: French attends to English;",
    "chat and noir change places.",
]
WIDTH, HEIGHT, COLUMNS = 372, 408, 3
LEFT, TOP = 28, 58  # what is cut off each map: its margin, its frame and its headings


def map_of(program, head):
    """The elements of one map, without the frame and the headings."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "head.svg")
        subprocess.run(
            [program, "show", "--study", "0", "--head", head, "--svg", file, SENTENCE], check=True
        )
        lines = file.read_text(encoding="utf-8").splitlines()
    style = next(line for line in lines if line.startswith("<style>"))
    frame = re.compile(r"<(svg|/svg|title|style|rect width|circle)|>(\$ mha show|head \d+)<")
    heading = re.compile(r'<text x="28" y="52"')
    return style, [line for line in lines if not frame.search(line) and not heading.search(line)]


def main(program, path):
    rows = -(-len(HEADS) // COLUMNS)
    width, height = COLUMNS * WIDTH + 20, rows * HEIGHT + 20
    out = []
    for n, (head, text) in enumerate(HEADS):
        style, lines = map_of(program, head)
        x, y = n % COLUMNS * WIDTH + 20 - LEFT, n // COLUMNS * HEIGHT + 20 - TOP
        out += [f'<g transform="translate({x} {y})">']
        out += [f'<text x="{LEFT}" y="{TOP + 14}" class="t">{head}</text>']
        out += [f'<text x="{LEFT}" y="{TOP + 34}" class="d">{text}</text>']
        out += lines + ["</g>"]
    x, y = len(HEADS) % COLUMNS * WIDTH + 20, len(HEADS) // COLUMNS * HEIGHT + 104
    out += [f'<text x="{x}" y="{y + 20 * n}" class="d">{text}</text>' for n, text in enumerate(NOTES)]
    begin = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
    begin += f'viewBox="0 0 {width} {height}" role="img">'
    ground = f'<rect width="{width}" height="{height}" rx="10" fill="#0d0f1a"/>'
    with open(path, "w", encoding="utf-8") as file:
        title = f"<title>Five heads on: {SENTENCE}</title>"
        file.write("\n".join([begin, title, style, ground, *out, "</svg>"]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
