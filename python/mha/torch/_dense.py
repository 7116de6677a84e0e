# SPDX-License-Identifier: MIT
"""Attention written in torch's own operators, with a matrix of L x S per head.

Only for what the library's backward pass cannot do: second derivatives, float64, and gradients with
respect to returned weights. autograd can differentiate it any number of times.
"""

from typing import Any

import torch
from torch import Tensor


def _offsets(
    position: str, offset: int, rows: int, keys: int, lengths: Tensor | None
) -> int | Tensor:
    """The position of query 0 among the keys: a number, or (B, 1, 1, 1)."""
    if position == "offset":
        return offset
    if position != "bottom-right":
        return 0
    return keys - rows if lengths is None else lengths.view(-1, 1, 1, 1) - rows


def _hidden(
    distance: Tensor, tensors: list[Tensor | None], causal: bool, left: int, right: int
) -> Tensor:
    """True where a key is masked for a row. `distance` is key minus position of the row."""
    mask, bias, ignore, lengths, q_documents, k_documents = tensors
    hidden = torch.zeros_like(distance, dtype=torch.bool)
    if causal:
        hidden = hidden | (distance > 0)
    if left >= 0:
        hidden = hidden | (distance < -left)
    if right >= 0:
        hidden = hidden | (distance > right)
    if ignore is not None:
        hidden = hidden | ignore
    for added in (mask, bias):
        if added is not None:
            hidden = hidden | (~added if added.dtype == torch.bool else added == -torch.inf)
    if lengths is not None:
        keys = torch.arange(distance.shape[-1], device=distance.device)
        hidden = hidden | (keys >= lengths.view(-1, 1, 1, 1))
    if q_documents is not None:
        hidden = hidden | (q_documents[:, None, :, None] != k_documents[:, None, None, :])
    return hidden


def _scores(
    query: Tensor, key: Tensor, added: list[Tensor], scale: float | None, softcap: float
) -> Tensor:
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = (query * scale) @ key.transpose(-2, -1)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    for numbers in added:
        scores = scores + numbers
    return scores


def _softmax(scores: Tensor, hidden: Tensor, sinks: Tensor | None) -> tuple[Tensor, Tensor]:
    """Weights and log-sum-exp; 0 and -inf for a row without keys."""
    scores = scores.masked_fill(hidden, -torch.inf)
    empty = hidden.expand(scores.shape).all(-1, keepdim=True)
    top = scores.detach().amax(-1, keepdim=True) if scores.shape[-1] else scores.sum(-1, True)
    if sinks is not None:
        sinks = sinks.view(1, -1, 1, 1).to(scores.dtype)
        top = torch.maximum(top, sinks.detach())
    top = top.masked_fill(empty, 0.0)
    powers = torch.exp(scores - top)
    total = powers.sum(-1, keepdim=True)
    if sinks is not None:
        total = total + torch.exp(sinks - top)
    total = total.masked_fill(empty, 1.0)
    lse = (top + torch.log(total)).masked_fill(empty, -torch.inf)
    return powers / total, lse.squeeze(-1)


def attention(
    tensors: list[Tensor | None], seed: Tensor | None, settings: tuple[Any, ...]
) -> tuple[Tensor, Tensor, Tensor]:
    """Output, log-sum-exp and weights of every head, in the arguments of mha::attention."""
    query, key, value, mask, bias, slopes, sinks, gates, ignore, lengths, *documents = tensors
    causal, position, offset, left, right, scale, softcap, dropout = settings
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    rows, keys = query.shape[2], key.shape[2]
    shares = query.shape[1] // max(key.shape[1], 1)
    q = query.to(wide)
    k, v = (x.to(wide).repeat_interleave(shares, 1) for x in (key, value))
    steps = torch.arange(keys, device=q.device) - torch.arange(rows, device=q.device)[:, None]
    distance = steps - _offsets(position, offset, rows, keys, lengths)
    distance = distance if distance.dim() == 4 else distance[None, None]
    hidden = _hidden(distance, [mask, bias, ignore, lengths, *documents], causal, left, right)
    added = [x for x in (mask, bias) if x is not None and x.dtype != torch.bool]
    if slopes is not None:
        added.append(-slopes.view(1, -1, 1, 1).to(wide) * distance.abs())
    weights, lse = _softmax(_scores(q, k, added, scale, softcap), hidden, sinks)
    thinned = weights
    if dropout and seed is not None:
        thinned = weights * torch.ops.mha.dropout_factors(query.detach(), keys, dropout, seed)
    output = thinned @ v
    if gates is not None:
        output = output * gates.reshape(-1, gates.shape[-1], 1, 1).to(wide)
    return output.to(query.dtype), lse, weights.to(query.dtype)


def gradients(
    given: tuple[Tensor | None, ...],
    tensors: list[Tensor | None],
    seed: Tensor | None,
    settings: tuple[Any, ...],
    weights: int,
    want: list[int],
) -> tuple[Tensor, ...]:
    """Gradients of the tensors whose indices are in `want`; they are differentiable themselves if
    grad mode is on, as it is under create_graph=True."""
    again = torch.is_grad_enabled()
    if not again:
        tensors = [
            t.detach().requires_grad_(i in want) if t is not None else None
            for i, t in enumerate(tensors)
        ]
    with torch.enable_grad():
        output, lse, shown = attention(tensors, seed, settings)
        results = (output, lse, shown.mean(1) if weights == 2 else shown)
    # Weights and log-sum-exp do not depend on values and gates.
    pairs = [(r, g) for r, g in zip(results, given) if g is not None and r.requires_grad]
    if not pairs:
        return tuple(torch.zeros_like(tensors[i]) for i in want)
    return torch.autograd.grad(
        [r for r, _ in pairs],
        [tensors[i] for i in want],
        [g for _, g in pairs],
        create_graph=again,
        allow_unused=True,
        materialize_grads=True,
    )
