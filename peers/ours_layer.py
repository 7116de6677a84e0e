# SPDX-License-Identifier: MIT
"""libmha's layers: mha.Layer forward, with a cache and in training, and the module of mha.torch."""

from __future__ import annotations

from collections.abc import Callable

import mha
import numpy as np

from .cases import Case
from .contender import Contender, Results, Runner, Unable
from .inputs import RATE, Inputs
from .registry import OURS


def layer_weights(inputs: Inputs) -> dict[str, np.ndarray]:
    """Under the names of mha.Layer, as views where that is possible."""
    w = inputs.weights
    weights = dict(zip("qkv", np.split(w["in"], 3)), o=w["o"], o_bias=w["o_bias"])
    return weights | dict(zip(("q_bias", "k_bias", "v_bias"), np.split(w["in_bias"], 3)))


def _layer(case: Case, inputs: Inputs) -> mha.Layer:
    return mha.Layer(case.E, case.H, weights=layer_weights(inputs))


def _options(case: Case, inputs: Inputs, threads: int) -> dict[str, object]:
    options: dict[str, object] = {"threads": threads, "causal": case.causal}
    if case.pad:
        options["key_lengths"] = inputs.lengths
    if case.pad == "pad":
        options["query_lengths"] = inputs.lengths
    return options


def _want(case: Case) -> tuple[dict[str, object], Callable[[object], Results]]:
    if not case.wants_weights:
        return {}, lambda output: {"output": output}
    shape = (case.B, case.H, case.L, case.S)
    weights = np.empty(shape if case.want == "weights" else shape[:1] + shape[2:], np.float32)
    asked = {
        "return_weights": True,
        "weights_out": weights,
        "average_weights": case.want == "mean",
    }
    return asked, lambda result: {"output": result.output, case.want: weights}


def _forward(case: Case, inputs: Inputs, threads: int) -> Runner:
    if case.kind != "layer" or case.want == "train":
        raise Unable("is for layers, forward, without a cache")
    layer, x = _layer(case, inputs), inputs.query
    asked, read = _want(case)
    options = _options(case, inputs, threads) | asked | {"out": np.empty_like(x)}
    return Runner(lambda: layer(x, **options), read)


def _decode(case: Case, inputs: Inputs, threads: int) -> Runner:
    """A step appends a token, which is removed again for the next round."""
    if case.kind != "decode":
        raise Unable("is for decoding")
    layer, x = _layer(case, inputs), inputs.query
    cache = mha.KVCache(case.B, case.S, case.H, case.D)
    layer(np.ascontiguousarray(inputs.key[:, :-1]), cache=cache, causal=True)
    output = np.empty_like(x)

    def run() -> np.ndarray:
        layer(x, cache=cache, causal=True, out=output, threads=threads)
        for b in range(case.B):
            cache.truncate(b, case.S - 1)
        return output

    return Runner(run, lambda o: {"output": o})


def _gradients(d: dict[str, np.ndarray]) -> Results:
    """Under the names that the peers have: q, k and v in one."""
    joined = {
        "d_in": np.concatenate([d[name] for name in "qkv"]),
        "d_in_bias": np.concatenate([d[name + "_bias"] for name in "qkv"]),
    }
    return joined | {"d_query": d["query"], "d_o": d["o"], "d_o_bias": d["o_bias"]}


def _train(case: Case, inputs: Inputs, threads: int) -> Runner:
    if case.want != "train":
        raise Unable("is for training")
    weights = {name: w.copy() for name, w in layer_weights(inputs).items()}
    layer = mha.Layer(case.E, case.H, weights=weights)
    steps = {name: np.empty_like(w) for name, w in weights.items()}
    options = _options(case, inputs, threads)

    def run() -> tuple:
        tape = layer.tape(inputs.query, **options)
        gradients = tape.backward(inputs.d_output, threads=threads)
        for name, weight in weights.items():
            weight -= np.multiply(gradients[name], np.float32(RATE), out=steps[name])
        layer.update(weights)
        return tape.output, gradients

    return Runner(run, lambda r: {"output": r[0]} | _gradients(r[1]))


def _torch_train(case: Case, inputs: Inputs, threads: int) -> Runner:
    """The same training step as for PyTorch's module, with the module of mha.torch."""
    if case.want != "train":
        raise Unable("is for training")
    from mha.torch import MultiheadAttention

    from . import torch_layer

    return torch_layer.train_module(MultiheadAttention, case, inputs, threads)


CONTENDERS = (
    Contender(OURS, "Layer", _forward),
    Contender(OURS, "Layer, cache", _decode),
    Contender(OURS, "Layer, tape", _train),
    Contender(OURS, "mha.torch.MultiheadAttention", _torch_train),
)
