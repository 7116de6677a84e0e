# SPDX-License-Identifier: MIT
"""PyTorch with whole models: the model of transformers, with its sdpa."""

from __future__ import annotations

import copy
import functools

import numpy as np
import torch

from . import model_files
from .cases import Case
from .contender import Contender, Results, Runner, Unable
from .inputs import Inputs
from .torch_tools import array, set_threads

LIBRARY = "torch"
BATCH = 16  # sentences of similar length that are padded to the longest of them


@functools.cache
def minilm() -> torch.nn.Module:
    from transformers import AutoModel
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    path = str(model_files.path("minilm"))
    return AutoModel.from_pretrained(path, attn_implementation="sdpa").eval()


@functools.cache
def minilm_bf16() -> torch.nn.Module:
    return copy.deepcopy(minilm()).to(torch.bfloat16)


def refuse(case: Case, *types: str) -> None:
    """Anything but MiniLM in one of these types, f32 unless given."""
    if case.dtype not in (types or ("f32",)):
        raise Unable(f"is not for models in {case.dtype}")
    if not case.is_model or case.want != "output":
        raise Unable("is for whole models, the output alone")
    if case.model != "minilm":
        raise Unable("is for encoders")


def padded(ids: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and mask [B, L] of i64."""
    longest = max(map(len, ids))
    tokens = np.array([one + [0] * (longest - len(one)) for one in ids], dtype=np.int64)
    mask = np.array([[n < len(one) for n in range(longest)] for one in ids], dtype=np.int64)
    return tokens, mask


def batches(ids: list[list[int]], size: int) -> list[list[int]]:
    """The numbers of the sentences of each batch, sorted by length."""
    order = sorted(range(len(ids)), key=lambda b: len(ids[b]))
    return [order[n : n + size] for n in range(0, len(order), size)]


def joined(ids: list[list[int]], groups: list[list[int]], outputs: list[np.ndarray]) -> np.ndarray:
    """The rows of all sentences in their own order, without padding."""
    rows = {b: one[n, : len(ids[b])] for g, one in zip(groups, outputs) for n, b in enumerate(g)}
    return np.concatenate([rows[b] for b in range(len(ids))])


def _sdpa(size: int, case: Case, inputs: Inputs, threads: int) -> Runner:
    """Sentences in batches of this size; without padding the mask is left out."""
    refuse(case, "f32", "bf16")
    if case.B == 1 and size != BATCH:
        raise Unable("is for several sentences")
    set_threads(threads)
    model = minilm_bf16() if case.dtype == "bf16" else minilm()
    groups = batches(inputs.ids, size)
    feeds = []
    for group in groups:
        tokens, mask = map(torch.from_numpy, padded([inputs.ids[b] for b in group]))
        feeds.append({"input_ids": tokens} | ({} if mask.all() else {"attention_mask": mask}))

    def run() -> list[torch.Tensor]:
        with torch.inference_mode():
            return [model(**feed).last_hidden_state for feed in feeds]

    def read(outputs: list[torch.Tensor]) -> Results:
        return {"hidden": joined(inputs.ids, groups, list(map(array, outputs)))}

    return Runner(run, read)


CONTENDERS = (
    Contender(LIBRARY, "transformers", functools.partial(_sdpa, BATCH)),
    Contender(LIBRARY, "transformers, one by one", functools.partial(_sdpa, 1)),
)
