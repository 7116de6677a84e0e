# SPDX-License-Identifier: MIT
"""The library as operators for torch's dispatcher, autograd and compilers.

    mha::attention            forward: output, log-sum-exp and, if requested, weights
    mha::attention_backward   gradients, from log-sum-exp, with memory that grows with L + S
    mha::dropout_factors      0 or 1/(1-p) for every weight, as the two above drop them

All tensors are (B, H, L, D); masks and biases have four axes, each of full size or 1. Packed
sequences are a single batch, (1, H, rows of all, D), with the starts of each. The order of tensor
arguments is the same everywhere: TENSORS.
"""

import ctypes
from typing import Any

import torch
from torch import Tensor

import mha

from . import _dense
from ._plain import is_plain
from ._vmap import each_of_batch, is_batched, one_by_one

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
    "positions",
    "query_lengths",
    "query_starts",
    "key_starts",
    "head_means",
)
DIFFERENTIABLE = 8

_CONTIGUOUS = torch.contiguous_format
_WIDEST = 1024  # the largest width of a head in the library


_ARITHMETICS = ("exact", "native")
_arithmetic = "native"


def set_arithmetic(arithmetic: str) -> str:
    """How attention over bfloat16 tensors is computed by this module, in all threads.

    "native", the default, multiplies in bfloat16 as torch's own operators do, where the CPU has
    instructions for it; "exact" in float32. Returns what it was before. Gradients are always
    computed in float32, and so is attention over other types.

    >>> import mha.torch
    >>> mha.torch.set_arithmetic("exact")
    'native'
    >>> mha.torch.set_arithmetic("native")
    'exact'
    """
    global _arithmetic
    if arithmetic not in _ARITHMETICS:
        raise ValueError(f"arithmetic is {arithmetic!r}; it must be 'exact' or 'native'")
    before, _arithmetic = _arithmetic, arithmetic
    return before


def arithmetic() -> str:
    """That of bfloat16, as set_arithmetic() has set it."""
    return _arithmetic


def _lazily_copied(tensor: Tensor) -> Tensor:
    """The memory of a tensor that shares it with another until one of them is written to, as an
    ordinary tensor. To take its address in the usual way would count as writing. The caller keeps
    the tensor."""
    if not tensor.numel():
        return tensor
    size = tensor.element_size()
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride()))
    address = torch._C._data_address(tensor) + tensor.storage_offset() * size
    memory = (ctypes.c_char * ((last + 1) * size)).from_address(address)
    return torch.frombuffer(memory, dtype=tensor.dtype).as_strided(tensor.shape, tensor.stride())


def readable(tensor: Tensor | None) -> Tensor | None:
    """The tensor itself if the library can read it: unit stride over the last axis."""
    if tensor is None:
        return None
    if tensor.requires_grad:
        tensor = tensor.detach()
    if torch._C._is_cow_tensor(tensor):
        tensor = _lazily_copied(tensor)
    # Not contiguous(), which leaves the strides of an empty tensor as they are.
    return tensor if tensor.stride(-1) == 1 else tensor.clone(memory_format=_CONTIGUOUS)


# How the library takes the tensors after query, key and value: as they are (None), or as small
# vectors of one type.
_TYPES = {
    "mask": None,
    "bias": None,
    "ignore_mask": None,
    "alibi_slopes": torch.float32,
    "sinks": torch.float32,
    "gates": torch.float32,
    "head_means": torch.float32,
    "key_lengths": torch.int64,
    "query_lengths": torch.int64,
    "query_starts": torch.int64,
    "key_starts": torch.int64,
    "positions": torch.int64,
    "query_documents": torch.int32,
    "key_documents": torch.int32,
}
_REST = tuple((name, _TYPES[name]) for name in TENSORS[3:])
MODES = ("normal", "uniform", "mean")


def _as_option(name: str, tensor: Tensor, dtype: torch.dtype | None) -> Tensor | None:
    """Masks as they are; numbers contiguous and in the type that the library needs."""
    if dtype is None:
        return readable(tensor)
    if not dtype.is_floating_point and tensor.dtype.is_floating_point:
        raise TypeError(f"{name} has elements of type {tensor.dtype}; they must be integers")
    return tensor.detach().to(dtype).contiguous()


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
    head_modes: list[int] | None,
) -> dict[str, Any]:
    """Keywords of mha.attention(); `tensors` are those after query, key and value."""
    options: dict[str, Any] = {"threads": torch.get_num_threads()}
    for (name, dtype), tensor in zip(_REST, tensors):
        if tensor is not None:
            options[name] = _as_option(name, tensor, dtype)
    positions = options.pop("positions", None)
    if head_modes is not None:
        options["head_modes"] = [MODES[mode] for mode in head_modes]
    if causal:
        options["causal"] = True
    if position:
        options["position"] = offset if position == "offset" else position
    if positions is not None:
        options["position"] = positions
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


_QUERY_LENGTHS, _QUERY_STARTS, _KEY_STARTS = (
    TENSORS.index(name) for name in ("query_lengths", "query_starts", "key_starts")
)


def _run_ragged(
    tensors: tuple[Tensor | None, ...], options: dict[str, Any]
) -> tuple[Tensor, mha.Result]:
    """The same for packed queries or keys, and for queries of several lengths: the library has no
    batch axis for packed rows, and leaves rows that are in no sequence unwritten."""
    query, key, value = (readable(t) for t in tensors[:3])
    packed = tensors[_QUERY_STARTS] is not None
    if tensors[_KEY_STARTS] is not None:
        key, value = key[0], value[0]
    output = empty_output(query, value).zero_()
    result = mha.attention(
        query[0] if packed else query, key, value, out=output[0] if packed else output, **options
    )
    if packed and "return_lse" in options:
        result = result._replace(lse=result.lse[None])
    return output, result


def run(
    tensors: tuple[Tensor | None, ...],
    settings: tuple[Any, ...],
    weights: int,
    want_lse: bool,
    statistics: Any = False,
) -> tuple[Tensor, Tensor | None, Tensor | None, Any]:
    """One forward pass of the library, without the dispatcher: output, log-sum-exp, weights and
    statistics. `settings` are the operator's arguments from seed to head_modes."""
    options = _options(tensors[3:], *settings)
    if tensors[0].dtype is torch.bfloat16:
        options["arithmetic"] = arithmetic()
    if want_lse:
        options["return_lse"] = True
    if weights:
        options["return_weights"] = True
        options["average_weights"] = weights == 2
    if statistics:
        options["statistics"] = statistics
    if torch.autograd._profiler_enabled():
        with torch.profiler.record_function("mha::attention"):
            output, result = _run(tensors, options)
    else:
        output, result = _run(tensors, options)
    if not (want_lse or weights or statistics):
        return output, None, None, None
    shown = result.weights.to(output.dtype) if weights else None
    return output, result.lse, shown, result.statistics


def _run(tensors: tuple[Tensor | None, ...], options: dict[str, Any]) -> tuple[Tensor, Any]:
    for ragged in (_QUERY_LENGTHS, _QUERY_STARTS, _KEY_STARTS):
        if tensors[ragged] is not None:
            return _run_ragged(tensors, options)
    query, key, value = readable(tensors[0]), readable(tensors[1]), readable(tensors[2])
    output = empty_output(query, value)
    return output, mha.attention(query, key, value, out=output, **options)


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
    positions: Tensor | None,
    query_lengths: Tensor | None,
    query_starts: Tensor | None,
    key_starts: Tensor | None,
    head_means: Tensor | None,
    seed: Tensor | None,
    causal: bool,
    position: str,
    offset: int,
    window_left: int,
    window_right: int,
    scale: float | None,
    softcap: float,
    dropout: float,
    head_modes: list[int] | None,
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
        positions,
        query_lengths,
        query_starts,
        key_starts,
        head_means,
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
        head_modes,
    )
    output, lse, shown, _ = run(tensors, settings, weights, True)
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
    head_modes: list[int] | None,
    want: list[int],
) -> list[Tensor]:
    """Gradients of the tensors whose indices are in `want`, each in the type of its tensor."""
    rows = [readable(t) for t in (d_output, *tensors[:3], output)]
    lse, d_lse = lse.contiguous(), None if d_lse is None else d_lse.contiguous()
    if tensors[_QUERY_STARTS] is not None:
        rows[0], rows[1], rows[4], lse = rows[0][0], rows[1][0], rows[4][0], lse[0]
        d_lse = None if d_lse is None else d_lse[0]
    if tensors[_KEY_STARTS] is not None:
        rows[2], rows[3] = rows[2][0], rows[3][0]
    gradients = mha.attention_backward(
        *rows,
        lse,
        want=tuple(TENSORS[i] for i in want),
        d_lse=d_lse,
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
            head_modes,
        ),
    )
    found = ((getattr(gradients, TENSORS[i]), tensors[i]) for i in want)
    return [g.to(tensor.dtype).reshape(tensor.shape).contiguous() for g, tensor in found]


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
    first = len(ctx.needs_input_grad) - (count + 2 + len(ctx.settings))
    want = [i for i in range(DIFFERENTIABLE) if ctx.needs_input_grad[first + i]]
    nothing = [None] * (count + 2 + len(ctx.settings))
    d_weights = d_weights if ctx.weights else None
    given = (d_output, d_lse, d_weights)
    if not want or all(g is None for g in given):
        return tuple(nothing)
    if is_batched(given):
        found = each_of_batch(given, lambda *one: _some(ctx, want, *one))
    else:
        found = _some(ctx, want, *given)
    for place, gradient in zip(want, found):
        nothing[place] = gradient
    return tuple(nothing)


def _some(
    ctx: Any,
    want: list[int],
    d_output: Tensor | None,
    d_lse: Tensor | None,
    d_weights: Tensor | None,
) -> list[Tensor] | tuple[Tensor, ...]:
    """The gradients of the tensors whose indices are in `want`."""
    *tensors, seed, output, lse = ctx.saved_tensors
    given = (d_output, d_lse, d_weights)
    # The library has no second derivatives, no float64, no gradient of weights and none of heads
    # that are not normal: dense matrices.
    dense = d_weights is not None or output.dtype == torch.float64 or torch.is_grad_enabled()
    if dense or ctx.settings[-1] is not None:
        return _dense.gradients(given, tensors, seed, ctx.settings, ctx.weights, want)
    d_output = torch.zeros_like(output) if d_output is None else d_output
    plain = is_plain((d_output, d_lse, output, *tensors))
    run_backward = attention_backward if plain else torch.ops.mha.attention_backward
    return run_backward(d_output, d_lse, output, lse, tensors, seed, *ctx.settings, want)


class Attention(torch.autograd.Function):
    """The same as mha::attention for autograd alone, at a fraction of the dispatcher's cost. The
    first argument is which statistics are wanted, and a list that gets them."""

    @staticmethod
    def forward(ctx: Any, wanted: tuple[Any, list[Any]], *inputs: Any) -> tuple[Tensor, ...]:
        tensors, settings = inputs[: len(TENSORS)], inputs[len(TENSORS) : -1]
        output, lse, shown, statistics = run(tensors, settings, inputs[-1], True, wanted[0])
        wanted[1].append(statistics)
        results = (output, lse, output.new_empty((0,)) if shown is None else shown)
        _setup(ctx, inputs, results)
        return results

    @staticmethod
    def backward(ctx: Any, *given: Tensor | None) -> tuple[Tensor | None, ...]:
        return None, *_gradients(ctx, *given)


class Transformed(torch.autograd.Function):
    """The same for transforms of torch.func, which the autograd of an operator cannot take."""

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, ...]:
        return torch.ops.mha.attention(*inputs)

    setup_context = staticmethod(_setup)
    backward = staticmethod(_gradients)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> tuple[Any, Any]:
        return one_by_one(Transformed.apply)(info, in_dims, *inputs)


def _define(name: str, function: Any, fake: Any) -> None:
    torch.library.define(name, torch.library.infer_schema(function, mutates_args=()))
    torch.library.impl(name, "cpu", function)
    torch.library.register_fake(name, fake)


_define("mha::attention", attention, _attention_fake)
_define("mha::attention_backward", attention_backward, _attention_backward_fake)
_define("mha::dropout_factors", dropout_factors, _dropout_factors_fake)
torch.library.register_autograd("mha::attention", _gradients, setup_context=_setup)
for _name in ("attention", "attention_backward", "dropout_factors"):
    torch.library.register_vmap(f"mha::{_name}", one_by_one(getattr(torch.ops.mha, _name)))
