# SPDX-License-Identifier: MIT
"""What a contender is: one way of a library to compute a case, prepared before it is timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .cases import Case
from .inputs import Inputs

Results = dict[str, np.ndarray]


class Unable(Exception):
    """A contender cannot compute a case, or not on this machine; the message is the reason."""


def reason_of(error: Exception) -> str:
    """An error as one line for the report; other libraries may raise anything, with long texts."""
    if isinstance(error, Unable):
        return str(error)
    return f"{type(error).__name__}: {error}".strip().splitlines()[0][:200]


@dataclass(frozen=True)
class Runner:
    """One contender that is ready for one case.

    run() computes the whole case and returns when the results are ready. read() converts what run()
    returned to arrays: "output" [B, H, L, D] (layers [B, L, E]), "weights" [B, H, L, S], "mean"
    [B, L, S], "entropy" [B, H, L], "d_query" and so on; models have "hidden" [tokens, E] or
    "logits". It may be slow; it is not timed.
    """

    run: Callable[[], Any]
    read: Callable[[Any], Results]
    bytes_read: int = 0  # by one run, where memory is the limit


@dataclass(frozen=True)
class Contender:
    """A way of a library, such as "sdpa" of "torch". prepare() raises Unable if it cannot."""

    library: str
    name: str
    prepare: Callable[[Case, Inputs, int], Runner]

    @property
    def label(self) -> str:
        return f"{self.library}: {self.name}"
