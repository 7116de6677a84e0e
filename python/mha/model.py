# SPDX-License-Identifier: MIT
"""Whole models: sentence vectors, generated text, scores, and what every head attends to.

    model = mha.Model.open("all-MiniLM-L6-v2")    # a folder, a GGUF file, a file of llama2.c
    model.encode(["one text", "another"])         # an array (2, width)
    model.generate("Once upon a time", most=40)   # a decoder or an encoder-decoder
    model.capture("the cat").weights[0]           # (heads, tokens, tokens) of layer 0

Needs NumPy. A model never changes, and any number of threads may run it; the GIL is released.
"""

from __future__ import annotations

from ._captured import Capture, CapturedLayer
from ._model_base import KINDS, State
from ._model_heads import Gates
from ._model_run import ModelRun
from ._model_types import Generation, ModelInfo, ModelResult, Score
from .tokenizer import Token


class Model(ModelRun):
    """A model as it was published: `Model.open(path)`."""


__all__ = [
    "KINDS",
    "Capture",
    "CapturedLayer",
    "Gates",
    "Generation",
    "Model",
    "ModelInfo",
    "ModelResult",
    "Score",
    "State",
    "Token",
]
