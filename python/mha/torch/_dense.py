# SPDX-License-Identifier: MIT
"""Attention written in torch's own operators, with a matrix of L x S per head.

Only for what the library's backward pass cannot do: second derivatives, float64, gradients with
respect to returned weights, and heads that are not normal. autograd can differentiate it any number
of times.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ._ragged import Ragged, dense_of


class Given(NamedTuple):
    """The tensors of a call in four axes, and where rows and keys are."""

    query: Tensor
    key: Tensor
    value: Tensor
    added: list[Tensor]  # to the scores
    hidden: Tensor  # True where a key is masked for a row
    distance: Tensor  # of a key from the position of the row
    slopes: Tensor | None
    sinks: Tensor | None
    gates: Tensor | None  # (B, H, L or 1, 1)


def _starts(
    position: str, offset: int, positions: Tensor | None, rows: Any, keys: Any
) -> int | Tensor:
    """The position of query 0 among the keys: a number, or (B, 1, 1, 1). `rows` and `keys` are the
    true numbers of both."""
    if positions is not None:
        return positions.view(-1, 1, 1, 1)
    if position == "offset":
        return offset
    return keys - rows if position == "bottom-right" else 0


def _outside(distance: Tensor, causal: bool, left: int, right: int) -> Tensor:
    """True where a key is outside of what causality and the window let a row see."""
    hidden = torch.zeros_like(distance, dtype=torch.bool)
    if causal:
        hidden = hidden | (distance > 0)
    if left >= 0:
        hidden = hidden | (distance < -left)
    if right >= 0:
        hidden = hidden | (distance > right)
    return hidden


def _masked(hidden: Tensor, mask: Tensor | None, bias: Tensor | None, ignore: Any) -> Tensor:
    if ignore is not None:
        hidden = hidden | ignore
    for added in (mask, bias):
        if added is not None:
            hidden = hidden | (~added if added.dtype == torch.bool else added == -torch.inf)
    return hidden


def _even(tensors: list[Tensor | None], settings: tuple[Any, ...]) -> Given:
    """The call as it is, if every batch has the same rows; lengths hide what is past them."""
    query, key, value, mask, bias, slopes, sinks, gates, ignore, lengths, *rest = tensors
    q_documents, k_documents, positions, q_lengths = rest[:4]
    causal, position, offset, left, right = settings[:5]
    rows = torch.arange(query.shape[2], device=query.device)
    keys = torch.arange(key.shape[2], device=query.device)
    true_rows = query.shape[2] if q_lengths is None else q_lengths.view(-1, 1, 1, 1)
    true_keys = key.shape[2] if lengths is None else lengths.view(-1, 1, 1, 1)
    distance = (keys - rows[:, None])[None, None]
    distance = distance - _starts(position, offset, positions, true_rows, true_keys)
    hidden = _masked(_outside(distance, causal, left, right), mask, bias, ignore)
    if lengths is not None:
        hidden = hidden | (keys >= true_keys)
    if q_lengths is not None:
        hidden = hidden | (rows[:, None] >= true_rows)
    if q_documents is not None:
        hidden = hidden | (q_documents[:, None, :, None] != k_documents[:, None, None, :])
    added = [x for x in (mask, bias) if x is not None and x.dtype != torch.bool]
    if gates is not None:
        gates = gates.reshape(-1, gates.shape[-1], 1, 1)
    return Given(query, key, value, added, hidden, distance, slopes, sinks, gates)


def _packed(ragged: Ragged, tensors: list[Tensor | None], settings: tuple[Any, ...]) -> Given:
    """All sequences as one batch, in which a row sees only the keys of its own sequence."""
    mask, bias, slopes, sinks, gates, ignore = tensors[3:9]
    causal, position, offset, left, right = settings[:5]
    q, k = ragged.queries, ragged.keys
    starts = _starts(position, offset, tensors[12], q.lengths, k.lengths)
    if isinstance(starts, Tensor):
        starts = starts.reshape(-1)[q.sequence][:, None]
    distance = (k.place - q.place[:, None] - starts)[None, None]
    mask, bias, ignore = (None if t is None else ragged.pairs(t) for t in (mask, bias, ignore))
    hidden = _masked(_outside(distance, causal, left, right), mask, bias, ignore)
    hidden = hidden | (q.sequence[:, None] != k.sequence)
    hidden = hidden | ~(q.counts[:, None] & k.counts)
    if tensors[10] is not None:
        q_documents, k_documents = (t.reshape(-1) for t in tensors[10:12])
        hidden = hidden | (q_documents[: len(q.place), None] != k_documents[: len(k.place)])
    added = [x for x in (mask, bias) if x is not None and x.dtype != torch.bool]
    if gates is not None:
        gates = gates if gates.dim() == 1 else gates[q.sequence].T
        gates = gates.reshape(1, gates.shape[0], -1, 1)
    return Given(*ragged.rows(), added, hidden, distance, slopes, sinks, gates)


def _scores(given: Given, scale: float | None, softcap: float, wide: torch.dtype) -> Tensor:
    query, key = given.query.to(wide), given.key.to(wide)
    key = key.repeat_interleave(query.shape[1] // max(key.shape[1], 1), 1)
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = (query * scale) @ key.transpose(-2, -1)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    for numbers in given.added:
        scores = scores + numbers
    if given.slopes is not None:
        scores = scores - given.slopes.view(1, -1, 1, 1).to(wide) * given.distance.abs()
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


def _of_modes(modes: list[int], given: Given, scores: Tensor) -> tuple[Given, Tensor, Tensor]:
    """The call and its scores, in which heads that are not normal have no scores and sinks; and
    which heads are means."""
    kinds = torch.tensor(modes, device=scores.device).view(1, -1, 1, 1)
    scores = torch.where(kinds == 0, scores, 0.0)
    if given.sinks is not None:
        off = torch.where(kinds.view(-1) == 0, given.sinks, -torch.inf)
        given = given._replace(sinks=off)
    return given, scores, kinds == 2


def attention(
    tensors: list[Tensor | None], seed: Tensor | None, settings: tuple[Any, ...]
) -> tuple[Tensor, Tensor, Tensor]:
    """Output, log-sum-exp and weights of every head, in the arguments of mha::attention."""
    scale, softcap, dropout, modes = settings[5:]
    ragged = dense_of(tensors)
    given = _even(tensors, settings) if ragged is None else _packed(ragged, tensors, settings)
    like = tensors[0].dtype
    wide = torch.float64 if like == torch.float64 else torch.float32
    scores = _scores(given, scale, softcap, wide)
    means = None
    if modes is not None:
        given, scores, means = _of_modes(modes, given, scores)
    weights, lse = _softmax(scores, given.hidden, given.sinks)
    thinned = weights
    if dropout and seed is not None:
        like_rows = tensors[0] if ragged is None else ragged.like_rows()
        keys = tensors[1].shape[2] if ragged is None else ragged.longest_keys()
        factors = torch.ops.mha.dropout_factors(like_rows.detach(), keys, dropout, seed)
        thinned = weights * (factors if ragged is None else ragged.pairs(factors))
    value = given.value.to(wide)
    output = thinned @ value.repeat_interleave(scores.shape[1] // max(value.shape[1], 1), 1)
    if means is not None and tensors[16] is not None:
        empty = given.hidden.expand(scores.shape).all(-1, keepdim=True)
        mean = tensors[16].to(wide)[None, :, None, :].masked_fill(empty, 0.0)
        output = torch.where(means, mean, output)
        weights = weights.masked_fill(means, 0.0)
    if given.gates is not None:
        output = output * given.gates.to(wide)
    if ragged is not None:
        output, lse = ragged.back(output), ragged.back(lse[..., None])[..., 0]
    return output.to(like), lse, weights.to(like)


def _results(
    tensors: list[Tensor | None], seed: Tensor | None, settings: tuple[Any, ...], weights: int
) -> tuple[Tensor, ...]:
    output, lse, shown = attention(tensors, seed, settings)
    return output, lse, shown.mean(1) if weights == 2 else shown


def _by_transform(
    given: tuple[Tensor | None, ...],
    tensors: list[Tensor | None],
    seed: Tensor | None,
    settings: tuple[Any, ...],
    weights: int,
    want: list[int],
) -> tuple[Tensor, ...]:
    """The same within a transform of torch.func, such as the vmap of a batched backward pass,
    where torch.autograd.grad() cannot be used."""

    def forward(*wanted: Tensor) -> tuple[Tensor, ...]:
        full = list(tensors)
        for place, tensor in zip(want, wanted):
            full[place] = tensor
        results = _results(full, seed, settings, weights)
        return tuple(r for r, g in zip(results, given) if g is not None)

    _, pull = torch.func.vjp(forward, *(tensors[i] for i in want))
    return pull(tuple(g for g in given if g is not None))


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
    if torch._C._functorch.peek_interpreter_stack():
        return _by_transform(given, tensors, seed, settings, weights, want)
    again = torch.is_grad_enabled()
    # Each argument as a tensor of its own: query and key may be the same, or one may be computed
    # from the other, and the gradient of one must not contain that of the other.
    for place in want:
        tensor = tensors[place]
        tensors[place] = tensor.view_as(tensor) if again else tensor.detach().requires_grad_()
    with torch.enable_grad():
        results = _results(tensors, seed, settings, weights)
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
