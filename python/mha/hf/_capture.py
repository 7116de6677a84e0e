# SPDX-License-Identifier: MIT
"""The weights of a model of transformers as an mha.Capture, for mha.show() and mha.view()."""

from __future__ import annotations

from typing import Any

import torch

from mha._captured import Capture, CapturedLayer


def capture(model: Any, tokenizer: Any, text: str, *, target: str | None = None) -> Capture:
    """What the heads attend to in a text: a Capture, as Model.capture() returns.

    Attention runs through attn_implementation "mha" during the call. target: for an encoder-decoder
    the text that the decoder reads.
    """
    from . import register

    inputs = tokenizer(text, return_tensors="pt")
    labels = {"encoder": tokenizer.convert_ids_to_tokens(inputs["input_ids"][0].tolist())}
    pair = bool(getattr(model.config, "is_encoder_decoder", False))
    if pair:
        if target is None:
            raise ValueError("an encoder-decoder needs the text that its decoder reads: target=")
        ids = tokenizer(text_target=target, return_tensors="pt")["input_ids"]
        start = torch.tensor([[model.config.decoder_start_token_id]])
        inputs["decoder_input_ids"] = torch.cat([start, ids[:, :-1]], 1)
        decoder = inputs["decoder_input_ids"][0].tolist()
        labels["decoder"] = tokenizer.convert_ids_to_tokens(decoder)
    register()
    before, training = model.config._attn_implementation, model.training
    model.set_attn_implementation("mha")
    model.eval()
    try:
        with torch.no_grad():
            outputs = model(**inputs, output_attentions=True, return_dict=True)
    finally:
        model.set_attn_implementation(before)
        model.train(training)
    kinds = {"encoder": outputs.get("attentions")}
    if pair:
        kinds = {
            "encoder": outputs.get("encoder_attentions"),
            "decoder": outputs.get("decoder_attentions"),
            "cross": outputs.get("cross_attentions"),
        }
    elif getattr(outputs, "past_key_values", None) is not None or _is_causal(model):
        labels = {"decoder": labels["encoder"]}
        kinds = {"decoder": kinds["encoder"]}
    entries = {}
    for kind, attentions in kinds.items():
        for layer, weights in enumerate(attentions or ()):
            entries[kind, layer] = CapturedLayer(
                kind,
                layer,
                list(range(weights.shape[1])),
                rows=labels["encoder" if kind == "encoder" else "decoder"],
                columns=labels["decoder" if kind == "decoder" else "encoder"],
                weights=weights[0].float().numpy(),
            )
    if not entries:
        raise ValueError(f"{type(model).__name__} returns no attentions")
    return Capture(text, labels, entries)


def _is_causal(model: Any) -> bool:
    """Whether the attention layers of a model are those of a decoder."""
    from ._heads import layers

    return any(getattr(module, "is_causal", False) for module in layers(model).values())
