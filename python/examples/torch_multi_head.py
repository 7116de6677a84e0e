# SPDX-License-Identifier: MIT
"""Multi-head attention as lectures write it in PyTorch, beside mha.Layer with the same weights.

    python torch_multi_head.py

The module has every step of the formula on a line of its own. Outputs, weights and a causal mask
give the same numbers in both, up to rounding; a query that may attend to nothing does not.
"""

from __future__ import annotations

import torch
from torch import nn

import mha


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W_O."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        assert width % heads == 0
        self.heads, self.head_width = heads, width // heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def split(self, rows: torch.Tensor) -> torch.Tensor:
        """(batch, rows, width) as (batch, heads, rows, head width)."""
        return rows.unflatten(-1, (self.heads, self.head_width)).transpose(1, 2)

    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        q, k, v = self.split(self.q(query)), self.split(self.k(key)), self.split(self.v(value))
        scores = q @ k.transpose(-2, -1) / self.head_width**0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        weights = scores.softmax(dim=-1)
        joined = (weights @ v).transpose(1, 2).flatten(-2)
        return self.o(joined), weights


def layer_of(module: MultiHeadAttention, width: int) -> mha.Layer:
    """The same weights, packed once."""
    weights = {}
    for name in "qkvo":
        linear = getattr(module, name)
        weights[name] = linear.weight.detach()
        weights[f"{name}_bias"] = linear.bias.detach()
    return mha.Layer(width, module.heads, weights=weights)


def report(what: str, ours: torch.Tensor, theirs: torch.Tensor) -> None:
    difference = (ours - theirs).abs().max().item()
    assert difference < 2e-6, f"{what}: {difference}"
    print(f"{what:8} {tuple(ours.shape)}: largest difference below 2e-6")


@torch.no_grad()
def main() -> None:
    torch.manual_seed(0)
    width, heads, rows = 512, 8, 10
    module = MultiHeadAttention(width, heads)
    layer = layer_of(module, width)
    x = torch.randn(2, rows, width)

    output, weights = module(x, x, x)
    ours = layer(x, return_weights=True)
    report("output", ours.output, output)
    report("weights", ours.weights, weights)

    earlier = torch.ones(rows, rows).tril()
    report("causal", layer(x, causal=True), module(x, x, x, earlier)[0])

    blind = torch.ones(rows, rows)
    blind[3] = 0  # query 3 may attend to no key
    theirs = module(x, x, x, blind)[0][:, 3]
    ours = layer(x, ignore_mask=blind == 0)[:, 3]
    print(f"a query that attends to nothing: module {'NaN' if theirs.isnan().all() else theirs},")
    print(f"    layer {'the bias of W_O alone' if (ours == module.o.bias).all() else ours}")


if __name__ == "__main__":
    main()
