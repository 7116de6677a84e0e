#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares BLEU and chrF of the program with those of the library sacrebleu.

    compare_bleu.py MHA [--corpora N] [--seed N]

Random outputs and references: empty lines, many scripts, punctuation, numbers, entities, all kinds
of white space; one to four references, as files of lines and as pairs with a source; words of the
tokenizer 13a and as given.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

NAME = "compare_bleu"

try:
    from sacrebleu.metrics import BLEU, CHRF
except ImportError as missing:
    print(f"{NAME}: {missing}: pip install sacrebleu")
    print(f"{NAME}: 0 passed, 0 failed, 1 skipped")
    sys.exit(0)

WORDS = """le la un une chat chien dort mange pomme école garçon l'eau d'abord aujourd'hui peut-être
 naïve œuf ÉCOLE Ça 猫 犬が 好き кот спит γάτα 😀 👩‍👩‍👧 é é א ب ١٢٣ ½ № « » “ ” … – — ’ €5 5€ 3.14 1,000
 1,000.50 10-20 -5 5- 5.- 2024. .5 5. 5, ,5 5..5 a.b a,b ... ,,, .,.,5 U.S. e.g. 50% #1 $3 @x x@y a/b
 (a) [b] {c} <d> <skipped> a<skipped>b &amp; &quot;x&quot; &lt;b&gt; &amp;lt; &amp;quot; & &a; ~ ` ^ _a_ a=b a+b * \\ | ; :
 ! ? !? ?! 'a' a' 'tis - -- --- a-b a- 1-a 1- -1 \x00-free""".replace("\x00-free", "").split()
SPACES = [" "] * 24 + ["  ", "\t", "\u00a0", "\u202f", "\u3000", "\u2009", "\x1c", "\x85", "\u2028", "\r",
                        "\u200b", "\ufeff", ""]


def sentence(rng, longest=14):
    if rng.random() < 0.07:
        return rng.choice(["", "", " ", "\u00a0", ".", "é"])
    count = rng.randrange(1, longest)
    text = "".join(rng.choice(WORDS) + rng.choice(SPACES) for _ in range(count))
    return text if rng.random() < 0.3 else text.strip()


def changed(rng, text):
    """The sentence of another translator."""
    words = text.split(" ")
    for _ in range(rng.randrange(0, 4)):
        at = rng.randrange(len(words))
        words[at] = rng.choice([rng.choice(WORDS), "", words[at] + words[at], words[at].lower(), words[0]])
    if rng.random() < 0.2:
        rng.shuffle(words)
    return " ".join(words)


def line(text):
    return text.replace("\n", " ").replace("\t", " ")


class Check:
    def __init__(self, program):
        self.program = program
        self.passed = self.failed = 0

    def run(self, tokenizer, *arguments):
        done = subprocess.run([self.program, "bleu", "--json", "--tokenize", tokenizer, *arguments],
                              capture_output=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.decode())
        return json.loads(done.stdout)

    def compare(self, what, arguments, hypotheses, references):
        """`references` as sacrebleu wants them: a list per reference, None where there is none."""
        for tokenizer in ("13a", "none"):
            self.compare_one(f"{what}, {tokenizer}", tokenizer, self.run(tokenizer, *arguments), hypotheses,
                             references)

    def compare_one(self, what, tokenizer, got, hypotheses, references):
        bleu = BLEU(tokenize=tokenizer).corpus_score(hypotheses, references)
        chrf = CHRF().corpus_score(hypotheses, references)
        wanted = {"bleu": bleu.score, "precisions": bleu.precisions, "matches": bleu.counts,
                  "totals": bleu.totals, "brevity_penalty": bleu.bp, "ratio": bleu.ratio,
                  "words": bleu.sys_len, "reference_words": bleu.ref_len, "chrf2": chrf.score}
        wrong = [key for key, value in wanted.items() if not same(got[key], value)]
        if wrong:
            self.failed += 1
            for key in wrong:
                print(f"FAIL {what}: {key} is {got[key]}, sacrebleu has {wanted[key]}")
        else:
            self.passed += 1


def same(a, b):
    if isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return abs(a - b) <= 1e-9 and f"{a:.6f}" == f"{b:.6f}"


def write(path, lines):
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write("".join(text + "\n" for text in lines))


def compare_lines(check, rng, number, folder):
    count = rng.choice([1, 1, 2, 5, 30])
    files = rng.randrange(1, 5)
    references = [[line(sentence(rng)) for _ in range(count)]]
    for _ in range(files - 1):
        references.append([line(changed(rng, text)) for text in references[0]])
    hypotheses = [line(changed(rng, text)) for text in references[0]]
    paths = [os.path.join(folder, f"{n}.txt") for n in range(files + 1)]
    for path, lines in zip(paths, [hypotheses, *references]):
        write(path, lines)
    check.compare(f"corpus {number}, lines", paths, hypotheses, references)


def compare_pairs(check, rng, number, folder):
    """Sources with different numbers of references, whose lines are mixed."""
    sources = [f"source {n} é" for n in range(rng.choice([1, 3, 20]))]
    references = {source: [] for source in sources}
    order = sources + [rng.choice(sources) for _ in range(rng.randrange(0, 30))]
    rows = []
    for source in order:
        known = references[source]
        known.append(line(changed(rng, known[0]) if known else sentence(rng)))
        rows.append(f"{source}\t{known[-1]}" + rng.choice(["", "", "\tmore\tcolumns"]))
    hypotheses = [line(changed(rng, references[source][0])) for source in sources]
    most = max(len(known) for known in references.values())
    columns = [[(references[s] + [None] * most)[n] for s in sources] for n in range(most)]
    write(os.path.join(folder, "pairs.tsv"), rows)
    write(os.path.join(folder, "output"), hypotheses)
    files = [os.path.join(folder, name) for name in ("output", "pairs.tsv")]
    check.compare(f"corpus {number}, pairs", ["--tsv", *files], hypotheses, columns)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--corpora", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    check = Check(options.program)
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.corpora):
            (compare_pairs if number % 3 == 2 else compare_lines)(check, rng, number, folder)
    print(f"{NAME}: {check.passed} passed, {check.failed} failed, 0 skipped")
    return check.failed > 0


if __name__ == "__main__":
    sys.exit(main())
