# SPDX-License-Identifier: MIT
"""ONNX Runtime: the standard's Attention, and its own MultiHeadAttention and GroupQueryAttention.

Inputs and outputs are bound before timing, so that no call copies them.
"""

from __future__ import annotations

import numpy as np
import onnxruntime as ort

from . import onnx_layer, onnx_model, onnx_pictures
from .cases import Case
from .contender import Contender, Results, Runner, Unable
from .inputs import Inputs, band, key_mask
from .onnx_tools import Session, model, node

LIBRARY = "onnxruntime"
OPSET = 23


def version() -> str:
    return f"ONNX Runtime {ort.__version__}"


def _tokens_first(x: np.ndarray) -> np.ndarray:
    """[B, heads, tokens, D] as [B, tokens, heads * D]."""
    return np.ascontiguousarray(x.transpose(0, 2, 1, 3)).reshape(x.shape[0], x.shape[2], -1)


def _heads_first(x: np.ndarray, heads: int) -> np.ndarray:
    return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(0, 2, 1, 3)


def _refuse(case: Case) -> None:
    if case.kind != "attention" or case.want in ("grad", "stats", "mean"):
        raise Unable("has no gradients, statistics or means of weights")
    if case.dtype == "bf16":
        raise Unable("has no bf16 on CPUs")


def _tokens_first_runner(session: Session, case: Case) -> Runner:
    def read(_: None) -> Results:
        return {"output": _heads_first(session.read()["output"].astype(np.float32), case.H)}

    return Runner(session.run, read)


# -------------------------------------------------------- ai.onnx Attention ---


def _standard_mask(case: Case, inputs: Inputs) -> np.ndarray | None:
    if case.mask:
        return inputs.mask
    if case.pad:
        return np.broadcast_to(
            key_mask(case, inputs)[:, None, None, :], (case.B, 1, case.L, case.S)
        ).copy()
    return band(case) if case.window >= 0 else None


def _standard(case: Case, inputs: Inputs, threads: int) -> Runner:
    _refuse(case)
    feeds = {"q": inputs.query, "k": inputs.key, "v": inputs.value}
    mask = _standard_mask(case, inputs)
    outputs = ["output"]
    attributes: dict[str, int] = {}
    if mask is not None:
        feeds["mask"] = mask
    elif case.causal:
        attributes["is_causal"] = 1
    if case.want == "weights":
        outputs += ["", "", "weights"]
        attributes["qk_matmul_output_mode"] = 3
    graph = [node("Attention", [*feeds], outputs, **attributes)]
    session = Session(model(graph, feeds, [o for o in outputs if o], opset=OPSET), feeds, threads)
    return Runner(
        session.run, lambda _: {n: x.astype(np.float32) for n, x in session.read().items()}
    )


# ------------------------------------------------------- MultiHeadAttention ---


def _multihead(case: Case, inputs: Inputs, threads: int) -> Runner:
    _refuse(case)
    if case.wants_weights or case.G != case.H or case.dtype != "f32":
        raise Unable("is f32, without grouped heads, and gives scores before the softmax only")
    feeds = {
        name: _tokens_first(x)
        for name, x in (("q", inputs.query), ("k", inputs.key), ("v", inputs.value))
    }
    names = ["q", "k", "v", "", "", ""]
    if case.pad:
        feeds["mask"] = key_mask(case, inputs).astype(np.int32)
        names[4] = "mask"
    elif case.mask or case.window >= 0:
        feeds["bias"] = _additive(inputs.mask if case.mask else band(case))
        names[5] = "bias"
    unidirectional = int(case.causal and case.window < 0)
    graph = [
        node(
            "MultiHeadAttention",
            names,
            ["output"],
            domain="com.microsoft",
            num_heads=case.H,
            unidirectional=unidirectional,
        )
    ]
    session = Session(model(graph, feeds, ["output"]), feeds, threads)
    return _tokens_first_runner(session, case)


def _additive(mask: np.ndarray) -> np.ndarray:
    """[1, 1, L, S] of numbers to add; this operator needs very negative ones for masked keys."""
    if mask.dtype == bool:
        mask = np.where(mask, np.float32(0), np.finfo(np.float32).min)
    return mask.astype(np.float32)[None, None]


# ------------------------------------------------------ GroupQueryAttention ---


def _grouped(case: Case, inputs: Inputs, threads: int) -> Runner:
    """Always causal, with a cache: the S - L tokens before are its past, in one shared buffer."""
    if case.kind not in ("attention", "cache") or case.want != "output":
        raise Unable("has no gradients and no statistics")
    if case.mask or case.pad or case.dtype == "bf16" or not (case.causal or case.one_token):
        raise Unable("is causal, f32 or f16, and knows no other mask than a window")
    past = case.S - case.L
    feeds = {
        "q": _tokens_first(inputs.query),
        "k": _tokens_first(inputs.key[:, :, past:]),
        "v": _tokens_first(inputs.value[:, :, past:]),
        "past_k": inputs.key.copy(),
        "past_v": inputs.value.copy(),
        "seqlens_k": np.full(case.B, case.S - 1, dtype=np.int32),
        "total": np.array(case.S, dtype=np.int32),
    }
    attributes = {"local_window_size": case.window + 1} if case.window >= 0 else {}
    graph = [
        node(
            "GroupQueryAttention",
            [*feeds],
            ["output", "present_k", "present_v"],
            domain="com.microsoft",
            num_heads=case.H,
            kv_num_heads=case.G,
            **attributes,
        )
    ]
    whole = model(graph, feeds, ["output", "present_k", "present_v"])
    shared = {"present_k": "past_k", "present_v": "past_v"}
    session = Session(whole, feeds, threads, shared=shared)
    return _tokens_first_runner(session, case)


CONTENDERS = (
    Contender(LIBRARY, "Attention", _standard),
    Contender(LIBRARY, "MultiHeadAttention", _multihead),
    Contender(LIBRARY, "GroupQueryAttention", _grouped),
    *onnx_layer.CONTENDERS,
    *onnx_model.CONTENDERS,
    *onnx_pictures.CONTENDERS,
)
