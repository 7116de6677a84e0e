# SPDX-License-Identifier: MIT
"""Multi30k as papers prepare it, for "mha train --pairs": one TSV file for each of its parts.

    python -m peers.multi30k FOLDER OUTPUT

FOLDER has the task's text files, such as train.en and train.fr. Texts are put in lower case, their
punctuation is normalised and they are divided into words by sacremoses, as Moses' scripts do. Beside
OUTPUT/train.tsv lie train.en and train.fr, for "mha translate" and "mha bleu --tokenize none".
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sacremoses import MosesPunctNormalizer, MosesTokenizer


def prepare(path: Path, language: str) -> list[str]:
    """The lines of a file as words between single spaces."""
    normalizer, tokenizer = MosesPunctNormalizer(lang=language), MosesTokenizer(lang=language)
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    return [
        " ".join(tokenizer.tokenize(normalizer.normalize(line.strip().lower()), escape=False))
        for line in lines
    ]


def write(folder: Path, name: str, sides: dict[str, list[str]]) -> None:
    """One file for each language, and one of pairs."""
    for language, lines in sides.items():
        (folder / f"{name}.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    pairs = "".join("\t".join(pair) + "\n" for pair in zip(*sides.values(), strict=True))
    (folder / f"{name}.tsv").write_text(pairs, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="peers.multi30k", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the text files of Multi30k")
    parser.add_argument("output", type=Path, help="the folder to write; it is made if necessary")
    parser.add_argument("--languages", nargs=2, default=["en", "fr"], metavar=("FROM", "TO"))
    options = parser.parse_args()
    source, target = options.languages
    names = sorted(path.stem for path in options.folder.glob(f"*.{source}"))
    if not names:
        parser.error(f"{options.folder} has no file *.{source}")
    options.output.mkdir(parents=True, exist_ok=True)
    for name in names:
        sides = {each: prepare(options.folder / f"{name}.{each}", each) for each in (source, target)}
        if len(sides[source]) != len(sides[target]):
            parser.error(f"{name}.{source} and {name}.{target} have different numbers of lines")
        write(options.output, name, sides)
        print(f"{name}: {len(sides[source])} pairs", flush=True)


if __name__ == "__main__":
    main()
