# SPDX-License-Identifier: MIT
"""Which heads does a model need? The gradient of a gate per head estimates it without ablation.

    python torch_gates.py

A small model learns to predict the previous token. One backward pass then gives the gradient of
the loss with respect to the gates, which are 1; disabling the heads one by one shows how much each
really matters.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import mha.torch

HEADS, WIDTH, TOKENS, LENGTH = 8, 32, 16, 12


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.classes = nn.Linear(WIDTH, TOKENS)

    def forward(self, tokens: Tensor, gates: Tensor) -> tuple[Tensor, Tensor]:
        """The loss, and the weights of every head."""
        x = self.tokens(tokens) + self.positions.weight
        heads = self.project(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        result = mha.torch.attention(*heads, gates=gates, return_weights=True)
        scores = self.classes(result.output.transpose(1, 2).flatten(2))
        loss = F.cross_entropy(scores[:, 1:].flatten(0, 1), tokens[:, :-1].flatten())
        return loss, result.weights


def train(model: Model, steps: int = 60) -> None:
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(steps):
        loss, _ = model(torch.randint(TOKENS, (16, LENGTH)), torch.ones(HEADS))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main() -> None:
    torch.manual_seed(0)
    model = Model()
    train(model)
    tokens = torch.randint(TOKENS, (64, LENGTH))
    gates = torch.ones(HEADS, requires_grad=True)
    loss, weights = model(tokens, gates)
    (slopes,) = torch.autograd.grad(loss, gates)
    previous = weights.diagonal(-1, 2, 3).mean((0, 2))
    print(f"loss {loss.item():.4f}")
    for head in range(HEADS):
        with torch.no_grad():
            disabled, _ = model(tokens, torch.ones(HEADS).index_fill(0, torch.tensor(head), 0.0))
        print(
            f"head {head}: slope {slopes[head].item():8.4f}, loss when disabled "
            f"{disabled.item():7.4f}, weight of the token before {previous[head].item():.2f}"
        )


if __name__ == "__main__":
    main()
