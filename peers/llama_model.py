# SPDX-License-Identifier: MIT
"""llama.cpp with whole models, from the same file or the same weights."""

from __future__ import annotations

import functools

import numpy as np

from . import model_files
from .cases import Case
from .contender import Contender, Runner, Unable
from .inputs import Inputs
from .llama_library import Model

LIBRARY = "llama.cpp"


def _run(flash: bool, case: Case, inputs: Inputs, threads: int) -> Runner:
    """Keys and values are f16, as by default, but f32 in a model of f32."""
    if not case.is_model or case.want != "output":
        raise Unable("is for whole models, the output alone")
    if case.model not in ("smollm2", "stories15m"):
        raise Unable("is for decoders")
    path = str(model_files.gguf_path(case.model))
    model = Model(path, case.S, threads, case.dtype != "f32", flash)
    ids = np.array(inputs.ids[0], dtype=np.int32)
    before = case.S - case.L
    if before:
        model.append(ids[:before])
    last = ids[before:].copy()

    def run() -> None:
        model.truncate(before)
        model.append(last)

    return Runner(run, lambda _: {"logits": model.logits()})


CONTENDERS = (
    Contender(LIBRARY, "llama_decode", functools.partial(_run, True)),
    Contender(LIBRARY, "llama_decode without flash", functools.partial(_run, False)),
)
