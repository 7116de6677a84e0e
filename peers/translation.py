# SPDX-License-Identifier: MIT
"""What the cases of translation have in common: the model, the sentences, and the results.

The model is the folder PEERS_TRANSLATOR (--translator), models/en-fr unless given: an encoder-decoder
in Marian's form, as `mha train --pairs` writes it. The sentences are the first column of PEERS_TEXTS
(--texts), tests/data/everyday.tsv unless given. All contenders get the same token ids.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

import numpy as np

from .cases import Case
from .contender import Results, Unable

_ROOT = Path(__file__).resolve().parents[1]
MOST_TOKENS = 200  # of a translation
LENGTH_PENALTY = 1.0


def folder() -> Path:
    """The model."""
    path = Path(os.environ.get("PEERS_TRANSLATOR", _ROOT / "models" / "en-fr"))
    if not (path / "config.json").exists():
        raise Unable(f"{path} is no folder of a model; --translator names one")
    return path


@functools.cache
def config() -> dict:
    return json.loads((folder() / "config.json").read_text(encoding="utf-8"))


def texts_file() -> Path:
    return Path(os.environ.get("PEERS_TEXTS", _ROOT / "tests" / "data" / "everyday.tsv"))


@functools.cache
def sentences() -> tuple[str, ...]:
    lines = texts_file().read_text(encoding="utf-8").splitlines()
    return tuple(line.split("\t")[0] for line in lines if line)


@functools.cache
def pieces() -> tuple[str, ...]:
    """The vocabulary in the order of its ids."""
    document = json.loads((folder() / "tokenizer.json").read_text(encoding="utf-8"))
    by_id = {number: piece for piece, number in document["model"]["vocab"].items()}
    by_id |= {token["id"]: token["content"] for token in document["added_tokens"]}
    return tuple(by_id[number] for number in range(len(by_id)))


def groups(case: Case, ids: list[list[int]]) -> list[list[list[int]]]:
    """The sentences that are translated by one call each."""
    return [ids[n : n + case.B] for n in range(0, len(ids), case.B)]


def results(made: list[list[int]]) -> Results:
    """Translations as they are compared: token ids without marks, as text."""
    config_of = config()
    marks = {config_of["eos_token_id"], config_of["pad_token_id"]}
    kept = [" ".join(str(id) for id in one if id not in marks) for one in made]
    return {"translations": np.array(kept)}


def refuse(case: Case, *types: str) -> None:
    if case.kind != "translate":
        raise Unable("is for translations")
    if case.dtype not in types:
        raise Unable(f"has no weights in {case.dtype}")
