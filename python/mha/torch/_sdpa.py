# SPDX-License-Identifier: MIT
"""A drop-in for torch.nn.functional.scaled_dot_product_attention."""

import math
import warnings
from typing import Any, Literal, overload

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import forward_ad

from . import _operator
from ._attention import autocast, compute, seed
from ._plain import needs_gradients
from ._quick import quick
from ._trace import function_node, proxy_in

_theirs = F.scaled_dot_product_attention
_NOTHING = (None,) * (len(_operator.TENSORS) - 4)  # the tensors that torch's function lacks
_TRANSFORMS = (torch._C._functorch.TransformType.Vmap, torch._C._functorch.TransformType.Grad)
_DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


class FallbackWarning(UserWarning):
    """torch computes something that was meant for libmha; the message gives the reason.

    >>> import warnings, mha.torch
    >>> warnings.simplefilter("error", mha.torch.FallbackWarning)  # refuse instead
    >>> warnings.simplefilter("default", mha.torch.FallbackWarning)
    """


def _is_known_kind(tensor: Tensor) -> bool:
    """Whether this is not a subclass with its own behaviour. Fake and functional tensors count as
    plain: torch uses them to trace what would happen."""
    kind = type(tensor)
    if kind is Tensor or kind is torch.nn.Parameter:
        return True
    return kind.__torch_function__ is torch._C._disabled_torch_function_impl


def why_not(*tensors: Tensor | None) -> str:
    """Why libmha cannot use these tensors; "" if it can."""
    for tensor in tensors:
        if tensor is None:
            continue
        if not isinstance(tensor, Tensor) or not _is_known_kind(tensor):
            return f"an argument is a {type(tensor).__name__}"
        if tensor.is_nested or tensor.layout != torch.strided:
            return "a tensor is nested or sparse; pad it and give a mask"
        if not (tensor.is_cpu or tensor.is_meta):
            return f"a tensor is on {tensor.device.type}, libmha computes on CPUs"
    if torch.compiler.is_compiling():
        return ""
    for transform in torch._C._functorch.get_interpreter_stack() or ():
        if transform.key() not in _TRANSFORMS:
            return f"the transform {transform.key()} of torch.func is active"
    if forward_ad._current_level >= 0:
        return "forward-mode differentiation is active"
    return ""


def _why_not_call(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, scale: Any
) -> str:
    why = why_not(query, key, value, mask)
    if why:
        return why
    if query.dtype not in _DTYPES:
        return f"the type is {query.dtype}; libmha has float32, float16, bfloat16 and float64"
    # Without max() and `in`, which torch.compile cannot use on widths that it does not know.
    if query.dim() > 0 and (query.shape[-1] == 0 or query.shape[-1] > 1024):
        return "heads are of width 0 or above 1024"
    if value.dim() > 0 and value.shape[-1] > 1024:
        return "heads are of width 0 or above 1024"
    if not 0.0 <= dropout < 1.0 - 2.0**-17:
        return f"a dropout of {dropout} leaves nothing"
    if isinstance(scale, (int, float)) and (scale == 0.0 or not math.isfinite(scale)):
        return f"the scale is {scale}"
    return ""


def _is_wrong(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, gqa: bool) -> bool:
    """True for arguments that torch refuses; torch then raises its own error."""
    ranks = [t.dim() for t in (query, key, value)]
    if min(ranks) < (3 if gqa else 2) or not query.dtype == key.dtype == value.dtype:
        return True
    if query.shape[-1] != key.shape[-1]:
        return True
    if gqa and (
        query.shape[-3] % max(key.shape[-3], 1) or query.shape[-3] % max(value.shape[-3], 1)
    ):
        return True
    if mask is None:
        return False
    return mask.dim() < 2 or mask.dtype not in (torch.bool, torch.float32, query.dtype)


def _leading(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, gqa: bool
) -> tuple[tuple[int, ...], tuple[Tensor, ...], Tensor | None]:
    """Leading axes as torch broadcasts them; query, key and value, and the mask, with four axes.
    RuntimeError if they do not match."""
    three = (query, key, value)
    if gqa:
        groups = max(key.shape[-3], value.shape[-3])
        three = (query, _repeat_heads(key, groups), _repeat_heads(value, groups))
        batch = torch.broadcast_shapes(*(t.shape[:-3] for t in three))
        lead = (*batch, query.shape[-3])
        three = tuple(t.expand(*batch, *t.shape[-3:]) for t in three)
    elif query.dim() == 4 and query.shape[:2] == key.shape[:-2] == value.shape[:-2]:
        lead = tuple(query.shape[:2])
    else:
        lead = tuple(torch.broadcast_shapes(*(t.shape[:-2] for t in three)))
        three = tuple(t.expand(*lead, *t.shape[-2:]) for t in three)
    if mask is not None:
        mask.expand(*lead, query.shape[-2], key.shape[-2])
        if len(lead) > 2 and mask.dim() > 3:
            mask = mask.expand(*lead[:-1], *mask.shape[-3:])
        mask = _as_four(mask)
    return lead, tuple(_as_four(t) for t in three), mask


def _repeat_heads(tensor: Tensor, heads: int) -> Tensor:
    """Key and value may differ in heads for torch, not for the library."""
    shares = heads // max(tensor.shape[-3], 1)
    return tensor if shares == 1 else tensor.repeat_interleave(shares, -3)


def _as_four(tensor: Tensor) -> Tensor:
    """Axes before the heads become one; missing ones are made."""
    if tensor.dim() == 4:
        return tensor
    if tensor.dim() < 4:
        return tensor[(None,) * (4 - tensor.dim())]
    return tensor.flatten(0, -4)


def warn_fallback(why: str, level: int = 4) -> None:
    """Say it, unless torch.compile is tracing, which does not trace warnings: it would break the
    graph, or fail."""
    if torch.compiler.is_compiling():
        return
    warnings.warn(f"torch computes this attention, not libmha: {why}", FallbackWarning, level)


def _fall_back(why: str, need_weights: bool) -> None:
    if need_weights:
        raise NotImplementedError(
            f"torch.scaled_dot_product_attention cannot return weights, and libmha cannot take "
            f"this call: {why}"
        )
    warn_fallback(why)


def _by_libmha(
    tensors: tuple[Tensor, ...],
    mask: Tensor | None,
    dropout: float,
    is_causal: bool,
    scale: float | None,
    weights: int,
) -> tuple[Tensor, Tensor | None]:
    """A call with four axes, of the two options that torch's function has."""
    position = "top-left" if is_causal else ""
    settings = (seed(dropout), is_causal, position, 0, -1, -1, scale, 0.0, dropout, None)
    inputs = (*autocast(tensors), mask, *_NOTHING)
    output, _, shown, _ = compute(inputs, settings, weights, False, False)
    return output, shown


@overload
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = ...,
    dropout_p: float = ...,
    is_causal: bool = ...,
    scale: float | None = ...,
    enable_gqa: bool = ...,
    *,
    need_weights: Literal[False] = ...,
) -> Tensor: ...
@overload
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = ...,
    dropout_p: float = ...,
    is_causal: bool = ...,
    scale: float | None = ...,
    enable_gqa: bool = ...,
    *,
    need_weights: Literal[True],
) -> tuple[Tensor, Tensor]: ...
@overload
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = ...,
    dropout_p: float = ...,
    is_causal: bool = ...,
    scale: float | None = ...,
    enable_gqa: bool = ...,
    *,
    need_weights: bool,
) -> Tensor | tuple[Tensor, Tensor]: ...
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    need_weights: bool = False,
) -> Any:
    """torch.nn.functional.scaled_dot_product_attention by libmha: the same arguments, shapes,
    broadcasting, causal alignment (top-left) and errors.

    need_weights=True returns (output, weights), weights (..., L, S) before dropout. A mask can be
    combined with is_causal. Calls that libmha cannot compute go to torch with a FallbackWarning,
    which is shown once per line of the program; explain() says the same without computing.

    >>> import torch, mha.torch
    >>> q, k, v = torch.zeros(3, 2, 4, 8).unbind()
    >>> output, weights = mha.torch.scaled_dot_product_attention(q, k, v, need_weights=True)
    >>> weights[0, 0].tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    if not dropout_p and not need_weights:
        output = quick(query, key, value, attn_mask, is_causal, scale)
        if output is not None:
            return output

    def by_torch() -> Tensor:
        return _theirs(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )

    why = _why_not_call(query, key, value, attn_mask, dropout_p, scale)
    if why:
        proxy = proxy_in((query, key, value, attn_mask))
        if proxy is not None:
            given = (query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
            more = {"need_weights": need_weights}
            return function_node(proxy, scaled_dot_product_attention, given, more)
        _fall_back(why, need_weights)
        return by_torch()
    if _is_wrong(query, key, value, attn_mask, enable_gqa):
        return by_torch()
    try:
        lead, (q, k, v), mask = _leading(query, key, value, attn_mask, enable_gqa)
    except RuntimeError:
        return by_torch()
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"{k.shape[-2]} keys and {v.shape[-2]} values; give as many of both")
    output, weights = _by_libmha((q, k, v), mask, dropout_p, is_causal, scale, int(need_weights))
    if not need_weights:
        return output if len(lead) == 2 else output.reshape(*lead, *output.shape[-2:])
    return tuple(part.reshape(*lead, *part.shape[-2:]) for part in (output, weights))


def explain(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> str:
    """Whether libmha or torch computes this call of scaled_dot_product_attention(), and why.
    Nothing is computed.

    >>> import torch, mha.torch
    >>> mha.torch.explain(*torch.zeros(3, 2, 5, 8, dtype=torch.complex64).unbind())
    'torch: the type is torch.complex64; libmha has float32, float16, bfloat16 and float64'
    """
    why = _why_not_call(query, key, value, attn_mask, dropout_p, scale)
    if why:
        return f"torch: {why}"
    if _is_wrong(query, key, value, attn_mask, enable_gqa):
        return "torch: it refuses these arguments and says why"
    tensors = (query, key, value, attn_mask)
    if not needs_gradients(tensors):
        return "libmha: forward pass, nothing is kept"
    if query.dtype == torch.float64:
        return "libmha: forward pass; backward in torch's operators, since float64 is forward only"
    return "libmha: forward and backward pass; second derivatives in torch's operators"
