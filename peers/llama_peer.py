# SPDX-License-Identifier: MIT
"""llama.cpp: the operators of its library ggml, called through ctypes.

The shared libraries come from the npm package @node-llama-cpp/linux-x64, which has a build of the
CPU backend per family of processors and chooses the best; PEERS_GGML is the folder they are in.
"""

from __future__ import annotations

import numpy as np

from .cases import Case
from .contender import Contender, Results, Runner, Unable
from .ggml import Graph, library_version
from .inputs import Inputs, band, key_mask, layer_past
from .llama_model import CONTENDERS as WHOLE_MODELS

LIBRARY = "llama.cpp"


def version() -> str:
    return library_version()


def _mask(case: Case, inputs: Inputs) -> np.ndarray | None:
    """[B, 1, L, S] of f16 to add, the only kind of mask in ggml."""
    if case.mask == "add":
        return inputs.mask.astype(np.float16)[None, None]
    seen = None
    if case.mask:
        seen = inputs.mask[None, None]
    elif case.pad:
        seen = np.repeat(key_mask(case, inputs)[:, None, None, :], case.L, axis=2)
    elif (case.causal and not case.one_token) or case.window >= 0:
        seen = band(case)[None, None]
    return None if seen is None else np.where(seen, np.float16(0), np.float16(-np.inf))


def _read_flash(graph: Graph, output: int, case: Case) -> Runner:
    def read(_: None) -> Results:
        return {
            "output": graph.read(output, (case.B, case.L, case.H, case.D)).transpose(0, 2, 1, 3)
        }

    return Runner(graph.run, read)


def _flash(case: Case, inputs: Inputs, threads: int) -> Runner:
    """Queries are f32 for any type of keys, as in llama.cpp."""
    if case.kind not in ("attention", "cache") or case.want != "output":
        raise Unable("has no weights and no gradients")
    graph = Graph(threads)
    q = graph.tensor(inputs.query.astype(np.float32))
    k, v = graph.tensor(inputs.key), graph.tensor(inputs.value)
    if case.kind == "cache":
        fresh = (x[:, :, -1:].astype(np.float32) for x in (inputs.key, inputs.value))
        k, v = (graph.append(c, graph.tensor(x), case.S - 1) for c, x in zip((k, v), fresh))
    mask = _mask(case, inputs)
    mask = None if mask is None else graph.tensor(mask)
    output = graph.flash(q, k, v, mask, case.D**-0.5)
    graph.finish(output)
    return _read_flash(graph, output, case)


def _written_out(case: Case, inputs: Inputs, threads: int) -> Runner:
    """mul_mat, soft_max, mul_mat: the way without flash attention, which has the weights."""
    if case.kind != "attention" or case.want != "weights" or case.dtype != "f32":
        raise Unable("is for weights")
    graph = Graph(threads)
    q, k = graph.tensor(inputs.query), graph.tensor(inputs.key)
    v = graph.tensor(np.ascontiguousarray(inputs.value.transpose(0, 1, 3, 2)))
    mask = _mask(case, inputs)
    mask = None if mask is None else graph.tensor(mask)
    weights = graph.softmax(graph.product(k, q), mask, case.D**-0.5)
    output = graph.product(v, weights)
    graph.finish(output)

    def read(_: None) -> Results:
        return {
            "output": graph.read(output, inputs.query.shape),
            "weights": graph.read(weights, (case.B, case.H, case.L, case.S)),
        }

    return Runner(graph.run, read)


def _layer(case: Case, inputs: Inputs, threads: int) -> Runner:
    if not case.is_layer or case.want != "output":
        raise Unable("is for layers, the output alone")
    graph = Graph(threads)
    x = graph.tensor(inputs.query)
    w = {name: graph.tensor(weight) for name, weight in inputs.weights.items()}
    qkv = graph.add(graph.product(w["in"], x), w["in_bias"])
    parts = [graph.part_of_heads(qkv, part, case.B, case.L, case.H, case.D) for part in range(3)]
    if case.kind == "decode":
        past = map(graph.tensor, layer_past(case, inputs))
        parts[1:] = (graph.append(p, x, case.S - 1) for p, x in zip(past, parts[1:]))
    mask = _mask(case, inputs)
    mask = None if mask is None else graph.tensor(mask)
    heads = graph.flash(*parts, mask, case.D**-0.5)
    joined = graph.reshape(heads, (1, case.B, case.L, case.E))
    output = graph.add(graph.product(w["o"], joined), w["o_bias"])
    graph.finish(output)
    return Runner(graph.run, lambda _: {"output": graph.read(output, inputs.query.shape)})


CONTENDERS = (
    Contender(LIBRARY, "flash_attn_ext", _flash),
    Contender(LIBRARY, "mul_mat + soft_max", _written_out),
    Contender(LIBRARY, "mul_mat + flash_attn_ext", _layer),
    *WHOLE_MODELS,
)
