# SPDX-License-Identifier: MIT
"""CTranslate2 with the same weights, converted by its own converter, in f32 and in int8."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

import ctranslate2

from . import translation
from .cases import Case
from .contender import Contender, Runner
from .inputs import Inputs
from .ours_translate import source_ids

LIBRARY = "ctranslate2"
_TYPES = {"f32": "float32", "i8": "int8"}
_CONVERTED = Path("build/peers/ctranslate2")


def version() -> str:
    return f"CTranslate2 {ctranslate2.__version__}"


def _specification() -> object:
    """As CTranslate2 converts BART, whose layers Marian has. Its converter for Marian expects the
    padding to be the last entry of the vocabulary, and a tokenizer in other files."""
    from ctranslate2.converters.transformers import BartLoader

    from .torch_translate import marian

    model, settings = marian(), translation.config()
    model.config.normalize_before = model.config.normalize_embedding = False
    made = BartLoader().get_model_spec(model)
    vocabulary = list(translation.pieces())
    made.register_source_vocabulary(vocabulary)
    made.register_target_vocabulary(vocabulary)
    made.config.eos_token = vocabulary[settings["eos_token_id"]]
    made.config.decoder_start_token = vocabulary[settings["decoder_start_token_id"]]
    made.config.unk_token = "<unk>"
    return made


@functools.cache
def _converted(dtype: str) -> Path:
    target = _CONVERTED / dtype
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    specification = _specification()
    specification.validate()
    specification.optimize(quantization=_TYPES[dtype])
    specification.save(str(target))
    return target


@functools.cache
def _translator(dtype: str, threads: int) -> ctranslate2.Translator:
    return ctranslate2.Translator(
        str(_converted(dtype)),
        device="cpu",
        compute_type=_TYPES[dtype],
        inter_threads=1,
        intra_threads=threads,
    )


def _run(case: Case, inputs: Inputs, threads: int) -> Runner:
    translation.refuse(case, "f32", "i8")
    translator, pieces = _translator(case.dtype, threads), translation.pieces()
    number_of = {piece: number for number, piece in enumerate(pieces)}
    calls = [
        [[pieces[id] for id in one] for one in group]
        for group in translation.groups(case, source_ids())
    ]

    def run() -> list:
        return [
            result
            for call in calls
            for result in translator.translate_batch(
                call,
                beam_size=case.beams,
                length_penalty=translation.LENGTH_PENALTY,
                max_decoding_length=translation.MOST_TOKENS,
                max_input_length=0,
            )
        ]

    def read(results: list) -> dict:
        made = [[number_of[piece] for piece in result.hypotheses[0]] for result in results]
        return translation.results(made)

    return Runner(run, read)


CONTENDERS = (Contender(LIBRARY, "translate_batch", _run),)
