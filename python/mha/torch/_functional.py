# SPDX-License-Identifier: MIT
"""torch.nn.functional.multi_head_attention_forward by libmha: torch's projections, our heads."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ._attention import attention
from ._sdpa import warn_fallback, why_not
from ._trace import traced


class Projections(NamedTuple):
    """The parameters of a layer. Either `packed`, or q, k and v, in PyTorch's shapes."""

    packed: Tensor | None
    q: Tensor | None
    k: Tensor | None
    v: Tensor | None
    in_bias: Tensor | None
    out: Tensor
    out_bias: Tensor | None
    extra_key: Tensor | None
    extra_value: Tensor | None
    zero_attn: bool


def _project(
    query: Tensor, key: Tensor, value: Tensor, p: Projections
) -> tuple[Tensor, Tensor, Tensor]:
    """Q, K and V with heads side by side; one product if the inputs are the same tensor."""
    if p.packed is None:
        biases = (None, None, None) if p.in_bias is None else p.in_bias.chunk(3)
        inputs, weights = (query, key, value), (p.q, p.k, p.v)
        return tuple(F.linear(x, w, b) for x, w, b in zip(inputs, weights, biases))
    if query is key and key is value:
        return F.linear(query, p.packed, p.in_bias).chunk(3, -1)
    weights = p.packed.chunk(3)
    biases = (None, None, None) if p.in_bias is None else p.in_bias.chunk(3)
    q = F.linear(query, weights[0], biases[0])
    if key is not value:
        return q, F.linear(key, weights[1], biases[1]), F.linear(value, weights[2], biases[2])
    width = query.shape[-1]
    both = F.linear(key, p.packed[width:], None if p.in_bias is None else p.in_bias[width:])
    return (q, *both.chunk(2, -1))


def _extend(heads: Tensor, extra: Tensor | None, zero_attn: bool) -> Tensor:
    """(N, H, S, D) with the learned row and the row of zeros at its end, if there are any."""
    batch, count, _, width = heads.shape
    rows = [heads]
    if extra is not None:
        rows.append(extra.view(1, count, 1, width).expand(batch, -1, -1, -1))
    if zero_attn:
        rows.append(heads.new_zeros((batch, count, 1, width)))
    return torch.cat(rows, 2) if len(rows) > 1 else heads


class Call(NamedTuple):
    """The arguments of one call of a layer, with PyTorch's names."""

    query: Tensor
    key: Tensor
    value: Tensor
    key_padding_mask: Tensor | None
    need_weights: bool
    attn_mask: Tensor | None
    average_attn_weights: bool
    is_causal: bool
    batch_first: bool
    dropout: float

    def tensors(self) -> tuple[Tensor | None, ...]:
        return self.query, self.key, self.value, self.key_padding_mask, self.attn_mask

    def batched(self) -> "Call":
        """The same call with a batch of one, batch first. Equal inputs stay the same tensor."""
        query = self.query[None]
        key = query if self.key is self.query else self.key[None]
        value = key if self.value is self.key else self.value[None]
        padding = self.key_padding_mask
        return self._replace(
            query=query,
            key=key,
            value=value,
            key_padding_mask=None if padding is None else padding[None],
            batch_first=True,
        )

    def options(self, heads: int, extra: int = 0) -> dict[str, Any]:
        """PyTorch's masks (True hides, floats are added) as options of attention(), without a
        matrix that joins them. `extra` more columns hide nothing."""
        options: dict[str, Any] = {}
        mask, padding = self.attn_mask, self.key_padding_mask
        # The hint says that the mask is the causal one, for which no matrix is needed. It would
        # also mask columns after the keys.
        if self.is_causal and not extra:
            options.update(causal=True, position="top-left")
        elif mask is not None:
            mask = mask.unflatten(0, (len(mask) // heads, heads)) if mask.dim() == 3 else mask
            name = "ignore_mask" if mask.dtype == torch.bool else "bias"
            options[name] = F.pad(mask, (0, extra)) if extra else mask
        if padding is not None:
            padding = (F.pad(padding, (0, extra)) if extra else padding)[:, None, None, :]
            options["mask"] = ~padding if padding.dtype == torch.bool else padding
        return options


def _check_mask(name: str, mask: Tensor, shape: tuple[int, ...], error: type) -> None:
    """`error` is the exception that torch raises for another shape."""
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise RuntimeError(f"only bool and floating types of {name} are supported")
    if tuple(mask.shape) != shape:
        raise error(
            f"The shape of the {mask.dim()}D {name} is {tuple(mask.shape)}, but should be {shape}."
        )


def _check(call: Call, heads: int) -> None:
    """The rules of torch for a call with three axes, batch first or not."""
    query, key, value = call.query, call.key, call.value
    rows = 1 if call.batch_first else 0
    batch, length, keys = query.shape[1 - rows], query.shape[rows], key.shape[rows]
    if call.is_causal and call.attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    if key.shape[:2] != value.shape[:2] or key.shape[1 - rows] != batch:
        raise RuntimeError(
            f"query {tuple(query.shape)}, key {tuple(key.shape)} and value {tuple(value.shape)} "
            "do not fit: one batch for all, as many keys as values"
        )
    # With the hint alone torch does not look at the mask.
    hint = call.is_causal and call.key_padding_mask is None and not call.need_weights
    if call.attn_mask is not None and not hint:
        shape = (length, keys) if call.attn_mask.dim() == 2 else (batch * heads, length, keys)
        _check_mask("attn_mask", call.attn_mask, shape, RuntimeError)
    if call.key_padding_mask is not None:
        _check_mask("key_padding_mask", call.key_padding_mask, (batch, keys), AssertionError)


def by_operator(call: Call, p: Projections, heads: int) -> tuple[Tensor, Tensor | None]:
    order = (0, 2, 1, 3) if call.batch_first else (1, 2, 0, 3)
    projected = _project(call.query, call.key, call.value, p)
    q, k, v = (t.unflatten(-1, (heads, -1)).permute(order) for t in projected)
    result = attention(
        q,
        _extend(k, p.extra_key, p.zero_attn),
        _extend(v, p.extra_value, p.zero_attn),
        dropout=call.dropout,
        return_weights=call.need_weights,
        average_weights=call.need_weights and call.average_attn_weights,
        **call.options(heads, (p.extra_key is not None) + p.zero_attn),
    )
    output, weights = (result.output, result.weights) if call.need_weights else (result, None)
    output = output.transpose(1, 2) if call.batch_first else output.permute(2, 0, 1, 3)
    return F.linear(output.flatten(2), p.out, p.out_bias), weights


def _by_torch(
    call: Call, p: Projections, heads: int, static: tuple[Tensor | None, Tensor | None]
) -> tuple[Tensor, Tensor | None]:
    turn = call.batch_first and call.query.dim() == 3
    query, key, value = (t.transpose(0, 1) if turn else t for t in call.tensors()[:3])
    output, weights = F.multi_head_attention_forward(
        query,
        key,
        value,
        call.query.shape[-1],
        heads,
        p.packed,
        p.in_bias,
        p.extra_key,
        p.extra_value,
        p.zero_attn,
        call.dropout,
        p.out,
        p.out_bias,
        training=call.dropout > 0.0,
        key_padding_mask=call.key_padding_mask,
        need_weights=call.need_weights,
        attn_mask=call.attn_mask,
        use_separate_proj_weight=p.packed is None,
        q_proj_weight=p.q,
        k_proj_weight=p.k,
        v_proj_weight=p.v,
        static_k=static[0],
        static_v=static[1],
        average_attn_weights=call.average_attn_weights,
        is_causal=call.is_causal,
    )
    return output.transpose(0, 1) if turn else output, weights


def layer(
    call: Call, p: Projections, heads: int, run: Callable[..., Any] = by_operator
) -> tuple[Tensor, Tensor | None]:
    """One call of a layer that libmha can compute, checked, with or without a batch; `run` gets it
    with one."""
    width = (p.q if p.packed is None else p.packed).shape[1]
    if call.query.shape[-1] != width:
        raise AssertionError(
            f"was expecting embedding dimension of {width}, but got {call.query.shape[-1]}"
        )
    F._mha_shape_check(
        call.query, call.key, call.value, call.key_padding_mask, call.attn_mask, heads
    )
    if call.query.dim() == 3:
        _check(call, heads)
        return run(call, p, heads)
    call = call.batched()
    _check(call, heads)
    output, weights = run(call, p, heads)
    return output[0], None if weights is None else weights[0]


@traced
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """torch.nn.functional.multi_head_attention_forward with its arguments, (L, N, E) in and out;
    returning weights does not need a slower path."""
    call = Call(
        query,
        key,
        value,
        key_padding_mask,
        need_weights,
        attn_mask,
        average_attn_weights,
        is_causal,
        False,
        dropout_p if training else 0.0,
    )
    packed = None if use_separate_proj_weight else in_proj_weight
    projections = Projections(
        packed,
        q_proj_weight,
        k_proj_weight,
        v_proj_weight,
        in_proj_bias,
        out_proj_weight,
        out_proj_bias,
        bias_k,
        bias_v,
        add_zero_attn,
    )
    static = (static_k, static_v)
    why = why_not(*call.tensors())
    if static_k is not None or static_v is not None:
        why = "static_k and static_v are given"
    if not why:
        return layer(call, projections, num_heads)
    warn_fallback(why, 5)
    return _by_torch(call, projections, num_heads, static)
