# SPDX-License-Identifier: MIT
"""Attention in float64, written plainly: what the package is compared with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Reference(NamedTuple):
    output: Any
    lse: Any
    weights: Any


def visible(shape: tuple[int, int, int, int], options: dict[str, Any]) -> Any:
    """Which keys each query attends to, (B, H, L, S), by everything except additive masks."""
    B, _, L, S = shape
    i, j = np.arange(L)[:, None], np.arange(S)[None, :]
    at = i + np.broadcast_to(options.get("offset", 0), (B,))[:, None, None]
    sees = np.ones((B, L, S), bool)
    if options.get("causal"):
        sees &= j <= at
    left, right = options.get("window") or (None, None)
    if left not in (None, -1):
        sees &= j >= at - left
    if right not in (None, -1):
        sees &= j <= at + right
    if "key_lengths" in options:
        sees &= j < np.asarray(options["key_lengths"])[:, None, None]
    if "query_documents" in options:
        sees &= (
            np.asarray(options["query_documents"])[:, :, None]
            == np.asarray(options["key_documents"])[:, None, :]
        )
    whole = np.broadcast_to(sees[:, None], shape).copy()
    mask = options.get("mask")
    if mask is not None and mask.dtype == bool:
        whole &= mask
    if options.get("ignore_mask") is not None:
        whole &= ~options["ignore_mask"]
    return whole


def scores(query: Any, key: Any, options: dict[str, Any]) -> Any:
    """Scores with everything that is added; masked keys are -inf."""
    B, H, L, D = query.shape
    S = key.shape[2]
    s = query @ key.swapaxes(-1, -2) * (options.get("scale") or 1 / np.sqrt(max(D, 1)))
    cap = options.get("softcap")
    if cap:
        s = cap * np.tanh(s / cap)
    mask = options.get("mask")
    if mask is not None and mask.dtype != bool:
        s = s + np.asarray(mask, np.float64)
    if options.get("bias") is not None:
        s = s + np.asarray(options["bias"], np.float64)
    if options.get("alibi_slopes") is not None:
        offset = np.broadcast_to(options.get("offset", 0), (B,))[:, None, None, None]
        distance = np.abs(np.arange(L)[:, None] + offset - np.arange(S)[None, :])
        s = s - np.asarray(options["alibi_slopes"], np.float64)[:, None, None] * distance
    return np.where(visible((B, H, L, S), options), s, -np.inf)


def attention(query: Any, key: Any, value: Any, **options: Any) -> Reference:
    """query (B, H, L, D), key (B, G, S, D), value (B, G, S, Dv); `offset` is the position."""
    q, k, v = (np.asarray(x, np.float64) for x in (query, key, value))
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    s = scores(q, k, options)
    parts = [s]
    if options.get("sinks") is not None:
        sinks = np.asarray(options["sinks"], np.float64)[None, :, None, None]
        parts.append(np.broadcast_to(sinks, s.shape[:3] + (1,)))
    every = np.concatenate(parts, -1)
    top = np.max(every, -1, keepdims=True, initial=-np.inf)
    base = np.where(np.isfinite(top), top, 0)
    total = np.exp(every - base).sum(-1, keepdims=True)
    sees = np.isfinite(s).any(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.where(sees, np.exp(s - base) / total, 0)
        lse = np.where(sees, base + np.log(total), -np.inf)[..., 0]
    output = np.einsum("bhls,bhsd->bhld", weights, np.where(weights.any(-2)[..., None], v, 0))
    gates = options.get("gates")
    if gates is not None:
        output = output * np.asarray(gates, np.float64)[..., :, None, None]
    return Reference(output, lse, weights)
