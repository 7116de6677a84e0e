# SPDX-License-Identifier: MIT
"""mha.torch.attention(): every option of the operator, with gradients."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, NoReturn, Unpack, overload

import torch
from torch import Tensor

import mha

from . import _operator, _options
from ._plain import is_plain, needs_gradients
from ._trace import traced


class _Result(NamedTuple):
    output: Tensor
    lse: Tensor | Any  # Any instead of None: if requested, they are always there
    weights: Tensor | Any


class Result(_Result):
    """What attention() returns if more than the output is requested; None for what was not. It is
    a tuple of three; statistics are an attribute beside them."""

    statistics: mha.Statistics | Any = None


def _check(given: tuple[Any, ...]) -> None:
    """Check that the arguments are tensors, and that the first three have four axes."""
    for number, tensor in enumerate(given):
        if tensor is None and number >= 3:
            continue
        name = _operator.TENSORS[number]
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


def _laid_out(
    layout: str, starts: tuple[Tensor | None, Tensor | None], tensors: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    """Query, key and value as (B, H, L, D). Packed ones come as (H, rows, D); "blhd" has the axis
    of heads after that of rows."""
    if layout not in ("bhld", "blhd"):
        raise ValueError(f'layout is "{layout}"; use "bhld" or "blhd"')
    packed = (starts[0], starts[1], starts[1])
    found = []
    for name, tensor, start in zip(_operator.TENSORS, tensors, packed):
        if start is not None and isinstance(tensor, Tensor):
            if tensor.dim() != 3:
                raise ValueError(
                    f"{name} has shape {tuple(tensor.shape)}; packed sequences have no batch axis: "
                    "it must be (heads, rows of all, width)"
                )
            tensor = tensor[None]
        turn = layout == "blhd" and isinstance(tensor, Tensor) and tensor.dim() == 4
        found.append(tensor.transpose(1, 2) if turn else tensor)
    return tuple(found)


def _weights(asked: bool, average: bool, packed: bool) -> int:
    """Which weights, as a number for the operator: 0 none, 1 those of each head, 2 their mean."""
    if average and not asked:
        raise ValueError(
            "average_weights averages weights, but none are requested: add return_weights=True"
        )
    if asked and packed:
        raise ValueError(
            "weights of packed sequences are not returned here: mha.attention() returns them"
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


def _where(position: Any) -> tuple[str, int, Tensor | None]:
    """Position as the operator takes it: a name, a number, or a number per batch."""
    if position is None:
        return "", 0, None
    if isinstance(position, str):
        if position not in ("top-left", "bottom-right"):
            raise ValueError(
                f'position is "{position}"; use "top-left", "bottom-right" or the number of the '
                "key at which query 0 stands"
            )
        return position, 0, None
    if isinstance(position, Tensor) and position.dim() == 1:
        return "offset", 0, position
    if isinstance(position, (list, tuple)):
        return "offset", 0, torch.tensor(position)
    return "offset", position, None


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


def _modes(modes: Sequence[str] | None, heads: int) -> list[int] | None:
    """The modes of heads as the operator takes them; None if all are normal."""
    if modes is None:
        return None
    names = _operator.MODES
    if len(modes) != heads or any(mode not in names for mode in modes):
        raise ValueError(
            f'head_modes is {list(modes)}; it must have one of "normal", "uniform", "mean" for '
            f"each of the {heads} heads"
        )
    return [names.index(mode) for mode in modes] if any(m != "normal" for m in modes) else None


def autocast(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Query, key and value in autocast's type; float64 is kept, as in torch's own operators."""
    if not torch.is_autocast_enabled("cpu"):
        return tensors
    dtype = torch.get_autocast_dtype("cpu")
    return tuple(t if t.dtype == torch.float64 else t.to(dtype) for t in tensors)


def seed(dropout: float, generator: torch.Generator | None = None) -> Tensor | None:
    """The next number of torch's generator, as a tensor, so that compilers can trace it."""
    if not dropout:
        return None
    return torch.randint(2**63 - 1, (), dtype=torch.int64, generator=generator)


# Arguments of other libraries, and what they are here.
_FOREIGN = {
    "is_causal": "causal",
    "attn_mask": "mask where True attends, ignore_mask where True hides",
    "key_padding_mask": "ignore_mask=key_padding_mask[:, None, None, :]",
    "attention_mask": "mask=attention_mask[:, None, None, :] != 0",
    "attn_bias": "bias",
    "position_bias": "bias",
    "dropout_p": "dropout",
    "need_weights": "return_weights",
    "output_attentions": "return_weights",
    "average_attn_weights": "average_weights",
    "softmax_scale": "scale",
    "scaling": "scale",
    "s_aux": "sinks",
    "window_size": "window",
    "cu_seqlens_q": "query_starts",
    "cu_seqlens_k": "key_starts",
    "enable_gqa": "the default: key and value may have fewer heads than query",
    "threads": "torch.set_num_threads()",
    "dropout_seed": "generator, or torch.manual_seed()",
}


def _refuse(names: Iterable[str]) -> NoReturn:
    name = next(iter(names))
    hint = f"; here it is {_FOREIGN[name]}" if name in _FOREIGN else ""
    raise TypeError(f"attention() got an unexpected keyword argument '{name}'{hint}")


def compute(
    tensors: tuple[Any, ...],
    settings: tuple[Any, ...],
    weights: int,
    want_lse: bool,
    statistics: Any,
) -> tuple[Tensor, Any, Any, Any]:
    """Output, log-sum-exp, weights and statistics of a checked call: by the library itself where
    nothing else needs to see it, else by the operator."""
    if not is_plain(tensors):
        if statistics:
            raise NotImplementedError(
                "statistics are not part of the operator that torch.compile, torch.export and "
                "torch.func see: use mha.head_statistics() outside of them"
            )
        if not torch.compiler.is_compiling() and torch._C._functorch.peek_interpreter_stack():
            return *_operator.Transformed.apply(*tensors, *settings, weights), None
        return *torch.ops.mha.attention(*tensors, *settings, weights), None
    if not needs_gradients(tensors):
        return _operator.run(tensors, settings, weights, want_lse, statistics)
    found: list[Any] = []
    results = _operator.Attention.apply((statistics, found), *tensors, *settings, weights)
    return *results, found[0]


@overload
def attention(
    query: Tensor, key: Tensor, value: Tensor, **options: Unpack[_options.Plain]
) -> Tensor: ...
@overload
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    return_lse: Literal[True],
    **options: Unpack[_options.BesideLse],
) -> Result: ...
@overload
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    return_weights: Literal[True],
    **options: Unpack[_options.BesideWeights],
) -> Result: ...
@overload
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    statistics: _options.Parts,
    **options: Unpack[_options.BesideStatistics],
) -> Result: ...
@overload
def attention(
    query: Tensor, key: Tensor, value: Tensor, **options: Unpack[_options.Whole]
) -> Any: ...
@traced
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    layout: _options.Layout = "bhld",
    mask: Tensor | None = None,
    ignore_mask: Tensor | None = None,
    bias: Tensor | None = None,
    alibi_slopes: Tensor | None = None,
    sinks: Tensor | None = None,
    gates: Tensor | None = None,
    query_lengths: Tensor | None = None,
    key_lengths: Tensor | None = None,
    query_starts: Tensor | None = None,
    key_starts: Tensor | None = None,
    query_documents: Tensor | None = None,
    key_documents: Tensor | None = None,
    head_modes: Sequence[str] | None = None,
    head_means: Tensor | None = None,
    causal: bool = False,
    position: str | int | Tensor | Sequence[int] | None = None,
    window: tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
    return_lse: bool = False,
    return_weights: bool = False,
    average_weights: bool = False,
    statistics: bool | _options.Parts = False,
    **unknown: Any,
) -> Any:
    """Attention over all heads, with gradients, by libmha.

    query (B, H, L, D), key (B, G, S, D), value (B, G, S, Dv), H a multiple of G; any strides.
    layout="blhd" has rows before heads; with query_starts and key_starts, packed sequences are
    (H, rows of all, D). Every option means what it means in mha.attention(), and all of them apply
    together. Gradients flow to query, key, value, a float mask, bias, alibi_slopes, sinks and
    gates, and from the output, the log-sum-exp and the weights. dropout applies whenever it is not
    0: give 0 outside training. Its seed is the next number of `generator`, or of torch's default
    one.

    Memory grows with L + S, in both passes. In four cases the backward pass is written in torch's
    operators, with matrices of L x S per head: float64, second derivatives (create_graph=True),
    gradients with respect to the weights, and head_modes.

    Returns the output, or a Result(output, lse, weights) if more is requested; its attribute
    `statistics` has those, if they are.

    >>> import torch, mha.torch
    >>> x = torch.ones(1, 2, 3, 4, requires_grad=True)
    >>> mha.torch.attention(x, x, x, causal=True, softcap=30.0).sum().backward()
    >>> x.grad.shape
    torch.Size([1, 2, 3, 4])
    """
    if unknown:
        _refuse(unknown)
    packed = query_starts is not None or key_starts is not None
    inputs: tuple[Any, ...] = (query, key, value)
    if packed or layout != "bhld":
        inputs = _laid_out(layout, (query_starts, key_starts), inputs)
    name, offset, positions = _where(position)
    rest = (alibi_slopes, sinks, gates)
    numbers = (key_lengths, query_documents, key_documents, positions)
    ragged = (query_lengths, query_starts, key_starts, head_means)
    _check((*inputs, mask, bias, *rest, ignore_mask, *numbers, *ragged))
    tensors = (
        *autocast(inputs),
        _as_four_axes(mask),
        _as_four_axes(bias),
        *rest,
        _as_four_axes(ignore_mask),
        *numbers,
        *ragged,
    )
    settings: tuple[Any, ...] = (
        seed(dropout, generator),
        causal,
        name,
        offset,
        *_edges(window),
        scale,
        softcap,
        dropout,
        _modes(head_modes, inputs[0].shape[1]),
    )
    weights = _weights(bool(return_weights), bool(average_weights), packed)
    output, lse, shown, seen = compute(tensors, settings, weights, bool(return_lse), statistics)
    if query_starts is not None:
        output, lse = output[0], None if lse is None else lse[0]
    if layout == "blhd":
        output = output.transpose(-3, -2)
    if not (return_lse or return_weights or statistics):
        return output
    result = Result(output, lse if return_lse else None, shown if return_weights else None)
    if seen is not None:
        result.statistics = seen
    return result
