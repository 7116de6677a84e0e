# SPDX-License-Identifier: MIT
"""The options of attention() for type checkers, by what they do to the type of the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias, TypedDict

import torch
from torch import Tensor

Layout: TypeAlias = Literal["bhld", "blhd"]
Parts: TypeAlias = Literal[True] | str | Iterable[str] | Mapping[str, bool | int]


class Common(TypedDict, total=False):
    layout: Layout
    mask: Tensor | None
    ignore_mask: Tensor | None
    bias: Tensor | None
    alibi_slopes: Tensor | None
    sinks: Tensor | None
    gates: Tensor | None
    query_lengths: Tensor | None
    key_lengths: Tensor | None
    query_starts: Tensor | None
    key_starts: Tensor | None
    query_documents: Tensor | None
    key_documents: Tensor | None
    head_modes: Sequence[str] | None
    head_means: Tensor | None
    causal: bool
    position: str | int | Tensor | Sequence[int] | None
    window: tuple[int | None, int | None] | None
    scale: float | None
    softcap: float
    dropout: float
    generator: torch.Generator | None
    average_weights: bool


class Plain(Common, total=False):
    return_lse: Literal[False]
    return_weights: Literal[False]
    statistics: Literal[False]


class BesideLse(Common, total=False):
    return_weights: bool
    statistics: bool | Parts


class BesideWeights(Common, total=False):
    return_lse: bool
    statistics: bool | Parts


class BesideStatistics(Common, total=False):
    return_lse: bool
    return_weights: bool


class Whole(Common, total=False):
    return_lse: bool
    return_weights: bool
    statistics: bool | Parts
