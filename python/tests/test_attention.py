# SPDX-License-Identifier: MIT
"""attention(), attention_weights() and merge() against a reference in float64."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import reference

import mha

B, H, G, L, S, D, DV = 2, 4, 2, 5, 7, 8, 6


@pytest.fixture
def qkv(random: Any) -> Any:
    shapes = (B, H, L, D), (B, G, S, D), (B, G, S, DV)
    return tuple(random.standard_normal(shape, dtype=np.float32) for shape in shapes)


def close(got: Any, wanted: Any, bound: float = 2e-6) -> None:
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=bound, atol=bound)


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "scale": {"scale": 0.3},
    "softcap": {"softcap": 1.5},
    "top_left": {"causal": True, "position": "top-left"},
    "bottom_right": {"causal": True, "position": "bottom-right", "offset": S - L},
    "offset": {"causal": True, "position": 3, "offset": 3},
    "negative_offset": {"causal": True, "position": -2, "offset": -2},
    "numpy_offset": {"causal": True, "position": np.int64(1), "offset": 1},
    "offsets": {"causal": True, "position": [0, 2], "offset": [0, 2]},
    "window": {"window": (1, 2), "position": "top-left"},
    "open_window": {"window": (None, 0), "position": "top-left"},
    "minus_one": {"window": (-1, 1), "position": 0},
    "sinks": {"sinks": [0.5, -1.0, 2.0, 0.0]},
    "alibi": {"alibi_slopes": np.float32([0.5, 0.25, 0.1, 0.0]), "position": "top-left"},
    "key_lengths": {"key_lengths": [3, 7]},
    "no_keys": {"key_lengths": np.array([0, 2], np.int32)},
    "gates": {"gates": [1.0, 0.0, -2.0, 0.5]},
    "documents": {
        "query_documents": np.arange(B * L).reshape(B, L) % 3,
        "key_documents": (np.arange(B * S).reshape(B, S) % 3).tolist(),
    },
}


@pytest.mark.parametrize("name", OPTIONS)
def test_option(qkv: Any, name: str) -> None:
    options = dict(OPTIONS[name])
    wanted = reference.attention(*qkv, **options)
    options.pop("offset", None)
    got = mha.attention(*qkv, **options, return_lse=True, return_weights=True)
    close(got.output, wanted.output)
    close(got.lse, wanted.lse)
    close(got.weights, wanted.weights)
    assert got.statistics is None


MASKS = {
    "full": (B, H, L, S),
    "per_batch": (B, 1, L, S),
    "per_head": (H, 1, S),
    "square": (L, S),
    "keys": (B, 1, 1, S),
    "one_row": (S,),
    "queries": (B, 1, L, 1),
    "per_head_queries": (H, L, 1),
    "one_number": (),
}


@pytest.mark.parametrize("kind", ["mask_bool", "mask_f32", "mask_f16", "ignore_mask", "bias"])
@pytest.mark.parametrize("shape", MASKS)
def test_masks_broadcast(qkv: Any, random: Any, shape: str, kind: str) -> None:
    numbers = random.standard_normal(MASKS[shape])
    made = {
        "mask_bool": {"mask": np.asarray(numbers > -0.5)},
        "mask_f32": {"mask": np.asarray(numbers, np.float32)},
        "mask_f16": {"mask": np.asarray(numbers, np.float16)},
        "ignore_mask": {"ignore_mask": np.asarray(numbers > 0.5)},
        "bias": {"bias": np.asarray(numbers, np.float32)},
    }[kind]
    wanted = reference.attention(*qkv, **made)
    got = mha.attention(*qkv, **made, return_weights=True)
    close(got.output, wanted.output)
    close(got.weights, wanted.weights)


def test_masks_apply_together(qkv: Any, random: Any) -> None:
    options = {
        "mask": random.random((B, 1, L, S)) > 0.2,
        "ignore_mask": random.random((H, L, S)) > 0.8,
        "bias": random.standard_normal((H, L, S), dtype=np.float32),
        "causal": True,
        "window": (4, None),
        "key_lengths": [6, 7],
        "softcap": 3.0,
        "sinks": [0.1] * H,
        "scale": 0.7,
        "offset": 2,
    }
    wanted = reference.attention(*qkv, **options)
    del options["offset"]
    close(mha.attention(*qkv, **options, position=2), wanted.output)


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_broadcast_views_are_masks_too(qkv: Any, random: Any, axis: int) -> None:
    shape = [B, H, L, S]
    shape[axis] = 1
    mask = np.broadcast_to(random.random(shape) > 0.3, (B, H, L, S))
    assert mask.strides[axis] == 0
    close(mha.attention(*qkv, mask=mask), reference.attention(*qkv, mask=mask).output)


def test_layouts_agree_to_the_bit(qkv: Any) -> None:
    whole = mha.attention(*qkv, return_lse=True)
    rows_first = [np.ascontiguousarray(x.swapaxes(1, 2)) for x in qkv]
    other = mha.attention(*rows_first, layout="blhd", return_lse=True)
    assert np.array_equal(other.output.swapaxes(1, 2), whole.output)
    assert np.array_equal(other.lse, whole.lse)


def test_axes_may_be_missing(qkv: Any) -> None:
    q, k, v = (x[1] for x in qkv)
    whole = mha.attention(*qkv, return_lse=True, return_weights=True)
    one = mha.attention(q, k, v, return_lse=True, return_weights=True, statistics=["columns"])
    assert np.array_equal(one.output, whole.output[1])
    assert np.array_equal(one.lse, whole.lse[1])
    assert np.array_equal(one.weights, whole.weights[1])
    assert one.statistics.columns.shape == (H, S)
    head = mha.attention(q[3], k[1], v[1], return_lse=True, return_weights=True, statistics=True)
    assert np.array_equal(head.output, whole.output[1, 3])
    assert np.array_equal(head.lse, whole.lse[1, 3])
    assert np.array_equal(head.weights, whole.weights[1, 3])
    assert head.statistics.rows.entropy.shape == (L,)
    rows = mha.attention(q.swapaxes(0, 1), k.swapaxes(0, 1), v.swapaxes(0, 1), layout="blhd")
    assert np.array_equal(rows.swapaxes(0, 1), whole.output[1])


def test_packed_sequences(random: Any) -> None:
    q_lengths, k_lengths = [3, 0, 4], [2, 5, 6]
    q_starts, k_starts = np.cumsum([0, *q_lengths]), np.cumsum([0, *k_lengths])
    q = random.standard_normal((H, 7, D), dtype=np.float32)
    k = random.standard_normal((G, 13, D), dtype=np.float32)
    v = random.standard_normal((G, 13, DV), dtype=np.float32)
    got = mha.attention(
        q, k, v, query_starts=q_starts, key_starts=k_starts, return_lse=True, return_weights=True
    )
    assert got.lse.shape == (H, 7)
    assert got.weights.shape == (3, H, 4, 6)
    for b in range(3):
        rows, keys = slice(*q_starts[b : b + 2]), slice(*k_starts[b : b + 2])
        alone = mha.attention(
            q[:, rows], k[:, keys], v[:, keys], return_lse=True, return_weights=True
        )
        assert np.array_equal(got.output[:, rows], alone.output)
        assert np.array_equal(got.lse[:, rows], alone.lse)
        assert np.array_equal(got.weights[b, :, : q_lengths[b], : k_lengths[b]], alone.weights)
    assert not got.weights[0, :, 3:].any()
    rows_first = mha.attention(
        *(x.swapaxes(0, 1) for x in (q, k, v)),
        layout="blhd",
        query_starts=list(q_starts),
        key_starts=list(k_starts),
    )
    assert np.array_equal(rows_first.swapaxes(0, 1), got.output)


def test_packed_queries_over_a_padded_memory(qkv: Any, random: Any) -> None:
    _, k, v = qkv
    q = random.standard_normal((H, 6, D), dtype=np.float32)
    got = mha.attention(q, k, v, query_starts=[0, 2, 6], key_lengths=[4, 7])
    for b, rows, keys in ((0, slice(0, 2), 4), (1, slice(2, 6), 7)):
        assert np.array_equal(
            got[:, rows], mha.attention(q[:, rows], k[b, :, :keys], v[b, :, :keys])
        )


def test_rows_that_are_not_computed_are_zero(qkv: Any) -> None:
    options = {"query_lengths": [2, 5], "return_lse": True, "return_weights": True}
    for _ in range(3):  # memory that was used before
        got = mha.attention(*qkv, **options, statistics={"rows": True, "top": 2})
        assert not got.output[0, :, 2:].any()
        assert np.all(got.lse[0, :, 2:] == -np.inf)
        assert not got.weights[0, :, 2:].any()
        assert np.all(got.statistics.rows.key[0, :, 2:] == -1)
        assert np.all(got.statistics.top_keys[0, :, 2:] == -1)
        del got
    packed = mha.attention(*(x[0] for x in qkv), query_starts=[1, 3], key_starts=[0, 7])
    assert not packed[:, 0].any() and not packed[:, 3:].any() and packed[:, 1:3].all()


@pytest.mark.parametrize("mode", ["raw", "softcap", "bias"])
def test_scores_on_their_way(qkv: Any, random: Any, mode: str) -> None:
    options = {"softcap": 2.0, "bias": random.standard_normal((L, S), dtype=np.float32)}
    got = mha.attention(*qkv, **options, causal=True, position=1, return_weights=mode)
    kept = {
        "raw": {},
        "softcap": {"softcap": 2.0},
        "bias": {**options, "causal": True, "offset": 1},
    }[mode]
    keys = np.repeat(qkv[1], H // G, 1)
    close(got.weights, reference.scores(*(np.float64(x) for x in (qkv[0], keys)), kept))


def test_chosen_and_averaged_weights(qkv: Any) -> None:
    whole = mha.attention(*qkv, return_weights=True).weights
    chosen = mha.attention(
        *qkv, return_weights=True, weights_heads=[3, 0], weights_rows=np.array([4, 1])
    ).weights
    assert np.array_equal(chosen, whole[:, [3, 0]][:, :, [4, 1]])
    mean = mha.attention(*qkv, return_weights=True, average_weights=True).weights
    close(mean, whole.mean(1))


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float64"])
def test_element_types(qkv: Any, kind: str) -> None:
    dtype = pytest.importorskip("ml_dtypes").bfloat16 if kind == "bfloat16" else np.dtype(kind)
    q, k, v = (x.astype(dtype) for x in qkv)
    got = mha.attention(q, k, v, return_lse=True, return_weights=True)
    wanted = reference.attention(q, k, v)
    bound = {"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-14}[kind]
    assert got.output.dtype == dtype
    assert got.lse.dtype == got.weights.dtype == (np.float64 if kind == "float64" else np.float32)
    close(got.output.astype(np.float64), wanted.output, bound)
    close(got.weights, wanted.weights, 2e-6 if kind != "float64" else bound)


def test_types_may_differ(qkv: Any) -> None:
    q, k, v = qkv
    k, v = k.astype(np.float16), v.astype(np.float16)
    out = np.empty((B, H, L, DV), np.float16)
    got = mha.attention(q, k, v)
    assert got.dtype == np.float32
    close(got, reference.attention(q, k, v).output)
    assert mha.attention(q, k, v, out=out) is out
    close(out.astype(np.float32), got, 1e-3)


def test_ablated_heads(qkv: Any) -> None:
    means = np.arange(H * DV, dtype=np.float32).reshape(H, DV)
    modes = ["normal", "uniform", "mean", 0]
    got = mha.attention(*qkv, head_modes=modes, head_means=means)
    plain = mha.attention(*qkv)
    assert np.array_equal(got[:, [0, 3]], plain[:, [0, 3]])
    close(got[:, 1], np.broadcast_to(qkv[2][:, 0].mean(1, keepdims=True), (B, L, DV)))
    assert np.array_equal(got[:, 2], np.broadcast_to(means[2], (B, L, DV)))


def test_dropout_is_told_by_its_seed(qkv: Any) -> None:
    def run(p: float, seed: int) -> Any:
        return mha.attention(*qkv, dropout=p, dropout_seed=seed)

    assert np.array_equal(run(0.5, 1), run(0.5, 1))
    assert not np.array_equal(run(0.5, 1), run(0.5, 2**64 - 1))
    assert np.array_equal(run(0.0, 1), mha.attention(*qkv))


@pytest.mark.parametrize("shape", [(0, H, L, S), (B, 0, L, S), (B, H, 0, S), (B, H, L, 0)], ids=str)
def test_empty_extents(shape: tuple[int, ...]) -> None:
    b, h, rows, keys = shape
    q, k = np.ones((b, h, rows, D), np.float32), np.ones((b, h, keys, D), np.float32)
    got = mha.attention(q, k, k, return_lse=True, return_weights=True, statistics=True)
    assert got.output.shape == (b, h, rows, D) and not got.output.any()
    assert np.all(got.lse == -np.inf)
    assert got.weights.shape == (b, h, rows, keys)


def test_threads_do_not_change_a_bit(random: Any) -> None:
    q, k, v = (random.standard_normal((2, 8, 300, 64), dtype=np.float32) for _ in range(3))
    options = {"causal": True, "return_lse": True, "return_weights": True, "statistics": True}
    one, two, three = (mha.attention(q, k, v, **options, threads=n) for n in (1, 2, 3))
    for other in (two, three):
        for a, b in zip(one[:3], other[:3]):
            assert np.array_equal(a, b)
        for a, b in zip(one.statistics.rows, other.statistics.rows):
            assert np.array_equal(a, b)


def test_options_may_be_none(qkv: Any) -> None:
    names = [
        "out",
        "scale",
        "position",
        "window",
        "mask",
        "bias",
        "threads",
        "key_lengths",
        "statistics",
        "layout",
    ]
    got = mha.attention(*qkv, **dict.fromkeys(names))
    assert np.array_equal(got, mha.attention(*qkv))
    assert np.array_equal(got, mha.attention(query=qkv[0], value=qkv[2], key=qkv[1]))


@pytest.mark.parametrize("kind", "bhilqBHILQ")
def test_integers_of_any_type(qkv: Any, kind: str) -> None:
    lengths = np.array([3, 6], kind)
    wanted = mha.attention(*qkv, key_lengths=[3, 6])
    assert np.array_equal(mha.attention(*qkv, key_lengths=lengths), wanted)
    if kind.islower():
        offset = mha.attention(*qkv, causal=True, position=np.array([-2, 1], kind))
        assert np.array_equal(offset, mha.attention(*qkv, causal=True, position=[-2, 1]))


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64", "int8"])
def test_floats_of_any_type(qkv: Any, kind: str) -> None:
    dtype = pytest.importorskip("ml_dtypes").bfloat16 if kind == "bfloat16" else np.dtype(kind)
    numbers = [-3.0, 0.0, 2.0, 1.0] if kind == "int8" else [-1.5, 0.0, 2.0**-20, 100.0]
    sinks = np.array(numbers).astype(dtype)
    wanted = mha.attention(*qkv, sinks=[float(x) for x in sinks])
    assert np.array_equal(mha.attention(*qkv, sinks=sinks), wanted)
    assert np.array_equal(mha.attention(*qkv, sinks=sinks[::-1][::-1]), wanted)


def test_special_floats_of_half_width(qkv: Any) -> None:
    sinks = np.array([np.inf, -np.inf, np.nan, 6e-8], np.float16)
    got = mha.attention(*qkv, sinks=sinks)
    wanted = mha.attention(*qkv, sinks=[float(x) for x in sinks])
    assert np.array_equal(got, wanted, equal_nan=True)


# ---------------------------------------------------------------- weights, merge


def test_weights_alone(qkv: Any, random: Any) -> None:
    mask = random.random((B, 1, L, S)) > 0.3
    whole = mha.attention(*qkv, mask=mask, return_lse=True, return_weights=True)
    q, k, _ = qkv
    assert np.array_equal(mha.attention_weights(q, k, mask=mask), whole.weights)
    some = mha.attention_weights(q, k, mask=mask, heads=[2], rows=[1, 3])
    assert np.array_equal(some, whole.weights[:, [2]][:, :, [1, 3]])
    close(mha.attention_weights(q, k, mask=mask, lse=whole.lse), whole.weights)
    out = np.empty((B, H, L, S), np.float32)
    assert mha.attention_weights(q, k, mask=mask, out=out) is out
    assert np.array_equal(out, whole.weights)
    mean = mha.attention_weights(q, k, mask=mask, average_weights=True)
    close(mean, whole.weights.mean(1))
    raw = mha.attention_weights(q[0, 0], k[0, 0], return_weights="raw")
    close(raw, q[0, 0].astype(np.float64) @ k[0, 0].T / np.sqrt(D))


def test_weights_of_heads_that_give_a_mean(qkv: Any) -> None:
    q, k, v = qkv
    modes = ["mean"] + ["normal"] * (q.shape[1] - 1)
    means = np.ones((q.shape[1], v.shape[-1]), np.float32)
    whole = mha.attention(
        q, k, v, head_modes=modes, head_means=means, return_weights=True, statistics=True
    )
    assert np.array_equal(mha.attention_weights(q, k, head_modes=modes), whole.weights)
    alone = mha.head_statistics(q, k, head_modes=modes)
    assert np.array_equal(alone.heads.entropy, whole.statistics.heads.entropy)
    assert not alone.heads.rows[:, 0].any() and alone.heads.rows[:, 1:].all()


def test_merge_joins_what_was_cut(qkv: Any) -> None:
    q, k, v = qkv
    whole = mha.attention(q, k, v, return_lse=True)
    parts = [
        mha.attention(q, k[:, :, keys], v[:, :, keys], return_lse=True)
        for keys in (slice(0, 3), slice(3, S))
    ]
    before = parts[0].output.copy()
    got = mha.merge(*parts[0][:2], *parts[1][:2])
    close(got.output, whole.output)
    close(got.lse, whole.lse)
    assert np.array_equal(parts[0].output, before)
    (o, lse), (o2, lse2) = parts[0][:2], parts[1][:2]
    place = mha.merge(o, lse, o2, lse2, out=o, lse_out=lse)
    assert place.output is o and place.lse is lse
    assert np.array_equal(o, got.output) and np.array_equal(lse, got.lse)


def test_merge_of_rows_first(qkv: Any) -> None:
    q, k, v = (x.swapaxes(1, 2) for x in qkv)
    parts = [
        mha.attention(q, k[:, keys], v[:, keys], layout="blhd", return_lse=True)
        for keys in (slice(0, 4), slice(4, S))
    ]
    got = mha.merge(*parts[0][:2], *parts[1][:2], layout="blhd")
    close(got.output, mha.attention(q, k, v, layout="blhd"))


@pytest.mark.parametrize(
    "name", ["attention", "attention_backward", "attention_weights", "head_statistics", "merge"]
)
def test_examples_of_help(name: str) -> None:
    function = getattr(mha, name)
    example = doctest.DocTestParser().get_doctest(function.__doc__, {}, name, None, 0)
    assert example.examples
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(example)
    assert runner.failures == 0


def test_native_arithmetic_is_close_to_exact(random: Any) -> None:
    """bf16 is rounded in the weights too; other types are computed exactly."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    q, k, v = (random.standard_normal((1, 2, 70, 64), dtype=np.float32) for _ in range(3))
    narrow = [x.astype(ml_dtypes.bfloat16) for x in (q, k, v)]
    exact, native = (
        np.asarray(mha.attention(*narrow, arithmetic=name, causal=True)).astype(np.float32)
        for name in ("exact", "native")
    )
    np.testing.assert_allclose(native, exact, rtol=2e-2, atol=2e-2)
    assert (native != exact).any() == mha.isa().endswith("bf16")
    same = [mha.attention(q, k, v, arithmetic=name) for name in ("exact", "native")]
    assert np.asarray(same[0]).tobytes() == np.asarray(same[1]).tobytes()
