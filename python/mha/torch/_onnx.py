# SPDX-License-Identifier: MIT
"""The operator mha::attention for torch.onnx.export(), as ONNX's Attention."""

from collections.abc import Callable
from typing import Any, NoReturn

import torch

from ._operator import TENSORS

_SCORES, _WEIGHTS = 2, 3  # qk_matmul_output_mode: scores with masks, weights
# The options that ONNX's operator lacks, and that nothing else in a graph stands for.
_MISSING = (
    "alibi_slopes",
    "sinks",
    "query_documents",
    "key_documents",
    "positions",
    "query_lengths",
    "query_starts",
    "key_starts",
    "head_means",
)


def _refuse(what: str) -> NoReturn:
    raise NotImplementedError(
        f"ONNX's Attention has no {what}: leave it out, or run the model with mha.torch"
    )


def _check(given: dict[str, Any], rows: Any, keys: Any, settings: tuple[Any, ...]) -> None:
    """Raise an error for what the operator of opset 23 cannot express."""
    for name in _MISSING:
        if given[name] is not None:
            _refuse(name)
    seed, causal, position, offset, left, right, _, _, _, modes = settings
    if seed is not None:
        _refuse("dropout")
    if left >= 0 or right >= 0:
        _refuse("window")
    if modes is not None:
        _refuse("head_modes")
    same = isinstance(rows, int) and rows == keys and given["key_lengths"] is None
    if causal and not (position == "top-left" or same or (position == "offset" and offset == 0)):
        _refuse('causal attention from another position than "top-left"')


def _mask_of(op: Any, given: dict[str, Any], dtype: int) -> Any:
    """One mask for all that hides keys or is added to scores; None if there is none."""
    hidden, added = [], []
    for name in ("mask", "bias"):
        value = given[name]
        if value is not None:
            (hidden if value.dtype == 9 else added).append(value)  # 9: bool
    if given["ignore_mask"] is not None:
        hidden.append(op.Not(given["ignore_mask"]))
    if given["key_lengths"] is not None:
        one, zero = (op.Constant(value_int=n) for n in (1, 0))
        count = op.Squeeze(op.Shape(given["key"], start=2, end=3))
        steps = op.Reshape(op.Range(zero, count, one), [1, 1, 1, -1])
        hidden.append(op.Less(steps, op.Reshape(given["key_lengths"], [-1, 1, 1, 1])))
    seen = None
    for mask in hidden:
        seen = mask if seen is None else op.And(seen, mask)
    total = None
    for numbers in added:
        numbers = op.Cast(numbers, to=dtype)
        total = numbers if total is None else op.Add(total, numbers)
    if total is None:
        return seen
    if seen is None:
        return total
    least = op.Cast(op.Constant(value_float=float("-inf")), to=dtype)
    return op.Where(seen, total, least)


def _attention(*arguments: Any) -> Any:
    """The nodes for one call. Log-sum-exp and weights come from nodes of their own, which the
    exporter removes where they are not used."""
    from onnxscript.onnx_opset import opset23 as op

    count = len(TENSORS)
    given = dict(zip(TENSORS, arguments[:count]))
    settings, weights = arguments[count:-1], arguments[-1]
    query, key, value = (given[name] for name in TENSORS[:3])
    _check(given, query.shape[2], key.shape[2], settings)
    _, causal, _, _, _, _, scale, softcap, _, _ = settings
    mask = _mask_of(op, given, int(query.dtype))
    attributes = {"is_causal": int(causal), "softcap": float(softcap)}
    if scale is not None:
        attributes["scale"] = float(scale)
    output, *_ = op.Attention(query, key, value, mask, **attributes)
    if given["gates"] is not None:
        gates = op.Reshape(given["gates"], [-1, query.shape[1], 1, 1])
        output = op.Mul(output, op.CastLike(gates, output))

    def inner(mode: int) -> Any:
        more = {**attributes, "qk_matmul_output_mode": mode}
        return op.Attention(query, key, value, mask, **more)[3]

    lse = op.ReduceLogSumExp(inner(_SCORES), [-1], keepdims=0)
    if weights == 0:
        return output, lse, op.ConstantOfShape(op.Constant(value_ints=[0]))
    shown = inner(_WEIGHTS)
    return output, lse, shown if weights == 1 else op.ReduceMean(shown, [1], keepdims=0)


def onnx_translations() -> dict[Any, Callable[..., Any]]:
    """What torch.onnx.export() needs to write the operator as ONNX's Attention (opset 23); needs
    the package onnxscript.

        torch.onnx.export(
            model, inputs, "model.onnx", dynamo=True, opset_version=23,
            custom_translation_table=mha.torch.onnx_translations(),
        )

    Masks, biases, key lengths, gates, scale and soft cap are kept; what ONNX lacks raises
    NotImplementedError. A row without keys, 0 here, is not defined there.
    """
    try:
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"torch.onnx.export() needs onnxscript ({error}): pip install onnx onnxscript"
        ) from error
    return {torch.ops.mha.attention.default: _attention}
