# SPDX-License-Identifier: MIT
"""Masks as rules: they equal the matrices of transformers, and remain rules."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
hf = pytest.importorskip("mha.hf")

pytestmark = pytest.mark.usefixtures("one_thread")

import mha  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM, masking_utils  # noqa: E402

B, TOKENS = 3, 24
PACKED = torch.tensor([[0] * 5 + [1] * 9 + [2] * 10, [0] * 24, [0] * 20 + [1] * 4])
KINDS: dict[str, Callable] = {
    "causal": masking_utils.causal_mask_function,
    "all": masking_utils.bidirectional_mask_function,
    "window": masking_utils.sliding_window_causal_mask_function(5),
    "wide window": masking_utils.sliding_window_causal_mask_function(40),
    "window both ways": masking_utils.sliding_window_bidirectional_mask_function(3),
    "packed": masking_utils.and_masks(
        masking_utils.causal_mask_function, masking_utils.packed_sequence_mask_function(PACKED)
    ),
    "chunks": masking_utils.chunked_causal_mask_function(4, torch.tensor([0, 3, 6])),
}


def padding(kind: str, tokens: int) -> Any:
    if kind == "none":
        return None
    counts = torch.ones(B, tokens, dtype=torch.bool)
    if kind == "left":
        counts[1, :3] = counts[2, :6] = False
    if kind == "right":
        counts[1, -3:] = counts[2, -tokens:] = False
    if kind == "both":
        counts[1, :2] = counts[1, -2:] = False
    return counts


def shown(mask: Any, queries: int, keys: int) -> Any:
    """The keys that `attention` does not mask: with equal scores each of them has a weight."""
    layer = torch.nn.Identity()
    zeros = torch.zeros(B, 2, max(queries, keys), 4)
    q, k = zeros[:, :, :queries], zeros[:, :, :keys]
    return hf.attention(layer, q, k, k, mask, output_attentions=True)[1][:, :1] > 0


# queries, keys, and the position of the first of each: prompt, step, chunk after a cache, static
# cache, ring
PLACES = [
    (12, 12, 0, 0),
    (1, 13, 12, 0),
    (4, 16, 12, 0),
    (6, 20, 0, 0),
    (1, 20, 7, 0),
    (3, 9, 15, 9),
]


@pytest.mark.parametrize("kind", KINDS)
def test_rules_show_what_matrices_show(kind: str) -> None:
    for (queries, keys, q, k), pads in itertools.product(PLACES, ("none", "left", "right", "both")):
        for known in (q + queries, k + keys):
            arguments = {
                "batch_size": B,
                "q_length": queries,
                "kv_length": keys,
                "q_offset": q,
                "kv_offset": k,
                "mask_function": KINDS[kind],
                "attention_mask": padding(pads, known),
                "allow_is_causal_skip": False,
            }
            mask = hf.mask(**arguments)
            expected = masking_utils.sdpa_mask(**arguments)
            assert isinstance(mask, hf.Mask), (kind, pads, arguments)
            assert mask.shape == expected.shape and torch.equal(mask.dense, expected)
            assert torch.equal(shown(mask, queries, keys), expected), (kind, pads, mask.rule)


@pytest.mark.parametrize("kind", ["causal", "wide window", "all"])
def test_none_is_what_goes_without_saying(kind: str) -> None:
    for queries, keys, q, k in PLACES:
        arguments = {
            "batch_size": B,
            "q_length": queries,
            "kv_length": keys,
            "q_offset": torch.tensor(q),
            "kv_offset": k,
            "mask_function": KINDS[kind],
            "attention_mask": padding("none", 0),
        }
        skip = "allow_is_bidirectional_skip" if kind == "all" else "allow_is_causal_skip"
        mask = hf.mask(**arguments, **{skip: True})
        full = masking_utils.sdpa_mask(**arguments | {"allow_is_causal_skip": False})
        alike = kind == "all" or torch.equal(shown(None, queries, keys), full)
        assert (mask is None) == alike
        assert hf.mask(**arguments, **{skip: False}) is not None


def test_other_functions_become_matrices() -> None:
    blocks = masking_utils.or_masks(
        masking_utils.causal_mask_function, masking_utils.blockwise_overlay(PACKED)
    )
    for function in (blocks, lambda b, h, q, k: (q + k) % 2 == 0):
        arguments = {
            "batch_size": B,
            "q_length": 8,
            "kv_length": 8,
            "mask_function": function,
            "attention_mask": padding("left", 8),
            "allow_is_causal_skip": False,
        }
        mask = hf.mask(**arguments)
        assert type(mask) is torch.Tensor
        assert torch.equal(mask, masking_utils.sdpa_mask(**arguments))
        assert torch.equal(shown(mask, 8, 8), mask)


def test_a_model_may_compute_with_a_mask() -> None:
    mask = hf.mask(B, 5, 5, attention_mask=padding("left", 5))
    dense = mask.dense
    for one, other in (
        (mask[:, 0], dense[:, 0]),
        (mask & mask, dense),
        (torch.cat([mask, mask], -1), torch.cat([dense, dense], -1)),
        (torch.where(mask, 0.0, -1.0), torch.where(dense, 0.0, -1.0)),
        (mask.expand(B, 4, 5, 5), dense.expand(B, 4, 5, 5)),
    ):
        assert type(one) is torch.Tensor and torch.equal(one, other)
    assert (mask.dtype, mask.dim(), mask.device.type) == (torch.bool, 4, "cpu")
    assert repr(mask).startswith("Mask((3, 1, 5, 5), {'causal': True, 'position': 0, 'mask': ")


@pytest.mark.parametrize("side", ["left", "right"])
def test_no_matrix_is_made_for_a_model(side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hf.register()
    config = LlamaConfig(
        vocab_size=16, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, pad_token_id=0,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    model.set_attn_implementation("mha")
    seen: list[dict[str, Any]] = []
    true_attention = mha.attention

    def watch(*args: Any, **options: Any) -> Any:
        seen.append(options)
        return true_attention(*args, **options)

    monkeypatch.setattr(mha, "attention", watch)
    monkeypatch.setattr(hf._mask, "sdpa_mask", None)
    ids = torch.ones(B, 7, dtype=torch.int64)
    with torch.no_grad():
        model(input_ids=ids, attention_mask=padding(side, 7))
    assert seen[0]["causal"] and seen[0]["position"] == 0
    if side == "right":
        assert seen[0]["key_lengths"].tolist() == [7, 4, 0] and "mask" not in seen[0]
    else:
        assert seen[0]["mask"].shape == (B, 1, 1, 7) and "key_lengths" not in seen[0]
