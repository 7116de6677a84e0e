# SPDX-License-Identifier: MIT
"""PyTorch as a translator: transformers' MarianMTModel.generate(), with its cache."""

from __future__ import annotations

import functools

import torch

from . import translation
from .cases import Case
from .contender import Contender, Results, Runner
from .inputs import Inputs
from .ours_translate import source_ids
from .torch_tools import set_threads

LIBRARY = "torch"


@functools.cache
def marian() -> torch.nn.Module:
    from transformers import MarianMTModel
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    return MarianMTModel.from_pretrained(
        str(translation.folder()), dtype=torch.float32, attn_implementation="sdpa"
    ).eval()


def _feed(group: list[list[int]], padding: int) -> dict[str, torch.Tensor]:
    longest = max(map(len, group))
    ids = torch.tensor([one + [padding] * (longest - len(one)) for one in group])
    mask = torch.tensor([[n < len(one) for n in range(longest)] for one in group])
    return {"input_ids": ids, "attention_mask": mask.long()}


def _run(case: Case, inputs: Inputs, threads: int) -> Runner:
    translation.refuse(case, "f32")
    set_threads(threads)
    model, padding = marian(), translation.config()["pad_token_id"]
    feeds = [_feed(group, padding) for group in translation.groups(case, source_ids())]

    def run() -> list[torch.Tensor]:
        with torch.inference_mode():
            return [
                model.generate(
                    **feed,
                    num_beams=case.beams,
                    do_sample=False,
                    use_cache=True,
                    early_stopping=False,
                    length_penalty=translation.LENGTH_PENALTY,
                    max_length=None,
                    max_new_tokens=translation.MOST_TOKENS,
                )
                for feed in feeds
            ]

    def read(outputs: list[torch.Tensor]) -> Results:
        return translation.results([one.tolist() for output in outputs for one in output])

    return Runner(run, read)


CONTENDERS = (Contender(LIBRARY, "MarianMTModel.generate", _run),)
