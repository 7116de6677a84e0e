# SPDX-License-Identifier: MIT
"""A module's weights as an mha.Layer: packed once for inference, and again when they change."""

from typing import Any

import torch
from torch import Tensor, nn

import mha

from ._functional import Call, Projections
from ._operator import readable
from ._plain import is_plain, needs_gradients

_SAMPLES = 64


def _sample(tensor: Tensor) -> Tensor:
    """Some elements, spread over the whole; a view."""
    flat = tensor.detach().view(-1)
    return flat[:: max(1, flat.numel() // _SAMPLES)]


class Packed:
    """A layer and the tensors it was made from. Copies and pickles of a module start without it."""

    def __init__(self) -> None:
        self._layer: mha.Layer | None = None
        self._tensors: list[Tensor] = []
        self._versions: list[Any] = []
        self._samples: list[Tensor] = []
        self._values = torch.empty(0)

    def __reduce__(self) -> tuple[Any, ...]:
        return Packed, ()

    def layer(self, module: nn.MultiheadAttention, p: Projections) -> mha.Layer:
        """The layer of the module's current parameters."""
        tensors = [t for t in p[:-1] if t is not None]
        if self._layer is None or not self._is_of(tensors):
            self._layer = mha.Layer.from_torch(module)
            self._tensors = tensors
            self._versions = [(t.data_ptr(), t._version) for t in tensors]
            self._samples = [_sample(t) for t in tensors]
            self._values = torch.cat(self._samples)
        return self._layer

    def _is_of(self, tensors: list[Tensor]) -> bool:
        """Whether these are the tensors that were packed, and unchanged. Their version counters
        show that, except for changes through .data, for which some elements are compared."""
        if len(tensors) != len(self._tensors):
            return False
        for now, then, version in zip(tensors, self._tensors, self._versions):
            if now is not then or (now.data_ptr(), now._version) != version:
                return False
        return torch.equal(torch.cat(self._samples), self._values)


def can_run(call: Call, p: Projections) -> bool:
    """Whether this is inference in float32, with nothing to record and nothing to drop."""
    if call.dropout or torch.is_autocast_enabled("cpu"):
        return False
    parameters = [t for t in p[:-1] if t is not None]
    tensors = [*call.tensors(), *parameters]
    if needs_gradients(tensors) or not is_plain(tensors):
        return False
    for t in (call.query, call.key, call.value):
        if t.dtype != torch.float32:
            return False
    for t in parameters:
        if t.dtype != torch.float32 or t.is_inference() or not t.is_contiguous():
            return False
    return True


def run(layer: mha.Layer, call: Call, heads: int) -> tuple[Tensor, Tensor | None]:
    """One call of the packed layer, three axes in and out."""
    key = None if call.key is call.query else readable(call.key)
    value = None if call.value is call.key else readable(call.value)
    options = {
        name: readable(option) if isinstance(option, Tensor) else option
        for name, option in call.options(heads).items()
    }
    result = layer(
        readable(call.query),
        key,
        value,
        batch_first=call.batch_first,
        return_weights=call.need_weights,
        average_weights=call.need_weights and call.average_attn_weights,
        threads=torch.get_num_threads(),
        **options,
    )
    return (result.output, result.weights) if call.need_weights else (result, None)
