# SPDX-License-Identifier: MIT
"""mha.torch.attention(): every option of the operator, with gradients."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from . import _operator
from ._plain import is_plain, needs_gradients


class Result(NamedTuple):
    """What attention() returns if more than the output is requested; None for what was not."""

    output: Tensor
    lse: Tensor | None
    weights: Tensor | None


def _check(given: tuple[Any, ...]) -> None:
    """Check that the arguments are tensors, and that the first three have four axes."""
    for number, (name, tensor) in enumerate(zip(_operator.TENSORS, given)):
        if tensor is None and number >= 3:
            continue
        if not isinstance(tensor, Tensor):
            kind = type(tensor).__name__
            raise TypeError(
                f"{name} is of type {kind}; it must be a torch.Tensor (mha.attention() takes "
                "arrays of NumPy and others, and lists of numbers)"
            )
        if number < 3 and tensor.dim() != 4:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; it must be (batch, heads, rows, width): "
                f"{name}[None] adds a batch axis"
            )


def _weights(asked: bool, average: bool) -> int:
    """Which weights, as a number for the operator: 0 none, 1 those of each head, 2 their mean."""
    if average and not asked:
        raise ValueError(
            "average_weights averages weights, but none are requested: add return_weights=True"
        )
    return asked + average


def _as_four_axes(tensor: Tensor | None) -> Tensor | None:
    if tensor is None or tensor.dim() == 4:
        return tensor
    if tensor.dim() > 4:
        raise ValueError(
            f"a mask or bias has {tensor.dim()} axes; it must be broadcastable to (B, H, L, S)"
        )
    return tensor[(None,) * (4 - tensor.dim())]


def _where(position: None | str | int) -> tuple[str, int]:
    """Position as the operator takes it."""
    if position is None:
        return "", 0
    if isinstance(position, str):
        if position not in ("top-left", "bottom-right"):
            raise ValueError(
                f'position is "{position}"; use "top-left", "bottom-right" or the number of the '
                "key at which query 0 stands"
            )
        return position, 0
    return "offset", position


def _edges(window: tuple[int | None, int | None] | None) -> tuple[int, int]:
    """A window as the operator takes it, with -1 for an open side."""
    if window is None:
        return -1, -1
    if not isinstance(window, (tuple, list)) or len(window) != 2:
        raise TypeError(
            f"window is {window!r}; it must be a pair (left, right) of keys before and after the "
            "query's position, None for an open side"
        )
    left, right = (-1 if edge is None else edge for edge in window)
    return left, right


def _autocast(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Query, key and value in autocast's type; float64 is kept, as in torch's own operators."""
    if not torch.is_autocast_enabled("cpu"):
        return tensors
    dtype = torch.get_autocast_dtype("cpu")
    return tuple(t if t.dtype == torch.float64 else t.to(dtype) for t in tensors)


def _seed(dropout: float, generator: torch.Generator | None) -> Tensor | None:
    """The next number of torch's generator, as a tensor, so that compilers can trace it."""
    if not dropout:
        return None
    return torch.randint(2**63 - 1, (), dtype=torch.int64, generator=generator)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    ignore_mask: Tensor | None = None,
    bias: Tensor | None = None,
    alibi_slopes: Tensor | None = None,
    sinks: Tensor | None = None,
    gates: Tensor | None = None,
    key_lengths: Tensor | None = None,
    query_documents: Tensor | None = None,
    key_documents: Tensor | None = None,
    causal: bool = False,
    position: None | str | int = None,
    window: tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
    return_lse: bool = False,
    return_weights: bool = False,
    average_weights: bool = False,
) -> Tensor | Result:
    """Attention over all heads, with gradients, by libmha.

    query (B, H, L, D), key (B, G, S, D), value (B, G, S, Dv), H a multiple of G; any strides.
    Every option means what it means in mha.attention(), and all of them apply together. Gradients
    flow to query, key, value, a float mask, bias, alibi_slopes, sinks and gates, and from the
    output, the log-sum-exp and the weights. dropout applies whenever it is not 0: give 0 outside
    training. Its seed is the next number of `generator`, or of torch's default one.

    Memory grows with L + S, in both passes. In three cases the backward pass is written in torch's
    operators, with matrices of L x S per head: float64, second derivatives (create_graph=True), and
    gradients with respect to the weights.

    Returns the output, or a Result(output, lse, weights) if lse or weights are requested.

    >>> import torch, mha.torch
    >>> x = torch.ones(1, 2, 3, 4, requires_grad=True)
    >>> mha.torch.attention(x, x, x, causal=True, softcap=30.0).sum().backward()
    >>> x.grad.shape
    torch.Size([1, 2, 3, 4])
    """
    inputs = (query, key, value)
    numbers = (key_lengths, query_documents, key_documents)
    _check((*inputs, mask, bias, alibi_slopes, sinks, gates, ignore_mask, *numbers))
    tensors = (
        *_autocast(inputs),
        _as_four_axes(mask),
        _as_four_axes(bias),
        alibi_slopes,
        sinks,
        gates,
        _as_four_axes(ignore_mask),
        *numbers,
    )
    settings: tuple[Any, ...] = (
        _seed(dropout, generator),
        causal,
        *_where(position),
        *_edges(window),
        scale,
        softcap,
        dropout,
    )
    weights = _weights(bool(return_weights), bool(average_weights))
    if not is_plain(tensors):
        output, lse, shown = torch.ops.mha.attention(*tensors, *settings, weights)
    elif needs_gradients(tensors):
        output, lse, shown = _operator.Attention.apply(*tensors, *settings, weights)
    else:
        output, lse, shown = _operator.run(tensors, settings, weights, return_lse)
    if not (return_lse or return_weights):
        return output
    return Result(output, lse if return_lse else None, shown if return_weights else None)
