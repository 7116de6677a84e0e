# SPDX-License-Identifier: MIT
"""A multi-head layer in float64, written plainly, and weights for it; Layer is compared with it."""

from __future__ import annotations

from typing import Any

import numpy

import mha

CLOSE = {"rtol": 1e-4, "atol": 2e-5}


def rotate(x: Any, rope: mha.Rope) -> Any:
    """Rotate heads (..., rows, width) by their positions 0, 1, ..."""
    rows, head = x.shape[-2:]
    width = rope.width or head
    angles = numpy.arange(rows)[:, None] * rope.base ** (-2.0 * numpy.arange(width // 2) / width)
    if rope.frequencies is not None:
        angles = numpy.arange(rows)[:, None] * numpy.asarray(rope.frequencies)
    cos, sin = numpy.cos(angles), numpy.sin(angles)
    halves = rope.pairs == "halves"
    one = numpy.s_[: width // 2] if halves else numpy.s_[0:width:2]
    two = numpy.s_[width // 2 : width] if halves else numpy.s_[1:width:2]
    rotated = x.copy()
    rotated[..., one] = x[..., one] * cos - x[..., two] * sin
    rotated[..., two] = x[..., two] * cos + x[..., one] * sin
    return rotated


def normed(x: Any, kind: str | None, weight: Any) -> Any:
    if kind is None:
        return x
    x = x - x.mean(-1, keepdims=True) if kind == "layer" else x
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight


def heads_of(x: Any, weight: Any, bias: Any, heads: int) -> Any:
    """(batch, heads, rows, width) of the projected rows."""
    y = x.astype("float64") @ weight.astype("float64").T + (0 if bias is None else bias)
    return y.reshape(*y.shape[:2], heads, -1).swapaxes(1, 2)


def append(x: Any, vector: Any) -> Any:
    """Heads (batch, heads, rows, width) with one more row, the same for every batch."""
    row = vector.reshape(1, x.shape[1], 1, x.shape[3])
    return numpy.concatenate((x, numpy.broadcast_to(row, (*x.shape[:2], 1, x.shape[3]))), 2)


def plain_layer(
    weights: dict[str, Any],
    heads: int,
    query: Any,
    key: Any = None,
    value: Any = None,
    *,
    kv_heads: int | None = None,
    norm: str | None = None,
    rope: mha.Rope | None = None,
    add_zero_attn: bool = False,
    attends: Any = True,
) -> tuple[Any, Any]:
    """Output and weights of a layer by its formula. attends: which keys are not masked."""
    groups = kv_heads or heads
    key = query if key is None else key
    value = key if value is None else value
    q = heads_of(query, weights["q"], weights.get("q_bias"), heads)
    k = heads_of(key, weights["k"], weights.get("k_bias"), groups)
    v = heads_of(value, weights["v"], weights.get("v_bias"), groups)
    q = normed(q, norm, weights.get("q_norm", 1.0))
    k = normed(k, norm, weights.get("k_norm", 1.0))
    if rope is not None:
        q, k = rotate(q, rope), rotate(k, rope)
    attends = numpy.broadcast_to(attends, (*q.shape[:3], k.shape[2]))
    extras = []
    if "extra_key" in weights:
        extras.append((weights["extra_key"], weights["extra_value"]))
    if add_zero_attn:
        extras.append((numpy.zeros(groups * k.shape[3]), numpy.zeros(groups * v.shape[3])))
    for one_key, one_value in extras:
        k, v = append(k, one_key), append(v, one_value)
        attends = numpy.concatenate((attends, numpy.ones((*attends.shape[:3], 1), bool)), 3)
    k, v = (numpy.repeat(x, heads // groups, 1) for x in (k, v))
    scores = numpy.where(attends, q @ k.swapaxes(2, 3) / numpy.sqrt(q.shape[3]), -numpy.inf)
    powers = numpy.exp(scores - scores.max(-1, keepdims=True))
    soft = powers / powers.sum(-1, keepdims=True)
    joined = (soft @ v).swapaxes(1, 2).reshape(*query.shape[:2], -1)
    return joined @ weights["o"].astype("float64").T + weights.get("o_bias", 0.0), soft


def make_weights(random: Any, width: int, heads: int, **widths: int) -> dict[str, Any]:
    """Weights of all four matrices for Layer()."""
    head = widths.get("head_width", width // heads)
    value_head = widths.get("value_head_width", head)
    groups = widths.get("kv_heads", heads)
    key_width = widths.get("key_width", width)
    shapes = {
        "q": (heads * head, width),
        "k": (groups * head, key_width),
        "v": (groups * value_head, widths.get("value_width", key_width)),
        "o": (widths.get("output_width", width), heads * value_head),
    }
    return {
        name: (random.standard_normal(shape) / numpy.sqrt(shape[1])).astype("float32")
        for name, shape in shapes.items()
    }


def add_vectors(random: Any, weights: dict[str, Any], *names: str) -> dict[str, Any]:
    """The same weights with biases, and with vectors of these other names."""
    for name in ("q", "k", "v", "o"):
        weights[name + "_bias"] = random.standard_normal(len(weights[name])).astype("float32")
    for name in names:
        like = weights["v" if name == "extra_value" else "k"]
        weights[name] = random.standard_normal(len(like)).astype("float32")
    return weights


def rows(random: Any, *shape: int) -> Any:
    return random.standard_normal(shape).astype("float32")


def same(found: Any, wanted: Any) -> None:
    numpy.testing.assert_allclose(numpy.asarray(found), wanted, **CLOSE)
