# SPDX-License-Identifier: MIT
"""mha.onnx.attention: special cases, and messages for wrong inputs."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx", minversion="1.23")  # older ones have older rules

from onnx import TensorProto  # noqa: E402
from onnx_models import assert_close  # noqa: E402

import mha.onnx  # noqa: E402
from mha.onnx import _operator  # noqa: E402


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


WRONG = [
    ({"Q": zeros(2, 3)}, r"Q has shape \(2, 3\); it must be \(batch, heads, rows"),
    ({"K": np.zeros((1, 2, 5, 4), np.int32)}, "K is int32; Attention takes float16"),
    ({"K": zeros(2, 2, 5, 4)}, "same batch size"),
    ({"K": zeros(1, 2, 5, 3)}, "heads of Q and K must have the same width"),
    ({"V": zeros(1, 2, 6, 4)}, "K and V must have the same heads and rows"),
    ({"K": zeros(1, 3, 5, 4), "V": zeros(1, 3, 5, 4)}, "multiple of those of K and V"),
    ({"Q": zeros(1, 3, 8), "q_num_heads": 2}, "same rank"),
    ({"Q": zeros(1, 3, 8)}, "q_num_heads must be a number that divides 8; it is None"),
    ({"Q": zeros(1, 3, 8), "q_num_heads": 3}, "divides 8; it is 3"),
    ({"kv_num_heads": 4}, "kv_num_heads is 4, but K of shape .* has 2 heads"),
    ({"past_key": zeros(1, 2, 1, 4)}, "past_key and past_value must be given together"),
    ({"past_key": zeros(1, 1, 1, 4), "past_value": zeros(1, 1, 1, 4)}, r"\(1, 2, rows, 4\)"),
    ({"past_key": zeros(1, 2, 1, 4), "past_value": zeros(1, 2, 2, 4)}, "heads and rows"),
    (
        {
            "past_key": zeros(1, 2, 1, 4).astype(np.float16),
            "past_value": zeros(1, 2, 1, 4).astype(np.float16),
        },
        "past_key is float16, but what is appended to it is float32",
    ),
    (
        {
            "past_key": zeros(1, 2, 1, 4),
            "past_value": zeros(1, 2, 1, 4),
            "nonpad_kv_seqlen": np.array([3]),
        },
        "not with past_key",
    ),
    ({"nonpad_kv_seqlen": np.array([6])}, r"nonpad_kv_seqlen is \[6\], but K has 5 rows"),
    ({"nonpad_kv_seqlen": np.array([-1])}, r"nonpad_kv_seqlen is \[-1\]"),
    ({"nonpad_kv_seqlen": np.array([1, 2])}, r"must be int64 of shape \(1,\)"),
    ({"nonpad_kv_seqlen": zeros(1)}, "nonpad_kv_seqlen is float32"),
    ({"attn_mask": zeros(3, 6)}, "only the last axis may be shorter"),
    ({"attn_mask": zeros(2, 5)}, r"attn_mask has shape \(2, 5\)"),
    ({"attn_mask": zeros(1, 1, 1, 3, 5)}, "must broadcast to"),
    ({"attn_mask": zeros()}, "must broadcast to"),
    ({"attn_mask": np.zeros((3, 5), complex)}, "attn_mask is complex128; it must be bool or num"),
    ({"left_window_size": -2}, "left_window_size is -2; it must be -1"),
    ({"right_window_size": -5}, "right_window_size is -5"),
    ({"qk_matmul_output_mode": 4, "qk_matmul_output": True}, "it must be 0, 1, 2 or 3"),
    ({"softmax_precision": 7}, "softmax_precision is 7"),
    ({"scale": -1.0}, "scale is -1.0"),
    ({"scale": float("nan")}, "scale is nan"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_wrong_input_is_named(change: dict[str, Any], message: str) -> None:
    right = {"Q": zeros(1, 4, 3, 4), "K": zeros(1, 2, 5, 4), "V": zeros(1, 2, 5, 4)}
    mha.onnx.attention(**right)
    with pytest.raises(ValueError, match=message):
        mha.onnx.attention(**{**right, **change})


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(TypeError, match="causal"):
        mha.onnx.attention(zeros(1, 1, 1, 1), zeros(1, 1, 1, 1), zeros(1, 1, 1, 1), causal=1)


def test_mode_0_is_before_the_soft_cap(random: Any) -> None:
    Q, K, V = (random.standard_normal((1, 2, 3, 4)).astype(np.float32) for _ in range(3))
    scores = [
        mha.onnx.attention(
            Q, K, V, softcap=0.5, scale=1.0, qk_matmul_output=True, qk_matmul_output_mode=mode
        ).qk_matmul_output
        for mode in (0, 1)
    ]
    assert_close(scores[0], Q @ K.swapaxes(2, 3), 1e-5)
    assert_close(scores[1], 0.5 * np.tanh(Q @ K.swapaxes(2, 3) / 0.5), 1e-5)


def test_scores_before_masks_show_padded_keys_too(random: Any) -> None:
    Q, K, V = (random.standard_normal((2, 1, 3, 4)).astype(np.float32) for _ in range(3))
    lengths = np.array([1, 2])
    shown = mha.onnx.attention(Q, K, V, None, None, None, lengths, qk_matmul_output=True)
    hidden = mha.onnx.attention(Q, K, V, None, None, None, lengths)
    assert_close(shown.qk_matmul_output, Q @ K.swapaxes(2, 3) / 2, 1e-5)
    assert_close(shown.Y, hidden.Y, 1e-6)


@pytest.mark.parametrize("columns", [1, 2, 4, 5])
def test_columns_a_mask_lacks_are_masked(columns: int, random: Any) -> None:
    Q, K, V = (random.standard_normal((1, 2, 5, 4)).astype(np.float32) for _ in range(3))
    wanted = mha.onnx.attention(Q, K[:, :, :columns], V[:, :, :columns]).Y
    for mask in (np.ones((5, columns), bool), zeros(5, columns), np.zeros(columns, np.int64)):
        assert_close(mha.onnx.attention(Q, K, V, mask).Y, wanted, 1e-6)


def test_integers_in_a_mask_are_numbers(random: Any) -> None:
    Q, K, V = (random.standard_normal((1, 2, 3, 4)).astype(np.float32) for _ in range(3))
    mask = random.integers(-3, 4, (3, 3))
    wanted = mha.onnx.attention(Q, K, V, mask.astype(np.float32)).Y
    assert np.array_equal(mha.onnx.attention(Q, K, V, mask).Y, wanted)


def test_scale_0_and_softcap_below_0(random: Any) -> None:
    Q, K, V = (random.standard_normal((1, 2, 3, 4)).astype(np.float32) for _ in range(3))
    mean = np.broadcast_to(V.mean(2, keepdims=True), V.shape)
    assert_close(mha.onnx.attention(Q, K, V, scale=0.0).Y, mean, 1e-6)
    plain = mha.onnx.attention(Q, K, V).Y
    assert np.array_equal(mha.onnx.attention(Q, K, V, softcap=-1.0).Y, plain)


def test_softmax_precision_double() -> None:
    """Two scores near 6144 that are 1.5 units of float32 apart: it has to round them."""
    Q = np.full((1, 1, 1, 1), 6144, np.float32)
    K = np.array([1, 1 + 2**-23], np.float32).reshape(1, 1, 2, 1)
    V = np.array([0, 1], np.float32).reshape(1, 1, 2, 1)
    exact = 1 / (1 + np.exp(-6144 * 2.0**-23))
    errors = {}
    for precision in (None, *(getattr(TensorProto, n) for n in ("FLOAT", "FLOAT16", "BFLOAT16"))):
        Y = mha.onnx.attention(Q, K, V, scale=1.0, softmax_precision=precision).Y
        errors[precision] = abs(Y.item() - exact)
    assert len(set(errors.values())) == 1 and errors[None] > 1e-5
    Y = mha.onnx.attention(Q, K, V, scale=1.0, softmax_precision=TensorProto.DOUBLE).Y
    assert Y.dtype == np.float32
    assert abs(Y.item() - exact) < 1e-7


@pytest.mark.parametrize("name", ["Q", "K", "V", "attn_mask"])
@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_types_may_differ(name: str, dtype: str, random: Any) -> None:
    """With one float64 input, everything is computed in float64; the result has the type of Q."""
    inputs = {n: random.standard_normal((1, 2, 3, 3)).astype(np.float32) for n in ("Q", "K", "V")}
    inputs["attn_mask"] = random.standard_normal((3, 3)).astype(np.float32)
    wanted = mha.onnx.attention(**inputs)
    inputs[name] = inputs[name].astype(dtype)
    got = mha.onnx.attention(**inputs, qk_matmul_output=True)
    assert got.Y.dtype == got.qk_matmul_output.dtype == inputs["Q"].dtype
    assert_close(got.Y, wanted.Y, 1e-6 if dtype == "float64" else 1e-2)


def test_strided_and_read_only_inputs(random: Any) -> None:
    Q, K, V = (random.standard_normal((2, 3, 5, 4)).astype(np.float32) for _ in range(3))
    mask = random.standard_normal((5, 5)).astype(np.float32)
    wanted = mha.onnx.attention(Q, K, V, mask).Y
    swapped = [x.swapaxes(2, 3).copy().swapaxes(2, 3) for x in (Q, K, V)]
    for x in swapped:
        x.flags.writeable = False
    assert np.array_equal(mha.onnx.attention(*swapped, np.asfortranarray(mask)).Y, wanted)


def test_rows_of_heads_and_heads_of_rows_agree(random: Any) -> None:
    Q, K, V = (random.standard_normal((2, 3, 5, 4)).astype(np.float32) for _ in range(3))
    flat = [x.transpose(0, 2, 1, 3).reshape(2, 5, 12) for x in (Q, K, V)]
    four = mha.onnx.attention(Q, K, V, is_causal=1)
    three = mha.onnx.attention(*flat, q_num_heads=3, kv_num_heads=3, is_causal=1)
    assert three.Y.shape == (2, 5, 12) and three.Y.flags.c_contiguous
    assert np.array_equal(three.Y.reshape(2, 5, 3, 4).transpose(0, 2, 1, 3), four.Y)
    assert np.array_equal(three.present_key, K) and three.present_key.shape == K.shape


def test_docstrings() -> None:
    results = doctest.testmod(_operator)
    assert results.attempted > 0 and results.failed == 0


def test_the_examples_of_the_manual() -> None:
    page = Path(__file__).parents[2] / "docs" / "python-onnx.md"
    if not page.exists():
        pytest.skip(f"{page.name} is not beside this package")
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, page.name, "exec"), names)
