#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares learned vocabularies with the library tokenizers.

    compare_learned.py LEARN TOKENIZE [--lines N] [--seed N] [--text FILE]...

LEARN and TOKENIZE are the test programs learn_lines and tokenize_lines. Vocabularies are learned from
generated lines and from the lines of each FILE. The trainer BpeTrainer must find the same pieces and
merges. The library must load each tokenizer.json and give the same ids, offsets and texts for N lines;
texts must come back unchanged except for NFC and U+2581, and no token is "<unk>". Exit status 1 if not.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

from compare_tokenizers import (Result, Tokenizer, WORDS, any_character, compare, compare_plain, generated_line,
                                models, our_texts, our_tokens, trainers)

NAME = "compare_learned"
MARKS = ["</s>", "<unk>", "<pad>"]
BYTES = [f"<0x{n:02X}>" for n in range(256)]

FRENCH = """l'homme L'eau qu'il n'est j'ai d'une aujourd'hui quelqu’un c'était Noël œuvre garçon où déjà à être
a-t-il peut-être vous-même élève naïve Ça façon""".split()
ENGLISH = "I'm don't can't WON'T it's they're we've you'd he'll o'clock isn’t Tom's dogs' rock'n'roll".split()
ENDS = [".", "!", "?", " !", "\u00a0?", "\u202f;", "...", " :", " »", ",", "?!", "!!!", "\u2026", ' "', " )"]


def sentence(rng):
    """A line as people write it, mostly."""
    words = [rng.choice(rng.choice((WORDS, FRENCH, ENGLISH))) for _ in range(rng.randrange(1, 15))]
    if rng.random() < 0.2:
        words.insert(0, rng.choice(["«", "(", '"', "-", "\u2014", "  ", ""]))
    if rng.random() < 0.2:
        words.append(str(rng.randrange(100000)))
    return " ".join(words) + rng.choice(ENDS)


def training_lines(rng, count):
    """Tabs separate texts, and a text ends at a zero byte."""
    lines = [sentence(rng) for _ in range(count)]
    lines += ["".join(any_character(rng) for _ in range(20)) for _ in range(count // 50)]
    lines += ["".join(rng.choice("ab") for _ in range(rng.randrange(1, 12))) for _ in range(count // 5)]
    return [line.replace("\0", "").replace("\t", "").replace("\n", "") for line in lines]


def learn(program, lines, path, *numbers):
    subprocess.run([program, path] + [str(n) for n in numbers], input="\n".join(lines).encode(), check=True,
                   stdout=subprocess.DEVNULL)
    return Tokenizer.from_file(path)


def contents(path):
    with open(path, encoding="utf-8") as file:
        model = json.load(file)["model"]
    return model["vocab"], [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in model["merges"]]


def compare_merges(result, program, name, lines, folder, size):
    """Its ties are resolved as ours: by the ids of the left and of the right piece. Every character is a
    piece there."""
    ours_path, wanted_path = os.path.join(folder, "ours.json"), os.path.join(folder, "wanted.json")
    ours = learn(program, lines, ours_path, size, 2, 1)
    wanted = Tokenizer(models.BPE())
    wanted.normalizer, wanted.pre_tokenizer = ours.normalizer, ours.pre_tokenizer
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=2, special_tokens=MARKS + BYTES, show_progress=False)
    wanted.train_from_iterator([text for line in lines for text in line.split("\t")], trainer)
    wanted.save(wanted_path)
    pieces, merges = contents(ours_path)
    wanted_pieces, wanted_merges = contents(wanted_path)
    first = next((n for n, (a, b) in enumerate(zip(merges, wanted_merges)) if a != b), None)
    result.check(pieces == wanted_pieces, name, lambda: f"{len(pieces)} pieces, not the {len(wanted_pieces)} wanted ones")
    result.check(merges == wanted_merges, name, lambda: f"{len(merges)} of {len(wanted_merges)} merges, first difference: "
                 f"{first is not None and (first, merges[first], wanted_merges[first])}")
    result.check(len(merges) > 100, name, lambda: f"only {len(merges)} merges")


def compare_round_trip(result, program, name, path, reference, lines):
    """Marks in texts are ordinary text here."""
    texts = [line.decode("utf-8", "replace") for line in lines]
    lists = [[token[0] for token in tokens] for tokens in our_tokens(program, path, lines, "mp")]
    for text, ids, back in zip(texts, lists, our_texts(program, path, lists, "s")):
        wanted = reference.normalizer.normalize_str(text)[1:].replace("\u2581", " ")
        result.check(back == wanted, name, lambda: f"{text!r} became {back!r}")
        result.check(not {1, 2} & set(ids) and ids[-1] == 0 and 0 not in ids[:-1], name,
                     lambda: f"marks in the ids of {text!r}: {ids}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("learn")
    parser.add_argument("tokenize")
    parser.add_argument("--lines", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--text", action="append", default=[])
    args = parser.parse_args()
    rng = random.Random(args.seed)
    result = Result()
    corpora = [("generated", training_lines(rng, 3000))]
    for path in args.text:
        with open(path, encoding="utf-8") as file:
            corpora.append((path, file.read().split("\n")))
    with tempfile.TemporaryDirectory() as folder:
        for name, corpus in corpora:
            for size in (3000, 8000):
                compare_merges(result, args.learn, f"merges of {name} {size}", corpus, folder, size)
            for size in (260, 400, 8000):
                path = os.path.join(folder, "tokenizer.json")
                reference = learn(args.learn, corpus, path, size)
                share = args.lines // (3 * len(corpora))
                given = [text.encode() for line in rng.choices(corpus, k=share // 3) for text in line.split("\t")]
                lines = given + [sentence(rng).encode() for _ in range(share // 3)]
                lines += [generated_line(rng) for _ in range(share - len(lines))]
                label = f"{name} {size}"
                compare(result, args.tokenize, label, path, reference, lines, rng, random_ids=False)
                compare_plain(result, args.tokenize, label, path, reference, lines)
                compare_round_trip(result, args.tokenize, label, path, reference, lines)
    print(f"{NAME}: {result.passed} passed, {result.failed} failed, {result.skipped} skipped")
    return 1 if result.failed else 0


if __name__ == "__main__":
    sys.exit(main())
