# SPDX-License-Identifier: MIT
"""What a contender is: a library's way to do a case, prepared outside the clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .cases import Case
from .inputs import Inputs

Results = dict[str, np.ndarray]


class Unable(Exception):
    """A contender has no way to do a case, or not here; the message is the reason."""


def reason_of(error: Exception) -> str:
    """One line for the report; foreign code may fail in any way, and tell it at length."""
    if isinstance(error, Unable):
        return str(error)
    return f"{type(error).__name__}: {error}".strip().splitlines()[0][:200]


@dataclass(frozen=True)
class Runner:
    """One contender that is ready for one case.

    run() does the whole case, back when the results are there. read() turns what run() returned
    into arrays: "output" [B, H, L, D] (layers [B, L, E]), "weights" [B, H, L, S], "mean" [B, L, S],
    "entropy" [B, H, L], "d_query" and so on. It may be slow; it is not timed.
    """

    run: Callable[[], Any]
    read: Callable[[Any], Results]


@dataclass(frozen=True)
class Contender:
    """A way of a library, such as "sdpa" of "torch". prepare() raises Unable where it has none."""

    library: str
    name: str
    prepare: Callable[[Case, Inputs, int], Runner]

    @property
    def label(self) -> str:
        return f"{self.library}: {self.name}"
