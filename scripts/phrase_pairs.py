#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Derives English-French sentence pairs of which a corpus has few, from a file of pairs.

    scripts/phrase_pairs.py train.tsv > more.tsv

    letters    sentences in small letters:  where is the station  ->  Où se trouve la gare
    numbers    numbers that stand on both sides become others, also long ones
    names      a frequent name becomes a rare one that the file has on both sides of a pair
    phrases    adjectives before nouns, also two of them, and other nouns of the same gender:
               The plane landed.   ->   The quick white fox landed.
               L'avion a atterri.       Le renard blanc rapide a atterri.

Nothing is added that the file does not know. A French word is the translation of an English one if it
stands in the pairs with the English one much more often than elsewhere; its gender is that of the
article before it, the place of an adjective is where the file has it. The same file gives the same
pairs. The fox of typewriters, whose translation is a sentence about whisky, is left out of all of them.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pronoun_pairs import Pair, print_derived

WORD = re.compile(r"[a-zàâçéèêëîïôûùœæ]+")
NUMBER = re.compile(r"\d+")
ARTICLES = {"un": 0, "le": 0, "une": 1, "la": 1}
FEMININE = re.compile("(?:euse|nte|ée|lle|nne|nde|eine|laide)$")  # such words are not masculine too
PANGRAM = "quick brown fox"
LIFT = 8  # how many times as often as elsewhere a translation stands beside a word
NOUN_SHARE, ADJECTIVE_SHARE = 0.4, 0.2  # of the pairs with a word, those that have its translation
LETTERS, NUMBERS, NAMES, PHRASES = 7000, 5000, 5000, 12000  # pairs of each kind


class Adjective(NamedTuple):
    forms: tuple[str | None, str | None]  # masculine, feminine
    before: bool  # its noun


class Noun(NamedTuple):
    word: str
    gender: int


class Lexicon(NamedTuple):
    nouns: dict[str, Noun]
    adjectives: dict[str, Adjective]


# ------------------------------------------------------------------ lexicon -----


def translations(pairs: list[Pair], words: set[str], share: float) -> dict[str, list[str]]:
    """The French words that may translate each of these, the likeliest first."""
    english: Counter[str] = Counter()
    french: Counter[str] = Counter()
    both: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for source, target in pairs:
        said = set(WORD.findall(target.lower()))
        french.update(said)
        for word in set(WORD.findall(source.lower())) & words:
            english[word] += 1
            both[word].update(said)
    return {
        word: [
            other
            for other, count in sorted(both[word].items(), key=lambda found: (-found[1], found[0]))[:40]
            if count >= max(2, share * english[word])
            and count * len(pairs) > LIFT * english[word] * french[other]
        ]
        for word in sorted(words)
    }


def find_nouns(pairs: list[Pair]) -> dict[str, Noun]:
    """Words with an article on both sides, and of one gender."""
    seen: Counter[str] = Counter()
    genders: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for source, target in pairs:
        seen.update(re.findall(r"\b(?:[Tt]he|[Aa]n?) ([a-z]{3,})\b", source))
        for article, word in re.findall(rf"\b(un|une|le|la) ({WORD.pattern})", target.lower()):
            genders[word][ARTICLES[article]] += 1
    nouns = {}
    candidates = {word for word, count in seen.items() if count >= 3 and not word.endswith("s")}
    for word, said in translations(pairs, candidates, NOUN_SHARE).items():
        known = genders[said[0]] if said else Counter()
        if sum(known.values()) >= 3 and max(known.values()) >= 0.9 * sum(known.values()):
            nouns[word] = Noun(said[0], known.most_common(1)[0][0])
    return nouns


def forms_of(said: list[str], is_adjective: Callable[[str], bool]) -> tuple[str | None, str | None] | None:
    """Masculine and feminine of an adjective that these words may translate."""
    if not said:
        return None
    first = said[0]
    relatives = [word for word in said[1:] if word[:3] == first[:3] and not word.endswith("s")]
    if first.endswith("e"):
        usual = (first[:-1], first[:-2], first[:-2] + "x")
        masculine = None if FEMININE.search(first) else first
        return next((word for word in usual if is_adjective(word)), masculine), first
    usual = (first + "e", first[:-1] + "se", first[:-1] + "ve", first + first[-1] + "e")
    known = [word for word in relatives if word.endswith("e")]
    return first, next((word for word in (*known, *usual) if is_adjective(word)), None)


class Places(NamedTuple):
    """How often a French word stands where adjectives do, before and after a noun, and anywhere."""

    before: Counter[str]
    after: Counter[str]
    alone: Counter[str]
    anywhere: Counter[str]


def find_places(targets: list[str], nouns: dict[str, Noun]) -> Places:
    words = {noun.word for noun in nouns.values()}
    places = Places(Counter(), Counter(), Counter(), Counter())
    between = rf"\b(?:une?|l[ea]|ce|cette|mon|ma|son|sa) ({WORD.pattern}) ({WORD.pattern})"
    alone = rf"\b(?:est|était|semble|très|si|trop|plus|aussi) ({WORD.pattern})(?= ?[,.!?])"
    for target in targets:
        places.anywhere.update(WORD.findall(target))
        places.alone.update(re.findall(alone, target))
        for first, second in re.findall(between, target):
            places.before[first] += second in words
            places.after[second] += first in words
    return places


def find_adjectives(pairs: list[Pair], nouns: dict[str, Noun]) -> dict[str, Adjective]:
    """Words that are said of things, and stand before them, as their translations are."""
    told: Counter[str] = Counter()
    given: Counter[str] = Counter()
    for source, _ in pairs:
        told.update(re.findall(r"\b(?:is|was|are|were|very|so|too) ([a-z]{3,})(?=[,.!?])", source))
        given.update(re.findall(r"\b(?:a|an|the|The|A) ([a-z]{3,}) [a-z]", source))
    targets = [target.lower() for _, target in pairs]
    places = find_places(targets, nouns)

    def is_adjective(word: str) -> bool:
        beside = places.before[word] + places.after[word]
        alone, anywhere = places.alone[word], places.anywhere[word]
        return beside >= max(2, 0.02 * anywhere) and alone > 0 and beside + alone >= 0.15 * anywhere

    words = {word for word, count in told.items() if count >= 3 and given[word] >= 2}
    adjectives = {}
    for word, said in translations(pairs, words, ADJECTIVE_SHARE).items():
        forms = forms_of([other for other in said if is_adjective(other)], is_adjective)
        if forms:
            before = sum(places.before[form] for form in set(forms) if form)
            after = sum(places.after[form] for form in set(forms) if form)
            adjectives[word] = Adjective(forms, before > after)
    return adjectives


# -------------------------------------------------------------------- kinds -----


def change_letters(pairs: list[Pair], draw: random.Random) -> Iterator[Pair]:
    """Every third one loses its final mark too."""
    short = [pair for pair in pairs if len(pair[0].split()) <= 10]
    for number, (source, target) in enumerate(draw.sample(short, min(LETTERS, len(short)))):
        if number % 3 == 0 and source[-1] in ".?!":
            yield source.lower().rstrip(".?! "), target.rstrip(".?! \u202f\xa0")
        else:
            yield source.lower(), target


def other_number(text: str, draw: random.Random) -> str:
    digits = len(text) if len(text) < 3 else draw.randint(3, 8)
    return str(draw.randint(10 ** (digits - 1) + (digits == 1), 10**digits - 1))


def change_numbers(pairs: list[Pair], draw: random.Random) -> Iterator[Pair]:
    with_numbers = [
        (source, target)
        for source, target in pairs
        if (found := NUMBER.findall(source))
        and sorted(found) == sorted(NUMBER.findall(target))
        and not set(found) & {"0", "1"}
    ]
    for _ in range(NUMBERS if with_numbers else 0):
        source, target = draw.choice(with_numbers)
        change = {found: other_number(found, draw) for found in NUMBER.findall(source)}
        yield tuple(NUMBER.sub(lambda found: change[found[0]], side) for side in (source, target))


def change_names(pairs: list[Pair], draw: random.Random) -> Iterator[Pair]:
    """Names begin with a consonant, so that French elisions stay right."""
    inside: Counter[str] = Counter()
    small: Counter[str] = Counter()
    for source, target in pairs:
        small.update(WORD.findall(source))
        for word in set(re.findall(r"(?<=[a-z,] )[BCDFGJKLMNPRSTVWZ][a-z]{2,}", source)):
            inside[word] += bool(re.search(rf"\b{word}\b", target))
    frequent = {name for name, count in inside.items() if count >= 300}
    rare = sorted(name for name in inside if inside[name] and name not in frequent and not small[name.lower()])
    there = [
        (source, target, name)
        for source, target in pairs
        for name in sorted(frequent)
        if re.search(rf"\b{name}\b", source) and re.search(rf"\b{name}\b", target)
    ]
    for _ in range(NAMES if there and rare else 0):
        source, target, name = draw.choice(there)
        other = draw.choice(rare)
        yield tuple(re.sub(rf"\b{name}\b", other, side) for side in (source, target))


def elide(article: str, word: str, gender: int) -> str:
    """The article with its blank or apostrophe: le, la or l' before this word."""
    if article[:1] in "Uu":
        return article
    vowel = word[0] in "aeiouyàâéèêëîïôœ"
    return article[0] + ("'" if vowel else "ea"[gender] + " ")


def put_adjectives(article: str, noun: Noun, adjectives: list[Adjective]) -> str | None:
    """ "un ", renard, [rapide, brun] -> "un renard brun rapide"; None: a form is not known."""
    forms = [adjective.forms[noun.gender] for adjective in adjectives]
    if None in forms:
        return None
    before = [form for form, adjective in zip(forms, adjectives) if adjective.before]
    after = [form for form, adjective in zip(forms, adjectives) if not adjective.before]
    words = [*before, noun.word, *reversed(after)]
    # Before a vowel these have another form; of an h it is not known whether it elides the article.
    if "h" in (words[0][0], noun.word[0]) or {"beau", "nouveau", "vieux"} & set(before):
        return None
    return elide(article, words[0], noun.gender) + " ".join(words)


def change_phrases(pairs: list[Pair], lexicon: Lexicon, draw: random.Random) -> Iterator[Pair]:
    places = []
    for source, target in pairs:
        for found in re.finditer(r"\b([Tt]he|[Aa]) ([a-z]{3,})\b", source):
            noun = lexicon.nouns.get(found[2])
            said = noun and re.findall(rf"\b([Ll]e |[Ll]a |[Ll]'|[Uu]ne? )({noun.word})\b(?!-)", target)
            if said and len(said) == 1 and source.count(found[0]) == 1:
                places.append((source, target, found[0], found[1], noun, "".join(said[0]), said[0][0]))
    nouns, words = sorted(lexicon.nouns), sorted(lexicon.adjectives)
    made = 0
    for _ in range(20 * PHRASES if places and words else 0):
        source, target, english, article, noun, french, said = draw.choice(places)
        name = english.split()[1]
        other = draw.choice(nouns)
        if draw.random() < 0.6 and lexicon.nouns[other].gender == noun.gender:
            name, noun = other, lexicon.nouns[other]
        chosen = draw.sample(words, min(len(words), draw.choice((1, 2, 2))))
        put = put_adjectives(said, noun, [lexicon.adjectives[word] for word in chosen])
        if put is None:
            continue
        article = article + "n" if article in "aA" and chosen[0][0] in "aeio" else article
        yield source.replace(english, f"{article} {' '.join(chosen)} {name}"), target.replace(french, put)
        made += 1
        if made == PHRASES:
            return


def derive(pairs: list[Pair]) -> Iterator[Pair]:
    pairs = [pair for pair in pairs if PANGRAM not in pair[0].lower()]
    nouns = find_nouns(pairs)
    lexicon = Lexicon(nouns, find_adjectives(pairs, nouns))
    draw = random.Random(1)
    yield from change_letters(pairs, draw)
    yield from change_numbers(pairs, draw)
    yield from change_names(pairs, draw)
    yield from change_phrases(pairs, lexicon, draw)


if __name__ == "__main__":
    print_derived(derive)
