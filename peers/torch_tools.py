# SPDX-License-Identifier: MIT
"""Converts from NumPy to PyTorch and back, without a copy if possible."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch


def tensor(x: np.ndarray) -> torch.Tensor:
    """The same numbers as a tensor; bf16 is passed as 16-bit integers, which NumPy has."""
    if x.dtype.name == "bfloat16":
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(x)


def array(x: torch.Tensor) -> np.ndarray:
    """A tensor of any type as f32."""
    return x.detach().float().numpy()


def set_threads(threads: int) -> None:
    torch.set_num_threads(threads)


def compile_anew(function: Callable) -> Callable:
    """Compiled for the shapes of this case only; after several shapes PyTorch would stop
    recompiling."""
    torch.compiler.reset()
    return torch.compile(function, dynamic=False)
