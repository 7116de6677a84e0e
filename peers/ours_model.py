# SPDX-License-Identifier: MIT
"""libmha_model, through the binding that the tests use: whole models."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from types import ModuleType

from . import model_files, pictures
from .cases import PICTURE_MODELS, Case
from .contender import Contender, Runner, Unable
from .inputs import Inputs
from .registry import ITSELF, OURS

_ROOT = Path(__file__).resolve().parents[1]
_ENCODER, _DECODER = 0, 1
_F32, _F16 = 0, 1  # of mha_dtype
# Of mha_model_storage and mha_arithmetic: native products, if weights are not as in the file. "all f32"
# converts the weights of a file in f16 when the model is opened, as the peers do.
_STORAGE = {"bf16": (3, 1), "i8": (4, 1), "all f32": (1, 0)}


@functools.cache
def binding() -> tuple[ModuleType, object]:
    """tests/model/library.py, and the library that it has opened."""
    build = Path(os.environ.get("PEERS_BUILD", _ROOT / "build"))
    if not (build / "libmha_model.so").exists():
        raise Unable(f"{build} has no libmha_model.so")
    sys.path.insert(0, str(_ROOT / "tests" / "model"))
    try:
        import library
    finally:
        sys.path.pop(0)
    return library, library.Library(build)


@functools.cache
def _open(model: str, dtype: str, threads: int) -> object:
    library, opened = binding()
    storage, arithmetic = _STORAGE.get(dtype, (0, 0))
    return library.Model(
        opened,
        pictures.folder(model) if model in PICTURE_MODELS else model_files.path(model),
        threads=threads,
        storage=storage,
        arithmetic=arithmetic,
    )


def _encoder(case: Case, inputs: Inputs, model: object, statistics: bool) -> Runner:
    call = model.prepare(ids=inputs.ids, statistics=(_ENCODER,) if statistics else ())
    call.reserve()
    return Runner(call.run, lambda result: {"hidden": result["hidden"]})


def _pictures(inputs: Inputs, model: object) -> Runner:
    call = model.prepare(pixels=inputs.pixels, want=("labels",))
    call.reserve()
    return Runner(call.run, lambda result: {"logits": result["labels"]})


def _decoder(case: Case, inputs: Inputs, model: object, statistics: bool, kind: int) -> Runner:
    """The tokens that are not measured are in the state before; the others are removed again."""
    state = model.new_state(capacity=case.S, kind=kind)
    before = case.S - case.L
    if before:
        model.run(ids=[inputs.ids[0][:before]], state=state, want=())
    call = model.prepare(
        ids=[inputs.ids[0][before:]],
        state=state,
        want=("logits",),
        logit_rows=[case.L - 1],
        statistics=(_DECODER,) if statistics else (),
    )
    call.reserve()
    truncate = model.library.c.mha_state_truncate

    def run() -> dict:
        result = call.run()
        truncate(state, 0, before)
        return result

    size = int(model.info.memory_bytes) + int(model.library.c.mha_state_bytes(state))
    return Runner(
        run, lambda result: {"logits": result["logits"]}, size if case.one_token else 0
    )


def _prepare(
    case: Case, inputs: Inputs, threads: int, kind: int, statistics: bool
) -> Runner:
    if not case.is_model:
        raise Unable("is for whole models")
    model = _open(case.model, case.dtype, threads)
    if case.model not in ("minilm", *PICTURE_MODELS):
        return _decoder(case, inputs, model, statistics, kind)
    if kind != _F32:
        raise Unable("has no state")
    if case.model in PICTURE_MODELS:
        return _pictures(inputs, model)
    return _encoder(case, inputs, model, statistics)


def _run(kind: int, case: Case, inputs: Inputs, threads: int) -> Runner:
    if case.want == "stats" and kind != _F32:
        raise Unable("is compared without statistics in f32 only")
    return _prepare(case, inputs, threads, kind, case.want == "stats")


def _f32_weights(case: Case, inputs: Inputs, threads: int) -> Runner:
    if case.model not in PICTURE_MODELS:
        raise Unable("is for models of pictures, whose files may have f16")
    return _pictures(inputs, _open(case.model, "all f32", threads))


def _without_statistics(case: Case, inputs: Inputs, threads: int) -> Runner:
    if case.want != "stats":
        raise Unable("is for statistics")
    return _prepare(case, inputs, threads, _F32, False)


CONTENDERS = (
    Contender(OURS, "model", functools.partial(_run, _F32)),
    Contender(OURS, "model, keys and values in f16", functools.partial(_run, _F16)),
    Contender(OURS, "model, weights in f32", _f32_weights),
    Contender(ITSELF, "without statistics", _without_statistics),
)
