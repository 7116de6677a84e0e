# SPDX-License-Identifier: MIT
"""Layers: projections, heads and output projection in one object, with weights packed once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from mha import _core

Stored = Literal["f32", "f16", "bf16", "i8"]


class Preset(NamedTuple):
    """A published configuration; layers and tokens are those of the whole model."""

    name: str
    title: str
    width: int
    heads: int
    head_width: int
    layers: int
    tokens: int
    causal: bool


def presets() -> dict[str, Preset]:
    """All published configurations by name.

    >>> import mha
    >>> mha.presets()["bert-base"].heads
    12
    """
    return {row[0]: Preset(*row) for row in _core._presets()}


def preset(name: str) -> Preset:
    """The published configuration of this name."""
    known = presets()
    if name not in known:
        raise ValueError(f"there is no preset {name!r}; there are {', '.join(known)}")
    return known[name]


@dataclass(frozen=True)
class Rope:
    """Rotary position embedding: pairs of elements of a head are rotated with the position.

    pairs: "halves" (c and c + width/2, as Hugging Face stores Llama) or "neighbours" (2c and
    2c + 1). width: how many elements of a head are rotated, 0 for all. Pair n is rotated by
    base**(-2n / width) per position, or by frequencies[n].
    """

    pairs: Literal["halves", "neighbours"] = "halves"
    width: int = 0
    base: float = 10000.0
    frequencies: Sequence[float] | None = None


class Layer(_core.Layer):
    """Multi-head attention with its projections.

    Layer(width, heads, *, weights, kv_heads=None, head_width=None, value_head_width=None,
          key_width=None, value_width=None, output_width=None, stored="f32", norm=None,
          norm_eps=0.0, rope=None, add_zero_attn=False, batch_first=True, threads=None)

    weights: a dict of arrays, copied: q, k, v, o as [outputs, inputs], and where the layer has
    them q_bias, k_bias, v_bias, o_bias, extra_key and extra_value (PyTorch's bias_k, bias_v),
    q_norm, k_norm, q_norm_bias, k_norm_bias. A transposed view serves for [inputs, outputs].
    stored: how weights are kept, "f32", "f16", "bf16" or "i8". norm: of the heads of queries and
    keys, "rms" or "layer". kv_heads: fewer than heads for grouped queries.

    A call, layer(query, key=None, value=None, *, ...), takes rows (batch, rows, width), (rows,
    batch, width) with batch_first=False, or (rows, width), and returns an output of
    the same kind; without key and value it is self-attention. In addition to all options of
    mha.attention() except layout, it has

        cache, cache_use   an mha.KVCache, and what is done with it: "step" appends this call's
                           keys and values and attends to all, "store" only appends those of
                           key, "recall" attends to what is in the cache
        sequences          the sequence of the cache for each batch; 0, 1, ... if not given
        query_positions    (batch, rows) positions for rope, and key_positions
        batch_first        for this call; that of the layer if not given

    >>> import mha, numpy
    >>> layer = mha.Layer.random("transformer-base")
    >>> x = numpy.ones((2, 5, 512), "float32")
    >>> layer(x, causal=True).shape
    (2, 5, 512)
    """

    def __repr__(self) -> str:
        c = self.config
        heads = f"{c['heads']} heads of {c['head_width']}"
        return f"<Layer: width {c['width']}, {heads}, {c['kv_heads']} for keys, {c['stored']}>"

    @classmethod
    def random(
        cls, width: int | str | Preset, heads: int | None = None, *, seed: int = 0, **config: Any
    ) -> Layer:
        """A layer with random weights, by the name of a preset or by widths.

        The same seed gives the same weights. config: the arguments of Layer() except weights.
        """
        if isinstance(width, str):
            width = preset(width)
        if isinstance(width, Preset):
            config.setdefault("head_width", width.head_width)
            heads = heads or width.heads
            width = width.width
        if heads is None:
            raise TypeError("heads is missing; only a preset knows how many there are")
        weights = _random_weights(width, heads, config, seed)
        return cls(width, heads, weights=weights, **config)

    @classmethod
    def from_torch(
        cls, module: Any, *, stored: Stored = "f32", threads: int | None = None
    ) -> Layer:
        """A layer with the weights of a torch.nn.MultiheadAttention, copied.

        All of its settings are taken over: kdim and vdim, biases, bias_k and bias_v, add_zero_attn,
        batch_first. Weights in double precision become f32. Dropout is an option of a call.
        """
        for name in ("embed_dim", "num_heads", "out_proj"):
            if not hasattr(module, name):
                kind = type(module).__name__
                raise TypeError(f"module is a {kind}; give a torch.nn.MultiheadAttention")
        return cls(
            module.embed_dim,
            module.num_heads,
            weights=_torch_weights(module),
            key_width=module.kdim,
            value_width=module.vdim,
            add_zero_attn=module.add_zero_attn,
            batch_first=module.batch_first,
            stored=stored,
            threads=threads,
        )

    def prune(self, keep: Iterable[int] | Iterable[bool]) -> Layer:
        """A new layer with only some heads: the numbers of those to keep, or a bool for each.

        Its output is that of this layer with gates of 0 on the other heads, at a lower cost. The
        heads are renumbered in order.

        >>> import mha
        >>> mha.Layer.random(8, 4).prune([0, 2]).config["heads"]
        2
        """
        heads = self.config["heads"]
        values = list(getattr(keep, "tolist", lambda: keep)())
        if values and all(isinstance(value, bool) for value in values):
            return self._prune(values)
        wrong = [value for value in values if not (isinstance(value, int) and 0 <= value < heads)]
        if wrong:
            raise ValueError(f"keep has {wrong[0]!r}; the layer has heads 0 to {heads - 1}")
        return self._prune([head in values for head in range(heads)])


def prune(layer: Layer, keep: Iterable[int] | Iterable[bool]) -> Layer:
    """A new layer with only some heads of another; see Layer.prune()."""
    return layer.prune(keep)


def _random_weights(width: int, heads: int, config: dict[str, Any], seed: int) -> dict[str, Any]:
    """Uniform weights of variance 2 / (inputs + outputs), without biases."""
    head = config.get("head_width") or width // heads
    value_head = config.get("value_head_width") or head
    groups = config.get("kv_heads") or heads
    key_width = config.get("key_width") or width
    shapes = {
        "q": (heads * head, width),
        "k": (groups * head, key_width),
        "v": (groups * value_head, config.get("value_width") or key_width),
        "o": (config.get("output_width") or width, heads * value_head),
    }
    return {
        name: _core._uniform(*shape, math.sqrt(6.0 / max(1, sum(shape))), seed * 4 + number)
        for number, (name, shape) in enumerate(shapes.items())
    }


def _torch_weights(module: Any) -> dict[str, Any]:
    """The weights of an nn.MultiheadAttention under the names of Layer()."""
    if module.in_proj_weight is not None:
        matrices = module.in_proj_weight.detach().chunk(3)
    else:
        projections = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
        matrices = tuple(matrix.detach() for matrix in projections)
    weights = dict(zip(("q", "k", "v"), matrices), o=module.out_proj.weight.detach())
    if module.in_proj_bias is not None:
        weights.update(zip(("q_bias", "k_bias", "v_bias"), module.in_proj_bias.detach().chunk(3)))
    if module.out_proj.bias is not None:
        weights["o_bias"] = module.out_proj.bias.detach()
    if module.bias_k is not None:
        weights["extra_key"] = module.bias_k.detach().flatten()
        weights["extra_value"] = module.bias_v.detach().flatten()
    double = weights["q"].element_size() == 8
    return {name: weight.float() if double else weight for name, weight in weights.items()}
