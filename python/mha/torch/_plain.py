# SPDX-License-Identifier: MIT
"""Whether tensors are plain: no compiler, tracer or wrapper needs to see operations on them."""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.autograd import forward_ad

_PLAIN = (Tensor, torch.nn.Parameter)


def is_plain(tensors: Iterable[Tensor | None]) -> bool:
    """True for ordinary CPU tensors if no compiler or tracer is active. The dispatcher, which costs
    more than a short attention, is then not needed."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return False
    if torch._C._len_torch_dispatch_stack() or torch._C._functorch.peek_interpreter_stack():
        return False
    for t in tensors:
        if t is not None and (type(t) not in _PLAIN or not t.is_cpu or t.is_neg()):
            return False
    return forward_ad._current_level < 0


def needs_gradients(tensors: Iterable[Tensor | None]) -> bool:
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)
