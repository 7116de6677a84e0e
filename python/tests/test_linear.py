# SPDX-License-Identifier: MIT
"""mha.Linear, mha.FeedForward and mha.norm against NumPy in f64."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import mha

np = pytest.importorskip("numpy")


def activation(name: str | None, x: Any) -> Any:
    erf = np.vectorize(math.erf)
    return {
        None: lambda: x,
        "relu": lambda: np.maximum(x, 0),
        "gelu": lambda: x * (1 + erf(x / math.sqrt(2))) / 2,
        "gelu_tanh": lambda: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
        "gelu_quick": lambda: x / (1 + np.exp(-1.702 * x)),
        "silu": lambda: x / (1 + np.exp(-x)),
        "tanh": lambda: np.tanh(x),
    }[name]()


NAMES = [None, "relu", "gelu", "gelu_tanh", "gelu_quick", "silu", "tanh"]


def numbers(random: Any, *shape: int) -> Any:
    return random.standard_normal(shape).astype("float32")


@pytest.mark.parametrize("name", NAMES)
def test_a_linear(random: Any, name: Any) -> None:
    weight, bias = numbers(random, 40, 33) / 6, numbers(random, 40)
    x, residual = numbers(random, 2, 5, 33), numbers(random, 2, 5, 40)
    linear = mha.Linear(weight, bias, activation=name)
    wide = x.astype("f8") @ weight.astype("f8").T + bias
    y = linear(x, residual=residual)
    assert type(y) is np.ndarray and y.dtype == np.float32 and y.shape == (2, 5, 40)
    assert abs(y - (activation(name, wide) + residual)).max() < 1e-5
    assert np.array_equal(linear(x[1, 2]), linear(x)[1, 2])


@pytest.mark.parametrize(
    ("store", "error"),
    [("f32", 1e-5), ("f16", 3e-3), ("bf16", 2e-2), ("i8", 6e-2), ("q8", 6e-2), ("q4", 0.6)],
)
def test_storage(random: Any, store: Any, error: float) -> None:
    weight, x = numbers(random, 48, 64) / 8, numbers(random, 7, 64)
    linear = mha.Linear(weight, store=store)
    assert abs(linear(x) - x @ weight.T).max() < error
    assert store == "f32" or linear.nbytes < mha.Linear(weight).nbytes
    assert f"64 -> 48, {store}" in repr(linear)


def test_strides_and_out(random: Any) -> None:
    weight, x = numbers(random, 6, 4), numbers(random, 8, 10)
    transposed = mha.Linear(np.ascontiguousarray(weight.T).T)
    expected = mha.Linear(weight)(np.ascontiguousarray(x[::2, 3:7]))
    out = np.zeros((4, 9), "float32")
    assert transposed(x[::2, 3:7], out=out[:, 2:8]) is not None
    assert np.array_equal(out[:, 2:8], expected) and not out[:, :2].any() and not out[:, 8:].any()
    y = numbers(random, 8, 6)
    before = y.copy()
    mha.Linear(weight)(x[:, :4], residual=y, out=y)
    assert np.array_equal(y, mha.Linear(weight)(x[:, :4], residual=before))
    with pytest.raises(mha.Error, match="evenly spaced"):
        mha.Linear(weight)(np.zeros((3, 2, 4), "float32").transpose(1, 0, 2)[:, :2])


def test_half_precision_inputs(random: Any) -> None:
    weight, x = numbers(random, 6, 8), numbers(random, 3, 8).astype("float16")
    y = mha.Linear(weight)(x)
    assert y.dtype == np.float16 and abs(y - x.astype("f4") @ weight.T).max() < 0.02


def test_update(random: Any) -> None:
    first, second = numbers(random, 6, 8), numbers(random, 6, 8)
    x, bias = numbers(random, 3, 8), numbers(random, 6)
    linear = mha.Linear(first, bias)
    linear.update(second, bias)
    assert np.array_equal(linear(x), mha.Linear(second, bias)(x))
    assert (linear.inputs, linear.outputs) == (8, 6)
    with pytest.raises(mha.Error, match="shape"):
        linear.update(second.T)


@pytest.mark.parametrize("name", NAMES[1:])
@pytest.mark.parametrize("gated", [False, True])
def test_a_feed_forward(random: Any, name: Any, gated: bool) -> None:
    up, gate, down = (
        numbers(random, 48, 20) / 4,
        numbers(random, 48, 20) / 4,
        numbers(random, 20, 48) / 7,
    )
    biases = {"up_bias": numbers(random, 48), "down_bias": numbers(random, 20)}
    if gated:
        biases |= {"gate": gate, "gate_bias": numbers(random, 48)}
    x = numbers(random, 2, 3, 20)
    y = mha.FeedForward(up, down, activation=name, **biases)(x, residual=x)
    inner = x.astype("f8") @ up.T + biases["up_bias"]
    if gated:
        inner *= activation(name, x.astype("f8") @ gate.T + biases["gate_bias"])
    else:
        inner = activation(name, inner)
    assert abs(y - (inner @ down.T + biases["down_bias"] + x)).max() < 2e-5


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_a_norm(random: Any, kind: Any) -> None:
    x, residual = numbers(random, 2, 5, 24), numbers(random, 2, 5, 24)
    weight, bias = numbers(random, 24), numbers(random, 24)
    total = np.empty_like(x)
    y = mha.norm(x, weight, bias, kind=kind, eps=1e-6, residual=residual, sum_out=total)
    wide = x.astype("f8") + residual
    middle = wide - wide.mean(-1, keepdims=True) if kind == "layer" else wide
    expected = middle / np.sqrt((middle**2).mean(-1, keepdims=True) + 1e-6) * weight + bias
    assert abs(y - expected).max() < 1e-5 and np.array_equal(total, x + residual)
    copy = x.copy()
    mha.norm(copy, kind=kind, out=copy)
    assert np.array_equal(copy, mha.norm(x, kind=kind))


def test_tensors(random: Any) -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(16, 12)
    x = torch.randn(2, 3, 16)
    linear = mha.Linear(module.weight.detach(), module.bias.detach())
    with torch.no_grad():
        assert (linear(x) - module(x)).abs().max() < 1e-5
        half = linear(x.to(torch.bfloat16))
        assert half.dtype is torch.bfloat16 and (half - module(x)).abs().max() < 0.1
        norm = torch.nn.LayerNorm(16)
        assert (mha.norm(x, norm.weight.detach()) - norm(x)).abs().max() < 1e-5
    with pytest.raises(mha.Error, match="gradient"):
        mha.Linear(module.weight)


def test_arrays_of_the_standard_library() -> None:
    from array import array

    x = memoryview(array("f", [1, 2])).cast("B").cast("f", (1, 2))
    y = mha.Linear(memoryview(array("f", [1, 1, 0, -1])).cast("B").cast("f", (2, 2)))(x)
    assert type(y) is mha.Array and y.tolist() == [[3.0, -2.0]]


def test_threads_share_a_linear(random: Any) -> None:
    linear = mha.Linear(numbers(random, 64, 64))
    inputs = [numbers(random, n + 1, 64) for n in range(16)]
    alone = [linear(x, threads=1) for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        for a, b in zip(alone, pool.map(linear, inputs)):
            assert np.array_equal(a, b)


def test_wrong_arguments(random: Any) -> None:
    weight, x = numbers(random, 6, 8), numbers(random, 3, 8)
    linear = mha.Linear(weight)
    wrong: list[tuple[Any, ...]] = [
        (lambda: mha.Linear(weight[0]), mha.Error, "axes"),
        (lambda: mha.Linear(weight.astype("f8")), mha.Error, "f64"),
        (lambda: mha.Linear(weight, weight[0]), mha.Error, "bias"),
        (lambda: mha.Linear(weight, store="f8"), mha.Error, "store"),
        (lambda: mha.Linear(weight, store="q8"), mha.Error, "32"),
        (lambda: mha.Linear(weight, activation="swish"), mha.Error, "activation"),
        (lambda: mha.Linear("weight"), TypeError, "weight"),
        (lambda: linear(x[:, :7]), mha.Error, "last axis must have 8"),
        (lambda: linear(x.astype("f8")), mha.Error, "f64"),
        (lambda: linear(x, residual=x), mha.Error, "residual"),
        (lambda: linear(x, residual=numbers(random, 2, 6)), mha.Error, "residual"),
        (lambda: linear(x, out=numbers(random, 3, 5)), mha.Error, "out"),
        (lambda: linear(x, threads=0), mha.Error, "threads"),
        (lambda: linear(numbers(random)), mha.Error, "x has shape"),
        (lambda: mha.norm(x, kind="batch"), mha.Error, "kind"),
        (lambda: mha.norm(x, weight[0, :7]), mha.Error, "weight"),
        (lambda: mha.norm(x.astype("f2")), mha.Error, "f16"),
        (lambda: mha.FeedForward(weight, weight), mha.Error, "down"),
        (lambda: mha.FeedForward(weight, weight.T, gate_bias=weight[0]), mha.Error, "gate"),
    ]
    for call, kind, words in wrong:
        with pytest.raises(kind, match=words):
            call()


def test_no_rows(random: Any) -> None:
    linear = mha.Linear(numbers(random, 6, 8))
    assert linear(np.zeros((0, 8), "float32")).shape == (0, 6)
    assert mha.norm(np.zeros((2, 0, 8), "float32")).shape == (2, 0, 8)


def stack_of(random: Any, layers: int, width: int) -> tuple[Any, list[Any]]:
    """A stack, and its parts."""
    parts = []
    for _ in range(layers):
        weights = {name: numbers(random, width, width) / 4 for name in "qkvo"}
        weights["v_bias"] = numbers(random, width)
        inner = 2 * width
        feed_forward = mha.FeedForward(
            numbers(random, inner, width) / 4, numbers(random, width, inner) / 6, activation="gelu"
        )
        norms = [(1 + numbers(random, width) / 9, numbers(random, width), 1e-6) for _ in range(2)]
        parts.append((mha.Layer(width, 4, weights=weights), feed_forward, *norms))
    return mha._core.Stack(parts), parts


def test_a_stack_is_its_parts(random: Any) -> None:
    stack, parts = stack_of(random, 3, 16)
    starts = [0, 4, 5, 12]
    given = numbers(random, 12, 16)
    x = given
    for layer, feed_forward, first, second in parts:
        a = layer(x, query_starts=starts, key_starts=starts)
        a = mha.norm(a, first[0], first[1], eps=first[2], residual=x)
        x = mha.norm(feed_forward(a, residual=a), second[0], second[1], eps=second[2])
    before = given.copy()
    assert np.array_equal(stack(given, starts), x) and np.array_equal(given, before)
    assert np.array_equal(stack(given[4:5], [0, 1], threads=2), x[4:5])
    apart = np.zeros((12, 40), "float32")
    apart[:, :16] = given
    assert np.array_equal(stack(apart[:, :16], np.array(starts)), x)
    with ThreadPoolExecutor(3) as pool:
        for y in pool.map(lambda _: stack(given, starts), range(12)):
            assert np.array_equal(y, x)


def test_wrong_stacks(random: Any) -> None:
    stack, parts = stack_of(random, 2, 16)
    _, others = stack_of(random, 1, 8)
    x = numbers(random, 6, 16)
    layer, feed_forward, first, second = parts[0]
    Stack = mha._core.Stack
    wrong: list[tuple[Any, ...]] = [
        (lambda: Stack([]), mha.Error, "at least one"),
        (lambda: Stack(3), TypeError, ""),
        (lambda: Stack([parts[0][:3]]), TypeError, ""),
        (lambda: Stack([(feed_forward, layer, first, second)]), TypeError, "mha.Layer"),
        (lambda: Stack([*parts, *others]), mha.Error, "same width"),
        (lambda: Stack([(layer, feed_forward, first, (first[0][:3], first[1], 0.1))]), mha.Error, ""),
        (lambda: Stack([(layer, feed_forward, first, (None, first[1], 0.1))]), TypeError, ""),
        (lambda: stack(x[:, :8], [0, 6]), mha.Error, "last axis"),
        (lambda: stack(x, [0, 5]), mha.Error, "starts"),
        (lambda: stack(x, [0, 3, 3, 6]), mha.Error, "starts"),
        (lambda: stack(x, [0, 4, 3, 6]), mha.Error, "starts"),
        (lambda: stack(x, [0, 2**62, 6]), mha.Error, "starts"),
        (lambda: stack(x, [0, -(2**63), 6]), mha.Error, "starts"),
        (lambda: stack(x, [6]), mha.Error, "starts"),
        (lambda: stack(x, []), mha.Error, "starts"),
        (lambda: stack(x[:0], [0, 0]), mha.Error, "starts"),
        (lambda: stack(x, [0, 6], threads=0), mha.Error, "threads"),
    ]
    for call, kind, words in wrong:
        with pytest.raises(kind, match=words):
            call()
