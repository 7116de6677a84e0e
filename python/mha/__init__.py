# SPDX-License-Identifier: MIT
"""Multi-head attention on CPUs: every head fast, exact, reproducible and visible.

    attention            the operator, with every mask and option by keyword
    attention_backward   its gradients
    attention_weights    weights alone, of chosen heads and rows
    head_statistics      what heads attend to, without a matrix of weights
    merge                combines two partial results
    Layer, KVCache       projections and heads in one object; keys and values of sequences
    Linear, FeedForward  packed weights with activation and residual; norm
    Model, Tokenizer     whole models from their files; needs NumPy
    Heatmap              weights as an image, in a notebook or in a file
    show, view           the heads of a model in a notebook, as maps or as the page of `mha view`

Arrays of NumPy, PyTorch, JAX, or anything with the buffer protocol or __dlpack__ are used without a
copy; results are arrays of NumPy or PyTorch if the query is one, else an Array. mha.torch, mha.hf,
mha.onnx and mha.mpi are imported when they are first used; this module needs none of those
libraries. `python -m mha` says what is installed and checks that it computes correctly.
"""

from typing import TYPE_CHECKING

from ._core import (
    Array,
    Error,
    FeedForward,
    KVCache,
    Linear,
    Tape,
    attention,
    attention_backward,
    attention_weights,
    get_threads,
    head_statistics,
    isa,
    merge,
    norm,
    set_threads,
)
from ._core import version as __version__
from ._types import Gradients, HeadStatistics, Result, RowStatistics, Statistics
from .heatmap import Heatmap
from .layer import Layer, Preset, Rope, preset, presets, prune
from .model import (
    Capture,
    CapturedLayer,
    Generation,
    Model,
    ModelInfo,
    ModelResult,
    Score,
    State,
)
from .show import Page, Shown, show, view
from .tokenizer import Token, Tokenizer

__all__ = [
    "Array",
    "Capture",
    "CapturedLayer",
    "Error",
    "FeedForward",
    "Generation",
    "Gradients",
    "HeadStatistics",
    "Heatmap",
    "KVCache",
    "Layer",
    "Linear",
    "Model",
    "ModelInfo",
    "ModelResult",
    "Page",
    "Preset",
    "Result",
    "Rope",
    "RowStatistics",
    "Score",
    "Shown",
    "State",
    "Statistics",
    "Tape",
    "Token",
    "Tokenizer",
    "__version__",
    "attention",
    "attention_backward",
    "attention_weights",
    "get_threads",
    "head_statistics",
    "isa",
    "merge",
    "norm",
    "preset",
    "presets",
    "prune",
    "set_threads",
    "show",
    "view",
]

_PARTS = ("hf", "mpi", "onnx", "torch")

# Type checkers do not see this: they would read all of PyTorch and transformers for `import mha`,
# or accept every name. For them, import the part.
if not TYPE_CHECKING:

    def __getattr__(name: str):
        """The parts for other libraries, imported when they are first used."""
        if name in _PARTS:
            from importlib import import_module

            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *_PARTS})
