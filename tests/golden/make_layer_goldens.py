#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make the golden files of the layer: what PyTorch says a multi-head attention gives.

    make_layer_goldens.py [FOLDER]      writes FOLDER/NAME.golden, by default beside this script

Made with torch 2.13.0. Cases named torch_* are nn.MultiheadAttention itself; the others are what
that module lacks (grouped heads, other widths, rotation, norms, soft cap, ...), written with
torch's functions. Inputs and weights are f32; results are computed in float64 and stored as f32;
the same computation in f32 must agree with them.

A golden file is a text header and then numbers:

    mha-layer-golden 1
    set NAME NUMBER                     a field of the configuration or of the call, see below
    tensor NAME TYPE N0 [N1 ...]        an array with these extents; f32, u8 or i64
    end                                 the last line of the text
    ...                                 all arrays in the order above, row-major, little-endian

Fields that are not set are 0. Names of fields and of tensors:

    E H G D Dv key_width value_width output_width zero_attn norm norm_eps
    rope rope_width rope_base           rope and norm count as in mha.h
    B L S causal window_left window_right (both + 1, so that 0 is "no window") softcap scale
    average                             weights are the mean over the heads
    sequence_first                      inputs and output are [rows, B, width], not [B, rows, width]
    conv                                matrices are [inputs, outputs], else [outputs, inputs]

    query key value                     key and value only where the call has them apart
    in_weight in_bias                   q, k and v below each other; else q_weight, k_weight, ...
    q_weight k_weight v_weight o_weight q_bias k_bias v_bias o_bias extra_key extra_value
    q_norm k_norm q_norm_bias k_norm_bias frequencies q_positions k_positions sinks alibi
    ignore_mask attend_mask add_mask    four extents, 1 where they are the same for all
    output weights                      the answer; NaN where PyTorch has a row without any key
"""

import functools
import math
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

FOLDER = os.path.dirname(os.path.abspath(__file__))
TYPES = {np.dtype("float32"): "f32", np.dtype("uint8"): "u8", np.dtype("int64"): "i64"}


class Golden:
    """One case: numbers by name, arrays by name, in the order in which they were added."""

    title = "mha-layer-golden 1"
    learns = False  # normal() gives tensors that collect gradients

    def __init__(self, name, **fields):
        self.name = name
        self.leaves = {}  # tensors by name that gradients are taken of
        self.fields = {key: value for key, value in fields.items() if value}
        self.arrays = {}
        seed = sum((n + 1) * ord(letter) for n, letter in enumerate(name))
        self.random = np.random.RandomState(seed)

    def add(self, name, array):
        """Add an array as it is to be stored, and return it as a float64 tensor."""
        array = np.ascontiguousarray(array)
        self.arrays[name] = array
        return torch.from_numpy(array.copy()).double()

    def normal(self, name, *shape, scale=1.0):
        numbers = self.random.standard_normal(shape) * scale
        tensor = self.add(name, numbers.astype(np.float32)).requires_grad_(self.learns)
        self.leaves[name] = tensor
        return tensor

    def answer(self, name, tensor):
        self.add(name, tensor.detach().double().numpy().astype(np.float32))

    def finish(self, run):
        """Add the answers of run(dtype): output, and weights or None."""
        (output, weights), (output32, weights32) = run(torch.float64), run(torch.float32)
        same(output, output32, self.name)
        self.answer("output", output)
        if weights is not None:
            same(weights, weights32, self.name)
            self.answer("weights", weights)
        return self

    def write(self, folder):
        with open(os.path.join(folder, self.name + ".golden"), "wb") as file:
            text = [self.title]
            text += [f"set {key} {value!r}" for key, value in self.fields.items()]
            for key, array in self.arrays.items():
                extents = " ".join(str(n) for n in array.shape)
                text.append(f"tensor {key} {TYPES[array.dtype]} {extents}")
            file.write(("\n".join(text) + "\nend\n").encode())
            for array in self.arrays.values():
                file.write(array.astype(array.dtype.newbyteorder("<")).tobytes())


def same(wide, narrow, name):
    """The float64 answer and the one in f32 tell the same story."""
    wide, narrow = wide.detach(), narrow.detach().double()
    assert torch.equal(wide.isnan(), narrow.isnan()), name
    error = (wide - narrow).nan_to_num().abs().max().item()
    assert error < 2e-5, f"{name}: f32 is {error} away"


# ------------------------------------------------------------- nn.MultiheadAttention -----


def module_weights(golden, module):
    """Give the module weights from the golden's numbers, so that every bias counts."""
    names = {
        "in_proj_weight": "in_weight",
        "q_proj_weight": "q_weight",
        "k_proj_weight": "k_weight",
        "v_proj_weight": "v_weight",
        "out_proj.weight": "o_weight",
        "in_proj_bias": "in_bias",
        "out_proj.bias": "o_bias",
        "bias_k": "extra_key",
        "bias_v": "extra_value",
    }
    with torch.no_grad():
        for key, parameter in module.named_parameters():
            scale = 1 / math.sqrt(parameter.shape[-1]) if "weight" in key else 0.5
            parameter.copy_(golden.normal(names[key], *parameter.shape, scale=scale))
            golden.leaves[names[key]] = parameter


def full_mask(mask, B, H):
    """A mask of PyTorch with four extents: [L,S] or [B*H,L,S]."""
    return mask[None, None] if mask.ndim == 2 else mask.reshape(B, H, *mask.shape[1:])


def add_masks(golden, padding, mask, B, H):
    """Store PyTorch's masks as ours: True is masked, numbers are added."""
    boolean = mask is not None and mask.dtype == torch.bool
    if padding is not None and padding.dtype == torch.bool:
        golden.add("ignore_mask", padding[:, None, None, :].numpy().astype(np.uint8))
    if boolean:
        full = full_mask(mask, B, H).numpy()
        if padding is None:
            golden.add("ignore_mask", full.astype(np.uint8))
        else:
            golden.add("attend_mask", (~full).astype(np.uint8))
    elif mask is not None:
        numbers = full_mask(mask, B, H)
        if padding is not None and padding.dtype != torch.bool:
            numbers = numbers + padding[:, None, None, :]
        else:
            golden.leaves["add_mask"] = mask
        golden.add("add_mask", numbers.detach().numpy().astype(np.float32))


def torch_case(name, E=12, H=3, B=2, L=4, S=0, kdim=None, vdim=None, bias=True, bias_kv=False,
               zero_attn=False, batch_first=True, average=True, need_weights=True, padding=None,
               mask=None, separate_value=False, causal=False, unbatched=False, kind=Golden):
    """nn.MultiheadAttention with these options. S = 0: self-attention."""
    golden = kind(name, E=E, H=H, B=B, L=L, S=S, key_width=kdim or 0, value_width=vdim or 0,
                  zero_attn=int(zero_attn), average=int(average and need_weights),
                  sequence_first=int(not batch_first), causal=int(causal))
    module = torch.nn.MultiheadAttention(
        E, H, bias=bias, add_bias_kv=bias_kv, add_zero_attn=zero_attn, kdim=kdim, vdim=vdim,
        batch_first=batch_first, dtype=torch.float64)
    module_weights(golden, module)

    def rows(tensor, length, width):
        shape = (B, length, width) if batch_first else (length, B, width)
        return golden.normal(tensor, *(shape[1:] if unbatched else shape))

    query = rows("query", L, E)
    key = rows("key", S, kdim or E) if S else query
    value = rows("value", S, vdim or E) if vdim or separate_value else key
    if causal:
        assert mask is None
        mask = torch.ones(L, S or L, dtype=torch.bool).triu(1)
    else:
        if mask is not None and mask.is_floating_point():
            mask = mask.clone().requires_grad_(golden.learns)
        add_masks(golden, padding, mask, B, H)

    def run(dtype):
        def cast(tensor):
            floating = tensor is not None and tensor.is_floating_point()
            return tensor.to(dtype) if floating else tensor

        output, weights = module.to(dtype)(
            cast(query), cast(key), cast(value), key_padding_mask=cast(padding),
            attn_mask=cast(mask), need_weights=need_weights, average_attn_weights=average)
        return output, weights[None] if need_weights and unbatched else weights

    return golden.finish(run)


def torch_cases(kind=Golden):
    case = functools.partial(torch_case, kind=kind)
    padding = torch.tensor([[0, 0, 0, 1, 1, 1], [0, 1, 0, 0, 0, 1]], dtype=torch.bool)
    numbers = np.random.RandomState(3)
    boolean_2d = torch.from_numpy(numbers.rand(4, 6) < 0.4)
    boolean_3d = torch.from_numpy(numbers.rand(6, 4, 6) < 0.4)
    boolean_2d[:, 2] = boolean_3d[:, :, 2] = False
    float_2d = torch.from_numpy(numbers.standard_normal((4, 6)).astype(np.float32)).double()
    float_3d = torch.from_numpy(numbers.standard_normal((6, 4, 6)).astype(np.float32)).double()
    float_3d[boolean_3d] = -math.inf
    float_padding = torch.zeros(2, 6, dtype=torch.float64).masked_fill(padding, -math.inf)
    empty = boolean_2d.clone()
    empty[1] = True

    yield case("torch_self")
    yield case("torch_self_per_head", average=False)
    yield case("torch_self_no_bias", bias=False)
    yield case("torch_no_weights", need_weights=False)
    yield case("torch_one_head", E=7, H=1)
    yield case("torch_heads_of_one", E=5, H=5, average=False)
    yield case("torch_one_query", L=1, S=6)
    yield case("torch_unbatched", B=1, S=6, unbatched=True)
    yield case("torch_wide", E=40, H=2, B=1, L=3, S=35, average=False)
    yield case("torch_cross", S=6)
    yield case("torch_cross_value", S=6, separate_value=True, average=False)
    yield case("torch_kdim_vdim", S=6, kdim=5, vdim=9)
    yield case("torch_kdim_vdim_no_bias", S=6, kdim=17, vdim=3, bias=False, average=False)
    yield case("torch_sequence_first", batch_first=False)
    yield case("torch_sequence_first_cross", S=6, batch_first=False, average=False)
    yield case("torch_sequence_first_padding", S=6, batch_first=False, padding=padding)
    yield case("torch_bias_kv", S=6, bias_kv=True)
    yield case("torch_zero_attn", S=6, zero_attn=True)
    yield case("torch_bias_kv_zero_attn", S=6, bias_kv=True, zero_attn=True, average=False)
    yield case("torch_bias_kv_self", bias_kv=True, zero_attn=True, causal=True)
    yield case("torch_extras_padding", S=6, bias_kv=True, zero_attn=True, padding=padding)
    yield case("torch_extras_mask", S=6, bias_kv=True, zero_attn=True, mask=float_3d,
               average=False)
    yield case("torch_padding", S=6, padding=padding)
    yield case("torch_mask_bool_2d", S=6, mask=boolean_2d)
    yield case("torch_mask_bool_3d", S=6, mask=boolean_3d, average=False)
    yield case("torch_mask_float_2d", S=6, mask=float_2d, average=False)
    yield case("torch_mask_float_3d", S=6, mask=float_3d)
    yield case("torch_padding_mask_bool", S=6, padding=padding, mask=boolean_2d)
    yield case("torch_padding_mask_float", S=6, padding=float_padding, mask=float_2d)
    yield case("torch_causal", L=5, causal=True, average=False)
    yield case("torch_empty_row", S=6, mask=empty, average=False)
    yield case("torch_extras_empty_row", S=6, mask=empty, bias_kv=True, average=False)


# ------------------------------------------------------------ what the module lacks -----


def rotate(x, positions, width, pairs, frequencies):
    """x [B, heads, rows, D]; pairs 1 joins c and c + width/2, 2 joins 2c and 2c + 1."""
    angles = positions[:, None, :, None].double() * frequencies.double()
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    rotated, rest = x[..., :width], x[..., width:]
    if pairs == 1:
        a, b = rotated.chunk(2, dim=-1)
        rotated = torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)
    else:
        a, b = rotated[..., 0::2], rotated[..., 1::2]
        rotated = torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1).flatten(-2)
    return torch.cat([rotated, rest], dim=-1)


def normalise(x, kind, weight, bias, eps):
    shape = x.shape[-1:]
    weight = None if weight is None else weight.to(x.dtype)
    bias = None if bias is None else bias.to(x.dtype)
    if kind == 2:
        return F.layer_norm(x, shape, weight, bias, eps)
    x = F.rms_norm(x, shape, weight, eps)
    return x if bias is None else x + bias


def attend(golden, q, k, v, positions, numbers):
    """Weights [B,H,L,S] and the heads' outputs, from the definition."""
    field = golden.fields.get
    repeat = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
    scores = q @ k.transpose(-1, -2) * field("scale", 1 / math.sqrt(q.shape[-1]))
    if field("softcap"):
        scores = golden.fields["softcap"] * torch.tanh(scores / golden.fields["softcap"])
    i, j = positions
    distance = i[:, None] - j[None, :]
    if "alibi" in numbers:
        scores = scores - numbers["alibi"].to(q.dtype)[:, None, None] * distance.abs()
    hidden = torch.zeros_like(distance, dtype=torch.bool)
    if field("causal"):
        hidden |= distance < 0
    if field("window_left"):
        hidden |= (distance >= field("window_left")) | (-distance >= field("window_right"))
    scores = scores.masked_fill(hidden, -math.inf)
    if "sinks" in numbers:
        sinks = numbers["sinks"].to(q.dtype)[None, :, None, None].expand(*scores.shape[:3], 1)
        weights = torch.cat([scores, sinks], -1).softmax(-1)[..., :-1]
    else:
        weights = scores.softmax(-1)
    return weights, weights @ v


def own_case(name, E=12, H=4, G=0, D=0, Dv=0, B=2, L=5, S=0, key_width=0, value_width=0,
             output_width=0, bias=True, norm=0, norm_eps=0.0, norm_weights=(), rope=0,
             rope_width=0, rope_base=0.0, frequencies=False, positions=False, conv=False,
             fused=False, extra=(), kind=Golden, **fields):
    """The layer with whatever it can have, in torch's functions."""
    golden = kind(name, E=E, H=H, G=G, D=D, Dv=Dv, B=B, L=L, S=S, key_width=key_width,
                  value_width=value_width, output_width=output_width, norm=norm,
                  norm_eps=norm_eps, rope=rope, rope_width=rope_width, rope_base=rope_base,
                  conv=int(conv), **fields)
    G, D = G or H, D or E // H
    Dv, keys = Dv or D, S or L
    widths = {"q": (E, H * D), "k": (key_width or E, G * D), "v": (value_width or E, G * Dv),
              "o": (H * Dv, output_width or E)}
    numbers, matrices, biases = {}, {}, {}
    if fused:
        inputs, outputs = E, sum(widths[n][1] for n in "qkv")
        shape = (inputs, outputs) if conv else (outputs, inputs)
        whole = golden.normal("in_weight", *shape, scale=1 / math.sqrt(inputs))
        whole = whole.T if conv else whole
        whole_bias = golden.normal("in_bias", outputs, scale=0.5) if bias else None
        cuts = [widths[n][1] for n in "qkv"]
        matrices = dict(zip("qkv", whole.split(cuts)))
        biases = dict(zip("qkv", whole_bias.split(cuts))) if bias else {}
    for n in "qkvo":
        if n not in matrices:
            inputs, outputs = widths[n]
            shape = (inputs, outputs) if conv else (outputs, inputs)
            matrix = golden.normal(n + "_weight", *shape, scale=1 / math.sqrt(inputs))
            matrices[n] = matrix.T if conv else matrix
            if bias:
                biases[n] = golden.normal(n + "_bias", outputs, scale=0.5)
    for n in norm_weights:
        numbers[n] = golden.normal(n, D, scale=0.5)
    for n in extra:
        numbers[n] = golden.normal(n, H)
    width = rope_width or D
    turns = (rope_base or 10000.0) ** (-torch.arange(0, width, 2).double() / width)
    if frequencies:
        turns = golden.normal("frequencies", width // 2).double()
    q_at, k_at = torch.arange(L).expand(B, L), torch.arange(keys).expand(B, keys)
    if positions:
        q_at = golden.add("q_positions", golden.random.randint(0, 500, (B, L)).astype(np.int64))
        k_at = golden.add("k_positions", golden.random.randint(0, 500, (B, keys)).astype(np.int64))
    query = golden.normal("query", B, L, E)
    key = golden.normal("key", B, S, widths["k"][0]) if S else query
    value = golden.normal("value", B, S, widths["v"][0]) if value_width else key

    def run(dtype):
        def heads(x, n, count):
            weights, shift = matrices[n].to(dtype), biases.get(n)
            y = F.linear(x.to(dtype), weights, None if shift is None else shift.to(dtype))
            return y.unflatten(-1, (count, -1)).transpose(1, 2)

        q, k, v = heads(query, "q", H), heads(key, "k", G), heads(value, "v", G)
        if norm:
            get, eps = numbers.get, norm_eps or 1e-5
            q = normalise(q, norm, get("q_norm"), get("q_norm_bias"), eps)
            k = normalise(k, norm, get("k_norm"), get("k_norm_bias"), eps)
        if rope:
            q = rotate(q, q_at, width, rope, turns)
            k = rotate(k, k_at, width, rope, turns)
        at = (torch.arange(L), torch.arange(keys))
        weights, o = attend(golden, q, k, v, at, numbers)
        shift = biases.get("o")
        y = F.linear(o.transpose(1, 2).flatten(-2), matrices["o"].to(dtype),
                     None if shift is None else shift.to(dtype))
        return y, weights

    return golden.finish(run)


def own_cases(kind=Golden):
    case = functools.partial(own_case, kind=kind)
    all_norms = ("q_norm", "k_norm", "q_norm_bias", "k_norm_bias")
    yield case("gqa", H=4, G=2)
    yield case("mqa", H=4, G=1, S=7, bias=False)
    yield case("widths", E=10, H=3, D=5, Dv=7, S=6, key_width=4, value_width=11,
               output_width=13)
    yield case("widths_gqa", E=9, H=6, G=3, D=2, Dv=5, output_width=4)
    yield case("rope_halves", E=16, H=2, rope=1)
    yield case("rope_neighbours", E=16, H=2, rope=2)
    yield case("rope_halves_partial", E=20, H=2, rope=1, rope_width=6)
    yield case("rope_neighbours_partial", E=20, H=2, rope=2, rope_width=4, rope_base=500.0)
    yield case("rope_frequencies", E=16, H=2, rope=1, frequencies=True)
    yield case("rope_positions", E=16, H=2, S=7, rope=2, positions=True)
    yield case("norm_rms", norm=1)
    yield case("norm_rms_weights", norm=1, norm_eps=1e-3, norm_weights=("q_norm", "k_norm"))
    yield case("norm_layer", norm=2)
    yield case("norm_layer_weights", norm=2, norm_weights=all_norms)
    yield case("norm_rope_gqa", H=4, G=2, D=8, norm=1, norm_eps=1e-6, rope=1, causal=1,
               norm_weights=("q_norm", "k_norm"), rope_base=1e6, bias=False)
    yield case("gpt2", E=12, H=3, L=6, conv=True, fused=True, causal=1)
    yield case("fused", E=12, H=3, G=1, fused=True)
    yield case("softcap", softcap=2.5, scale=0.75)
    yield case("softcap_window", L=7, softcap=4.0, causal=1, window_left=3, window_right=1)
    yield case("sinks", H=4, G=2, L=7, causal=1, extra=("sinks",))
    yield case("alibi", L=7, causal=1, extra=("alibi",))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else FOLDER
    count = 0
    for cases in (torch_cases(), own_cases()):
        for golden in cases:
            golden.write(folder)
            count += 1
    print(f"{count} golden files in {folder}")


if __name__ == "__main__":
    main()
