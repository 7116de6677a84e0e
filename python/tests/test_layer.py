# SPDX-License-Identifier: MIT
"""The layer against a plain one in double precision and against PyTorch's; its errors."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest

import mha

numpy = pytest.importorskip("numpy")

from layer_reference import (  # noqa: E402
    CLOSE,
    add_vectors,
    make_weights,
    plain_layer,
    rows,
    same,
)


# ------------------------------------------------------- against the formula -----


def test_self_attention(random: Any) -> None:
    weights = add_vectors(random, make_weights(random, 12, 3))
    x = rows(random, 2, 7, 12)
    result = mha.Layer(12, 3, weights=weights)(x)
    assert isinstance(result, numpy.ndarray) and result.dtype == numpy.float32
    same(result, plain_layer(weights, 3, x)[0])


def test_cross_attention_with_widths_of_all_kinds(random: Any) -> None:
    widths = dict(
        kv_heads=2, head_width=5, value_head_width=3, key_width=7, value_width=9, output_width=4
    )
    weights = make_weights(random, 10, 4, **widths)
    x, key, value = rows(random, 2, 6, 10), rows(random, 2, 8, 7), rows(random, 2, 8, 9)
    layer = mha.Layer(10, 4, weights=weights, **widths)
    same(layer(x, key, value), plain_layer(weights, 4, x, key, value, kv_heads=2)[0])


def test_key_stands_in_for_value(random: Any) -> None:
    weights = make_weights(random, 8, 2)
    x, key = rows(random, 1, 3, 8), rows(random, 1, 5, 8)
    same(mha.Layer(8, 2, weights=weights)(x, key), plain_layer(weights, 2, x, key)[0])


@pytest.mark.parametrize("norm", ["rms", "layer"])
def test_norms(random: Any, norm: str) -> None:
    weights = make_weights(random, 8, 2)
    weights["q_norm"], weights["k_norm"] = rows(random, 4), rows(random, 4)
    x = rows(random, 2, 5, 8)
    layer = mha.Layer(8, 2, weights=weights, norm=norm)
    same(layer(x), plain_layer(weights, 2, x, norm=norm)[0])


@pytest.mark.parametrize(
    "rope",
    [
        mha.Rope(),
        mha.Rope("neighbours", base=500.0),
        mha.Rope(width=4),
        mha.Rope(frequencies=[1.0, 0.5, 0.25, 0.125]),
    ],
)
def test_rope(random: Any, rope: mha.Rope) -> None:
    weights = make_weights(random, 16, 2)
    x = rows(random, 2, 6, 16)
    layer = mha.Layer(16, 2, weights=weights, rope=rope)
    wanted = plain_layer(weights, 2, x, rope=rope)[0]
    same(layer(x), wanted)
    positions = numpy.broadcast_to(numpy.arange(6) + 100, (2, 6))
    same(layer(x, query_positions=positions, key_positions=positions.tolist()), wanted)
    assert layer.config["rope"] == rope


def test_extra_keys_and_weights(random: Any) -> None:
    weights = add_vectors(random, make_weights(random, 8, 2), "extra_key", "extra_value")
    x = rows(random, 2, 5, 8)
    layer = mha.Layer(8, 2, weights=weights, add_zero_attn=True)
    wanted, soft = plain_layer(weights, 2, x, add_zero_attn=True)
    result = layer(x, return_weights=True, return_lse=True)
    same(result.output, wanted)
    same(result.weights, soft)
    assert result.lse.shape == (2, 2, 5)


def test_masks_and_causal(random: Any) -> None:
    weights = make_weights(random, 8, 2)
    x = rows(random, 2, 6, 8)
    layer = mha.Layer(8, 2, weights=weights)
    lower = numpy.tril(numpy.ones((6, 6), bool))
    wanted = plain_layer(weights, 2, x, attends=lower)[0]
    same(layer(x, causal=True), wanted)
    same(layer(x, mask=lower), wanted)
    same(layer(x, ignore_mask=~lower), wanted)


def test_transposed_weights_are_views(random: Any) -> None:
    weights = make_weights(random, 8, 2)
    transposed = {name: numpy.ascontiguousarray(w.T).T for name, w in weights.items()}
    x = rows(random, 1, 3, 8)
    first, second = (mha.Layer(8, 2, weights=w)(x) for w in (weights, transposed))
    assert (first == second).all()


# ------------------------------------------------------------------- forms -----


def test_forms_of_the_rows(random: Any) -> None:
    layer = mha.Layer.random(8, 2)
    x = rows(random, 3, 5, 8)
    whole = layer(x)
    assert (layer(x[1]) == whole[1]).all()
    transposed = numpy.ascontiguousarray(x.swapaxes(0, 1))
    assert (layer(transposed, batch_first=False) == whole.swapaxes(0, 1)).all()
    assert (layer(transposed.swapaxes(0, 1)) == whole).all()
    assert (layer(x[:, ::2]) == layer(x[:, ::2].copy())).all()
    assert (layer(x, x, x) == whole).all()


def test_packed_rows(random: Any) -> None:
    layer = mha.Layer.random(8, 2)
    x = rows(random, 9, 8)
    packed = layer(x, query_starts=[0, 4, 9], causal=True)
    assert (packed[:4] == layer(x[:4], causal=True)).all()
    assert (packed[4:] == layer(x[4:], causal=True)).all()
    with pytest.raises(mha.Error, match="10.*9 rows"):
        layer(x, query_starts=[0, 4, 10])


def test_starts_are_for_the_batch(random: Any) -> None:
    x = rows(random, 2, 4, 8)
    with pytest.raises(mha.Error, match="a batch of 2; the starts tell of 3"):
        mha.Layer.random(8, 2)(x, x[0], key_starts=[0, 1, 2, 4])
    found = mha.Layer.random(8, 2)(x, x[0], key_starts=[0, 1, 4])
    assert (found[1] == mha.Layer.random(8, 2)(x[1], x[0, 1:])).all()


def test_lengths(random: Any) -> None:
    layer = mha.Layer.random(8, 2)
    x = rows(random, 2, 5, 8)
    result = layer(x, query_lengths=[5, 3], key_lengths=[5, 3])
    assert (result[1, :3] == layer(x[1, :3])).all()
    assert not result[1, 3:].any()


def test_out_is_written_and_returned(random: Any) -> None:
    layer = mha.Layer.random(8, 2)
    x = rows(random, 2, 5, 8)
    out = numpy.full((2, 5, 8), numpy.nan, "float32")
    assert layer(x, out=out) is out
    assert (out == layer(x)).all()
    half = numpy.empty((2, 5, 8), "float16")
    assert layer(x, out=half).dtype == numpy.float16


def test_halves_in_halves_out(random: Any) -> None:
    layer = mha.Layer.random(8, 2)
    x = rows(random, 2, 5, 8).astype("float16")
    result = layer(x)
    assert result.dtype == numpy.float16
    numpy.testing.assert_allclose(result, layer(x.astype("float32")), atol=2e-3)


@pytest.mark.parametrize("stored", ["f16", "bf16", "i8"])
def test_weights_kept_small(random: Any, stored: str) -> None:
    full, small = mha.Layer.random(64, 4), mha.Layer.random(64, 4, stored=stored)
    assert small.nbytes < 0.6 * full.nbytes
    x = rows(random, 1, 9, 64)
    numpy.testing.assert_allclose(small(x), full(x), atol=0.05)
    assert (small(x) != full(x)).any()


def test_the_same_bits_for_any_number_of_threads(random: Any) -> None:
    x = rows(random, 2, 40, 64)
    one, two = (mha.Layer.random(64, 4, threads=n)(x, causal=True) for n in (1, 2))
    assert (one == two).all()
    assert (mha.Layer.random(64, 4)(x, causal=True, threads=3) == one).all()


def test_threads_are_a_number_of_the_layer_or_of_the_call(random: Any) -> None:
    x = rows(random, 3, 8)
    with pytest.raises(mha.Error, match="threads is 0"):
        mha.Layer.random(8, 2, threads=0)(x)
    with pytest.raises(mha.Error, match="threads is -1"):
        mha.Layer.random(8, 2, threads=2)(x, threads=-1)
    with pytest.raises(mha.Error, match="threads is 0"):
        mha.Layer.random(8, 2).tape(x).backward(x, threads=0)


def test_threads_of_python_share_a_layer(random: Any) -> None:
    layer = mha.Layer.random(64, 4, threads=1)
    inputs = [rows(random, 2, 30 + n, 64) for n in range(6)]
    wanted = [layer(x) for x in inputs]
    found: list[Any] = [None] * len(inputs)

    def work(number: int) -> None:
        for _ in range(20):
            found[number] = layer(inputs[number])

    workers = [threading.Thread(target=work, args=(n,)) for n in range(len(inputs))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all((a == b).all() for a, b in zip(found, wanted, strict=True))


# ------------------------------------------------------------ making, changing -----


def test_config_says_what_the_layer_is(random: Any) -> None:
    config = mha.Layer.random(12, 4, kv_heads=2, norm="rms", stored="bf16").config
    assert (config["width"], config["heads"], config["kv_heads"]) == (12, 4, 2)
    assert (config["head_width"], config["output_width"], config["stored"]) == (3, 12, "bf16")
    assert config["norm"] == "rms" and config["rope"] is None and config["batch_first"] is True
    again = mha.Layer.random(**{n: v for n, v in config.items()})
    assert again.config == config


def test_random_layers_come_from_their_seed(random: Any) -> None:
    x = rows(random, 1, 4, 16)
    one, same_one, other = (mha.Layer.random(16, 2, seed=seed)(x) for seed in (1, 1, 2))
    assert (one == same_one).all() and (one != other).any()


def test_presets() -> None:
    known = mha.presets()
    assert {"bert-base", "gpt2-small", "transformer-base"} <= set(known)
    assert mha.preset("bert-base") is not None and known["bert-base"].width == 768
    layer = mha.Layer.random("bert-base", stored="i8")
    assert layer.config["heads"] == 12 and "12 heads of 64" in repr(layer)
    with pytest.raises(ValueError, match="there are bert-base"):
        mha.preset("bert-bass")


def test_update_takes_new_weights(random: Any) -> None:
    weights = make_weights(random, 8, 2)
    layer = mha.Layer(8, 2, weights=make_weights(random, 8, 2))
    x = rows(random, 2, 3, 8)
    assert layer.update(weights) is None
    same(layer(x), plain_layer(weights, 2, x)[0])
    with pytest.raises(mha.Error, match="extra keys"):
        layer.update({**weights, "extra_key": rows(random, 8), "extra_value": rows(random, 8)})
    same(layer(x), plain_layer(weights, 2, x)[0])


@pytest.mark.parametrize("keep", [[0, 3], [True, False, False, True]])
def test_pruned_heads_are_gates_of_zero(random: Any, keep: list[int]) -> None:
    layer = mha.Layer.random(16, 4)
    x = rows(random, 2, 6, 16)
    wanted = layer(x, gates=[1.0, 0.0, 0.0, 1.0])
    for pruned in (layer.prune(keep), mha.prune(layer, numpy.array(keep))):
        assert type(pruned) is mha.Layer and pruned.config["heads"] == 2
        same(pruned(x), wanted)


def test_heads_that_cannot_be_kept() -> None:
    layer = mha.Layer.random(16, 4)
    with pytest.raises(ValueError, match="keep has 4"):
        layer.prune([0, 4])
    with pytest.raises(mha.Error):
        layer.prune([])
    with pytest.raises(mha.Error, match="keep"):
        layer.prune([True, False])


# -------------------------------------------------------------- statistics -----


def test_statistics_come_along(random: Any) -> None:
    layer = mha.Layer.random(16, 4)
    x = rows(random, 2, 6, 16)
    result = layer(x, statistics=True, return_weights=True)
    soft = numpy.asarray(result.weights, "float64")
    entropy = -(soft * numpy.log(soft)).sum(-1).mean(-1)
    same(result.statistics.heads.entropy, entropy)


# --------------------------------------------------------------- gradients -----


def loss_of(layer_weights: dict[str, Any], heads: int, d: Any, x: Any, key: Any) -> float:
    return float((plain_layer(layer_weights, heads, x, key)[0] * d).sum())


def test_gradients_are_slopes(random: Any) -> None:
    """Against differences of the plain layer, in some direction of each array."""
    weights = add_vectors(random, make_weights(random, 6, 2))
    x, key, d = rows(random, 1, 3, 6), rows(random, 1, 4, 6), rows(random, 1, 3, 6)
    tape = mha.Layer(6, 2, weights=weights).tape(x, key)
    same(tape.output, plain_layer(weights, 2, x, key)[0])
    gradients = tape.backward(d)
    assert set(gradients) == {"query", "key", *weights}
    arrays = {"query": x, "key": key, **weights}
    for name, array in arrays.items():
        assert gradients[name].shape == array.shape and gradients[name].dtype == numpy.float32
        step = random.standard_normal(array.shape) * 1e-5
        moved = [{**arrays, name: array + sign * step} for sign in (1, -1)]
        up, down = (loss_of(m, 2, d, m["query"], m["key"]) for m in moved)
        slope = float((gradients[name] * step).sum())
        assert slope == pytest.approx((up - down) / 2, rel=2e-3, abs=2e-9), name


def test_chosen_gradients(random: Any) -> None:
    layer = mha.Layer.random(8, 2)
    x, d = rows(random, 2, 3, 8), rows(random, 2, 3, 8)
    tape = layer.tape(x, sinks=[0.5, 1.0], gates=[1.0, 2.0], bias=rows(random, 2, 3, 3))
    some = tape.backward(d, want=["sinks", "q_bias", "gates", "bias", "o"])
    shapes = {name: array.shape for name, array in some.items()}
    assert shapes == {"o": (8, 8), "q_bias": (8,), "bias": (2, 3, 3), "sinks": (2,), "gates": (2,)}
    assert all(numpy.isfinite(array).all() for array in some.values())
    assert tape.backward(d, want=[]) == {}


@pytest.mark.parametrize("shape", [(3, 1), (2, 1, 3), (1, 2, 3, 1), (2, 2, 3, 3)])
def test_gradients_of_numbers_that_are_broadcast(random: Any, shape: tuple[int, ...]) -> None:
    """They are sums of the gradient of the same array without broadcasting."""
    layer = mha.Layer.random(8, 2)
    x, d, small = rows(random, 2, 3, 8), rows(random, 2, 3, 8), rows(random, *shape)
    full = numpy.broadcast_to(small, (2, 2, 3, 3)).copy()
    for name in ("bias", "mask"):
        found = layer.tape(x, **{name: small}).backward(d, want=[name])[name]
        whole = layer.tape(x, **{name: full}).backward(d, want=[name])[name]
        assert found.shape == shape
        padded = (1,) * (4 - len(shape)) + shape
        axes = tuple(n for n in range(4) if padded[n] == 1 and full.shape[n] != 1)
        same(found.reshape(padded), whole.sum(axes, keepdims=True))


def test_a_step_of_training_lowers_the_loss(random: Any) -> None:
    weights = make_weights(random, 8, 2)
    layer = mha.Layer(8, 2, weights=weights)
    x, target = rows(random, 2, 5, 8), rows(random, 2, 5, 8)
    losses = []
    for _ in range(5):
        tape = layer.tape(x)
        error = tape.output - target
        losses.append(float((error**2).sum()))
        gradients = tape.backward(2 * error, want=weights)
        weights = {name: w - 0.01 * gradients[name] for name, w in weights.items()}
        layer.update(weights)
    assert losses == sorted(losses, reverse=True) and losses[-1] < 0.9 * losses[0]
    with pytest.raises(mha.Error, match="updated since"):
        tape.backward(error)


def test_a_tape_keeps_what_it_needs(random: Any) -> None:
    weights = make_weights(random, 8, 2)
    x, d = rows(random, 2, 3, 8), rows(random, 2, 3, 8)
    mask = numpy.tril(numpy.ones((3, 3), bool))
    kept = mha.Layer(8, 2, weights=weights).tape(x, mask=mask)
    tape = mha.Layer(8, 2, weights=weights).tape(x.copy(), mask=mask.copy())
    wanted, found = kept.backward(d), tape.backward(d)
    assert all((found[name] == wanted[name]).all() for name in wanted)


@pytest.mark.parametrize(
    ("want", "text"), [(["qq"], "'qq'"), (["gates"], "gates"), (["key"], "key")]
)
def test_gradients_that_are_not_there(random: Any, want: list[str], text: str) -> None:
    tape = mha.Layer.random(8, 2).tape(rows(random, 3, 8))
    with pytest.raises(ValueError, match=text):
        tape.backward(rows(random, 3, 8), want=want)


# ------------------------------------------------------------------ errors -----


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        (dict(heads=3), mha.Error, "8 is not a multiple of 3"),
        (dict(heads=0), mha.Error, "heads 0"),
        (dict(heads="two"), TypeError, "heads"),
        (dict(kv_heads=2, heads=3, head_width=2), mha.Error, "weights['q']"),
        (dict(weights=None), TypeError, "Layer.random()"),
        (dict(weights=[]), TypeError, "dict"),
        (dict(weights={}), TypeError, "no 'q'"),
        (dict(stored="f8"), mha.Error, '"f16"'),
        (dict(norm="batch"), mha.Error, '"rms"'),
        (dict(rope="halves"), TypeError, "mha.Rope"),
        (dict(rope=mha.Rope(pairs=None)), TypeError, "pairs"),
        (dict(rope=mha.Rope(pairs="thirds")), mha.Error, '"halves"'),
        (dict(rope=mha.Rope(width=3)), mha.Error, "3"),
        (dict(rope=mha.Rope(frequencies=[1.0])), mha.Error, "frequencies"),
        (dict(colour=1), TypeError, "colour"),
    ],
)
def test_layers_that_cannot_be(random: Any, change: dict, kind: type, text: str) -> None:
    arguments = {"width": 8, "heads": 2, "weights": make_weights(random, 8, 2), **change}
    with pytest.raises(kind, match=re.escape(text)):
        mha.Layer(**arguments)


@pytest.mark.parametrize(
    ("name", "value", "kind", "text"),
    [
        ("q", numpy.zeros((8, 7), "float32"), mha.Error, "(8, 7)"),
        ("q", numpy.zeros((8, 8)), mha.Error, "f64"),
        ("q", numpy.zeros((8, 8), int), mha.Error, "weights['q']"),
        ("q", "text", TypeError, "weights['q']"),
        ("bias_q", numpy.zeros(8, "float32"), TypeError, "'bias_q'"),
        ("q_bias", numpy.zeros(16, "float32")[::2], mha.Error, "weights['q_bias']"),
        ("extra_key", numpy.zeros(8, "float32"), mha.Error, "extra_value"),
    ],
)
def test_weights_that_cannot_be(random: Any, name: str, value: Any, kind: type, text: str) -> None:
    weights = {**make_weights(random, 8, 2), name: value}
    with pytest.raises(kind, match=re.escape(text)):
        mha.Layer(8, 2, weights=weights)


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        (dict(), TypeError, "query"),
        (dict(query=numpy.zeros((2, 3, 7), "float32")), mha.Error, "8 wide"),
        (dict(query=numpy.zeros((1, 2, 3, 8), "float32")), mha.Error, "(batch, rows, width)"),
        (dict(query=numpy.zeros((2, 3, 8))), mha.Error, "float32"),
        (dict(query=numpy.zeros((2, 3, 16), "float32")[..., ::2]), mha.Error, "query"),
        (dict(key=numpy.zeros((1, 3, 8), "float32")), mha.Error, "batch of 1"),
        (dict(key=numpy.zeros((2, 3, 8), "float16")), mha.Error, "f16"),
        (dict(value=numpy.zeros((2, 3, 8), "float32")), mha.Error, "without key"),
        (dict(layout="bhld"), TypeError, "layout"),
        (dict(cache_use="step"), mha.Error, "without a cache"),
        (dict(cache={}), TypeError, "KVCache"),
        (dict(out=numpy.zeros((2, 3, 7), "float32")), mha.Error, "out"),
        (dict(query_positions=[[0, 1]]), mha.Error, "query_positions"),
        (dict(gates=[1.0]), mha.Error, "gates"),
    ],
)
def test_calls_that_cannot_be(arguments: dict, kind: type, text: str) -> None:
    full = {"query": numpy.zeros((2, 3, 8), "float32"), **arguments} if arguments else {}
    with pytest.raises(kind, match=re.escape(text)):
        mha.Layer.random(8, 2)(**full)


def test_an_output_over_its_input_is_refused(random: Any) -> None:
    x = rows(random, 2, 3, 8)
    before = x.copy()
    with pytest.raises(mha.Error, match="out") as caught:
        mha.Layer.random(8, 2)(x, out=x)
    assert caught.value.code == "MHA_ERR_OVERLAP" and (x == before).all()


# ------------------------------------------------------------------- torch -----

TORCH_MODULES = [
    dict(),
    dict(bias=False),
    dict(kdim=10),
    dict(kdim=10, vdim=12),
    dict(add_bias_kv=True),
    dict(add_zero_attn=True),
    dict(add_bias_kv=True, add_zero_attn=True, bias=False, kdim=10, vdim=12),
    dict(batch_first=True),
]


@pytest.mark.parametrize("settings", TORCH_MODULES)
def test_against_torch(settings: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(len(str(settings)))
    module = torch.nn.MultiheadAttention(16, 4, **settings).eval()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    layer = mha.Layer.from_torch(module)
    shape = (3, 5) if module.batch_first else (5, 3)
    keys = (3, 6) if module.batch_first else (6, 3)
    x = torch.randn(*shape, 16)
    key, value = torch.randn(*keys, module.kdim), torch.randn(*keys, module.vdim)
    with torch.no_grad():
        wanted, weights = module(x, key, value, average_attn_weights=False)
        result = layer(x, key, value, return_weights=True)
    torch.testing.assert_close(result.output, wanted)
    torch.testing.assert_close(result.weights, weights)


def test_masks_of_torch() -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.MultiheadAttention(16, 4, batch_first=True).eval()
    layer = mha.Layer.from_torch(module)
    x = torch.randn(2, 6, 16)
    hidden = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
    above = torch.ones(6, 6, dtype=torch.bool).triu(1)
    with torch.no_grad():
        wanted, _ = module(x, x, x, key_padding_mask=hidden, attn_mask=above)
        found = layer(x, ignore_mask=above | hidden[:, None, None, :])
    torch.testing.assert_close(found, wanted)


def test_gradients_of_torch() -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.MultiheadAttention(16, 4, batch_first=True)
    x, d = torch.randn(2, 6, 16, requires_grad=True), torch.randn(2, 6, 16)
    module(x, x, x)[0].backward(d)
    gradients = mha.Layer.from_torch(module).tape(x.detach()).backward(d)
    torch.testing.assert_close(gradients["query"], x.grad, rtol=1e-4, atol=1e-5)
    fused = torch.cat([gradients[name] for name in "qkv"])
    torch.testing.assert_close(fused, module.in_proj_weight.grad, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(gradients["o"], module.out_proj.weight.grad, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(gradients["o_bias"], module.out_proj.bias.grad, rtol=1e-4, atol=1e-5)


def test_torch_modules_in_double_and_half_precision() -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.MultiheadAttention(16, 4, batch_first=True).eval()
    x = torch.randn(2, 3, 16)
    with torch.no_grad():
        wanted = module(x, x, x)[0]
        torch.testing.assert_close(mha.Layer.from_torch(module.double())(x), wanted)
        half = mha.Layer.from_torch(module.bfloat16())(x.bfloat16())
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), wanted, rtol=0.05, atol=0.05)


def test_what_is_no_attention_of_torch() -> None:
    with pytest.raises(TypeError, match="MultiheadAttention"):
        mha.Layer.from_torch(object())
