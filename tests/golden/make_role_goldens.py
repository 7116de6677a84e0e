#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write roles.json: small heads with their measures and roles.

The measures and rules are those of docs/heads.md, written a second time in plain Python, so that
the file is an oracle for src/heads. tests/test_role_golden.c reads every case;
tests/view/test_roles.mjs reads those without "model_only" and follows them through the page of
"mha view --weights".

A case:
    name, kind, rows, columns, causal
    weights     a list of [column, weight] pairs for every row; other weights are 0
    tokens      of the columns; special: 1 for begin and end marks; begins: the first one is one
    question    the column of "?", or -1
    frequency   by token, or null
    sources     for every French word the English words it comes from, or null
    measures    by name; null: not measured
    role, score, next, next_score       what the rules find; role "mixed": score of the nearest
"""
import json
import math
import os
import struct

FAR = 3  # the farthest fixed offset
THRESHOLDS = {"sink": 0.6, "argmax": 0.9, "mass": 0.5, "self": 0.5, "duplicate": 0.4,
              "induction": 0.4, "question": 0.6, "rare": 0.5, "margin": 0.1, "one": 0.6,
              "broad": 0.9, "far": 1 / 3}
CASES_MIN = 20  # of a relation or alignment


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


# ------------------------------------------------------------------ measures -----

class Head:
    def __init__(self, case):
        self.__dict__.update(case)
        self.a = [[0.0] * self.columns for _ in range(self.rows)]
        for i, row in enumerate(self.weights):
            for j, weight in row:
                self.a[i][j] = f32(weight)
        self.choosing = [i for i in range(self.rows) if self.seen(i) > 1]

    def seen(self, i):
        return min(i + 1, self.columns) if self.causal else self.columns

    def at(self, i, j):
        return self.a[i][j] if 0 <= j < self.seen(i) else 0.0

    def mean(self, of_row):
        return sum(map(of_row, self.choosing)) / len(self.choosing) if self.choosing else 0.0

    def argmax(self, i, skip):
        best = None
        for j in range(self.seen(i)):
            if not skip[j] and self.a[i][j] > (0.0 if best is None else self.a[i][best]):
                best = j
        return best

    def argmax_share(self, r):
        none = [0] * self.columns
        rows = [i for i in self.choosing if 0 <= i + r < self.seen(i)]
        return sum(self.argmax(i, none) == i + r for i in rows) / len(rows) if rows else 0.0

    def entropy(self, i):
        return -sum(w * math.log(w) for w in self.a[i][:self.seen(i)] if w > 0)

    def smoothed(self, i):
        parts = (0.9999 * w + 0.0001 / self.columns for w in self.a[i])
        return -sum(p * math.log(p) for p in parts)

    def largest(self, i):
        j = self.argmax(i, self.special)
        return 0.0 if j is None else self.a[i][j]

    def distance(self):
        cells = [(self.a[i][j], abs(i - j)) for i in self.choosing for j in range(self.seen(i))
                 if not self.special[j]]
        mass = sum(w for w, _ in cells)
        return sum(w * d for w, d in cells) / mass if mass > 0 else 0.0

    def detect(self, wanted):
        cells = [(i, j) for i in range(self.rows) for j in range(self.seen(i))]
        total = sum(self.a[i][j] for i, j in cells)
        return sum(self.a[i][j] for i, j in cells if wanted(i, j)) / total if total > 0 else 0.0

    def rare(self):
        rows = found = 0
        for i in range(self.rows):
            words = [j for j in range(self.seen(i)) if not self.special[j]]
            if len(words) > 1:
                rows += 1
                rarest = min(words, key=lambda j: self.frequency[self.tokens[j]])
                found += self.argmax(i, self.special) == rarest
        return found / rows if rows else 0.0

    def ends(self):
        """The end marks; without any the last column stands for the end."""
        first = 1 if self.begins else 0
        marks = [j for j in range(first, self.columns) if self.special[j]]
        return marks or [self.columns - 1]

    def one_word(self):
        """The share of rows with more than half of their weight on the same ordinary word."""
        sinks = [0] + (self.ends() if self.kind != "decoder" else [])
        words = [j for j in range(self.columns) if j not in sinks and not self.special[j]]
        return max((self.mean(lambda i, j=j: float(self.at(i, j) > 0.5)) for j in words),
                   default=0.0)

    def alignment(self, reads):
        words = [n for n, sources in enumerate(self.sources) if sources]
        right = sum(self.argmax(n + reads, self.special) in self.sources[n] for n in words)
        found = sum(self.argmax(n + reads, self.special) is not None
                    for n in range(len(self.sources)))
        known = sum(map(len, self.sources))
        return right / len(words), 1 - 2 * right / (found + known)

    def measures(self):
        t = self.tokens
        own = self.kind != "cross"
        m = {
            "entropy": self.mean(self.entropy),
            "smoothed": self.mean(self.smoothed),
            "broad": self.mean(lambda i: self.entropy(i) / math.log(self.seen(i))),
            "confidence": self.mean(self.largest),
            "distance": self.distance(),
            "far": self.distance() / self.columns,
            "first": self.mean(lambda i: self.at(i, 0)),
            "end": None if self.kind == "decoder"
            else sum(self.mean(lambda i, j=j: self.at(i, j)) for j in self.ends()),
            "prev": self.mass(-1), "self": self.mass(0), "next": self.mass(1),
            "duplicate": self.detect(lambda i, j: j < i and t[j] == t[i]) if own else None,
            "induction": self.detect(lambda i, j: 0 < j <= i and t[j - 1] == t[i]) if own else None,
            "question": self.mean(lambda i: self.at(i, self.question)) if self.question >= 0
            else None,
            "rare": self.rare() if self.frequency else None,
            "one": self.one_word(),
        }
        for reads, names in enumerate((("says", "aer_says"), ("reads", "aer_reads"))):
            values = self.alignment(reads) if self.sources else (None, None)
            m.update(zip(names, values))
        return m

    def mass(self, r):
        return self.mean(lambda i: self.at(i, i + r))


# --------------------------------------------------------------------- rules -----

def offset_name(r):
    if abs(r) == 1:
        return "previous" if r < 0 else "next"
    return f"{abs(r)} {'before' if r < 0 else 'after'}"


def best_offset(head, reads):
    """The share of aligned words that the best fixed offset finds, and how many words there are."""
    words = [n for n, sources in enumerate(head.sources or []) if sources]
    offsets = [j - n - reads for n in words for j in head.sources[n]]
    return max((offsets.count(r) for r in offsets), default=0) / max(1, len(words)), len(words)


def scores(head, m):
    """(rule, role, score, threshold) of everything that the rules look at, in their order."""
    t = THRESHOLDS
    yield "sink", "sink: begin" if head.begins else "sink: first word", m["first"], t["sink"]
    yield "sink", "sink: end", m["end"], t["sink"]
    for r in range(-FAR, FAR + 1):
        if r != 0 and not (head.kind == "decoder" and r > 0):
            yield "offset", offset_name(r), head.argmax_share(r), t["argmax"]
            yield "offset", offset_name(r), head.mass(r), t["mass"]
    yield "self", "same place" if head.kind == "cross" else "self", m["self"], t["self"]
    yield "duplicate", "duplicate", m["duplicate"], t["duplicate"]
    yield "induction", "induction", m["induction"], t["induction"]
    yield "question", "question mark", m["question"], t["question"]
    yield "rare", "rare word", m["rare"], t["rare"]
    for reads, name in enumerate(("says", "reads")):
        share, words = best_offset(head, reads)
        if words >= CASES_MIN:
            yield "relation", f"aligned: {name}", m[name], share + t["margin"]
    yield "one", "one word", m["one"], t["one"]
    yield "broad", "broad", m["broad"], t["broad"]
    yield "far", "far", m["far"], t["far"]


def choose(head, m):
    best = {}  # the score of each rule that is nearest to its threshold
    for rule, name, score, threshold in scores(head, m):
        if score is None:
            continue
        if rule not in best or score / threshold > best[rule][1] / best[rule][2]:
            best[rule] = (name, score, threshold)
    ranked = sorted(best, key=lambda rule: -best[rule][1] / best[rule][2])
    held = [rule for rule in best if f32(best[rule][1]) >= f32(best[rule][2])]
    own = held[0] if held else ranked[0]
    following = [rule for rule in ranked if rule != own][0]
    return {"role": best[own][0] if held else "mixed", "nearest": best[own][0],
            "score": best[own][1], "next": best[following][0], "next_score": best[following][1]}


# --------------------------------------------------------------------- cases -----

def short(value):
    return float(f"{value:.7g}")


def case(name, kind, rows, columns, weight_of, **more):
    """weight_of(i) gives {column: weight} of row i."""
    weights = [sorted([j, short(w)] for j, w in weight_of(i).items() if w) for i in range(rows)]
    own = {"name": name, "kind": kind, "rows": rows, "columns": columns,
           "causal": kind == "decoder", "weights": weights, "tokens": list(range(columns)),
           "special": [0] * columns, "begins": False, "question": -1, "frequency": None,
           "sources": None, "model_only": bool(more)}
    own.update(more)
    if set(more) == {"tokens"}:
        own["model_only"] = False  # an imported file has words too
    head = Head(own)
    measures = head.measures()
    own.update(choose(head, measures))
    own["measures"] = {n: v if v is None else float(f"{v:.9g}") for n, v in measures.items()}
    return own


def rest(size, fixed):
    """The fixed weights, and what is missing to 1 spread over the other columns."""
    others = [j for j in range(size) if j not in fixed]
    left = (1 - sum(fixed.values())) / len(others)
    return {**fixed, **{j: left for j in others}}


def around(name, least, make):
    """A head at a threshold, just below it and just above it."""
    for word, value in (("below", least - 0.001), ("at", least), ("above", least + 0.001)):
        yield make(f"{name}, {word}", value)


def all_cases():
    size = 6
    yield from around("sink first", 0.6, lambda n, w: case(
        n, "encoder", size, size, lambda i: rest(size, {0: w})))
    yield from around("sink end", 0.6, lambda n, w: case(
        n, "encoder", size, size, lambda i: rest(size, {size - 1: w})))
    yield from around("sink end of cross", 0.6, lambda n, w: case(
        n, "cross", 4, size, lambda i: rest(size, {size - 1: w})))
    yield from around("sink begin", 0.6, lambda n, w: case(
        n, "decoder", size, size, lambda i: rest(i + 1, {0: w}) if i else {0: 1},
        begins=True, special=[1] + [0] * (size - 1)))
    yield from around("decoder without a begin mark", 0.6, lambda n, w: case(
        n, "decoder", size, size, lambda i: rest(i + 1, {0: w}) if i else {0: 1}))
    yield case("first and end alike", "encoder", size, size,
               lambda i: rest(size, {0: 0.4375, size - 1: 0.4375}))

    # Rows 1 to 10 have a word before them: 8, 9 or 10 of them look there most.
    for count in (8, 9, 10):
        yield case(f"largest weight before in {count} of 10 rows", "encoder", 11, 11,
                   lambda i, n=count: rest(11, {i - 1: 0.3} if 0 < i <= n else {10 - i: 0.3}))
    # Weight at an offset in too few rows to have the largest weight there in 90 % of them.
    yield from around("next by weight", 0.5, lambda n, w: case(
        n, "encoder", size, size,
        lambda i: {i + 1: 1.5 * w, 0 if i else 3: 1 - 1.5 * w} if i < 4 else {6 - i: 1}))
    yield from around("two before in a decoder", 0.5, lambda n, w: case(
        n, "decoder", size, size,
        lambda i: {i - 2: 5 / 3 * w, i - 1: 1 - 5 / 3 * w} if 1 < i < 5 else {i: 1}))
    yield case("before and after alike", "encoder", size, size,
               lambda i: {1: 1} if i == 0 else {4: 1} if i == 5 else {i - 1: 0.5, i + 1: 0.5})
    yield from around("self", 0.5, lambda n, w: case(
        n, "encoder", size, size, lambda i: rest(size, {i: w})))
    yield from around("same place", 0.5, lambda n, w: case(
        n, "cross", 4, size, lambda i: rest(size, {i: w})))

    # Three of six words occurred before; each of these rows has one column to look at.
    def looks(places, weight):
        return lambda i: {places[i]: 2 * weight, 5 if i < 5 else 1: 1 - 2 * weight} \
            if i in places else {(i + 2) % 6: 0.5, (i + 3) % 6: 0.5}
    yield from around("duplicate", 0.4, lambda n, w: case(
        n, "encoder", size, size, looks({2: 0, 3: 1, 5: 4}, w), tokens=[7, 8, 7, 8, 9, 9]))
    yield from around("induction", 0.4, lambda n, w: case(
        n, "encoder", size, size, looks({3: 1, 4: 2, 5: 3}, w), tokens=[7, 8, 9, 7, 8, 9]))

    # Five rows, of which some have more than half of their weight on one column.
    for count in (2, 3, 4):
        yield case(f"one word in {count} of 5 rows", "cross", 5, 7,
                   lambda i, n=count: rest(7, {3: 0.52} if i < n else {5 * i % 7: 0.3}))
    yield from around("half of the weight on one word", 0.5, lambda n, w: case(
        n, "cross", 4, 9, lambda i: rest(9, {6: w})))
    both = [1, 0, 0, 1, 0, 1]
    yield from around("sink on both end marks", 0.6, lambda n, w: case(
        n, "encoder", size, size, lambda i: rest(size, {3: w / 2, 5: w / 2}), begins=True,
        special=both))

    end = [0] * 5 + [1]
    yield from around("question mark", 0.6, lambda n, w: case(
        n, "encoder", size, size, lambda i: rest(size, {4: w}), question=4, special=end))
    often = [9, 8, 1, 7, 6, 0]
    for count in (2, 3, 4):
        yield case(f"rarest word in {count} of 6 rows", "encoder", size, size,
                   lambda i, n=count: rest(size, {2 if i < n else 1 + i % 2 * 2: 0.3}),
                   frequency=often, special=end)
    yield case("special words left out", "encoder", size, size,
               lambda i: rest(size, {5: 0.5, i % 5: 0.2}), frequency=often, special=end)

    # Half of the words come from the place that most come from: 12 of 20 make 0.6.
    def few(count, first, weight):
        return {**{(first + 4 * n) % count: (1 - weight) / 4 for n in range(1, 5)}, first: weight}
    for words in (19, 20):
        sources = [[n if n % 2 else (n + 5) % words] for n in range(words)]
        for right in (words * 3 // 5 - 1, words * 3 // 5, words * 3 // 5 + 1):
            yield case(f"aligned, {right} of {words} words", "cross", words + 1, words + 1,
                       lambda i, s=sources, r=right, w=words: few(
                           w, s[i][0] if i < r else (i * 7 + 3) % w, 0.4),
                       sources=sources, special=[0] * words + [1])
    yield case("aligned on the row that reads", "cross", 21, 21,
               lambda i: few(20, (i * 9 - 9) % 20 if i else 3, 0.4),
               sources=[[n * 9 % 20] for n in range(20)], special=[0] * 20 + [1])

    def mixed_entropy(share):
        """A row of 8 whose entropy is this share of ln 8, by bisection."""
        low, high = 1 / 8, 1.0
        for _ in range(60):
            p = (low + high) / 2
            q = (1 - p) / 7
            entropy = -p * math.log(p) - 7 * q * math.log(q)
            low, high = (p, high) if entropy > share * math.log(8) else (low, p)
        return low
    yield from ((case(f"broad, {word}", "encoder", 8, 8,
                      lambda i, w=mixed_entropy(share): rest(8, {(3 * i + 2) % 8: w})))
                for word, share in (("below", 0.899), ("above", 0.901)))
    yield case("equal weights", "encoder", 8, 8, lambda i: {j: 0.125 for j in range(8)})
    yield case("equal weights of a decoder", "decoder", 5, 5,
               lambda i: {j: 1 / (i + 1) for j in range(i + 1)})

    # Two rows at a mean distance of 2 of 6 columns.
    for word, move in (("below", -1 / 1024), ("at", 0.0), ("above", 1 / 1024)):
        yield case(f"far, {word}", "cross", 2, 6,
                   lambda i, d=move: {1: 3 / 8 - d, 2: 2 / 8, 3: 3 / 8 + d} if i == 0
                   else {2: 2 / 8, 3: 4 / 8, 4: 2 / 8})

    yield case("a single word", "encoder", 1, 1, lambda i: {0: 1})
    yield case("a single word of a decoder", "decoder", 1, 1, lambda i: {0: 1})
    yield case("one column of cross", "cross", 3, 1, lambda i: {0: 1})
    yield case("no rows", "cross", 0, 2, lambda i: {}, begins=False)
    yield case("rows that attend to nothing", "encoder", 4, 4, lambda i: {})
    yield case("one row that attends to nothing", "encoder", 4, 4,
               lambda i: {} if i == 0 else {i - 1: 1})
    yield case("all weight on special words", "encoder", 4, 4, lambda i: {3: 1},
               special=[0, 0, 0, 1], frequency=[3, 2, 1, 0])


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "roles.json")
    with open(path, "w") as file:
        file.write("[\n")
        file.write(",\n".join(json.dumps(one) for one in all_cases()))
        file.write("\n]\n")


if __name__ == "__main__":
    main()
