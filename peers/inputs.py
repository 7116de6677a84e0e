# SPDX-License-Identifier: MIT
"""The inputs of a case, the same for every contender."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

import numpy as np

from .cases import PICTURE_MODELS, Case

try:
    from ml_dtypes import bfloat16
except ImportError:
    bfloat16 = None

# The learning rate of a training step: so small that the weights practically do not change.
RATE = 1e-6

TOKENS = (1100, 20000)  # numbers of tokens that are plain text in every model

NUMPY_TYPES = {"f32": np.float32, "f16": np.float16, "bf16": bfloat16}


@dataclass
class Inputs:
    """Arrays in the layout [B, heads, tokens, D], or [B, tokens, E] for a layer.

    For cache and decode cases key and value (`memory` of a layer) hold the S tokens, of which the
    last is the one that a step appends.
    """

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    d_output: np.ndarray
    mask: np.ndarray | None = None  # [L, S]: bool, True attends; or f32, added
    lengths: np.ndarray | None = None  # [B]: true lengths of keys; of queries too for "pad"
    # "in" [3E, E] is q, k and v on top of each other, "o" [E, E]; "in_bias", "o_bias"
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    ids: list[list[int]] = field(default_factory=list)  # tokens of each sequence, for a model
    pixels: np.ndarray | None = None  # [B, channels, side, side], for a model of pictures


def lengths_of(case: Case) -> np.ndarray | None:
    """True lengths of a padded batch: 1/B, 2/B ... B/B of the longest."""
    if not case.pad:
        return None
    return np.array([case.S * (b + 1) // case.B for b in range(case.B)], dtype=np.int64)


def band(case: Case) -> np.ndarray:
    """[L, S] of bool: causal and window as a mask, for peers that lack these options."""
    i = np.arange(case.L)[:, None] + (case.S - case.L)
    j = np.arange(case.S)[None, :]
    seen = np.ones((case.L, case.S), dtype=bool)
    if case.causal:
        seen &= j <= i
    if case.window >= 0:
        seen &= (i - j <= case.window) & (case.causal | (j - i <= case.window))
    return seen


def key_mask(case: Case, inputs: Inputs) -> np.ndarray:
    """[B, S] of bool: the keys that are not padding."""
    return np.arange(case.S)[None, :] < inputs.lengths[:, None]


def counting_rows(case: Case, inputs: Inputs) -> np.ndarray:
    """[B, L] of bool: the rows whose results are compared; padded queries may hold anything."""
    if case.pad != "pad":
        return np.ones((case.B, case.L), dtype=bool)
    return np.arange(case.L)[None, :] < inputs.lengths[:, None]


def _normal(rng: np.random.Generator, shape: tuple[int, ...], case: Case) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32).astype(NUMPY_TYPES[case.dtype], copy=False)


def _mask(rng: np.random.Generator, case: Case) -> np.ndarray | None:
    if case.mask == "bool":
        return rng.random((case.L, case.S)) < 0.5
    if case.mask == "add":
        # Numbers that are exact in f16, since the masks of some peers are f16.
        return rng.standard_normal((case.L, case.S)).astype(np.float16).astype(np.float32)
    return None


def _layer_weights(rng: np.random.Generator, width: int) -> dict[str, np.ndarray]:
    weights = {}
    for name, rows in (("in", 3 * width), ("o", width)):
        weights[name] = rng.standard_normal((rows, width), dtype=np.float32)
        weights[name] *= np.float32(width**-0.5)
        weights[name + "_bias"] = rng.standard_normal(rows, dtype=np.float32)
    return weights


def _make_layer(rng: np.random.Generator, case: Case) -> Inputs:
    memory = _normal(rng, (case.B, case.S, case.E), case)
    x = memory[:, -case.L :]
    return Inputs(
        query=np.ascontiguousarray(x),
        key=memory,
        value=memory,
        d_output=_normal(rng, (case.B, case.L, case.E), case),
        lengths=lengths_of(case),
        weights=_layer_weights(rng, case.E),
    )


def _make_model(rng: np.random.Generator, case: Case) -> Inputs:
    """Random tokens, none of them a special one: any tokens take the same time."""
    none = np.zeros(0, dtype=np.float32)
    lengths = lengths_of(case)
    wanted = [case.S] * case.B if lengths is None else lengths.tolist()
    ids = [rng.integers(*TOKENS, size=n).tolist() for n in wanted]
    return Inputs(none, none, none, none, lengths=lengths, ids=ids)


def _make_pictures(rng: np.random.Generator, case: Case) -> Inputs:
    from . import pictures

    none = np.zeros(0, dtype=np.float32)
    return Inputs(none, none, none, none, pixels=pictures.make(rng, case))


def _make_nothing() -> Inputs:
    """Sentences are those of translation.py."""
    none = np.zeros(0, dtype=np.float32)
    return Inputs(none, none, none, none)


def make(case: Case) -> Inputs:
    """The inputs of a case: normally distributed numbers, seeded by the word of the case."""
    rng = np.random.default_rng(zlib.crc32(case.word.encode()))
    if case.is_translation:
        return _make_nothing()
    if case.model in PICTURE_MODELS:
        return _make_pictures(rng, case)
    if case.is_model:
        return _make_model(rng, case)
    if case.is_layer:
        return _make_layer(rng, case)
    return Inputs(
        query=_normal(rng, (case.B, case.H, case.L, case.D), case),
        key=_normal(rng, (case.B, case.G, case.S, case.D), case),
        value=_normal(rng, (case.B, case.G, case.S, case.D), case),
        d_output=_normal(rng, (case.B, case.H, case.L, case.D), case),
        mask=_mask(rng, case),
        lengths=lengths_of(case),
    )


def layer_past(case: Case, inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
    """Keys and values [B, H, S, D] of all tokens of a layer: what a cache holds."""
    memory = inputs.key @ inputs.weights["in"].T + inputs.weights["in_bias"]
    parts = memory.reshape(case.B, case.S, 3, case.H, case.D).transpose(2, 0, 3, 1, 4)
    return parts[1].copy(), parts[2].copy()
