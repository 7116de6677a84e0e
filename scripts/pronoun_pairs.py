#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Derives English-French sentence pairs whose "it" stands for the subject, from a file of pairs.

    scripts/pronoun_pairs.py train.tsv > more.tsv

Few sentences of a corpus have an "it" that stands for the noun at their beginning, so that a translator
learns to make its French pronoun agree with the nearest noun. Many have "he" or "she" there:

    He couldn't attend the meeting because he was sick.
    Il n'a pu aller à la réunion parce qu'il était malade.

The first "He" and "Il" become a noun that is masculine in French, the other "he" becomes "it":

    The horse couldn't attend the meeting because it was sick.
    Le cheval n'a pu aller à la réunion parce qu'il était malade.

and "She" a feminine one. Nouns and their genders come from the file too: a noun counts if "The ..." and
"Le ...", "La ..." or "L'..." at the beginning of pairs are mostly translations of each other, and if the
French one has more often "un" or more often "une" before it, as its article says. The same file gives the
same pairs.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

LETTERS = "a-zàâçéèêëîïôûùœ"
VERB = r"(?:is|was|has|had|will|can|could|did|does|[a-z]+ed|[a-z]+s)"
ENGLISH_NOUN = re.compile(rf"The ([a-z]{{3,}}) {VERB}\b")
FRENCH_NOUN = re.compile(rf"(Le |La |L['’])([{LETTERS}]{{3,}})\b")
ARTICLE = re.compile(rf"\b([Uu]ne?) ([{LETTERS}]{{3,}})\b")
# Other words that stand for the subject, which would need a change too, or for something else.
ENGLISH_OTHERS = re.compile(r"\b(he|she|him|his|her|hers|himself|herself|it|its)\b")
FRENCH_OTHERS = re.compile(r"\b(il|elle|lui|leur)\b|-il\b|-elle\b|y a\b")
COUNT_MIN = 3  # of pairs that have a noun
SHARE_MIN = 0.5  # of the pairs with its English, and of those with its French word

Pair = tuple[str, str]


class Gender(NamedTuple):
    """The pronouns of both sides, the French articles, and nouns to draw for each pair: so many that
    both genders are about as frequent, as more sentences are about "he" than about "she"."""

    english: str
    french: str
    articles: tuple[str, str]
    one: str
    nouns: int


GENDERS = (
    Gender("He", "Il", ("Le ", "L'"), "un", 10),
    Gender("She", "Elle", ("La ", "L'"), "une", 30),
)


def find_nouns(pairs: list[Pair]) -> dict[str, list[Pair]]:
    """("dog", "Le chien"), by "un" and "une"."""
    both: Counter[tuple[str, str, str]] = Counter()
    english: Counter[str] = Counter()
    french: Counter[str] = Counter()
    ones: Counter[tuple[str, str]] = Counter()
    for source, target in pairs:
        ones.update((one.lower(), noun) for one, noun in ARTICLE.findall(target))
        a, b = ENGLISH_NOUN.match(source), FRENCH_NOUN.match(target)
        if a and b:
            both[a[1], b[1].replace("’", "'"), b[2]] += 1
            english[a[1]] += 1
            french[b[2]] += 1
    nouns: dict[str, list[Pair]] = {gender.one: [] for gender in GENDERS}
    for (noun, article, word), count in sorted(both.items()):
        if count < COUNT_MIN or count < SHARE_MIN * max(english[noun], french[word]):
            continue
        for gender in GENDERS:
            other = "une" if gender.one == "un" else "un"
            if article in gender.articles and ones[gender.one, word] > ones[other, word]:
                nouns[gender.one].append((noun, article + word))
    return nouns


def replace_pronouns(pair: Pair, gender: Gender) -> tuple[str, str] | None:
    """What follows the subject, with "it" for the second pronoun; None: the pair has no two of them."""
    source, target = pair
    he, il = gender.english.lower(), gender.french.lower()
    if not source.startswith(gender.english + " ") or not target.startswith(gender.french + " "):
        return None
    source, found = re.subn(rf"\b{he}\b", "\0", source[len(gender.english) :])
    target_rest, said = re.subn(rf"(?<=[ ',’]){il}\b", "\0", target[len(gender.french) :])
    if found != 1 or said != 1 or ENGLISH_OTHERS.search(source) or FRENCH_OTHERS.search(target_rest):
        return None
    return source.replace("\0", "it"), target_rest.replace("\0", il)


def derive(pairs: list[Pair]) -> list[Pair]:
    nouns, draw, derived = find_nouns(pairs), random.Random(1), []
    for pair in pairs:
        for gender in GENDERS:
            rest = replace_pronouns(pair, gender)
            there = nouns[gender.one]
            if rest and there:
                for noun, word in draw.sample(there, min(gender.nouns, len(there))):
                    derived.append((f"The {noun}{rest[0]}", f"{word}{rest[1]}"))
    return derived


def print_derived(derive: Callable[[list[Pair]], Iterable[Pair]]) -> None:
    """The main program of this script and of phrase_pairs.py."""
    if len(sys.argv) != 2:
        sys.exit(f"usage: {Path(sys.argv[0]).name} PAIRS.tsv > MORE.tsv")
    lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    pairs = [(fields[0], fields[1]) for line in lines if len(fields := line.split("\t")) > 1]
    for source, target in derive(pairs):
        print(f"{source}\t{target}")


if __name__ == "__main__":
    print_derived(derive)
