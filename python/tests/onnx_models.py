# SPDX-License-Identifier: MIT
"""Small models for the tests of mha.onnx."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx", minversion="1.23")  # older ones have older rules

from onnx import helper  # noqa: E402

INPUTS = ("Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen")
OUTPUTS = ("Y", "present_key", "present_value", "qk_matmul_output")


def value_info(name: str, x: Any) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)


def model_of(
    nodes: list[onnx.NodeProto],
    feeds: dict[str, Any],
    outputs: dict[str, int],
    opset: int = 25,
    **parts: Any,
) -> onnx.ModelProto:
    """A model with these nodes. Feeds give the types of its inputs, the first one that of all
    outputs; an output comes with its rank."""
    kind = helper.np_dtype_to_tensor_dtype(next(iter(feeds.values())).dtype)
    graph = helper.make_graph(
        nodes,
        "graph",
        [value_info(name, x) for name, x in feeds.items()],
        [helper.make_tensor_value_info(n, kind, [None] * rank) for n, rank in outputs.items()],
        initializer=parts.pop("initializer", []),
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    imports.append(helper.make_opsetid("local", 1))
    return helper.make_model(graph, opset_imports=imports, ir_version=11, **parts)


def attention_model(
    feeds: dict[str, Any], outputs: tuple[str, ...] = ("Y",), opset: int = 25, **attributes: Any
) -> onnx.ModelProto:
    """One Attention node with the inputs in feeds."""
    names = [name if name in feeds else "" for name in INPUTS]
    while not names[-1]:
        names.pop()
    node = helper.make_node("Attention", names, outputs, **attributes)
    return model_of([node], feeds, {"Y": feeds["Q"].ndim, **dict.fromkeys(outputs[1:], 4)}, opset)


def assert_close(got: Any, want: Any, tolerance: float) -> None:
    """Compare, also -inf; NaN is always wrong."""
    assert got.shape == want.shape
    got, want = got.astype(np.float64), want.astype(np.float64)
    assert not np.isnan(got).any()
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
