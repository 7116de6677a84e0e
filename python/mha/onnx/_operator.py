# SPDX-License-Identifier: MIT
"""The operator as a function: converts ONNX's arguments to those of the library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx

import mha

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_WEIGHTS = ("raw", "softcap", "bias", "softmax")  # by qk_matmul_output_mode
_PRECISIONS = (
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.DOUBLE,
    onnx.TensorProto.BFLOAT16,
)


class AttentionOutputs(NamedTuple):
    """The four outputs of the operator. Without a past, present_key and present_value are views of
    K and V. qk_matmul_output is None if it was not requested."""

    Y: np.ndarray
    present_key: np.ndarray
    present_value: np.ndarray
    qk_matmul_output: np.ndarray | None


def attention(
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    attn_mask: np.ndarray | None = None,
    past_key: np.ndarray | None = None,
    past_value: np.ndarray | None = None,
    nonpad_kv_seqlen: np.ndarray | None = None,
    *,
    is_causal: int = 0,
    q_num_heads: int | None = None,
    kv_num_heads: int | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
    qk_matmul_output_mode: int = 0,
    left_window_size: int = -1,
    right_window_size: int = -1,
    qk_matmul_output: bool = False,
    threads: int | None = None,
) -> AttentionOutputs:
    """ONNX's Attention, opsets 23 to 25, on NumPy arrays. Inputs and attributes are ONNX's;
    ``qk_matmul_output=True`` requests the fourth output.

    Element types are float16, bfloat16, float32 and float64; Y has that of Q. Scores, softmax and
    sums are float32, even if softmax_precision asks for less. With softmax_precision DOUBLE, or
    any float64 input, everything is float64, on the library's slow and exact path.

    >>> import numpy as np, mha.onnx
    >>> x = np.eye(3, dtype=np.float32).reshape(1, 3, 3)     # batch 1, 3 tokens, width 3
    >>> mha.onnx.attention(x, x, x, q_num_heads=1, kv_num_heads=1, is_causal=1).Y[0, 0]
    array([1., 0., 0.], dtype=float32)
    """
    query = _by_heads("Q", Q, "q_num_heads", q_num_heads)
    key = _by_heads("K", K, "kv_num_heads", kv_num_heads)
    value = _by_heads("V", V, "kv_num_heads", kv_num_heads)
    _check_shapes(query, key, value, ranks={Q.ndim, K.ndim, V.ndim})
    _check_caches(past_key, past_value, nonpad_kv_seqlen)
    past = 0 if past_key is None else past_key.shape[2]
    key = _join("past_key", past_key, key)
    value = _join("past_value", past_value, value)
    lengths = _lengths(nonpad_kv_seqlen, len(query), key.shape[2])
    weights = _weights(qk_matmul_output_mode) if qk_matmul_output else None
    options = {
        "softcap": max(softcap, 0.0),  # below 0 it is off, as in onnx.reference
        "mask": _mask(attn_mask, (*query.shape[:3], key.shape[2])),
        "threads": threads,
        **_position(query.shape[2], past, lengths, is_causal, left_window_size, right_window_size),
        **_padding(lengths, key.shape[2], weights),
    }
    work = _work_type((query, key, value, attn_mask), softmax_precision)
    scaled, options["scale"] = _scaled(query, scale)
    Y, scores = _run(scaled, key, value, work, options, weights, by_rows=Q.ndim == 3)
    return AttentionOutputs(Y, key, value, scores)


def _by_heads(name: str, x: np.ndarray, attribute: str, heads: int | None) -> np.ndarray:
    """x as (batch, heads, rows, width)."""
    x = np.asarray(x)
    if x.dtype.name not in _FLOATS:
        raise ValueError(f"{name} is {x.dtype}; Attention takes {', '.join(_FLOATS)}")
    if x.ndim == 4:
        if heads is not None and heads != x.shape[1]:
            raise ValueError(
                f"{attribute} is {heads}, but {name} of shape {x.shape} has {x.shape[1]} heads"
            )
        return x
    if x.ndim != 3:
        raise ValueError(
            f"{name} has shape {x.shape}; it must be (batch, heads, rows, head size) "
            f"or (batch, rows, heads * head size)"
        )
    if heads is None or heads < 1 or x.shape[2] % heads:
        raise ValueError(
            f"{name} has shape {x.shape}, heads side by side, so {attribute} must be a number "
            f"that divides {x.shape[2]}; it is {heads}"
        )
    batch, rows, width = x.shape
    return x.reshape(batch, rows, heads, width // heads).transpose(0, 2, 1, 3)


def _check_shapes(query: np.ndarray, key: np.ndarray, value: np.ndarray, ranks: set[int]) -> None:
    if len(ranks) != 1:
        raise ValueError("Q, K and V must have the same rank, 3 or 4")
    q, k, v = query.shape, key.shape, value.shape
    shapes = f"as (batch, heads, rows, width) Q is {q}, K is {k} and V is {v}"
    if not q[0] == k[0] == v[0]:
        raise ValueError(f"Q, K and V must have the same batch size; {shapes}")
    if q[3] != k[3]:
        raise ValueError(f"heads of Q and K must have the same width; {shapes}")
    if k[1:3] != v[1:3]:
        raise ValueError(f"K and V must have the same heads and rows; {shapes}")
    if k[1] == 0 or q[1] % k[1]:
        raise ValueError(f"the heads of Q must be a multiple of those of K and V; {shapes}")


def _check_caches(
    past_key: np.ndarray | None, past_value: np.ndarray | None, nonpad: np.ndarray | None
) -> None:
    if past_key is None or past_value is None:
        if past_key is not past_value:
            raise ValueError("past_key and past_value must be given together")
        return
    if nonpad is not None:
        raise ValueError("nonpad_kv_seqlen is for a cache in K and V: not with past_key")
    if past_key.shape[:3] != past_value.shape[:3]:
        raise ValueError(
            f"past_key is {past_key.shape} and past_value {past_value.shape}; "
            f"they must have the same batch size, heads and rows"
        )


def _join(name: str, past: np.ndarray | None, new: np.ndarray) -> np.ndarray:
    """The rows of past, then those of new; new itself if there is no past."""
    if past is None:
        return new
    batch, heads, _, width = new.shape
    if past.ndim != 4 or past.shape[:2] != (batch, heads) or past.shape[3] != width:
        raise ValueError(
            f"{name} has shape {past.shape}; it must be ({batch}, {heads}, rows, {width})"
        )
    if past.dtype != new.dtype:
        raise ValueError(f"{name} is {past.dtype}, but what is appended to it is {new.dtype}")
    return np.concatenate((past, new), axis=2)


def _lengths(nonpad: np.ndarray | None, batch: int, rows: int) -> np.ndarray | None:
    if nonpad is None:
        return None
    lengths = np.asarray(nonpad)
    if lengths.shape != (batch,) or lengths.dtype.kind not in "iu":
        raise ValueError(
            f"nonpad_kv_seqlen is {lengths.dtype} of shape {lengths.shape}; "
            f"it must be int64 of shape ({batch},)"
        )
    if batch and not 0 <= lengths.min() <= lengths.max() <= rows:
        raise ValueError(f"nonpad_kv_seqlen is {lengths.tolist()}, but K has {rows} rows")
    return lengths.astype(np.int64)


def _weights(mode: int) -> str:
    if not 0 <= mode < len(_WEIGHTS):
        raise ValueError(f"qk_matmul_output_mode is {mode}; it must be 0, 1, 2 or 3")
    return _WEIGHTS[mode]


def _mask(mask: np.ndarray | None, extents: tuple[int, ...]) -> np.ndarray | None:
    """attn_mask with all its columns. Those it lacks, one column alone included, are masked."""
    if mask is None:
        return None
    mask = np.asarray(mask)
    columns = extents[-1]
    rows = zip(reversed(mask.shape[:-1]), reversed(extents[:-1]))
    if (
        not 1 <= mask.ndim <= 4
        or mask.shape[-1] > columns
        or any(have not in (1, want) for have, want in rows)
    ):
        raise ValueError(
            f"attn_mask has shape {mask.shape}; it must broadcast to {extents} (batch, heads, "
            f"rows of Q, rows of K with the past); only the last axis may be shorter"
        )
    if mask.dtype.kind in "iu":
        mask = mask.astype(np.float32)  # numbers to be added, as everywhere in ONNX
    if mask.dtype != bool and mask.dtype.name not in _FLOATS:
        raise ValueError(f"attn_mask is {mask.dtype}; it must be bool or numbers")
    missing = [(0, 0)] * (mask.ndim - 1) + [(0, columns - mask.shape[-1])]
    if missing[-1][1]:
        hidden = False if mask.dtype == bool else -np.inf
        mask = np.pad(mask, missing, constant_values=hidden)
    return _with_rows(mask)


def _position(
    rows: int, past: int, lengths: np.ndarray | None, causal: int, left: int, right: int
) -> dict[str, Any]:
    """Causal and window, and the position of the first query among the keys."""
    for name, size in (("left_window_size", left), ("right_window_size", right)):
        if size < -1:
            raise ValueError(f"{name} is {size}; it must be -1, for no bound, or 0 and more")
    window = None if left == right == -1 else (left, right)
    if not causal and window is None:
        return {}
    position = past if lengths is None else lengths - rows
    return {"causal": bool(causal), "window": window, "position": position}


def _padding(lengths: np.ndarray | None, columns: int, weights: str | None) -> dict[str, Any]:
    """Keys past their length. The library does not read them, but ONNX returns the scores of all
    keys if it returns scores before masking: then they are masked instead."""
    if lengths is None:
        return {}
    if weights in ("raw", "softcap"):
        padding = np.arange(columns) >= lengths[:, np.newaxis]
        return {"ignore_mask": padding[:, np.newaxis, np.newaxis, :]}
    return {"key_lengths": lengths}


def _work_type(arrays: Sequence[np.ndarray | None], precision: int | None) -> type | None:
    """float64 if everything must be converted to it, else None."""
    if precision is not None and precision not in _PRECISIONS:
        raise ValueError(
            f"softmax_precision is {precision}; it must be one of TensorProto's numbers "
            f"FLOAT 1, FLOAT16 10, DOUBLE 11, BFLOAT16 16"
        )
    double = any(x is not None and np.asarray(x).dtype == np.float64 for x in arrays)
    return np.float64 if double or precision == onnx.TensorProto.DOUBLE else None


def _scaled(query: np.ndarray, scale: float | None) -> tuple[np.ndarray, float | None]:
    """ONNX multiplies by 0 if the scale is 0; for the library that means the default scale."""
    if scale is not None and not 0 <= scale < np.inf:
        raise ValueError(f"scale is {scale}; it must be a finite number from 0 on")
    return (np.zeros_like(query), None) if scale == 0 else (query, scale)


def _with_rows(x: np.ndarray) -> np.ndarray:
    """x, copied only if its last axis is not contiguous."""
    return x if x.shape[-1] < 2 or x.strides[-1] == x.itemsize else np.ascontiguousarray(x)


def _run(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    work: type | None,
    options: dict[str, Any],
    weights: str | None,
    by_rows: bool,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Y and the weights, in the type of the query; by_rows: Y has rank 3."""
    wanted = query.dtype
    if work is not None:
        query, key, value = (x.astype(work) for x in (query, key, value))
    batch, heads, rows, _ = query.shape
    width = value.shape[3]
    Y = np.empty(
        (batch, rows, heads, width) if by_rows else (batch, heads, rows, width), query.dtype
    )
    scores = None
    if weights is not None:
        scores = np.empty((batch, heads, rows, key.shape[2]), query.dtype)
        options = {**options, "return_weights": weights, "weights_out": scores}
    out = Y.swapaxes(1, 2) if by_rows else Y
    mha.attention(*map(_with_rows, (query, key, value)), out=out, **options)
    if by_rows:
        Y = Y.reshape(batch, rows, heads * width)
    if scores is not None:
        scores = scores.astype(wanted, copy=False)
    return Y.astype(wanted, copy=False), scores
