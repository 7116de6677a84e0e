# SPDX-License-Identifier: MIT
"""Rules by which torch.func.vmap runs the operators, and with it every batched backward pass."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def _one(argument: Any, axis: Any, number: int) -> Any:
    """The argument for one element of the mapped axis. Arguments that are lists have a list of
    axes, or None."""
    if axis is None:
        return argument
    if isinstance(argument, (list, tuple)):
        return [_one(part, place, number) for part, place in zip(argument, axis)]
    return argument.select(axis, number)


def _zipped(results: list[Any]) -> tuple[Any, Any]:
    """The results of all elements, stacked, and the axes of the stack."""
    if isinstance(results[0], Tensor):
        return torch.stack(results), 0
    parts = [_zipped(list(part)) for part in zip(*results)]
    kind = type(results[0])
    return kind(part for part, _ in parts), kind(axis for _, axis in parts)


def is_batched(tensors: tuple[Tensor | None, ...]) -> bool:
    """Whether is_grads_batched=True runs this backward pass: with tensors of an older vmap, which
    knows no rules for operators."""
    is_old = torch._C._functorch.is_legacy_batchedtensor
    return any(t is not None and is_old(t) for t in tensors)


def each_of_batch(tensors: tuple[Tensor | None, ...], function: Callable[..., Any]) -> list[Tensor]:
    """function(*tensors) for each element of the batch of the older vmap."""
    level = torch._C._vmapmode_increment_nesting() - 1
    torch._C._vmapmode_decrement_nesting()
    inner = [
        t if t is None or not is_batched((t,)) else torch._remove_batch_dim(t, level, 1, 0)
        for t in tensors
    ]
    if is_batched(tuple(inner)):
        raise NotImplementedError("batched backward passes cannot be nested here")
    axes = [0 if new is not old else None for new, old in zip(inner, tensors)]
    size = next(t.shape[0] for t, axis in zip(inner, axes) if t is not None and axis == 0)
    results = [function(*(_one(t, axis, n) for t, axis in zip(inner, axes))) for n in range(size)]
    return [torch._add_batch_dim(torch.stack(part), 0, level) for part in zip(*results)]


def one_by_one(operator: Callable[..., Any]) -> Callable[..., Any]:
    """A rule that calls the operator once per element of the mapped axis. Nothing is copied for
    the tensors that are not mapped, of which a backward pass has many, and an element has the bits
    that it has alone."""

    def rule(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Any, Any]:
        results = [
            operator(*(_one(a, axis, n) for a, axis in zip(arguments, in_dims)))
            for n in range(info.batch_size)
        ]
        return _zipped(results)

    return rule
