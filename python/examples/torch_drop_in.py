# SPDX-License-Identifier: MIT
"""Three ways to run an existing PyTorch model on libmha, and what its heads attend to.

    python torch_drop_in.py

The function, the context manager and the module give the same results as torch; the weights of
every head are returned without a slow path.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

import mha
import mha.torch


def by_function() -> None:
    query, key, value = torch.randn(3, 1, 4, 100, 32).unbind()
    output, weights = mha.torch.scaled_dot_product_attention(
        query, key, value, is_causal=True, need_weights=True
    )
    right = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    torch.testing.assert_close(output, right)
    print(f"function: weights {tuple(weights.shape)}, {mha.torch.explain(query, key, value)}")


def by_context(model: nn.Module, x: torch.Tensor) -> None:
    right = model(x)
    with mha.torch.sdpa():
        output = model(x)
    torch.testing.assert_close(output, right, atol=1e-5, rtol=1e-5)
    print("context:  the same output")


def by_module(model: nn.Module, x: torch.Tensor) -> None:
    right = model(x)
    names = mha.torch.replace(model)
    torch.testing.assert_close(model(x), right, atol=1e-5, rtol=1e-5)
    layer = model.get_submodule(names[0])
    weights = layer(x, x, x, average_attn_weights=False)[1]
    print(f"module:   {', '.join(names)}; weights {tuple(weights.shape)}")


def main() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval()
    x = torch.randn(1, 12, 64)
    with torch.no_grad():
        by_function()
        by_context(model, x)
        by_module(model, x)


if __name__ == "__main__":
    main()
