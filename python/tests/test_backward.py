# SPDX-License-Identifier: MIT
"""attention_backward() against differences of the reference in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import reference

import mha

B, H, G, L, S, D, DV = 2, 4, 2, 3, 5, 4, 3


@pytest.fixture
def inputs(random: Any) -> dict[str, Any]:
    shapes = {"query": (B, H, L, D), "key": (B, G, S, D), "value": (B, G, S, DV)}
    return {name: random.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}


def differences(loss: Callable[[Any], float], at: Any, step: float = 1e-5) -> Any:
    """The gradient of a function of an array, by central differences."""
    x = np.array(at, np.float64)
    gradient = np.zeros_like(x)
    for n in np.ndindex(x.shape):
        middle = x[n]
        x[n] = middle + step
        above = loss(x)
        x[n] = middle - step
        gradient[n] = (above - loss(x)) / (2 * step)
        x[n] = middle
    return gradient


def check(
    inputs: dict[str, Any],
    random: Any,
    want: tuple[str, ...] = ("query", "key", "value"),
    with_lse: bool = False,
    **options: Any,
) -> None:
    """Compare the gradients that `want` names."""
    ours = {name: value for name, value in options.items() if name != "offset"}
    forward = mha.attention(**inputs, **ours, return_lse=True)
    d_output = random.standard_normal(forward.output.shape, dtype=np.float32)
    d_lse = random.standard_normal(forward.lse.shape, dtype=np.float32) if with_lse else None
    got = mha.attention_backward(
        d_output, *inputs.values(), *forward[:2], **ours, want=want, d_lse=d_lse
    )
    for name in got._fields:
        if name not in want:
            assert getattr(got, name) is None
            continue
        given = inputs if name in inputs else options

        def loss(x: Any, name: str = name) -> float:
            arguments = {**inputs, **options, name: x}
            result = reference.attention(**arguments)
            lse = 0.0 if d_lse is None else float((d_lse * result.lse).sum())
            return float((d_output * result.output).sum()) + lse

        gradient = getattr(got, name)
        assert gradient.dtype == np.float32 and gradient.shape == np.shape(given[name])
        np.testing.assert_allclose(
            gradient, differences(loss, given[name]), rtol=1e-5, atol=1e-5, err_msg=name
        )


def test_of_inputs(inputs: Any, random: Any) -> None:
    check(inputs, random)


def test_of_the_log_sum_exp(inputs: Any, random: Any) -> None:
    check(inputs, random, with_lse=True)


def test_through_masks(inputs: Any, random: Any) -> None:
    check(
        inputs,
        random,
        causal=True,
        position=1,
        offset=1,
        mask=random.random((B, 1, L, S)) > 0.2,
        key_lengths=[4, 5],
        softcap=2.0,
        scale=0.8,
    )


def test_of_vectors(inputs: Any, random: Any) -> None:
    vectors = {
        name: random.standard_normal(H, dtype=np.float32)
        for name in ("alibi_slopes", "sinks", "gates")
    }
    check(inputs, random, want=("query", *vectors), position="top-left", **vectors)


def test_of_gates_for_each_batch(inputs: Any, random: Any) -> None:
    gates = random.standard_normal((B, H), dtype=np.float32)
    check(inputs, random, want=("gates", "value"), gates=gates)


@pytest.mark.parametrize("name", ["bias", "mask"])
@pytest.mark.parametrize(
    "shape", [(B, H, L, S), (1, H, L, S), (H, 1, S), (S,), (B, 1, L, 1), (H, L, 1), (1,)], ids=str
)
def test_of_what_is_added(inputs: Any, random: Any, name: str, shape: Any) -> None:
    """With the gradient of the log-sum-exp: weights do not change if a number is added to all
    scores."""
    added = random.standard_normal(shape, dtype=np.float32)
    check(inputs, random, want=(name,), with_lse=True, **{name: added})


@pytest.mark.parametrize("axis", range(4))
def test_of_broadcast_views_is_whole(inputs: Any, random: Any, axis: int) -> None:
    shape = [B, H, L, S]
    shape[axis] = 1
    bias = np.broadcast_to(random.standard_normal(shape, dtype=np.float32), (B, H, L, S))
    check(inputs, random, want=("bias",), with_lse=True, bias=bias)


def test_layouts_agree_to_the_bit(inputs: Any, random: Any) -> None:
    q, k, v = inputs.values()
    forward = mha.attention(q, k, v, return_lse=True)
    d = random.standard_normal(forward.output.shape, dtype=np.float32)
    got = mha.attention_backward(d, q, k, v, *forward[:2])
    d, q, k, v, o = (x.swapaxes(1, 2) for x in (d, q, k, v, forward.output))
    other = mha.attention_backward(d, q, k, v, o, forward.lse, layout="blhd")
    for one, two in zip(got[:3], other[:3]):
        assert np.array_equal(one, two.swapaxes(1, 2))


def test_packed_sequences(random: Any) -> None:
    starts = [0, 3, 3, 7]
    q, k, v = (random.standard_normal((H, 9, D), dtype=np.float32) for _ in range(3))
    options = {"query_starts": starts, "key_starts": starts, "causal": True}
    forward = mha.attention(q, k, v, **options, return_lse=True)
    assert not forward.output[:, 7:].any()
    d = random.standard_normal(forward.output.shape, dtype=np.float32)
    got = mha.attention_backward(d, q, k, v, *forward[:2], **options)
    for a, b in ((0, 3), (3, 7)):
        rows = np.s_[:, a:b]
        alone = mha.attention_backward(
            d[rows], q[rows], k[rows], v[rows], forward.output[rows], forward.lse[rows], causal=True
        )
        for one, two in zip(got[:3], alone[:3]):
            assert np.array_equal(one[rows], two)
    assert not any(gradient[:, 7:].any() for gradient in got[:3])


def test_dropout_is_that_of_the_forward_pass(inputs: Any, random: Any) -> None:
    options = {"dropout": 0.5, "dropout_seed": 7}
    q, k, v = inputs.values()
    forward = mha.attention(q, k, v, **options, return_lse=True)
    d = random.standard_normal(forward.output.shape, dtype=np.float32)
    got = mha.attention_backward(d, q, k, v, *forward[:2], **options, want=["value"])
    # The output is linear in the values: the gradient along them gives it back.
    np.testing.assert_allclose(
        (got.value * v).sum(dtype=np.float64), (d * forward.output).sum(dtype=np.float64), rtol=1e-5
    )


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_half_inputs_have_f32_gradients(inputs: Any, random: Any, kind: str) -> None:
    dtype = pytest.importorskip("ml_dtypes").bfloat16 if kind == "bfloat16" else np.float16
    half = {name: value.astype(dtype) for name, value in inputs.items()}
    wide = {name: value.astype(np.float32) for name, value in half.items()}
    d = random.standard_normal((B, H, L, DV), dtype=np.float32)
    grads = []
    for arrays in (half, wide):
        forward = mha.attention(**arrays, return_lse=True)
        grads.append(mha.attention_backward(d, *arrays.values(), *forward[:2]))
    for one, two in zip(*(g[:3] for g in grads)):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, two, rtol=2e-2, atol=2e-2)


def test_threads_do_not_change_a_bit(random: Any) -> None:
    q, k, v, d = (random.standard_normal((2, 4, 200, 32), dtype=np.float32) for _ in range(4))
    bias = random.standard_normal((4, 1, 200), dtype=np.float32)
    forward = mha.attention(q, k, v, bias=bias, return_lse=True)
    one, two = (
        mha.attention_backward(
            d, q, k, v, *forward[:2], bias=bias, want=("query", "key", "value", "bias"), threads=n
        )
        for n in (1, 2)
    )
    for a, b in zip(one[:4], two[:4]):
        assert np.array_equal(a, b)


def test_what_cannot_be(inputs: Any) -> None:
    q, k, v = inputs.values()
    forward = mha.attention(q, k, v, return_lse=True)
    d = np.ones_like(forward.output)

    def run(*arrays: Any, **options: Any) -> Any:
        return mha.attention_backward(*(arrays or (d, q, k, v, *forward[:2])), **options)

    with pytest.raises(mha.Error, match="the gradient of bias is wanted, but bias was not given"):
        run(want=("bias",))
    with pytest.raises(mha.Error, match="mask is boolean and has none"):
        run(want=("mask",), mask=np.ones((L, S), bool))
    with pytest.raises(mha.Error, match='an element of want is "o"; use one of "query", "key"'):
        run(want=("o",))
    with pytest.raises(TypeError, match="want is a str"):
        run(want="query")
    with pytest.raises(mha.Error, match=r"d_output has shape \(2, 4, 3, 2\); it must be"):
        run(d[..., :2], q, k, v, *forward[:2])
    with pytest.raises(mha.Error, match=r"lse has shape \(2, 4, 2\); it must be \(2, 4, 3\)"):
        run(d, q, k, v, forward.output, forward.lse[..., :2])
    with pytest.raises(mha.Error, match="lse has elements of type f64; it must be f32"):
        run(d, q, k, v, forward.output, forward.lse.astype(np.float64))
    with pytest.raises(mha.Error, match="head_modes is for the forward pass"):
        run(head_modes=["uniform"] * H)
    wide = [x.astype(np.float64) for x in (d, q, k, v, *forward[:2])]
    with pytest.raises(mha.Error, match="the backward pass is for f32, f16 and bf16"):
        run(*wide)
    with pytest.raises(
        mha.Error, match=r"^d_output has element type 3 \(f64\); use f32, f16 or bf16$"
    ):
        run(d.astype(np.float64), q, k, v, *forward[:2])
    with pytest.raises(TypeError, match=r"attention_backward\(\) needs the argument 'lse'"):
        run(d, q, k, v, forward.output)
    with pytest.raises(TypeError, match="unexpected keyword argument 'return_lse'"):
        run(return_lse=True)
