# SPDX-License-Identifier: MIT
"""Attention on NumPy arrays: a soft lookup, what heads attend to, masks, grouped heads.

python numpy_attention.py
"""

from __future__ import annotations

import numpy as np

import mha


def soft_lookup() -> None:
    """One query and four keys: the answer is a mean of their values, closest to the best key's."""
    query = np.array([[0.6, 0.8]], np.float32)
    keys = np.array([[1, 0], [0, 1], [0.6, 0.8], [-1, 0]], np.float32)
    values = np.array([[10], [20], [30], [40]], np.float32)
    for scale in (0.1, 1.0, 10.0, 100.0):
        answer, _, weights, _ = mha.attention(query, keys, values, scale=scale, return_weights=True)
        print(f"scale {scale:5}: weights {weights[0].round(3)}, answer {answer[0, 0]:.2f}")
    assert abs(answer[0, 0] - 30) < 0.1  # sharper attention is closer to one value


def by_hand(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Causal attention written out as in textbooks."""
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores[..., ~np.tri(*scores.shape[-2:], dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ value


def many_heads() -> None:
    """Batch 2, 8 heads, 10 tokens, width 64: arrays (batch, heads, tokens, width)."""
    rng = np.random.default_rng(0)
    query, key, value = rng.standard_normal((3, 2, 8, 10, 64), dtype=np.float32)
    output = mha.attention(query, key, value, causal=True)
    print("\noutput", output.shape, "largest difference to the formula:", end=" ")
    print(abs(output - by_hand(query, key, value)).max())
    assert np.allclose(output, by_hand(query, key, value), atol=1e-5)

    # Heads side by side, as a projection leaves them: (batch, tokens, heads, width), no copy.
    rows = mha.attention(
        query.swapaxes(1, 2), key.swapaxes(1, 2), value.swapaxes(1, 2), layout="blhd", causal=True
    )
    assert np.array_equal(rows.swapaxes(1, 2), output)

    # Two query heads per head of keys and values; the output goes to existing memory.
    mha.attention(query, key[:, :4], value[:, :4], causal=True, out=output)


def masks() -> None:
    """A batch of sentences of 3 and 5 words, padded to 5, each word attends to 2 on either side."""
    rng = np.random.default_rng(1)
    words = rng.standard_normal((2, 4, 5, 16), dtype=np.float32)
    lengths = np.array([3, 5])
    near = {"window": (2, 2), "position": "top-left"}  # query i is at key i
    by_length = mha.attention(words, words, words, key_lengths=lengths, **near)
    attends = (np.arange(5) < lengths[:, None])[:, None, None, :]  # True attends
    by_mask = mha.attention(words, words, words, mask=attends, **near)
    assert np.allclose(by_length, by_mask, atol=1e-6)

    # Masked keys never affect the output, even if they are NaN.
    padded = words.copy()
    padded[0, :, 3:] = np.nan
    assert np.array_equal(mha.attention(words, padded, padded, mask=attends, **near), by_mask)
    print("\nmasked keys never affect the output, even if they are NaN")


if __name__ == "__main__":
    soft_lookup()
    many_heads()
    masks()
