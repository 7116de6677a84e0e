# SPDX-License-Identifier: MIT
"""libmha, through its Python package: the overhead of Python counts, as it does for the peers."""

from __future__ import annotations

from collections.abc import Callable

import mha
import numpy as np

from . import ours_layer, ours_model, ours_translate
from .cases import Case
from .contender import Contender, Results, Runner, Unable
from .inputs import Inputs
from .registry import OURS


def version() -> str:
    return f"mha {mha.__version__} ({mha.isa()})"


def _options(case: Case, inputs: Inputs, threads: int) -> dict[str, object]:
    options: dict[str, object] = {"threads": threads}
    if case.causal:
        options["causal"] = True
        if case.L != case.S:
            options["position"] = "bottom-right"
    if case.window >= 0:
        options["window"] = (case.window, 0 if case.causal else case.window)
    if case.mask:
        options["mask"] = inputs.mask
    if case.pad:
        options["key_lengths"] = inputs.lengths
    if case.pad == "pad":
        options["query_lengths"] = inputs.lengths
    return options


def _f32(x: np.ndarray) -> np.ndarray:
    return np.asarray(x).astype(np.float32, copy=False)


def _want(case: Case) -> tuple[dict[str, object], Callable[[object], Results]]:
    """What to request in addition to the output, and how to read the result."""
    if case.want == "stats":
        return {"statistics": True}, lambda r: {
            "output": _f32(r.output),
            "entropy": _f32(r.statistics.rows.entropy),
        }
    if case.wants_weights:
        shape = (case.B, case.L, case.S) if case.want == "mean" else None
        weights = np.empty(shape or (case.B, case.H, case.L, case.S), dtype=np.float32)
        asked = {"return_weights": True, "weights_out": weights}
        asked["average_weights"] = case.want == "mean"
        return asked, lambda r: {"output": _f32(r.output), case.want: weights}
    return {}, lambda output: {"output": _f32(output)}


def _attention(case: Case, inputs: Inputs, threads: int) -> Runner:
    if case.kind != "attention" or case.want == "grad":
        raise Unable("is for attention, forward")
    q, k, v = inputs.query, inputs.key, inputs.value
    asked, read = _want(case)
    options = _options(case, inputs, threads) | asked | {"out": np.empty_like(q)}
    return Runner(lambda: mha.attention(q, k, v, **options), read)


def _backward(case: Case, inputs: Inputs, threads: int) -> Runner:
    if case.want != "grad":
        raise Unable("is for gradients")
    q, k, v, d_output = inputs.query, inputs.key, inputs.value, inputs.d_output
    options = _options(case, inputs, threads)
    forward = mha.attention(q, k, v, return_lse=True, **options)

    def run() -> object:
        return mha.attention_backward(d_output, q, k, v, forward.output, forward.lse, **options)

    return Runner(run, lambda d: {"d_query": d.query, "d_key": d.key, "d_value": d.value})


def _cache(case: Case, inputs: Inputs, threads: int) -> Runner:
    """A step appends a token, attends, and removes the token again for the next round."""
    if case.kind != "cache":
        raise Unable("is for caches")
    q, k, v = inputs.query, inputs.key, inputs.value
    cache = mha.KVCache(case.B, case.S, case.G, case.D, dtype=case.dtype)
    cache.append(k[:, :, :-1], v[:, :, :-1])
    fresh_k, fresh_v = k[:, :, -1:].copy(), v[:, :, -1:].copy()
    output = np.empty_like(q)

    def run() -> np.ndarray:
        cache.append(fresh_k, fresh_v)
        cache.attention(q, out=output, threads=threads)
        for b in range(case.B):
            cache.truncate(b, case.S - 1)
        return output

    return Runner(run, lambda o: {"output": _f32(o)})


def _native(case: Case, inputs: Inputs, threads: int) -> Runner:
    """In products of bf16, as the peers compute."""
    if case.kind != "attention" or case.want == "grad" or case.dtype != "bf16":
        raise Unable("is for attention in bf16, forward")
    q, k, v = inputs.query, inputs.key, inputs.value
    asked, read = _want(case)
    options = _options(case, inputs, threads) | asked | {"out": np.empty_like(q)}
    return Runner(lambda: mha.attention(q, k, v, arithmetic="native", **options), read)


CONTENDERS = (
    Contender(OURS, "attention", _attention),
    Contender(OURS, "attention, native", _native),
    Contender(OURS, "attention_backward", _backward),
    Contender(OURS, "KVCache", _cache),
    *ours_layer.CONTENDERS,
    *ours_model.CONTENDERS,
    *ours_translate.CONTENDERS,
)
