# SPDX-License-Identifier: MIT
"""Encoders of the BERT family as a whole: all layers in one call, and no padding.

A batch whose sequences differ in length is packed before the first layer, one sequence after
another, and unpacked after the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions
from transformers.utils.output_capturing import _active_collector

import mha
from mha._core import Stack

from ._mask import Mask


class Layer(NamedTuple):
    """The modules of one layer, and its activation."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    output: nn.Linear
    first_norm: nn.LayerNorm
    up: nn.Linear
    down: nn.Linear
    second_norm: nn.LayerNorm
    heads: int
    activation: str
    attention: nn.Module  # the module with the gates and records of mha.hf


def _part(module: Any, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name, None)
    return module


_LINEARS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
_NORMS = ("attention.output.LayerNorm", "output.LayerNorm")


def _is_layer(layer: Any) -> bool:
    if getattr(layer, "is_decoder", True) or hasattr(layer, "crossattention"):
        return False
    own = _part(layer, "attention.self")
    scale = getattr(own, "scaling", None)
    width = getattr(own, "attention_head_size", 0)
    return (
        all(type(_part(layer, path)) is nn.Linear for path in _LINEARS)
        and all(type(_part(layer, path)) is nn.LayerNorm for path in _NORMS)
        and all(_part(layer, path).bias is not None for path in _NORMS)
        and all(p.dtype is torch.float32 for p in layer.parameters())
        and scale is not None
        and abs(scale * width**0.5 - 1) < 1e-6
        and getattr(own, "position_embedding_type", "absolute") in (None, "absolute")
    )


def is_encoder(module: nn.Module) -> bool:
    """Whether a module is a stack of BERT's layers."""
    layers = getattr(module, "layer", None)
    return (
        isinstance(layers, nn.ModuleList)
        and len(layers) > 0
        and all(map(_is_layer, layers))
        and not list(module.parameters(recurse=False))
        and len(list(module.children())) == 1
    )


def encoder_parts(module: nn.Module, activation_of: Callable[[Any], str | None]) -> list[Layer]:
    parts = []
    for layer in module.layer:
        q, k, v, o, up, down = (_part(layer, path) for path in _LINEARS)
        first, second = (_part(layer, path) for path in _NORMS)
        heads = layer.attention.self.num_attention_heads
        activation = activation_of(_part(layer, "intermediate.intermediate_act_fn"))
        if activation is None:
            return []
        own = layer.attention.self
        parts.append(Layer(q, k, v, o, first, up, down, second, heads, activation, own))
    return parts


def _detached(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.detach()


class Encoder:
    """The layers of an encoder with packed weights."""

    def __init__(self, module: nn.Module, parts: list[Layer], store: str) -> None:
        self.module = module
        self.parts = parts
        self.store = store
        self.pack()

    def pack(self) -> None:
        # Tensors of inference mode have no versions, and are taken not to change.
        self.tracked = [p for p in self.module.parameters() if not p.is_inference()]
        self.version = self._versions()
        self.stack = Stack([self._pack_layer(part) for part in self.parts])

    def _pack_layer(self, part: Layer) -> tuple[Any, ...]:
        attention = mha.Layer(
            part.query.in_features,
            part.heads,
            weights={
                "q": part.query.weight.detach(),
                "k": part.key.weight.detach(),
                "v": part.value.weight.detach(),
                "o": part.output.weight.detach(),
                "q_bias": _detached(part.query.bias),
                "k_bias": _detached(part.key.bias),
                "v_bias": _detached(part.value.bias),
                "o_bias": _detached(part.output.bias),
            },
            stored=self.store,
        )
        feed_forward = mha.FeedForward(
            part.up.weight.detach(),
            part.down.weight.detach(),
            up_bias=_detached(part.up.bias),
            down_bias=_detached(part.down.bias),
            store=self.store,
            activation=part.activation,
        )
        norms = [
            (norm.weight.detach(), norm.bias.detach(), norm.eps)
            for norm in (part.first_norm, part.second_norm)
        ]
        return attention, feed_forward, *norms

    def _versions(self) -> int:
        return sum([p._version for p in self.tracked])

    def refresh(self) -> None:
        """Pack the weights again if they have changed."""
        if self._versions() != self.version:
            self.pack()

    def run(self, x: Tensor) -> Tensor:
        """All layers for a batch (texts, rows, width) without padding."""
        batch, rows, _ = x.shape
        starts = range(0, batch * rows + 1, rows)
        return self.stack(x, list(starts), threads=torch.get_num_threads())

    def run_packed(self, rows: Tensor, kept: Tensor, lengths: Tensor) -> Tensor:
        """All layers for the rows of text of a batch, where they are in it, with 0 elsewhere."""
        starts = [0, *lengths.cumsum(0).tolist()]
        out = rows.new_zeros(*kept.shape, rows.shape[1])
        out[kept] = self.stack(rows, starts, threads=torch.get_num_threads())
        return out

    def __call__(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        self.refresh()
        x = x if x.is_contiguous() else x.contiguous()
        if lengths is None:
            return self.run(x)
        kept = torch.arange(x.shape[1]) < lengths[:, None]
        return self.run_packed(x[kept], kept, lengths)

    def is_watched(self) -> bool:
        """Whether attentions or hidden states are collected, or heads are gated or recorded: then
        the layers run one by one."""
        return bool(_active_collector.get()) or any(
            "_mha_gates" in p.attention.__dict__ or "_mha_record" in p.attention.__dict__
            for p in self.parts
        )

    def agrees(self, tolerance: float) -> bool:
        """Whether the packed layers give what the module gives, for random numbers."""
        if not self.parts:
            return False
        width = self.parts[0].query.in_features
        x = torch.randn(2, 5, width, generator=torch.Generator().manual_seed(7))
        try:
            with torch.no_grad():
                expected = self.module(x, None).last_hidden_state
                found = self(x, None)
        except (TypeError, ValueError, RuntimeError, AttributeError):
            return False
        return bool((expected - found).abs().max() <= tolerance * (1 + expected.abs().max()))

    def install(self, mark: str, is_ready: Callable[[Any], bool]) -> None:
        module, own = self.module, self.module.forward

        def forward(
            hidden_states: Tensor, attention_mask: Any = None, *args: Any, **kwargs: Any
        ) -> Any:
            if (
                is_ready(hidden_states)
                and not module.training
                and not any(a is not None for a in args)
                and not any(kwargs.get(name) is not None for name in _OTHER_INPUTS)
                and not self.is_watched()
            ):
                rule = _rule(attention_mask)
                if rule is not None:
                    return BaseModelOutputWithPastAndCrossAttentions(
                        last_hidden_state=self(hidden_states, rule.get("key_lengths"))
                    )
            return own(hidden_states, attention_mask, *args, **kwargs)

        module.__dict__[mark] = module.__dict__.get("forward")
        module.forward = forward


_OTHER_INPUTS = (
    "encoder_hidden_states",
    "encoder_attention_mask",
    "past_key_values",
    "cu_seq_lens_q",
)


def _rule(mask: Any) -> dict[str, Any] | None:
    """The rule of a mask if it is none or padding after the text; None otherwise."""
    if mask is None:
        return {}
    if isinstance(mask, Mask) and set(mask.rule) <= {"key_lengths"}:
        lengths = mask.rule.get("key_lengths")
        return mask.rule if lengths is None or int(lengths.min()) > 0 else None
    return None
