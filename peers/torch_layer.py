# SPDX-License-Identifier: MIT
"""PyTorch's layers: nn.MultiheadAttention, and linear + scaled_dot_product_attention."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from .cases import Case
from .contender import Contender, Results, Runner, Unable
from .inputs import RATE, Inputs, band, key_mask
from .torch_tools import array, set_threads, tensor

LIBRARY = "torch"


MODULE_NAMES = {
    "in": "in_proj_weight",
    "in_bias": "in_proj_bias",
    "o": "out_proj.weight",
    "o_bias": "out_proj.bias",
}


def _parameters(case: Case, inputs: Inputs) -> dict[str, torch.Tensor]:
    """The weights themselves, or copies if a training step will change them."""
    if case.want != "train":
        return {name: tensor(w) for name, w in inputs.weights.items()}
    return {name: tensor(w.copy()).requires_grad_() for name, w in inputs.weights.items()}


def _module(kind: type, case: Case, inputs: Inputs) -> torch.nn.Module:
    """An nn.MultiheadAttention, or one of that interface, with the weights of the case."""
    module = kind(case.E, case.H, batch_first=True, device="meta")
    parameters = _parameters(case, inputs)
    state = {MODULE_NAMES[name]: torch.nn.Parameter(p) for name, p in parameters.items()}
    module.load_state_dict(state, assign=True)
    return module


def _module_masks(case: Case, inputs: Inputs) -> dict[str, object]:
    """The mask in the module's own polarity: True is masked."""
    if case.pad:
        return {"key_padding_mask": tensor(~key_mask(case, inputs))}
    if case.causal:
        return {"attn_mask": tensor(~band(case)), "is_causal": True}
    return {}


def _train_names(parameters: dict[str, torch.Tensor]) -> tuple[str, ...]:
    return ("output", "d_query", *(f"d_{name}" for name in parameters))


def _training(
    forward: Callable[[torch.Tensor], torch.Tensor],
    parameters: dict[str, torch.Tensor],
    inputs: Inputs,
) -> Runner:
    """Forward, gradients of the input and all weights, plain gradient descent."""
    x, d_output = tensor(inputs.query).requires_grad_(), tensor(inputs.d_output)
    leaves = [x, *parameters.values()]

    def run() -> tuple[torch.Tensor, ...]:
        output = forward(x)
        gradients = torch.autograd.grad(output, leaves, d_output)
        with torch.no_grad():
            torch._foreach_add_(leaves[1:], list(gradients[1:]), alpha=-RATE)
        return (output, *gradients)

    return Runner(run, lambda r: dict(zip(_train_names(parameters), map(array, r))))


def _module_read(case: Case) -> Callable[[tuple], Results]:
    name = "mean" if case.want == "mean" else "weights"

    def read(result: tuple) -> Results:
        output, weights = result
        return {"output": array(output)} | ({} if weights is None else {name: array(weights)})

    return read


def train_module(kind: type, case: Case, inputs: Inputs, threads: int) -> Runner:
    """A training step of a module with the interface of nn.MultiheadAttention."""
    set_threads(threads)
    module, masks = _module(kind, case, inputs).train(), _module_masks(case, inputs)
    found = dict(module.named_parameters())
    parameters = {ours: found[theirs] for ours, theirs in MODULE_NAMES.items()}
    return _training(lambda x: module(x, x, x, need_weights=False, **masks)[0], parameters, inputs)


def _multihead(case: Case, inputs: Inputs, threads: int) -> Runner:
    if case.kind != "layer":
        raise Unable("is for layers without a cache")
    if case.want == "train":
        return train_module(torch.nn.MultiheadAttention, case, inputs, threads)
    set_threads(threads)
    module = _module(torch.nn.MultiheadAttention, case, inputs).eval()
    masks, x = _module_masks(case, inputs), tensor(inputs.query)
    average = case.want == "mean"

    @torch.inference_mode()
    def run() -> tuple:
        return module(
            x, x, x, need_weights=case.wants_weights, average_attn_weights=average, **masks
        )

    return Runner(run, _module_read(case))


# --------------------------------------------------------- linear + SDPA -----


def _split(x: torch.Tensor, case: Case) -> tuple[torch.Tensor, ...]:
    """[B, L, 3E] to q, k, v of [B, H, L, D]."""
    parts = x.view(x.shape[0], x.shape[1], 3, case.H, case.D).permute(2, 0, 3, 1, 4)
    return parts.unbind(0)


def _join(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(1, 2).flatten(2)


def _linear_sdpa(case: Case, inputs: Inputs, threads: int) -> Runner:
    if case.kind != "layer" or case.wants_weights:
        raise Unable("is for layers without weights or cache")
    set_threads(threads)
    p = _parameters(case, inputs)
    mask = tensor(key_mask(case, inputs))[:, None, None, :] if case.pad else None

    def forward(x: torch.Tensor) -> torch.Tensor:
        q, k, v = _split(F.linear(x, p["in"], p["in_bias"]), case)
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=case.causal)
        return F.linear(_join(heads), p["o"], p["o_bias"])

    if case.want == "train":
        return _training(forward, p, inputs)
    x = tensor(inputs.query)
    return Runner(torch.inference_mode()(lambda: forward(x)), lambda o: {"output": array(o)})


def _decode(case: Case, inputs: Inputs, threads: int) -> Runner:
    if case.kind != "decode":
        raise Unable("is for decoding")
    set_threads(threads)
    p, x, memory = _parameters(case, inputs), tensor(inputs.query), tensor(inputs.key)
    at = torch.tensor([case.S - 1])
    with torch.inference_mode():
        _, k, v = _split(F.linear(memory, p["in"], p["in_bias"]), case)
        cached_k, cached_v = k.contiguous(), v.contiguous()

    @torch.inference_mode()
    def run() -> torch.Tensor:
        q, k, v = _split(F.linear(x, p["in"], p["in_bias"]), case)
        cached_k.index_copy_(2, at, k)
        cached_v.index_copy_(2, at, v)
        heads = F.scaled_dot_product_attention(q, cached_k, cached_v)
        return F.linear(_join(heads), p["o"], p["o_bias"])

    return Runner(run, lambda o: {"output": array(o)})


CONTENDERS = (
    Contender(LIBRARY, "nn.MultiheadAttention", _multihead),
    Contender(LIBRARY, "linear + sdpa", _linear_sdpa),
    Contender(LIBRARY, "linear + sdpa, cache", _decode),
)
