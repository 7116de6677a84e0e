# SPDX-License-Identifier: MIT
"""Runs the blocks of a model of transformers on libmha: linears, norms, feed-forwards, encoders.

Modules stay where they are, with their parameters: only the `forward` of an instance is replaced, so
state_dict() is unchanged and restore() takes the replacement away. A replacement keeps packed copies
of the weights, and packs them again after they have changed. It is used for plain f32 tensors on the
CPU without gradients; in all other cases the module's own forward runs.

Every replacement is compared with the module on random numbers before it is installed, so a class
that has the parts of a known one but computes something else is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

import mha

from ._blocks import Encoder, encoder_parts, is_encoder
from ._own import has_own_attention, warn_own
from ._whole import Whole, is_whole

_MARK = "_mha_replaced"  # the attribute of a module whose forward is replaced
_TOLERANCE = 2e-5  # of a replacement, relative to the largest number; f32 only

_ACTIVATIONS = {
    "ReLU": "relu",
    "GELUActivation": "gelu",
    "NewGELUActivation": "gelu_tanh",
    "FastGELUActivation": "gelu_tanh",
    "GELUTanh": "gelu_tanh",
    "PytorchGELUTanh": "gelu_tanh",
    "QuickGELUActivation": "gelu_quick",
    "SiLUActivation": "silu",
    "SiLU": "silu",
    "Tanh": "tanh",
}


def activation_of(module: Any) -> str | None:
    """The library's name of an activation; None if it is not known."""
    if isinstance(module, nn.GELU):
        return "gelu" if module.approximate == "none" else "gelu_tanh"
    return _ACTIVATIONS.get(type(module).__name__)


def is_idle() -> bool:
    """Whether no part of torch needs to see what is computed: autograd, autocast, a compiler."""
    return (
        not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()
        and not torch._C._len_torch_dispatch_stack()
    )


def is_ready(x: Any) -> bool:
    """Whether the library may compute with this tensor in place of torch."""
    return type(x) is Tensor and x.dtype is torch.float32 and x.is_cpu and is_idle()


def even(x: Tensor) -> Tensor:
    return x if x.is_contiguous() else x.contiguous()


def versions(tensors: Sequence[Tensor]) -> int:
    """A number that changes when one of the tensors is written to."""
    return sum(0 if t.is_inference() else t._version for t in tensors)


class Packed:
    """Something made from parameters, and made again after they have changed."""

    def __init__(self, parameters: Sequence[Tensor], make: Callable[[], Any]) -> None:
        self.parameters = parameters
        self.make = make
        self.value = make()
        self.version = versions(parameters)

    def get(self) -> Any:
        version = versions(self.parameters)
        if version != self.version:
            self.value = self.make()
            self.version = version
        return self.value


# ---------------------------------------------------------------- replacements -----


def _weights(module: nn.Module) -> tuple[Tensor, Tensor | None]:
    """The matrix (outputs, inputs) and the bias of a Linear or a Conv1D."""
    weight = module.weight.detach()
    bias = None if module.bias is None else module.bias.detach()
    return (weight.T if isinstance(module, Conv1D) else weight), bias


def _is_linear(module: Any) -> bool:
    return type(module) in (nn.Linear, Conv1D) and module.weight.dtype is torch.float32


def _parameters(*modules: nn.Module) -> list[Tensor]:
    return [p for module in modules for p in module.parameters(recurse=False)]


def _linear(module: nn.Module, store: str, activation: str | None = None) -> Callable:
    def make() -> mha.Linear:
        weight, bias = _weights(module)
        return mha.Linear(weight, bias, store=store, activation=activation)

    packed = Packed(_parameters(module), make)

    def forward(input: Tensor) -> Tensor:
        return packed.get()(even(input), threads=torch.get_num_threads())

    return forward


def _norm(module: nn.Module, kind: str, eps: float) -> Callable:
    weight = None if module.weight is None else module.weight.detach()
    bias = getattr(module, "bias", None)
    bias = None if bias is None else bias.detach()

    def forward(input: Tensor) -> Tensor:
        threads = torch.get_num_threads()
        return mha.norm(even(input), weight, bias, kind=kind, eps=eps, threads=threads)

    return forward


def _feed_forward(
    up: nn.Module, down: nn.Module, gate: nn.Module | None, activation: str, store: str
) -> Callable:
    def make() -> mha.FeedForward:
        weights: dict[str, Any] = {}
        for name, linear in (("up", up), ("down", down), ("gate", gate)):
            if linear is not None:
                weights[name], weights[f"{name}_bias"] = _weights(linear)
        return mha.FeedForward(**weights, store=store, activation=activation)

    linears = [linear for linear in (up, down, gate) if linear is not None]
    packed = Packed(_parameters(*linears), make)

    def forward(input: Tensor, *rest: Any) -> Tensor:
        return packed.get()(even(input), threads=torch.get_num_threads())

    return forward


# The attributes of feed-forward modules: up, down, gate, activation.
_FEED_FORWARDS = (
    ("up_proj", "down_proj", "gate_proj", "act_fn"),  # Llama and its relatives
    ("c_fc", "c_proj", None, "act"),  # GPT-2
    ("wi_1", "wo", "wi_0", "act"),  # T5, gated
    ("wi", "wo", None, "act"),  # T5
    ("fc1", "fc2", None, "activation_fn"),  # CLIP, Siglip
    ("fc_in", "fc_out", None, "act"),  # GPT-J
    ("dense_h_to_4h", "dense_4h_to_h", None, "act"),  # GPT-NeoX
    ("lin1", "lin2", None, "activation"),  # DistilBERT
)
_INTERMEDIATE = ("dense", "intermediate_act_fn")  # BERT and ViT: a linear and its activation


def _as_feed_forward(module: nn.Module, store: str) -> tuple[Callable, int] | None:
    """The replacement of a feed-forward module and its inputs; None if it is not one."""
    for up, down, gate, act in _FEED_FORWARDS:
        names = [name for name in (up, down, gate) if name]
        linears = [getattr(module, name, None) for name in names]
        activation = activation_of(getattr(module, act, None))
        if activation is None or not all(map(_is_linear, linears)):
            continue
        # Attention and whole layers have linears of such names too, but more of them.
        if sum(_is_linear(child) for child in module.children()) != len(linears):
            continue
        gated = linears[2] if gate else None
        forward = _feed_forward(linears[0], linears[1], gated, activation, store)
        return forward, _weights(linears[0])[0].shape[1]
    return None


def _candidate(module: nn.Module, store: str) -> tuple[Callable, int] | None:
    """A replacement of a module's forward, and the width of its input."""
    if _is_linear(module):
        return _linear(module, store), _weights(module)[0].shape[1]
    if type(module) is nn.LayerNorm and len(module.normalized_shape) == 1:
        if module.weight is None or module.weight.dtype is torch.float32:
            return _norm(module, "layer", module.eps), module.normalized_shape[0]
    name = type(module).__name__
    if name.endswith(("RMSNorm", "T5LayerNorm")) and getattr(module, "weight", None) is not None:
        eps = getattr(module, "variance_epsilon", getattr(module, "eps", None))
        if isinstance(eps, float) and module.weight.dtype is torch.float32:
            return _norm(module, "rms", eps), module.weight.shape[0]
    dense, act = (getattr(module, part, None) for part in _INTERMEDIATE)
    if _is_linear(dense) and len(list(module.parameters())) == len(_parameters(dense)):
        activation = activation_of(act)
        if activation is not None:
            return _linear(dense, store, activation), _weights(dense)[0].shape[1]
    return _as_feed_forward(module, store)


def _pool(pooler: Any, store: str) -> Callable | None:
    """What BERT's pooler does with the first rows; None if it is not known."""
    dense = getattr(pooler, "dense", None)
    activation = activation_of(getattr(pooler, "activation", None))
    if activation is None or not _is_linear(dense):
        return None
    forward = _linear(dense, store, activation)
    return lambda rows: forward(rows.contiguous())


# ------------------------------------------------------------------ installing -----


def _agrees(module: nn.Module, forward: Callable, width: int, store: str) -> bool:
    """Whether a replacement gives what the module gives, for random numbers."""
    x = torch.randn(3, 5, width, generator=torch.Generator().manual_seed(7))
    try:
        with torch.no_grad():
            expected, found = module(x), forward(x)
    except (TypeError, ValueError, RuntimeError, AttributeError):
        return False
    if type(expected) is not Tensor or expected.shape != found.shape:
        return False
    if store != "f32":
        return True
    return bool((expected - found).abs().max() <= _TOLERANCE * (1 + expected.abs().max()))


def _install(module: nn.Module, forward: Callable) -> None:
    """Put a replacement before the module's own forward, which stays for all other cases."""
    own = module.forward

    def replaced(input: Any, *args: Any, **kwargs: Any) -> Any:
        if is_ready(input) and not kwargs and not module.training:
            return forward(input, *args)
        return own(input, *args, **kwargs)

    module.__dict__[_MARK] = module.__dict__.get("forward")
    module.forward = replaced


def _roots(model: nn.Module) -> Iterator[PreTrainedModel]:
    """The models of transformers in a model: itself, or those within sentence-transformers."""
    if isinstance(model, PreTrainedModel):
        yield model
        return
    for child in model.children():
        yield from _roots(child)


def _on_mha(model: PreTrainedModel) -> None:
    """Attention through mha, if the model has transformers' interface."""
    before = model.config._attn_implementation
    if has_own_attention(model):
        warn_own(model, 4)
        return
    try:
        model.set_attn_implementation("mha")
    except (ValueError, KeyError, ImportError):
        return
    model.__dict__["_mha_attention_before"] = before


def accelerate(model: nn.Module, store: str = "f32") -> nn.Module:
    """Run a model of transformers or sentence-transformers on libmha; returns the model.

        model = mha.hf.accelerate(AutoModel.from_pretrained(name).eval())
        with torch.inference_mode():
            model(**inputs)

    Linears, norms and feed-forwards run on packed weights, attention through attn_implementation
    "mha", and models of the BERT family as a whole, without the rows of padding. It applies to f32
    on the CPU, in eval() mode and without gradients; otherwise the model runs as before.
    Hidden states of padding are 0 in these encoders. Weights are kept twice, packed and as they
    were. store: "f32", or "bf16", "f16", "i8" for smaller packed weights that are less exact.

    `restore(model)` undoes it.
    """
    from . import register

    if store not in ("f32", "f16", "bf16", "i8"):
        raise ValueError(f"store is {store!r}; use 'f32', 'f16', 'bf16' or 'i8'")
    if any(parameter.device.type != "cpu" for parameter in model.parameters()):
        raise ValueError("mha runs on CPUs: move the model with model.to('cpu')")
    restore(model)
    register()
    for root in _roots(model):
        _on_mha(root)
    training = model.training
    model.eval()
    # Inner modules first, so that a block is compared with parts that run already.
    for module in reversed(list(model.modules())):
        found = _candidate(module, store)
        if found is not None and _agrees(module, *found, store):
            _install(module, found[0])
    tolerance = _TOLERANCE if store == "f32" else float("inf")
    encoders = {}
    for module in model.modules():
        if is_encoder(module):
            encoder = Encoder(module, encoder_parts(module, activation_of), store)
            if encoder.agrees(tolerance):
                encoder.install(_MARK, is_ready)
                encoders[module] = encoder
    for module in model.modules():
        if is_whole(module) and module.encoder in encoders:
            pool = _pool(getattr(module, "pooler", None), store)
            whole = Whole(module, encoders[module.encoder], pool)
            if whole.agrees(tolerance):
                whole.install(_MARK, is_idle)
    model.train(training)
    return model


def restore(model: nn.Module) -> nn.Module:
    """Undo `accelerate`; returns the model. Other models are left as they are."""
    for module in model.modules():
        if _MARK in module.__dict__:
            before = module.__dict__.pop(_MARK)
            module.__dict__.pop("forward", None)
            if before is not None:
                module.forward = before
        before = module.__dict__.pop("_mha_attention_before", None)
        if before is not None:
            module.set_attn_implementation(before)
    return model
