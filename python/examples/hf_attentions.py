# SPDX-License-Identifier: MIT
"""Generate with a small GPT-2 of random weights, and draw what each head attends to.

    python hf_attentions.py [FILE.svg]

The tokens are those of eager attention, and the fast path returns the weights.
"""

from __future__ import annotations

import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import mha
import mha.hf


def main(file: str = "attentions.svg") -> None:
    torch.manual_seed(1)
    mha.hf.register()
    config = GPT2Config(
        vocab_size=100, n_embd=64, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=0
    )
    model = GPT2LMHeadModel(config).eval()
    prompt = torch.randint(2, 100, (1, 12))

    def generate() -> torch.Tensor:
        return model.generate(prompt, max_new_tokens=12, do_sample=False, pad_token_id=0)

    model.set_attn_implementation("eager")
    expected = generate()
    model.set_attn_implementation("mha")
    tokens = generate()
    print("tokens of eager attention:", torch.equal(tokens, expected))

    with torch.no_grad():
        attentions = model(tokens, output_attentions=True).attentions
    print("weights:", len(attentions), "layers of", tuple(attentions[0].shape))
    mha.Heatmap(attentions[1]).save(file)
    print("heads of layer 1 drawn in", file)


if __name__ == "__main__":
    main(*sys.argv[1:])
