# SPDX-License-Identifier: MIT
"""ONNX Runtime's layers: the fused Attention of its transformer optimiser, and GroupQueryAttention
between two products."""

from __future__ import annotations

import numpy as np

from .cases import Case
from .contender import Contender, Runner, Unable
from .inputs import Inputs, key_mask, layer_past
from .onnx_tools import Arrays, Session, model, node

LIBRARY = "onnxruntime"


def _weights(inputs: Inputs) -> dict[str, np.ndarray]:
    """[in, out], as MatMul reads them."""
    return {
        name: np.ascontiguousarray(w.T) if w.ndim == 2 else w for name, w in inputs.weights.items()
    }


def _last_product() -> list:
    return [
        node("MatMul", ["heads", "o"], ["product"]),
        node("Add", ["product", "o_bias"], ["output"]),
    ]


def _runner(
    nodes: list,
    feeds: Arrays,
    weights: Arrays,
    threads: int,
    shared: dict[str, str],
) -> Runner:
    whole = model(nodes, feeds, ["output", *shared], weights)
    session = Session(whole, feeds, threads, weights, shared)
    return Runner(session.run, lambda _: {"output": session.read()["output"]})


def _refuse(case: Case) -> None:
    if case.wants_weights or case.want == "train":
        raise Unable("gives no weights and is not trained")


def _fused(case: Case, inputs: Inputs, threads: int) -> Runner:
    if case.kind != "layer":
        raise Unable("is for layers without a cache")
    _refuse(case)
    feeds = {"x": inputs.query}
    names = ["x", "in", "in_bias"]
    if case.pad:
        feeds["mask"] = key_mask(case, inputs).astype(np.int32)
        names.append("mask")
    attention = node(
        "Attention",
        names,
        ["heads"],
        domain="com.microsoft",
        num_heads=case.H,
        unidirectional=int(case.causal),
    )
    return _runner([attention, *_last_product()], feeds, _weights(inputs), threads, {})


def _grouped(case: Case, inputs: Inputs, threads: int) -> Runner:
    if not case.is_layer or not case.causal or case.pad:
        raise Unable("is causal")
    _refuse(case)
    past_k, past_v = layer_past(case, inputs)
    feeds = {"x": inputs.query, "past_k": past_k, "past_v": past_v}
    feeds["seqlens_k"] = np.full(case.B, case.S - 1, dtype=np.int32)
    feeds["total"] = np.array(case.S, dtype=np.int32)
    nodes = [
        node("MatMul", ["x", "in"], ["raw"]),
        node("Add", ["raw", "in_bias"], ["qkv"]),
        node(
            "GroupQueryAttention",
            ["qkv", "", "", "past_k", "past_v", "seqlens_k", "total"],
            ["heads", "present_k", "present_v"],
            domain="com.microsoft",
            num_heads=case.H,
            kv_num_heads=case.H,
        ),
        *_last_product(),
    ]
    shared = {"present_k": "past_k", "present_v": "past_v"}
    return _runner(nodes, feeds, _weights(inputs), threads, shared)


CONTENDERS = (
    Contender(LIBRARY, "Attention with weights", _fused),
    Contender(LIBRARY, "MatMul + GroupQueryAttention", _grouped),
)
