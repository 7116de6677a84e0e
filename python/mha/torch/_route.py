# SPDX-License-Identifier: MIT
"""The mode that routes existing code to libmha."""

from typing import Any

import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from ._functional import multi_head_attention_forward
from ._sdpa import scaled_dot_product_attention

_ROUTES = {
    F.scaled_dot_product_attention: scaled_dot_product_attention,
    F.multi_head_attention_forward: multi_head_attention_forward,
}


class sdpa(TorchFunctionMode):
    """Within this context, existing code runs on libmha: F.scaled_dot_product_attention,
    nn.MultiheadAttention and all modules built on it, including weights. Nothing is patched, and
    other threads are not affected. Fused paths of torch's encoder layers, which would bypass both
    functions, are not taken, since torch does not take them while a mode is active. Modules
    compiled by torch.jit.script are not affected.

    >>> import torch, mha.torch
    >>> layer = torch.nn.TransformerEncoderLayer(8, 2, batch_first=True).eval()
    >>> with torch.no_grad(), mha.torch.sdpa():
    ...     layer(torch.zeros(1, 3, 8)).shape
    torch.Size([1, 3, 8])
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return _ROUTES.get(func, func)(*args, **(kwargs or {}))
