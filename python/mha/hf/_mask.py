# SPDX-License-Identifier: MIT
"""Masks of transformers as rules instead of matrices."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import torch
from torch.utils._pytree import tree_map_only
from transformers import masking_utils
from transformers.masking_utils import eager_mask, sdpa_mask
from transformers.modeling_utils import PreTrainedModel


class Mask(torch.Tensor):
    """A boolean mask (B, 1, L, S), True where a query attends, represented by its rule.

    `rule` contains keyword arguments of `mha.attention`. If a model only passes the mask to its
    layers, the matrix is never made; if it computes with the mask, it gets the matrix that
    transformers would have made, as an ordinary tensor.
    """

    rule: dict[str, Any]
    _make: Callable[[], torch.Tensor]

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(
        cls, size: tuple[int, ...], rule: dict[str, Any], make: Callable[[], torch.Tensor]
    ) -> Mask:
        self = torch.Tensor._make_wrapper_subclass(cls, size, dtype=torch.bool)
        self.rule = rule
        self._make = make
        return self

    @cached_property
    def dense(self) -> torch.Tensor:
        """The same mask as a matrix."""
        return self._make()

    def __repr__(self, **kwargs: Any) -> str:
        return f"Mask({tuple(self.shape)}, {self.rule})"

    @classmethod
    def __torch_dispatch__(
        cls, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        args, kwargs = tree_map_only(Mask, lambda mask: mask.dense, (args, kwargs or {}))
        return func(*args, **kwargs)


def mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | torch.Tensor = 0,
    kv_offset: int = 0,
    mask_function: Callable = masking_utils.causal_mask_function,
    attention_mask: torch.Tensor | None = None,
    allow_is_causal_skip: bool = True,
    allow_is_bidirectional_skip: bool = False,
    **kwargs: Any,
) -> torch.Tensor | None:
    """The mask function for transformers: returns None, a `Mask`, or a boolean tensor.

    `attention` interprets None as follows: a single query attends to every key; several attend to
    those up to their own position if the layer is causal, and to all if it is not. Models that
    support only eager get its masks, which are numbers to be added.
    """
    given = dict(
        batch_size=batch_size,
        q_length=q_length,
        kv_length=kv_length,
        q_offset=q_offset,
        kv_offset=kv_offset,
        mask_function=mask_function,
        attention_mask=attention_mask,
        allow_is_bidirectional_skip=allow_is_bidirectional_skip,
        **kwargs,
    )
    if not is_for_interfaces(config := kwargs.get("config")):
        warnings.warn(
            f"models of {type(config).__name__} have attention of their own. They get masks as for "
            "'eager', and only the layers that mha.hf.layers(model) lists run on mha",
            stacklevel=2,
        )
        return eager_mask(**given | {"allow_is_bidirectional_skip": False})
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return sdpa_mask(**given, allow_is_causal_skip=allow_is_causal_skip)

    def dense() -> torch.Tensor:
        skips = {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
        return sdpa_mask(**given | skips)

    start = int(q_offset)
    queries = range(start, start + q_length)
    rule = _rule(mask_function, queries, range(kv_offset, kv_offset + kv_length), attention_mask)
    if rule is None:
        return dense()
    may_be_none = allow_is_causal_skip if "causal" in rule else allow_is_bidirectional_skip
    if may_be_none and _goes_without_saying(rule, q_length, kv_length):
        return None
    return Mask((batch_size, 1, q_length, kv_length), rule, dense)


def is_for_interfaces(config: Any) -> bool:
    """Whether the models of a configuration are made for other implementations than eager.

    Those that are not may still request masks for an implementation, and then add them to their own
    scores; if their layers lack `is_causal`, nothing can be concluded from that.
    """
    return not any(
        model.config_class is type(config)
        and not (model._supports_sdpa or model._supports_attention_backend)
        for model in _subclasses(PreTrainedModel)
    )


def _subclasses(of: type) -> Iterator[type]:
    for subclass in of.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _goes_without_saying(rule: Mapping[str, Any], queries: int, keys: int) -> bool:
    """Whether `attention` would do the same without a mask."""
    if rule.keys() != {"causal", "position"}:
        return not rule
    return rule["position"] == 0 if queries > 1 else rule["position"] >= keys - 1


def _rule(
    mask_function: Callable, queries: range, keys: range, padding: torch.Tensor | None
) -> dict[str, Any] | None:
    """A mask function of transformers, and padding, as keyword arguments of `mha.attention`; None
    for a function that is not in `_KINDS`. The ranges are the positions of queries and keys."""
    rule: dict[str, Any] = {}
    for part in _conjunction(mask_function):
        kind = _KINDS.get(getattr(part, "__code__", None))
        more = kind(queries=queries, keys=keys, **_closure(part)) if kind else None
        if more is None or rule.keys() & more.keys():
            return None
        rule |= more
    if "causal" in rule or "window" in rule:
        rule["position"] = queries.start - keys.start
    seen = queries.stop - keys.start if "causal" in rule else len(keys)
    return rule | _padding(padding, keys, seen)


def _conjunction(mask_function: Callable) -> Iterator[Callable]:
    """The functions that and_masks() has combined, at any depth."""
    if getattr(mask_function, "__code__", None) is masking_utils.and_masks().__code__:
        for part in _closure(mask_function)["mask_functions"]:
            yield from _conjunction(part)
    else:
        yield mask_function


def _closure(function: Callable) -> dict[str, Any]:
    """The variables that an inner function has captured from the function that made it."""
    cells = function.__closure__ or ()
    return {name: cell.cell_contents for name, cell in zip(function.__code__.co_freevars, cells)}


def _sliding(queries: range, keys: range, sliding_window: int) -> dict[str, Any]:
    if queries.stop - sliding_window <= keys.start:
        return {}
    return {"window": (sliding_window - 1, None)}


def _sliding_both_ways(queries: range, keys: range, sliding_window: int) -> dict[str, Any]:
    return {"window": (sliding_window, sliding_window)}


def _packed(queries: range, keys: range, packed_sequence_mask: torch.Tensor) -> dict[str, Any]:
    ids = packed_sequence_mask.to(torch.int32)
    return {
        "query_documents": ids[:, queries.start : queries.stop],
        "key_documents": ids[:, keys.start : keys.stop],
    }


def _chunked(
    queries: range, keys: range, chunk_size: int, left_padding: torch.Tensor
) -> dict[str, Any]:
    def chunks(tokens: range) -> torch.Tensor:
        places = torch.arange(tokens.start, tokens.stop) - left_padding[:, None]
        return (places // chunk_size).to(torch.int32)

    return {"query_documents": chunks(queries), "key_documents": chunks(keys)}


# Functions are recognised by their code: inner functions are new objects in every call.
_KINDS: dict[Any, Callable[..., dict[str, Any]]] = {
    masking_utils.causal_mask_function.__code__: lambda queries, keys: {"causal": True},
    masking_utils.bidirectional_mask_function.__code__: lambda queries, keys: {},
    masking_utils.sliding_window_overlay(1).__code__: _sliding,
    masking_utils.sliding_window_bidirectional_overlay(1).__code__: _sliding_both_ways,
    masking_utils.packed_sequence_mask_function(torch.empty(0)).__code__: _packed,
    masking_utils.chunked_overlay(1, torch.empty(0)).__code__: _chunked,
}


def _padding(padding: torch.Tensor | None, keys: range, seen: int) -> dict[str, Any]:
    """A padding mask (B, tokens), True for tokens that count, of which the first `seen` keys
    matter. Tokens after its end do not count."""
    if padding is None:
        return {}
    counts = padding[:, keys.start : keys.stop]
    if counts[:, :seen].all() and counts.shape[1] >= seen:
        return {}
    counts = torch.nn.functional.pad(counts, (0, len(keys) - counts.shape[1]))
    begins_late = counts[:, 1:] & ~counts[:, :-1]
    return (
        {"mask": counts[:, None, None, :]} if begins_late.any() else {"key_lengths": counts.sum(1)}
    )
