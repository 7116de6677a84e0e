# SPDX-License-Identifier: MIT
"""The plain model of captions: an encoder of patches, and a decoder that attends to all of them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .torch_pictures import Vision


class DecoderBlock(nn.Module):
    """A layer of the decoder: itself, the patches, feed-forward; norms before each part."""

    def __init__(self, width: int, heads: int, inner: int, epsilon: float) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width, epsilon) for _ in range(3))
        self.joined, self.projected = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.query, self.memory = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.crossed = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

    def _split(self, x: Tensor, parts: int) -> tuple[Tensor, ...]:
        B, L, E = x.shape
        shape = (B, L, parts, self.heads, E // parts // self.heads)
        return x.view(shape).permute(2, 0, 3, 1, 4).unbind(0)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        q, k, v = self._split(self.joined(self.norms[0](x)), 3)
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projected(heads.transpose(1, 2).reshape(x.shape))
        (q,) = self._split(self.query(self.norms[1](x)), 1)
        k, v = self._split(self.memory(memory), 2)
        heads = F.scaled_dot_product_attention(q, k, v)
        x = x + self.crossed(heads.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.relu(self.up(self.norms[2](x))))


class Captioner(nn.Module):
    """Words [B, L] after pictures [B, 3, side, side]; the embedding is the output, too."""

    def __init__(self, sizes: dict, words: int, side: int, layers: int) -> None:
        super().__init__()
        width = sizes["width"]
        across = (side - sizes["patch"]) // sizes["stride"] + 1
        self.encoder = Vision(sizes, 1, across**2, pooled=True)
        del self.encoder.classifier
        self.embedding = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.zeros(1, 32, width), requires_grad=False)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.blocks = nn.ModuleList(
            DecoderBlock(width, sizes["heads"], sizes["inner"], sizes["epsilon"])
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width, sizes["epsilon"])

    def forward(self, pixels: Tensor, words: Tensor) -> Tensor:
        memory = self.encoder.hidden(pixels)
        x = self.embedding(words) * self.embedding.embedding_dim**0.5
        x = x + self.places[:, : words.shape[1]]
        for block in self.blocks:
            x = block(x, memory)
        return self.norm(x) @ self.embedding.weight.T
