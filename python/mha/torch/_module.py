# SPDX-License-Identifier: MIT
"""nn.MultiheadAttention by libmha, and functions that replace one by the other in a model."""

from typing import Any

from torch import Tensor, nn

from . import _functional, _packed
from ._functional import Call, Projections
from ._sdpa import warn_fallback, why_not
from ._trace import module_node, proxy_in

# The arguments of forward(), which come first in a Call.
_NAMES = Call._fields[:8]


class MultiheadAttention(nn.MultiheadAttention):
    """nn.MultiheadAttention by libmha: same constructor, same arguments, same state dict.

    Inference in float32 runs on an mha.Layer, a packed copy of the parameters that is renewed when
    they have changed; pack = False, on the class or a module, avoids it and its memory. Everything
    else runs on torch's projections and the operator mha::attention.

    Weights are returned without a slower path, per head or averaged, and have gradients. With
    dropout in training they are those before dropout (torch returns those after it). A row without
    keys gives 0, never NaN.

    >>> import torch, mha.torch
    >>> layer = mha.torch.MultiheadAttention(8, 2, batch_first=True)
    >>> x = torch.zeros(1, 3, 8)
    >>> output, weights = layer(x, x, x, average_attn_weights=False)
    >>> weights.shape
    torch.Size([1, 2, 3, 3])
    """

    pack: bool = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _adopt(self)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        call = Call(
            query,
            key,
            value,
            key_padding_mask,
            need_weights,
            attn_mask,
            average_attn_weights,
            is_causal,
            self.batch_first,
            self.dropout if self.training else 0.0,
        )
        why = why_not(*call.tensors())
        if not why:
            return _functional.layer(call, self._projections(), self.num_heads, self._run)
        arguments = dict(zip(_NAMES, call))
        proxy = proxy_in(arguments.values())
        if proxy is not None:
            return module_node(self, proxy, arguments)
        # torch's module, not its function: nested tensors have a path of their own there.
        warn_fallback(why, 6)
        return super().forward(**arguments)

    def _run(self, call: Call, p: Projections, heads: int) -> tuple[Tensor, Tensor | None]:
        if self.pack and _packed.can_run(call, p):
            return _packed.run(self._packed.layer(self, p), call, heads)
        return _functional.by_operator(call, p, heads)

    def _projections(self) -> Projections:
        return Projections(
            self.in_proj_weight,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
            self.in_proj_bias,
            self.out_proj.weight,
            self.out_proj.bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
        )


def _stay(module: nn.Module, inputs: Any) -> None:
    """A hook that does nothing. torch's encoder layers compute the whole layer themselves,
    bypassing their attention module, unless a module within has a hook."""


def _adopt(module: nn.MultiheadAttention) -> None:
    module._packed = _packed.Packed()
    if _stay not in module._forward_pre_hooks.values():
        module.register_forward_pre_hook(_stay)


def _release(module: nn.MultiheadAttention) -> None:
    del module._packed
    hooks = module._forward_pre_hooks
    for number in [n for n, hook in hooks.items() if hook is _stay]:
        del hooks[number]


def _exchange(model: nn.Module, old: type, new: type) -> list[str]:
    """Change the class of every module from exactly `old` to `new`; returns their names."""
    names = []
    for name, module in model.named_modules():
        if type(module) is old:
            module.__class__ = new
            names.append(name)
    return names


def replace(model: nn.Module) -> list[str]:
    """Replace every nn.MultiheadAttention of a model by mha.torch.MultiheadAttention, in place, and
    return their names. Modules, parameters, hooks and optimizers stay the same objects. Subclasses
    of nn.MultiheadAttention are not replaced, since they may behave differently.

    >>> import torch, mha.torch
    >>> mha.torch.replace(torch.nn.Transformer(8, 2, 1, 1))
    ['encoder.layers.0.self_attn', 'decoder.layers.0.self_attn', 'decoder.layers.0.multihead_attn']
    """
    names = _exchange(model, nn.MultiheadAttention, MultiheadAttention)
    for name in names:
        _adopt(model.get_submodule(name))
    for module in model.modules():
        # An encoder decides in its constructor to convert padding to nested tensors, for a path
        # that is no longer taken.
        if isinstance(module, nn.TransformerEncoder) and module.use_nested_tensor:
            module.use_nested_tensor = False
            module._nested_before_replace = True
    return names


def restore(model: nn.Module) -> list[str]:
    """Undo replace()."""
    names = _exchange(model, MultiheadAttention, nn.MultiheadAttention)
    for name in names:
        _release(model.get_submodule(name))
    for module in model.modules():
        if hasattr(module, "_nested_before_replace"):
            del module._nested_before_replace
            module.use_nested_tensor = True
    return names
