# SPDX-License-Identifier: MIT
"""Hugging Face transformers with libmha's attention.

    import mha.hf
    mha.hf.register()
    model = AutoModel.from_pretrained(name, attn_implementation="mha")
    model(**inputs, output_attentions=True).attentions    # the weights, at full speed

`register()` registers two functions with transformers: `attention`, which every layer calls, and
`mask`, which is called once per forward pass. If the mask follows a rule (causal, window, padding,
packed sequences, chunks), `mask` returns a `Mask`, which is that rule instead of a matrix, and
`attention` passes the rule to libmha, which then skips what is masked.

`accelerate` runs linears, norms and feed-forwards on libmha too, and `restore` undoes it.

`require` returns a model if all of its attention runs on libmha, and raises an error if not.

`capture` returns the weights of all heads for a text, as Model.capture() of mha does, `heads`
measures what each head attends to, and `gates` disables heads while a model runs.
"""

from __future__ import annotations

import inspect

try:
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    from ._accelerate import accelerate, restore
    from ._attention import attention
    from ._capture import capture
    from ._heads import Heads, gates, heads, layers
    from ._mask import Mask, mask
    from ._own import require, watch
except ImportError as error:
    raise ImportError(
        f"mha.hf needs torch and a recent version of transformers: {error}; "
        "pip install -U torch transformers"
    ) from error

__all__ = [
    "Heads",
    "Mask",
    "accelerate",
    "attention",
    "capture",
    "gates",
    "heads",
    "layers",
    "mask",
    "register",
    "require",
    "restore",
]


def register(name: str = "mha") -> None:
    """Register `attn_implementation=name` with transformers, and a warning where a model has
    attention of its own, which then does not run on libmha.

    Both functions are registered under one name: without a mask function of that name transformers
    leaves masks out, and padding and causality would silently be lost.
    """
    if "q_offset" not in inspect.signature(sdpa_mask).parameters:
        raise ImportError(
            "this version of transformers has another interface for masks: "
            "pip install -U transformers"
        )
    AttentionInterface.register(name, attention)
    AttentionMaskInterface.register(name, mask)
    watch()
