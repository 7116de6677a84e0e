# SPDX-License-Identifier: MIT
"""Models of the BERT family from ids to the pooler: one call of Python, and no row of padding.

The encoder of such a model is an Encoder of _blocks.py already. What is around it, the sum of three
embeddings and their norm, masks as matrices, hooks and decorators of every module, takes as long as
two of the layers if a text is short. Here ids are packed before they are looked up, and a padding
mask becomes the lengths of the texts. All other calls run as before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import mha

from ._blocks import Encoder

_RESULTS = {"last_hidden_state", "pooler_output"}
_TABLES = ("word_embeddings", "position_embeddings", "token_type_embeddings")


def _is_embedding(module: Any) -> bool:
    """Whether a module has the parts of BERT's embeddings and no others."""
    tables = [getattr(module, name, None) for name in _TABLES]
    norm = getattr(module, "LayerNorm", None)
    return (
        all(type(table) is nn.Embedding and table.max_norm is None for table in tables)
        and type(norm) is nn.LayerNorm
        and len(list(module.parameters())) == 5
        and all(p.dtype is torch.float32 for p in module.parameters())
    )


def is_whole(module: nn.Module) -> bool:
    """Whether a module is a model of the BERT family without a decoder."""
    config = getattr(module, "config", None)
    return (
        isinstance(getattr(module, "encoder", None), nn.Module)
        and _is_embedding(getattr(module, "embeddings", None))
        and not getattr(config, "is_decoder", True)
        and not getattr(config, "add_cross_attention", True)
        and {name for name, _ in module.named_children()} <= {"embeddings", "encoder", "pooler"}
    )


def _padding(mask: Any, ids: Tensor) -> tuple[bool, Tensor | None]:
    """Whether a mask says which tokens are text, with all padding after it; and the mask as bool,
    None if everything is text."""
    if mask is None:
        return True, None
    if type(mask) is not Tensor or mask.shape != ids.shape or not mask.is_cpu:
        return False, None
    if mask.all():
        return True, None
    counts = mask.to(torch.bool)
    begins_late = counts[:, 1:] & ~counts[:, :-1]
    return bool(counts[:, 0].all()) and not begins_late.any(), counts


def _is_usual(name: str, value: Any) -> bool:
    """Whether an argument of a call says what is done without it."""
    if value is None:
        return True
    return value is True if name == "return_dict" else value is False and name.startswith("output_")


class Whole:
    """A model and its encoder with packed weights."""

    def __init__(self, module: nn.Module, encoder: Encoder, pool: Callable | None) -> None:
        """`pool` gives the pooler's output for first rows; None: the module does."""
        self.module = module
        self.encoder = encoder
        self.pool = pool
        self.watched = list(module.children())
        self.longest = len(module.embeddings.position_embeddings.weight)
        self.result: Any = None  # the class of the results

    def _embed(self, ids: Tensor, types: Tensor | None, numbers: Tensor | None) -> Tensor:
        """The rows of some ids; `numbers` are their positions, None: 0, 1, 2, ..."""
        embeddings = self.module.embeddings
        words, places, kinds = (getattr(embeddings, name).weight for name in _TABLES)
        x = torch.embedding(words, ids)
        x += places[: ids.shape[1]] if numbers is None else torch.embedding(places, numbers)
        x += kinds[0] if types is None else torch.embedding(kinds, types)
        norm = embeddings.LayerNorm
        threads = torch.get_num_threads()
        return mha.norm(x, norm.weight, norm.bias, eps=norm.eps, out=x, threads=threads)

    def hidden(self, ids: Tensor, types: Tensor | None, counts: Tensor | None) -> Tensor:
        """Hidden states of a batch; those of padding are 0."""
        self.encoder.refresh()
        if counts is None:
            return self.encoder.run(self._embed(ids, types, None))
        numbers = torch.arange(ids.shape[1]).expand(ids.shape)[counts]
        rows = self._embed(ids[counts], None if types is None else types[counts], numbers)
        return self.encoder.run_packed(rows, counts, counts.sum(1))

    def results(self, hidden: Tensor) -> Any:
        pooler = getattr(self.module, "pooler", None)
        if pooler is None:
            return self.result(last_hidden_state=hidden)
        pooled = pooler(hidden) if self.pool is None else self.pool(hidden[:, 0])
        return self.result(last_hidden_state=hidden, pooler_output=pooled)

    def agrees(self, tolerance: float) -> bool:
        """Whether this gives what the module gives, for random ids, types and a padding mask."""
        generator = torch.Generator().manual_seed(7)
        shape = (3, min(6, self.longest))
        embeddings = self.module.embeddings
        words, _, kinds = (getattr(embeddings, name).num_embeddings for name in _TABLES)
        ids = torch.randint(0, words, shape, generator=generator)
        types = torch.randint(0, kinds, shape, generator=generator)
        mask = torch.ones(shape, dtype=torch.int64)
        mask[1, 1:] = 0
        try:
            with torch.no_grad():
                for given in (None, types):
                    expected = self.module(ids, attention_mask=mask, token_type_ids=given)
                    self.result = type(expected)
                    found = self.results(self.hidden(ids, given, mask.bool()))
                    if set(expected) != set(found) or not set(found) <= _RESULTS:
                        return False
                    for a, b, rows in zip(expected.values(), found.values(), (mask.bool(), ...)):
                        if not (a - b)[rows].abs().max() <= tolerance * (1 + a.abs().max()):
                            return False
        except (TypeError, ValueError, RuntimeError, AttributeError, IndexError):
            return False
        return True

    def _is_plain(self, kwargs: dict[str, Any]) -> bool:
        """Whether nothing but the results is requested, and no hook waits for a part."""
        config = self.module.config
        return (
            not (config.output_attentions or config.output_hidden_states)
            and config.return_dict
            and all(_is_usual(name, value) for name, value in kwargs.items())
            and not any(m._forward_hooks or m._forward_pre_hooks for m in self.watched)
            and not self.encoder.is_watched()
        )

    def install(self, mark: str, is_idle: Callable[[], bool]) -> None:
        module, own = self.module, self.module.forward

        def forward(
            input_ids: Any = None,
            attention_mask: Any = None,
            token_type_ids: Any = None,
            *args: Any,
            **kwargs: Any,
        ) -> Any:
            if (
                type(input_ids) is Tensor
                and input_ids.dim() == 2
                and input_ids.is_cpu
                and 0 < input_ids.shape[1] <= self.longest
                and (token_type_ids is None or type(token_type_ids) is Tensor)
                and not args
                and not module.training
                and is_idle()
                and self._is_plain(kwargs)
            ):
                is_padding, counts = _padding(attention_mask, input_ids)
                if is_padding and (
                    token_type_ids is None or token_type_ids.shape == input_ids.shape
                ):
                    return self.results(self.hidden(input_ids, token_type_ids, counts))
            return own(input_ids, attention_mask, token_type_ids, *args, **kwargs)

        module.__dict__[mark] = module.__dict__.get("forward")
        module.forward = forward
