# SPDX-License-Identifier: MIT
"""The shortest way to the library, for a model that decodes: a call then takes microseconds, of
which most would be spent on questions that plain tensors answer at once."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

import mha

from ._operator import arithmetic, empty_output

_TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
_is_cow = torch._C._is_cow_tensor


def _is_quiet() -> bool:
    """Whether no compiler, tracer, transform, profiler or autocast needs to see the call."""
    return not (
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or torch._C._len_torch_dispatch_stack()
        or torch._C._functorch.peek_interpreter_stack() is not None
        or forward_ad._current_level >= 0
        or torch._C._is_any_autocast_enabled()
        or torch.autograd._profiler_enabled()
    )


def _is_ready(tensor: Any, recorded: bool) -> bool:
    """Whether the library can read this tensor in place, and nobody wants its gradient."""
    return (
        type(tensor) is Tensor
        and tensor.is_cpu
        and tensor.layout is torch.strided
        and tensor.dim() == 4
        and tensor.stride(3) == 1
        and not (recorded and tensor.requires_grad)
        and not tensor.is_neg()
        and not _is_cow(tensor)
    )


def _fits(mask: Tensor, query: Tensor, shape: tuple[int, ...]) -> bool:
    """Whether a mask of four axes has the right type, all keys, and else broadcasts."""
    if mask.dtype is not torch.bool and mask.dtype is not query.dtype:
        return False
    batch, heads, rows, keys = mask.shape
    return (
        keys == shape[3]
        and (rows == shape[2] or rows == 1)
        and (heads == shape[1] or heads == 1)
        and (batch == shape[0] or batch == 1)
    )


def quick(
    query: Any, key: Any, value: Any, mask: Any, is_causal: bool, scale: float | None
) -> Tensor | None:
    """The output for plain tensors of four axes, equal heads and one type, without gradients; None
    for every other call, right or wrong, which takes the longer way."""
    recorded = torch.is_grad_enabled()
    if not (
        _is_quiet()
        and _is_ready(query, recorded)
        and _is_ready(key, recorded)
        and _is_ready(value, recorded)
        and (mask is None or _is_ready(mask, recorded))
    ):
        return None
    (batch, heads, rows, width), keys = query.shape, key.shape[2]
    if (
        key.shape != (batch, heads, keys, width)
        or value.shape[:3] != (batch, heads, keys)
        or not 0 < width <= 1024
        or value.shape[3] > 1024
        or query.dtype not in _TYPES
        or not query.dtype is key.dtype is value.dtype
        or scale == 0
    ):
        return None
    output = empty_output(query, value)
    options: dict[str, Any] = {"out": output, "threads": torch.get_num_threads()}
    if mask is not None:
        if not _fits(mask, query, (batch, heads, rows, keys)):
            return None
        options["mask"] = mask
    if is_causal:
        options["causal"] = True
        options["position"] = "top-left"
    if scale is not None:
        options["scale"] = scale
    if query.dtype is torch.bfloat16:
        options["arithmetic"] = arithmetic()
    mha.attention(query, key, value, **options)
    return output
