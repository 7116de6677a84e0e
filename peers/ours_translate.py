# SPDX-License-Identifier: MIT
"""libmha_model as a translator: weights in f32, and in i8 with products of bytes, as the peers'."""

from __future__ import annotations

import functools

from . import ours_model, translation
from .cases import Case
from .contender import Contender, Runner, Unable
from .inputs import Inputs
from .registry import ITSELF, OURS

_STORAGE = {"f32": 1, "i8": 4}  # of mha_model_storage
_ARITHMETIC = {"f32": 0, "i8": 1}  # of mha_arithmetic: exact and native


@functools.cache
def _open(dtype: str, threads: int) -> object:
    library, opened = ours_model.binding()
    return library.Model(
        opened,
        translation.folder(),
        threads=threads,
        storage=_STORAGE[dtype],
        arithmetic=_ARITHMETIC[dtype],
    )


@functools.cache
def source_ids() -> list[list[int]]:
    """The tokens of all sentences, with their end mark: what every contender translates."""
    model = _open("f32", 1)
    return [model.tokens(text) for text in translation.sentences()]


def _translate(case: Case, dtype: str, threads: int) -> Runner:
    model = _open(dtype, threads)
    prepared = [
        model.prepare_generation(
            group,
            translation.MOST_TOKENS,
            beams=case.beams,
            length_penalty=translation.LENGTH_PENALTY,
        )
        for group in translation.groups(case, source_ids())
    ]

    def run() -> list[list[int]]:
        return [ids for generate in prepared for ids in generate()]

    return Runner(run, translation.results)


def _run(case: Case, inputs: Inputs, threads: int) -> Runner:
    translation.refuse(case, "f32", "i8")
    return _translate(case, case.dtype, threads)


def _in_f32(case: Case, inputs: Inputs, threads: int) -> Runner:
    """The translations that those with weights in i8 are compared with."""
    translation.refuse(case, "i8")
    return _translate(case, "f32", threads)


CONTENDERS = (
    Contender(ITSELF, "weights in f32", _in_f32),
    Contender(OURS, "translator", _run),
)
