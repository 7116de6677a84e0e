# SPDX-License-Identifier: MIT
"""The library as operators for torch's dispatcher, autograd and compilers.

    mha::attention            forward: output, log-sum-exp and, if requested, weights
    mha::attention_backward   gradients, from log-sum-exp, with memory that grows with L + S
    mha::dropout_factors      0 or 1/(1-p) for every weight, as the two above drop them

All tensors are (B, H, L, D); masks and biases have four axes, each of full size or 1. The order of
tensor arguments is the same everywhere: TENSORS.
"""

from typing import Any

import torch
from torch import Tensor

import mha

from . import _dense
from ._plain import is_plain

# The leading arguments of the operator, and how many of them can have gradients.
TENSORS = (
    "query",
    "key",
    "value",
    "mask",
    "bias",
    "alibi_slopes",
    "sinks",
    "gates",
    "ignore_mask",
    "key_lengths",
    "query_documents",
    "key_documents",
)
DIFFERENTIABLE = 8

_CONTIGUOUS = torch.contiguous_format
_WIDEST = 1024  # the largest width of a head in the library


def readable(tensor: Tensor | None) -> Tensor | None:
    """The tensor itself if the library can read it: unit stride over the last axis."""
    if tensor is None:
        return None
    if tensor.requires_grad:
        tensor = tensor.detach()
    # Not contiguous(), which leaves the strides of an empty tensor as they are.
    return tensor if tensor.stride(-1) == 1 else tensor.clone(memory_format=_CONTIGUOUS)


def _numbers(tensor: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """Small vectors, which the library needs in one type and contiguous."""
    return None if tensor is None else tensor.detach().to(dtype).contiguous()


def _options(
    tensors: tuple[Tensor | None, ...],
    seed: Tensor | None,
    causal: bool,
    position: str,
    offset: int,
    window_left: int,
    window_right: int,
    scale: float | None,
    softcap: float,
    dropout: float,
) -> dict[str, Any]:
    """Keywords of mha.attention(); `tensors` are those after query, key and value."""
    mask, bias, slopes, sinks, gates, ignore_mask, lengths, q_documents, k_documents = tensors
    options: dict[str, Any] = {"threads": torch.get_num_threads()}
    if mask is not None:
        options["mask"] = readable(mask)
    if bias is not None:
        options["bias"] = readable(bias)
    if ignore_mask is not None:
        options["ignore_mask"] = readable(ignore_mask)
    if slopes is not None:
        options["alibi_slopes"] = _numbers(slopes, torch.float32)
    if sinks is not None:
        options["sinks"] = _numbers(sinks, torch.float32)
    if gates is not None:
        options["gates"] = _numbers(gates, torch.float32)
    if lengths is not None:
        options["key_lengths"] = _numbers(lengths, torch.int64)
    if q_documents is not None or k_documents is not None:
        options["query_documents"] = _numbers(q_documents, torch.int32)
        options["key_documents"] = _numbers(k_documents, torch.int32)
    if causal:
        options["causal"] = True
    if position:
        options["position"] = offset if position == "offset" else position
    if (window_left, window_right) != (-1, -1):
        options["window"] = (window_left, window_right)
    if scale is not None:
        options["scale"] = scale
    if softcap:
        options["softcap"] = softcap
    if dropout and seed is not None:
        options["dropout"] = dropout
        options["dropout_seed"] = int(seed)
    return options


def empty_output(query: Tensor, value: Tensor) -> Tensor:
    """(B, H, L, Dv) in the memory order of the query, so that heads which are side by side after a
    projection are so before the next one."""
    batch, heads, rows, _ = query.shape
    width = value.shape[-1]
    if query.stride(1) < query.stride(2):
        return query.new_empty((batch, rows, heads, width)).transpose(1, 2)
    return query.new_empty((batch, heads, rows, width))


def _lse_type(query: Tensor) -> torch.dtype:
    return torch.float64 if query.dtype == torch.float64 else torch.float32


def _empty_weights(query: Tensor, key: Tensor, weights: int) -> Tensor:
    """weights: 0 none, 1 of every head, 2 their mean."""
    batch, heads, rows, _ = query.shape
    if weights == 0:
        return query.new_empty((0,))
    shape = (batch, heads, rows, key.shape[2]) if weights == 1 else (batch, rows, key.shape[2])
    return query.new_empty(shape)


def run(
    tensors: tuple[Tensor | None, ...], settings: tuple[Any, ...], weights: int, want_lse: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """One forward pass of the library, without the dispatcher. `settings` are the operator's
    arguments from seed to dropout."""
    query, key, value = (readable(t) for t in tensors[:3])
    output = empty_output(query, value)
    result = mha.attention(
        query,
        key,
        value,
        out=output,
        return_lse=want_lse,
        return_weights=weights != 0,
        average_weights=weights == 2,
        **_options(tensors[3:], *settings),
    )
    if not (want_lse or weights):
        return output, None, None
    shown = result.weights.to(query.dtype) if weights else None
    return output, result.lse, shown


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    alibi_slopes: Tensor | None,
    sinks: Tensor | None,
    gates: Tensor | None,
    ignore_mask: Tensor | None,
    key_lengths: Tensor | None,
    query_documents: Tensor | None,
    key_documents: Tensor | None,
    seed: Tensor | None,
    causal: bool,
    position: str,
    offset: int,
    window_left: int,
    window_right: int,
    scale: float | None,
    softcap: float,
    dropout: float,
    weights: int,
) -> tuple[Tensor, Tensor, Tensor]:
    tensors = (
        query,
        key,
        value,
        mask,
        bias,
        alibi_slopes,
        sinks,
        gates,
        ignore_mask,
        key_lengths,
        query_documents,
        key_documents,
    )
    settings = (
        seed,
        causal,
        position,
        offset,
        window_left,
        window_right,
        scale,
        softcap,
        dropout,
    )
    output, lse, shown = run(tensors, settings, weights, True)
    assert lse is not None
    return output, lse, query.new_empty((0,)) if shown is None else shown


def _attention_fake(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    lse = query.new_empty(query.shape[:3], dtype=_lse_type(query))
    return empty_output(query, value), lse, _empty_weights(query, key, rest[-1])


def attention_backward(
    d_output: Tensor,
    d_lse: Tensor | None,
    output: Tensor,
    lse: Tensor,
    tensors: list[Tensor | None],
    seed: Tensor | None,
    causal: bool,
    position: str,
    offset: int,
    window_left: int,
    window_right: int,
    scale: float | None,
    softcap: float,
    dropout: float,
    want: list[int],
) -> list[Tensor]:
    """Gradients of the tensors whose indices are in `want`, each in the type of its tensor."""
    query, key, value = (readable(t) for t in tensors[:3])
    gradients = mha.attention_backward(
        readable(d_output),
        query,
        key,
        value,
        readable(output),
        lse,
        want=tuple(TENSORS[i] for i in want),
        d_lse=None if d_lse is None else d_lse.contiguous(),
        **_options(
            tuple(tensors[3:]),
            seed,
            causal,
            position,
            offset,
            window_left,
            window_right,
            scale,
            softcap,
            dropout,
        ),
    )
    found = ((getattr(gradients, TENSORS[i]), tensors[i]) for i in want)
    return [gradient.to(tensor.dtype).contiguous() for gradient, tensor in found]


def _attention_backward_fake(
    d_output: Tensor,
    d_lse: Tensor | None,
    output: Tensor,
    lse: Tensor,
    tensors: list[Tensor | None],
    *rest: Any,
) -> list[Tensor]:
    return [torch.empty_like(tensors[i], memory_format=_CONTIGUOUS) for i in rest[-1]]


def dropout_factors(like: Tensor, keys: int, dropout: float, seed: Tensor) -> Tensor:
    """(B, H, L, keys) for like = query: with equal weights and a unit matrix as values, the output
    shows which keys a row keeps."""
    batch, heads, rows, _ = like.shape
    zeros = like.new_zeros((1, 1, 1, 1), dtype=torch.float32)
    factors = like.new_empty((batch, heads, rows, keys), dtype=torch.float32)
    values = torch.eye(keys, dtype=torch.float32).expand(batch, heads, keys, keys)
    for first in range(0, keys, _WIDEST):
        kept = mha.attention(
            zeros.expand(batch, heads, rows, 1),
            zeros.expand(batch, heads, keys, 1),
            values[..., first : first + _WIDEST],
            dropout=dropout,
            dropout_seed=int(seed),
            threads=torch.get_num_threads(),
        )
        factors[..., first : first + _WIDEST] = kept > 0
    # The library rounds the probability to a multiple of 1/65536.
    return factors / (1 - int(dropout * 65536 + 0.5) / 65536)


def _dropout_factors_fake(like: Tensor, keys: int, dropout: float, seed: Tensor) -> Tensor:
    return like.new_empty((*like.shape[:3], keys), dtype=torch.float32)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    """Keep what the backward pass needs: the tensors, seed, output and log-sum-exp."""
    count = len(TENSORS)
    ctx.save_for_backward(*inputs[: count + 1], output[0], output[1])
    ctx.settings = inputs[count + 1 : -1]
    ctx.weights = inputs[-1]
    ctx.set_materialize_grads(False)


def _gradients(
    ctx: Any,
    d_output: Tensor | None,
    d_lse: Tensor | None,
    d_weights: Tensor | None,
) -> tuple[Tensor | None, ...]:
    count = len(TENSORS)
    *tensors, seed, output, lse = ctx.saved_tensors
    want = [i for i in range(DIFFERENTIABLE) if ctx.needs_input_grad[i]]
    nothing = [None] * (count + 2 + len(ctx.settings))
    d_weights = d_weights if ctx.weights else None
    given = (d_output, d_lse, d_weights)
    if not want or all(g is None for g in given):
        return tuple(nothing)
    # The library has no second derivatives, no float64 and no gradient of weights: dense matrices.
    if d_weights is not None or output.dtype == torch.float64 or torch.is_grad_enabled():
        found = _dense.gradients(given, tensors, seed, ctx.settings, ctx.weights, want)
    else:
        d_output = torch.zeros_like(output) if d_output is None else d_output
        plain = is_plain((d_output, d_lse, output, *tensors))
        run_backward = attention_backward if plain else torch.ops.mha.attention_backward
        found = run_backward(d_output, d_lse, output, lse, tensors, seed, *ctx.settings, want)
    for place, gradient in zip(want, found):
        nothing[place] = gradient
    return tuple(nothing)


class Attention(torch.autograd.Function):
    """The same as mha::attention for autograd alone, at a fraction of the dispatcher's cost."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, ...]:
        results = attention(*inputs)
        _setup(ctx, inputs, results)
        return results

    backward = staticmethod(_gradients)


def _define(name: str, function: Any, fake: Any) -> None:
    torch.library.define(name, torch.library.infer_schema(function, mutates_args=()))
    torch.library.impl(name, "cpu", function)
    torch.library.register_fake(name, fake)


_define("mha::attention", attention, _attention_fake)
_define("mha::attention_backward", attention_backward, _attention_backward_fake)
_define("mha::dropout_factors", dropout_factors, _dropout_factors_fake)
torch.library.register_autograd("mha::attention", _gradients, setup_context=_setup)
