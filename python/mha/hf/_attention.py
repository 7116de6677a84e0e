# SPDX-License-Identifier: MIT
"""The function that every attention layer of a model calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from transformers.utils.output_capturing import _active_collector

import mha
from mha import torch as mha_torch
from mha.torch._operator import readable
from mha.torch._plain import is_plain, needs_gradients

from ._mask import Mask, is_for_interfaces


def attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    is_causal: bool | None = None,
    position_bias: torch.Tensor | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    output_attentions: bool | None = None,
    cu_seq_lens_q: torch.Tensor | None = None,
    cu_seq_lens_k: torch.Tensor | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The attention function for transformers: takes query (B, H, L, D), key and value
    (B, G, S, D); returns output (B, L, H, D), and weights (B, H, L, S) or None.

    A window is part of the mask, as with sdpa and eager: `sliding_window` is ignored.
    Weights are those before dropout, and are computed only with `output_attentions`.
    """
    _refuse(module, query, kwargs)
    options = _visible(module, query, attention_mask, is_causal)
    if attention_mask is None and cu_seq_lens_q is not None:
        options |= _documents(query, key, cu_seq_lens_q, cu_seq_lens_k, "causal" in options)
    if scaling is not None:
        options["scale"] = scaling
    if position_bias is not None:
        options["bias"] = position_bias
    if softcap:
        options["softcap"] = softcap
    if s_aux is not None:
        options["sinks"] = s_aux.float()
    if "_mha_gates" in module.__dict__:
        options["gates"] = _gates(module.__dict__["_mha_gates"], module, query.shape[1])
    want_weights = bool(output_attentions) or _attentions_are_collected()
    record = module.__dict__.get("_mha_record")
    inputs = (query, key, value, options.get("mask"), position_bias, s_aux)
    if record is not None or _nobody_watches(inputs, dropout):
        return _compute(query, key, value, options, want_weights, record)
    result = mha_torch.attention(
        query, key, value, dropout=dropout, return_weights=want_weights, **options
    )
    output, weights = (result.output, result.weights) if want_weights else (result, None)
    return output.transpose(1, 2).contiguous(), weights


def _attentions_are_collected() -> bool:
    """Whether the running model was called with output_attentions. Some models do not pass it on
    to their layers."""
    return any("attentions" in name for name in _active_collector.get() or ())


def _refuse(module: torch.nn.Module, query: torch.Tensor, kwargs: Mapping[str, Any]) -> None:
    """Raise errors for arguments that would otherwise silently give wrong results."""
    if query.device.type not in ("cpu", "meta"):
        raise ValueError(
            f"mha runs on CPUs and the model is on {query.device}: move it with "
            "model.to('cpu'), or use attn_implementation='sdpa'"
        )
    for name in ("indices", "block_indices", "cache"):
        if kwargs.get(name) is not None:
            raise ValueError(
                f"{type(module).__name__} chooses keys by {name}=, which mha does not have: use "
                "model.set_attn_implementation('eager')"
            )


def _visible(
    module: torch.nn.Module,
    query: torch.Tensor,
    attention_mask: torch.Tensor | None,
    is_causal: bool | None,
) -> dict[str, Any]:
    """The mask as keyword arguments of `mha.attention`."""
    if isinstance(attention_mask, Mask):
        return dict(attention_mask.rule)
    if attention_mask is not None:
        return {"mask": attention_mask}
    if query.shape[2] == 1:
        return {}
    if is_causal is None:
        is_causal = getattr(module, "is_causal", None)
    if is_causal is None:  # as with sdpa, where there is sdpa
        is_causal = is_for_interfaces(getattr(module, "config", None))
    if not is_causal:
        return {}
    return {"causal": True, "position": "top-left"}


def _documents(
    query: torch.Tensor,
    key: torch.Tensor,
    q_starts: torch.Tensor,
    k_starts: torch.Tensor | None,
    causal: bool,
) -> dict[str, torch.Tensor]:
    """Sequences that are packed one after another in a batch of one, by their starts."""
    k_starts = q_starts if k_starts is None else k_starts
    if query.shape[0] != 1 or (causal and not torch.equal(q_starts, k_starts)):
        raise ValueError(
            "cu_seq_lens_q and cu_seq_lens_k go with a batch of 1, and must be equal in a causal "
            "layer: pass a mask instead"
        )

    def ids(tensor: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
        tokens = torch.arange(tensor.shape[2], dtype=starts.dtype)
        return torch.bucketize(tokens, starts[1:], right=True, out_int32=True)[None]

    return {"query_documents": ids(query, q_starts), "key_documents": ids(key, k_starts)}


def _gates(factors: Mapping[int, float], module: torch.nn.Module, heads: int) -> torch.Tensor:
    gates = torch.ones(heads)
    for head, factor in factors.items():
        if not 0 <= head < heads:
            raise ValueError(f"there is no head {head}: {type(module).__name__} has {heads} heads")
        gates[head] = factor
    return gates


def _nobody_watches(inputs: tuple[torch.Tensor | None, ...], dropout: float) -> bool:
    """Whether the library can be called directly: no gradients, compiler, autocast or dropout."""
    return (
        not dropout
        and not torch.is_autocast_enabled("cpu")
        and is_plain(inputs)
        and not needs_gradients(inputs)
    )


def _compute(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    options: dict[str, Any],
    want_weights: bool,
    record: Callable[[Any], None] | None,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Output (B, L, H, Dv) and weights by the library; the statistics of rows go to `record`."""
    batch, heads, rows, _ = query.shape
    output = query.new_empty((batch, rows, heads, value.shape[3]))
    result = mha.attention(
        readable(query),
        readable(key),
        readable(value),
        out=output.transpose(1, 2),
        return_weights=want_weights,
        statistics=("rows",) if record else False,
        threads=torch.get_num_threads(),
        **{n: readable(o) if isinstance(o, torch.Tensor) else o for n, o in options.items()},
    )
    if record is not None:
        record(result.statistics.rows)
    return output, result.weights.to(query.dtype) if want_weights else None
