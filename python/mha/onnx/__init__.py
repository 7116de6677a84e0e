# SPDX-License-Identifier: MIT
"""ONNX's ``Attention`` operator, and a backend that runs models with it.

    import mha.onnx

    rep = mha.onnx.prepare("model.onnx")     # a path or an onnx.ModelProto
    outputs = rep.run([q, k, v])             # by position, or {"Q": q, ...}
    outputs["Y"]

:func:`attention` is the operator as a function, with ONNX's names for everything. The backend runs
every ``Attention`` node of a graph with it, including those in subgraphs and model-local functions,
and all other nodes with ``onnx.reference``, which is correct but slow.

How ONNX's inputs and attributes are passed to the library:

    Q, K, V of rank 3           views (batch, heads, rows, width) of the same memory
    past_key, past_value        prepended to K and V; position = rows of the past
    nonpad_kv_seqlen            key_lengths; position = nonpad_kv_seqlen - rows of Q
    is_causal, *_window_size    causal and window, from that position; without a cache it is 0
    attn_mask, bool / numbers   mask; columns it lacks are masked
    qk_matmul_output_mode       weights "raw", "softcap", "bias", "softmax" for 0, 1, 2, 3

Needs the packages onnx and numpy.
"""

try:
    import numpy as _numpy  # noqa: F401
    import onnx as _onnx  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"mha.onnx needs NumPy and onnx ({error}): pip install numpy onnx"
    ) from error

from mha.onnx._backend import (
    MhaBackend,
    MhaBackendRep,
    Unsupported,
    is_compatible,
    prepare,
    run_model,
    run_node,
    supports_device,
)
from mha.onnx._operator import AttentionOutputs, attention

__all__ = [
    "AttentionOutputs",
    "MhaBackend",
    "MhaBackendRep",
    "Unsupported",
    "attention",
    "is_compatible",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]
