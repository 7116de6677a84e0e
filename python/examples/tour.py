# SPDX-License-Identifier: MIT
"""A tour in five stops: a layer, a cache, what heads do, disabling heads, gradients.

    python tour.py [PICTURE.svg]

With a file name, the weights of all heads are drawn there.
"""

from __future__ import annotations

import sys

import numpy as np

import mha

WIDTH, HEADS = 32, 4
WORDS = "the cat that I saw yesterday ran away".split()


def make_layer() -> tuple[mha.Layer, np.ndarray]:
    """A layer with random weights, and random vectors in place of words."""
    layer = mha.Layer.random(WIDTH, HEADS, seed=1)
    words = np.random.default_rng(1).standard_normal((1, len(WORDS), WIDTH), dtype=np.float32)
    return layer, 2 * words


def look(layer: mha.Layer, words: np.ndarray, picture: str) -> None:
    """Weights are returned with the output, from the same pass."""
    result = layer(words, causal=True, return_weights=True)
    print(f"{layer}\noutput {result.output.shape}, weights {result.weights.shape}")
    assert np.allclose(result.weights.sum(-1), 1, atol=1e-5)
    if picture:
        mha.Heatmap(result.weights, rows=WORDS, columns=WORDS).save(picture)
        print("drawn to", picture)


def generate(layer: mha.Layer, words: np.ndarray) -> None:
    """Five words at once, then word by word: the same bits as all in one call."""
    cache = mha.KVCache(1, 64, kv_heads=HEADS, head_width=WIDTH // HEADS)
    parts = [layer(words[:, :5], causal=True, cache=cache)]
    for i in range(5, len(WORDS)):
        parts.append(layer(words[:, i : i + 1], causal=True, cache=cache))
    assert np.array_equal(np.concatenate(parts, axis=1), layer(words, causal=True))
    print(f"\na cache of {cache.lengths[0]} words gives the same bits as one call")


def measure(layer: mha.Layer, words: np.ndarray) -> None:
    """What heads attend to, gathered without a matrix of weights: memory grows with L + S."""
    heads = layer(words, causal=True, statistics=True).statistics.heads
    print("\nhead  entropy  distance  own word")
    for h in range(HEADS):
        numbers = (heads.entropy[0, h], heads.distance[0, h], heads.self[0, h])
        print(f"{h:4}  {numbers[0]:7.2f}  {numbers[1]:8.2f}  {numbers[2]:8.2f}")


def close(layer: mha.Layer, words: np.ndarray) -> None:
    """A disabled head, and the layer without it: the same up to rounding, and less work."""
    whole = layer(words, causal=True)
    gates = np.array([1, 0, 1, 1], np.float32)
    gated = layer(words, causal=True, gates=gates)
    pruned = layer.prune(gates.astype(bool))
    assert np.allclose(pruned(words, causal=True), gated, atol=1e-5)
    print(f"\nwithout head 1 the output changes by {np.linalg.norm(gated - whole):.2f}")


def learn() -> None:
    """Gradients: a query is adjusted until its answer is 30."""
    rng = np.random.default_rng(2)
    key, value = np.eye(4, dtype=np.float32), np.array([[10], [20], [30], [40]], np.float32)
    query = 0.1 * rng.standard_normal((1, 4), dtype=np.float32)
    for _ in range(50):
        output, lse, _, _ = mha.attention(query, key, value, scale=1.0, return_lse=True)
        error = output - 30
        gradients = mha.attention_backward(error, query, key, value, output, lse, scale=1.0)
        query -= 0.1 * gradients.query
    print(f"\nafter 50 steps the answer is {output[0, 0]:.3f}; it should be 30")
    assert abs(output[0, 0] - 30) < 0.1


def main(picture: str = "") -> None:
    layer, words = make_layer()
    look(layer, words, picture)
    generate(layer, words)
    measure(layer, words)
    close(layer, words)
    learn()


if __name__ == "__main__":
    main(*sys.argv[1:])
