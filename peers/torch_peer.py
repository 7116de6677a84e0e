# SPDX-License-Identifier: MIT
"""PyTorch: scaled_dot_product_attention, FlexAttention, and attention by its formula."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from . import torch_layer, torch_model, torch_pictures, torch_translate
from .cases import Case
from .contender import Contender, Results, Runner, Unable
from .inputs import Inputs, band, key_mask
from .torch_tools import array, compile_anew, set_threads, tensor

LIBRARY = "torch"


def version() -> str:
    return f"PyTorch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()})"


def _mask(case: Case, inputs: Inputs, with_causal: bool) -> torch.Tensor | None:
    """One mask for everything that the case masks; causal alone only if with_causal. None: nothing
    is masked."""
    if case.mask:
        return tensor(inputs.mask)
    if case.pad:
        return tensor(key_mask(case, inputs))[:, None, None, :]
    if case.window >= 0 or (case.causal and with_causal):
        return tensor(band(case))
    return None


def _read_output(output: torch.Tensor) -> Results:
    return {"output": array(output)}


# ------------------------------------------------------------------ SDPA -----


def _sdpa_call(case: Case, inputs: Inputs) -> Callable[..., torch.Tensor]:
    mask = _mask(case, inputs, with_causal=False)
    causal = case.causal and mask is None and not case.one_token
    grouped = case.G != case.H

    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=grouped
        )

    return call


def _backward(call: Callable[..., torch.Tensor], inputs: Inputs) -> Runner:
    leaves = [tensor(x).requires_grad_() for x in (inputs.query, inputs.key, inputs.value)]
    output, d_output = call(*leaves), tensor(inputs.d_output)

    def run() -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(output, leaves, d_output, retain_graph=True)

    return Runner(run, lambda d: dict(zip(("d_query", "d_key", "d_value"), map(array, d))))


def _sdpa(case: Case, inputs: Inputs, threads: int) -> Runner:
    if case.kind != "attention" or case.wants_weights:
        raise Unable("gives no weights" if case.wants_weights else "has no cache")
    set_threads(threads)
    call = _sdpa_call(case, inputs)
    if case.want == "grad":
        return _backward(call, inputs)
    q, k, v = map(tensor, (inputs.query, inputs.key, inputs.value))
    return Runner(torch.inference_mode()(lambda: call(q, k, v)), _read_output)


def _sdpa_rows(case: Case, inputs: Inputs, threads: int) -> Runner:
    """With one query, the heads of a group can be the rows of one head, so K is read only once."""
    if not (case.one_token and case.G != case.H and case.want == "output") or case.is_layer:
        raise Unable("is for one token and grouped heads")
    set_threads(threads)
    q, k, v = map(tensor, (inputs.query, inputs.key, inputs.value))
    rows, fresh_k, fresh_v = q.view(case.B, case.G, -1, case.D), k[:, :, -1:], v[:, :, -1:]
    cached_k, cached_v = k.clone(), v.clone()
    at = torch.tensor([case.S - 1])

    @torch.inference_mode()
    def run() -> torch.Tensor:
        if case.kind == "cache":
            cached_k.index_copy_(2, at, fresh_k)
            cached_v.index_copy_(2, at, fresh_v)
        return F.scaled_dot_product_attention(rows, cached_k, cached_v).view(q.shape)

    return Runner(run, _read_output)


def _sdpa_cache(case: Case, inputs: Inputs, threads: int) -> Runner:
    if case.kind != "cache":
        raise Unable("is for caches")
    set_threads(threads)
    q, k, v = map(tensor, (inputs.query, inputs.key, inputs.value))
    fresh_k, fresh_v, cached_k, cached_v = k[:, :, -1:], v[:, :, -1:], k.clone(), v.clone()
    at = torch.tensor([case.S - 1])

    @torch.inference_mode()
    def run() -> torch.Tensor:
        cached_k.index_copy_(2, at, fresh_k)
        cached_v.index_copy_(2, at, fresh_v)
        return F.scaled_dot_product_attention(q, cached_k, cached_v, enable_gqa=case.G != case.H)

    return Runner(run, _read_output)


def _sdpa_each(case: Case, inputs: Inputs, threads: int) -> Runner:
    """Computes padded batches one sequence at a time, so that padding costs nothing."""
    if not case.pad or case.kind != "attention" or case.want != "output":
        raise Unable("is for padded batches")
    set_threads(threads)
    q, k, v = map(tensor, (inputs.query, inputs.key, inputs.value))
    output = torch.zeros_like(q)

    @torch.inference_mode()
    def run() -> torch.Tensor:
        for b, n in enumerate(inputs.lengths.tolist()):
            rows = n if case.pad == "pad" else case.L
            output[b, :, :rows] = F.scaled_dot_product_attention(
                q[b : b + 1, :, :rows], k[b : b + 1, :, :n], v[b : b + 1, :, :n]
            )[0]
        return output

    return Runner(run, _read_output)


# ------------------------------------------------------------------ flex -----


def _flex_rule(case: Case, inputs: Inputs) -> Callable[..., torch.Tensor]:
    lengths = tensor(inputs.lengths) if case.pad else None

    def rule(b: torch.Tensor, h: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
        seen = j <= i if case.causal else j >= 0
        if case.window >= 0:
            seen = seen & (i - j <= case.window)
        if lengths is not None:
            seen = seen & (j < lengths[b])
        return seen

    return rule


def _flex(case: Case, inputs: Inputs, threads: int) -> Runner:
    """Compiled, with masked blocks skipped."""
    if case.kind != "attention" or case.want != "output" or case.mask or not case.is_masked:
        raise Unable("is for causal, windowed and padded attention")
    set_threads(threads)
    q, k, v = map(tensor, (inputs.query, inputs.key, inputs.value))
    batch = case.B if case.pad else None
    blocks = create_block_mask(_flex_rule(case, inputs), batch, None, case.L, case.S, device="cpu")
    compiled = compile_anew(flex_attention)
    grouped = case.G != case.H
    call = torch.inference_mode()(lambda: compiled(q, k, v, block_mask=blocks, enable_gqa=grouped))
    return Runner(call, _read_output)


# ----------------------------------------------------------- written out -----


def _entropy(weights: torch.Tensor) -> torch.Tensor:
    """The entropy of each row; 0 log 0 is 0."""
    return torch.special.entr(weights).sum(-1)


def _written_out(case: Case, inputs: Inputs) -> Callable[[], tuple[torch.Tensor, ...]]:
    q, k, v = map(tensor, (inputs.query, inputs.key, inputs.value))
    mask = _mask(case, inputs, with_causal=True)
    hidden = None if mask is None or mask.dtype != torch.bool else ~mask

    def run() -> tuple[torch.Tensor, ...]:
        scores = (q * case.D**-0.5) @ k.transpose(-2, -1)
        if hidden is not None:
            scores = scores.masked_fill_(hidden, -torch.inf)
        elif mask is not None:
            scores += mask
        weights = scores.softmax(-1)
        output = weights @ v
        if case.want == "mean":
            return output, weights.mean(1)
        return output, _entropy(weights) if case.want == "stats" else weights

    return run


def _weights_runner(case: Case, inputs: Inputs, threads: int, compiled: bool) -> Runner:
    if case.kind != "attention" or not case.wants_weights or case.G != case.H:
        raise Unable("is for weights and statistics")
    set_threads(threads)
    second = {"mean": "mean", "stats": "entropy"}.get(case.want, "weights")
    call = _written_out(case, inputs)
    run = torch.inference_mode()(compile_anew(call) if compiled else call)
    return Runner(run, lambda r: {"output": array(r[0]), second: array(r[1])})


def _eager(case: Case, inputs: Inputs, threads: int) -> Runner:
    """softmax(q k^T) v by its formula: the way to weights without nn.MultiheadAttention."""
    return _weights_runner(case, inputs, threads, compiled=False)


def _compiled(case: Case, inputs: Inputs, threads: int) -> Runner:
    return _weights_runner(case, inputs, threads, compiled=True)


CONTENDERS = (
    Contender(LIBRARY, "sdpa", _sdpa),
    Contender(LIBRARY, "sdpa, cache", _sdpa_cache),
    Contender(LIBRARY, "sdpa, heads as rows", _sdpa_rows),
    Contender(LIBRARY, "sdpa, one by one", _sdpa_each),
    Contender(LIBRARY, "flex_attention", _flex),
    Contender(LIBRARY, "written out", _eager),
    Contender(LIBRARY, "written out, compiled", _compiled),
    *torch_layer.CONTENDERS,
    *torch_model.CONTENDERS,
    *torch_pictures.CONTENDERS,
    *torch_translate.CONTENDERS,
)
