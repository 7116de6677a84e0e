#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make the golden files of the backward pass: what PyTorch's autograd says.

    make_backward_goldens.py [FOLDER]   writes FOLDER/NAME.golden, by default into backward/ here

Made with torch 2.13.0. Cases named sdpa_* go through scaled_dot_product_attention itself; the
others have what it lacks, written with torch's functions. Inputs are f32; results are computed in
float64 and stored as f32; the same computation in f32 must agree with them.

The files have the form of make_layer_goldens.py. Fields: B H G L S D Dv causal softcap scale, and
window_left and window_right, both + 1. Tensors:

    query key value                     [B, heads, rows, width]
    attend_mask bias                    four extents, 1 where they are the same for all
    alibi sinks                         [H]
    d_output d_lse                      given; d_lse only where the loss has the log-sum-exp in it
    output d_query d_key d_value d_bias d_alibi d_sinks        the answer
"""

import math
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

from make_layer_goldens import FOLDER as BESIDE
from make_layer_goldens import Golden, same

FOLDER = os.path.join(BESIDE, "backward")


class BackwardGolden(Golden):
    title = "mha-backward-golden 1"


def sdpa(fields, x):
    """By PyTorch itself; heads that share keys by repetition."""
    repeat = x["query"].shape[1] // x["key"].shape[1]
    key, value = (x[n].repeat_interleave(repeat, 1) for n in ("key", "value"))
    mask = x.get("bias")
    if "attend_mask" in x:
        mask = x["attend_mask"].bool()
    return F.scaled_dot_product_attention(x["query"], key, value, attn_mask=mask,
                                          is_causal=bool(fields.get("causal")),
                                          scale=fields.get("scale")), None


def definition(fields, x):
    """From the definition, with the log-sum-exp."""
    query, sinks = x["query"], x.get("sinks")
    repeat = query.shape[1] // x["key"].shape[1]
    key, value = (x[n].repeat_interleave(repeat, 1) for n in ("key", "value"))
    scores = query @ key.transpose(-1, -2) * fields.get("scale", 1 / math.sqrt(query.shape[-1]))
    if "softcap" in fields:
        scores = fields["softcap"] * torch.tanh(scores / fields["softcap"])
    distance = torch.arange(query.shape[2])[:, None] - torch.arange(key.shape[2])[None, :]
    if "bias" in x:
        scores = scores + x["bias"]
    if "alibi" in x:
        scores = scores - x["alibi"][:, None, None] * distance.abs()
    hidden = torch.zeros_like(distance, dtype=torch.bool)
    if fields.get("causal"):
        hidden |= distance < 0
    if fields.get("window_left"):
        hidden |= (distance >= fields["window_left"]) | (-distance >= fields["window_right"])
    scores = scores.masked_fill(hidden, -math.inf)
    if sinks is not None:
        column = sinks[None, :, None, None].expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, column], -1)
    weights = scores.softmax(-1)[..., : key.shape[2]]
    return weights @ value, scores.logsumexp(-1)


LEARNED = ("query", "key", "value", "bias", "alibi", "sinks")
ANSWERS = {name: "d_" + name for name in LEARNED}


def case(name, forward, B=2, H=3, G=0, L=5, S=0, D=8, Dv=0, extra=(), lse=False, bias=None,
         mask=None, **fields):
    golden = BackwardGolden(name, B=B, H=H, G=G, L=L, S=S or L, D=D, Dv=Dv, **fields)
    G, S, Dv = G or H, S or L, Dv or D
    inputs = {"query": golden.normal("query", B, H, L, D), "key": golden.normal("key", B, G, S, D),
              "value": golden.normal("value", B, G, S, Dv)}
    if mask is not None:
        inputs["attend_mask"] = golden.add("attend_mask", mask.astype(np.uint8))
    if bias is not None:
        inputs["bias"] = golden.normal("bias", *bias)
    for head in extra:
        numbers = golden.random.rand(H) if head == "alibi" else golden.random.standard_normal(H)
        inputs[head] = golden.add(head, numbers.astype(np.float32))
    d_output = golden.normal("d_output", B, H, L, Dv)
    d_lse = golden.normal("d_lse", B, H, L) if lse else None

    def run(dtype):
        x = {key: value.to(dtype).detach().requires_grad_(key in LEARNED)
             for key, value in inputs.items()}
        output, sums = forward(fields, x)
        loss = (output * d_output.to(dtype)).sum()
        if lse:
            loss = loss + (sums * d_lse.to(dtype)).sum()
        loss.backward()
        return {"output": output} | {ANSWERS[key]: x[key].grad for key in LEARNED if key in x}

    wide, narrow = run(torch.float64), run(torch.float32)
    for key, answer in wide.items():
        same(answer, narrow[key], f"{name}: {key}")
        golden.answer(key, answer)
    return golden


def cases():
    holes = np.random.RandomState(5).rand(2, 1, 5, 7) < 0.6
    holes[..., 2] = True
    yield case("sdpa_plain", sdpa)
    yield case("sdpa_cross", sdpa, L=4, S=9, Dv=12)
    yield case("sdpa_causal", sdpa, L=9, causal=1)
    yield case("sdpa_scale", sdpa, S=6, scale=0.75)
    yield case("sdpa_mask", sdpa, S=7, mask=holes)
    yield case("sdpa_bias", sdpa, S=7, bias=(2, 3, 5, 7))
    yield case("sdpa_bias_shared", sdpa, S=7, bias=(1, 3, 1, 7))
    yield case("sdpa_grouped", sdpa, H=6, G=2, S=7, Dv=16)
    yield case("sdpa_one_key_head", sdpa, H=4, G=1, S=7, bias=(1, 1, 5, 7))
    yield case("sdpa_long", sdpa, B=1, H=2, L=70, S=140, D=16)
    yield case("lse", definition, S=7, lse=True)
    yield case("window", definition, L=9, causal=1, window_left=4, window_right=1)
    yield case("softcap", definition, S=7, softcap=1.5, scale=0.9)
    yield case("alibi", definition, L=7, causal=1, extra=("alibi",))
    yield case("sinks", definition, H=4, G=2, L=7, causal=1, lse=True, extra=("sinks",))
    yield case("everything", definition, H=4, G=2, L=9, Dv=12, lse=True, softcap=3.0, causal=1,
               window_left=6, window_right=1, bias=(1, 4, 9, 9), extra=("alibi", "sinks"))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else FOLDER
    os.makedirs(folder, exist_ok=True)
    count = 0
    for golden in cases():
        golden.write(folder)
        count += 1
    print(f"{count} golden files in {folder}")


if __name__ == "__main__":
    main()
