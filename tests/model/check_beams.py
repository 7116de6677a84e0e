# SPDX-License-Identifier: MIT
"""check_beams.py BUILD [--all] [FAMILY...]: beam search of libmha_model finds what transformers' generate()
finds, on small random models: the same tokens, or another hypothesis of the same score. And a beam
of 1 is greedy search, a text alone gives the same bits as in a batch, and for any threads. Some
models of every family have one of SEARCHES; with --all all models have all of them, which takes
minutes."""

from __future__ import annotations

import math
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from check_families import PAIRS, texts
from families import VOCABULARY, models
from library import Library, Model
from report import Report

CHECKED = ["marian", "t5", "bart", "mbart", "gpt2", "llama", "gemma2"]
ENDS = 8  # tokens that end a text, so that random texts end at different lengths
MOST = 18
NEAR = 2e-4
SEARCHES = ((4, 1, 1.0), (4, 4, 0.0), (3, 2, 0.6), (6, 6, 2.0))  # beams, best, length penalty
PROMPTS = 2
CONFIGURATIONS = (1, 3)  # of each family, without --all: some of their texts end

report = Report("check_beams")
lengths: set[tuple[int, bool]] = set()  # of all results: tokens, ended


class Found(NamedTuple):
    """A result: its tokens with the end, and the score that it is ranked by."""

    ids: list[int]
    rank: float


def ours(model: Model, prompts: list[list[int]], **fields: Any) -> list[list[tuple[Any, ...]]]:
    """For each prompt its results: ids, total log-probability, tokens that it counts, ended."""
    return [
        [
            (ids, score * (len(ids) + ended), len(ids) + ended, ended)
            for ids, _, score, ended in some
        ]
        for some in model.generations(prompts, MOST, **fields)
    ]


def theirs(
    model: Any, prompt: list[int], pair: bool, beams: int, best: int, penalty: float
) -> list[Found]:
    answer = model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        num_beams=beams,
        num_return_sequences=best,
        max_new_tokens=MOST,
        length_penalty=penalty,
        early_stopping=False,
        do_sample=False,
        return_dict_in_generate=True,
        output_scores=True,
    )
    ends = set(model.generation_config.eos_token_id)
    found = []
    for sequence, score in zip(answer.sequences, answer.sequences_scores, strict=True):
        ids = sequence.tolist()[1 if pair else len(prompt) :]
        for n, token in enumerate(ids):
            if token in ends:
                ids = ids[: n + 1]
                break
        found.append(Found(ids, float(score)))
    return found


def compare(name: str, mine: list[tuple[Any, ...]], others: list[Found], penalty: float) -> int:
    """Counts results of equal score but other tokens."""
    ties = 0
    for n, ((ids, total, count, ended), other) in enumerate(zip(mine, others, strict=True)):
        rank = total / count**penalty
        same = other.ids[: len(ids)] == ids and len(other.ids) == len(ids) + ended
        near = math.isclose(rank, other.rank, rel_tol=NEAR, abs_tol=NEAR)
        ties += near and not same
        if not near:
            report.check(name, False, f"rank {n}: {ids} {rank:.6f} instead of {other}")
            return ties
    return ties


def check_model(
    library: Library, name: str, number: int, reference: Any, everything: bool
) -> None:
    pair = name in PAIRS
    settings = reference.generation_config
    generator = np.random.default_rng(number)
    settings.eos_token_id = generator.choice(np.arange(3, VOCABULARY), ENDS, replace=False).tolist()
    settings.forced_eos_token_id = None
    if name == "bart":
        settings.forced_bos_token_id = 7
    if name == "marian":
        settings.bad_words_ids = [[1], [11]]
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        reference.save_pretrained(folder)
        model = Model(library, Path(folder))
        prompts = texts(number, PROMPTS, 30)
        chosen = (number + CHECKED.index(name)) % len(SEARCHES)
        for beams, best, penalty in SEARCHES if everything else [SEARCHES[chosen]]:
            label = f"{name}-{number} beams {beams}, penalty {penalty}"
            mine = ours(model, prompts, beams=beams, best=best, length_penalty=penalty)
            failed = report.failed
            ties = sum(
                compare(
                    f"{label}, text {n}",
                    mine[n],
                    theirs(reference, prompt, pair, beams, best, penalty),
                    penalty,
                )
                for n, prompt in enumerate(prompts)
            )
            if report.failed == failed:
                limit = 0.02 * len(prompts) * best
                report.check(label, ties <= max(1, limit), f"{ties} ties")
            check_bits(label, library, Path(folder), prompts, mine, beams, best, penalty)
            lengths.update((count, ended) for some in mine for _, _, count, ended in some)
        check_greedy(f"{name}-{number} greedy", model, reference, prompts, pair)


def check_bits(
    label: str,
    library: Library,
    folder: Path,
    prompts: list[list[int]],
    mine: list[Any],
    beams: int,
    best: int,
    penalty: float,
) -> None:
    one = Model(library, folder, threads=1)
    fields = {"beams": beams, "best": best, "length_penalty": penalty}
    alone = [ours(one, [prompt], **fields)[0] for prompt in prompts]
    turned = ours(one, prompts[::-1], **fields)[::-1]
    report.check(f"{label}: the same bits alone", alone == mine)
    report.check(f"{label}: the same bits in another order", turned == mine)


def check_greedy(
    name: str, model: Model, reference: Any, prompts: list[list[int]], pair: bool
) -> None:
    mine = ours(model, prompts)
    report.check(f"{name}: a beam of 1", ours(model, prompts, beams=1) == mine)
    for n, prompt in enumerate(prompts):
        ids = reference.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            num_beams=1,
            max_new_tokens=MOST,
            do_sample=False,
        )[0].tolist()[1 if pair else len(prompt) :]
        kept, _, _, ended = mine[n][0]
        report.check(f"{name}, text {n}", ids[: len(kept)] == kept and len(ids) == len(kept) + ended)


def main() -> None:
    library = Library(Path(sys.argv[1]))
    everything = "--all" in sys.argv[2:]
    families = [name for name in sys.argv[2:] if name != "--all"]
    for name, number, reference in models(families or CHECKED):
        if number not in CONFIGURATIONS and not everything:
            continue
        report.run(
            f"{name}-{number}",
            lambda name=name, number=number, reference=reference: check_model(
                library, name, number, reference, everything
            ),
        )
    enough = MOST // 2 if everything else 4
    report.check("texts end early, late and not at all", len(lengths) > enough, f"{lengths}")
    report.finish()


if __name__ == "__main__":
    main()
