# SPDX-License-Identifier: MIT
"""The cache: attention over it against attention over arrays, and changes to its tokens."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import mha

numpy = pytest.importorskip("numpy")

G, D = 2, 8  # heads and their width, in most tests


def tokens(random: Any, *shape: int) -> Any:
    return random.standard_normal(shape).astype("float32")


def filled(random: Any, batch: int, count: int, **config: Any) -> tuple[mha.KVCache, Any, Any]:
    """A cache with `count` tokens in each of `batch` sequences, and these."""
    key, value = tokens(random, batch, G, count, D), tokens(random, batch, G, count, D)
    cache = mha.KVCache(batch, 64, G, D, **config)
    cache.append(key, value)
    return cache, key, value


def held(cache: mha.KVCache, sequence: int = 0) -> Any:
    return numpy.asarray(cache.read(sequence)[0])


# -------------------------------------------------------------- attention -----


@pytest.mark.parametrize("kind", ["contiguous", "paged", "ring"])
def test_attention_over_a_cache_is_attention(random: Any, kind: str) -> None:
    cache, key, value = filled(random, 2, 20, kind=kind)
    query = tokens(random, 2, 4, 3, D)
    wanted = mha.attention(query, key, value, causal=True, position="bottom-right")
    found = cache.attention(query, causal=True)
    assert isinstance(found, numpy.ndarray) and (found == wanted).all()


def test_tokens_in_chunks_are_tokens_at_once(random: Any) -> None:
    cache, key, value = filled(random, 2, 20)
    other = mha.KVCache(2, 64, G, D)
    for first, last in ((0, 7), (7, 8), (8, 20)):
        other.append(key[:, :, first:last], value[:, :, first:last])
    query = tokens(random, 2, 4, 1, D)
    assert other.lengths == cache.lengths == [20, 20]
    assert (other.attention(query) == cache.attention(query)).all()


def test_layouts_masks_and_results(random: Any) -> None:
    cache, key, value = filled(random, 2, 20)
    query = tokens(random, 2, 4, 3, D)
    mask = random.random((2, 1, 3, 20)) < 0.5
    wanted = mha.attention(query, key, value, mask=mask, return_lse=True, return_weights=True)
    found = cache.attention(query, mask=mask, return_lse=True, return_weights=True)
    assert all((a == b).all() for a, b in zip(found[:3], wanted[:3], strict=True))
    transposed = cache.attention(query.swapaxes(1, 2), layout="blhd", mask=mask)
    assert (transposed.swapaxes(1, 2) == wanted.output).all()
    other = mha.KVCache(2, 64, G, D)
    other.append(key.swapaxes(1, 2), value.swapaxes(1, 2), layout="blhd")
    assert (other.attention(query, mask=mask) == wanted.output).all()


def test_sequences_are_chosen(random: Any) -> None:
    cache, key, value = filled(random, 3, 10)
    query = tokens(random, 2, 4, 1, D)
    found = cache.attention(query, sequences=[2, 0])
    assert (found == mha.attention(query, key[[2, 0]], value[[2, 0]])).all()
    cache.append(key[:2, :, :4], value[:2, :, :4], sequences=[1, 2], lengths=[4, 1])
    assert cache.lengths == [10, 14, 11]


def test_columns_are_those_of_the_chosen_sequences(random: Any) -> None:
    cache, key, value = filled(random, 2, 4)
    cache.append(key[1:], value[1:], sequences=[1])
    query = tokens(random, 1, 4, 1, D)
    shapes = [
        cache.attention(query, sequences=[n], return_weights=True).weights.shape for n in (0, 1)
    ]
    assert shapes == [(1, 4, 1, 4), (1, 4, 1, 8)]


def test_one_query_without_a_batch(random: Any) -> None:
    cache, key, value = filled(random, 1, 10)
    query = tokens(random, 4, 1, D)
    out = numpy.empty_like(query)
    assert cache.attention(query, out=out) is out
    assert (out == mha.attention(query, key[0], value[0])).all()


@pytest.mark.parametrize(("dtype", "bound"), [("f16", 2e-3), ("bf16", 2e-2), ("i8", 2e-2)])
def test_small_types_round_once(random: Any, dtype: str, bound: float) -> None:
    cache, key, _ = filled(random, 1, 20, dtype=dtype)
    wide = filled(random, 1, 20)[0]
    assert cache.nbytes < 0.7 * wide.nbytes
    error = numpy.abs(held(cache) - key[0]).max()
    assert 0 < error < bound * numpy.abs(key).max()


def test_values_of_another_width_and_type(random: Any) -> None:
    cache = mha.KVCache(1, 8, 1, 4, value_head_width=6, dtype="f32", value_dtype="bf16")
    assert cache.config["value_head_width"] == 6 and cache.config["value_dtype"] == "bf16"
    cache.append(tokens(random, 1, 1, 3, 4), tokens(random, 1, 1, 3, 6))
    assert cache.attention(tokens(random, 1, 2, 1, 4)).shape == (1, 2, 1, 6)


# ----------------------------------------------------------------- tokens -----


def test_reading(random: Any) -> None:
    cache, key, value = filled(random, 2, 9)
    found_key, found_value = cache.read(1, 2, 5)
    assert (numpy.asarray(found_key) == key[1, :, 2:7]).all()
    assert (numpy.asarray(found_value) == value[1, :, 2:7]).all()
    assert (held(cache, 1) == key[1]).all()


def test_truncate_remove_and_copy(random: Any) -> None:
    cache, key, _ = filled(random, 2, 9)
    cache.truncate(0, 6)
    cache.remove(0, 1, 2)
    assert cache.lengths == [4, 9]
    assert (held(cache) == key[0][:, [0, 3, 4, 5]]).all()
    cache.copy(0, 1, 7, 2)
    assert (held(cache)[:, 4:] == key[1][:, 7:]).all()


def test_forks_share_pages_until_one_changes(random: Any) -> None:
    cache = mha.KVCache(2, 256, G, D, kind="paged", page_tokens=32)
    key = tokens(random, 1, G, 64, D)
    cache.append(key, key)
    free = cache.free_pages
    cache.fork(1, 0)
    assert cache.free_pages == free and (held(cache, 1) == key[0]).all()
    more = tokens(random, 1, G, 1, D)
    cache.append(more, more, sequences=[1])
    assert cache.free_pages < free and cache.lengths == [64, 65]


def test_reorder(random: Any) -> None:
    cache, key, _ = filled(random, 3, 5)
    cache.reorder([2, 2, 0])
    assert all((held(cache, n) == key[p]).all() for n, p in enumerate([2, 2, 0]))


def test_rings_forget(random: Any) -> None:
    cache = mha.KVCache(1, 32, G, D, kind="ring")
    key = tokens(random, 1, G, 40, D)
    for start in range(0, 40, 10):
        part = key[:, :, start : start + 10]
        cache.append(part, part)
    assert cache.lengths == [40] and cache.firsts == [8]
    assert (held(cache) == key[0, :, 8:]).all()
    with pytest.raises(mha.Error, match="those from 8 up to 40"):
        cache.read(0, 7, 2)
    query = tokens(random, 1, G, 1, D)
    with pytest.raises(mha.Error, match="ring has dropped"):
        cache.attention(query)
    window = {"causal": True, "window": (16, 0)}
    wanted = mha.attention(query, key, key, position="bottom-right", **window)
    assert (cache.attention(query, **window) == wanted).all()


def test_shift_turns_keys(random: Any) -> None:
    """Tokens that are rotated for one position and then moved equal those rotated for the other."""
    rope = mha.Rope()
    layer = mha.Layer.random(16, 2, rope=rope)
    x = tokens(random, 1, 6, 16)
    moved, plain = (mha.KVCache(1, 16, 2, 8) for _ in range(2))
    layer(x, cache=moved, causal=True)
    moved.remove(0, 0, 2)
    moved.shift(0, 0, 4, rope, -2)
    layer(x[:, 2:], cache=plain, causal=True)
    numpy.testing.assert_allclose(held(moved), held(plain), atol=1e-5)


# ------------------------------------------------------------------- layer -----


@pytest.mark.parametrize("kind", ["contiguous", "paged"])
def test_steps_through_a_cache_are_one_long_call_to_the_bit(random: Any, kind: str) -> None:
    layer = mha.Layer.random(16, 4, kv_heads=2, rope=mha.Rope())
    x = tokens(random, 2, 12, 16)
    whole = layer(x, causal=True)
    cache = mha.KVCache(2, 32, 2, 4, kind=kind)
    parts = [layer(x[:, a:b], cache=cache, causal=True) for a, b in ((0, 5), (5, 6), (6, 12))]
    assert (numpy.concatenate(parts, 1) == whole).all()
    assert cache.lengths == [12, 12]


def test_steps_of_unequal_length_and_their_weights(random: Any) -> None:
    layer = mha.Layer.random(16, 4)
    cache = mha.KVCache(3, 32, 4, 4)
    x = tokens(random, 2, 5, 16)
    result = layer(
        x,
        cache=cache,
        sequences=[2, 0],
        query_lengths=[5, 3],
        causal=True,
        return_weights=True,
    )
    assert cache.lengths == [3, 0, 5] and result.weights.shape == (2, 4, 5, 5)
    assert (result.output[1, :3] == layer(x[1, :3], causal=True)).all()
    assert not result.output[1, 3:].any() and not result.weights[1, :, 3:].any()
    more = layer(x[:, :1], cache=cache, sequences=[2, 0], causal=True, return_weights=True)
    assert more.weights.shape == (2, 4, 1, 6)


def test_packed_steps(random: Any) -> None:
    layer = mha.Layer.random(16, 4)
    cache = mha.KVCache(2, 32, 4, 4)
    x = tokens(random, 7, 16)
    options = {"cache": cache, "causal": True, "return_weights": True}
    result = layer(x, query_starts=[0, 5, 7], **options)
    assert cache.lengths == [5, 2] and result.weights.shape == (2, 4, 5, 5)
    assert (result.output[5:] == layer(x[5:], causal=True)).all()
    assert layer(x[:2], query_starts=[0, 1, 2], **options).weights.shape == (2, 4, 1, 6)


def test_store_and_recall_are_cross_attention(random: Any) -> None:
    layer = mha.Layer.random(16, 4, key_width=10)
    memory, x = tokens(random, 2, 7, 10), tokens(random, 2, 3, 16)
    cache = mha.KVCache(2, 16, 4, 4)
    assert layer(key=memory, cache=cache, cache_use="store") is None
    assert cache.lengths == [7, 7]
    found = layer(x, cache=cache, cache_use="recall")
    assert (found == layer(x, memory)).all()


def test_a_cache_of_other_heads_is_refused(random: Any) -> None:
    layer = mha.Layer.random(16, 4)
    with pytest.raises(mha.Error, match="the cache has G = 2"):
        layer(tokens(random, 1, 3, 16), cache=mha.KVCache(1, 8, 2, 4), causal=True)


def test_a_step_that_fails_changes_nothing(random: Any) -> None:
    layer = mha.Layer.random(16, 4)
    cache = mha.KVCache(1, 8, 4, 4)
    layer(tokens(random, 1, 6, 16), cache=cache, causal=True)
    before = held(cache)
    with pytest.raises(mha.Error) as caught:
        layer(tokens(random, 1, 3, 16), cache=cache, causal=True)
    assert caught.value.code == "MHA_ERR_FULL"
    assert cache.lengths == [6] and (held(cache) == before).all()


# ------------------------------------------------------------------- files -----


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8"])
def test_files_bring_back_every_bit(random: Any, tmp_path: Path, dtype: str) -> None:
    cache, *_ = filled(random, 2, 20, dtype=dtype, kind="paged")
    cache.truncate(1, 7)
    cache.save(tmp_path / "cache")
    again = mha.KVCache.load(str(tmp_path / "cache"))
    assert type(again) is mha.KVCache and again.config == cache.config
    assert again.lengths == [20, 7]
    query = tokens(random, 2, 4, 1, D)
    assert (again.attention(query) == cache.attention(query)).all()


def test_files_that_cannot_be(random: Any, tmp_path: Path) -> None:
    with pytest.raises(mha.Error, match="nowhere"):
        mha.KVCache.load(tmp_path / "nowhere")
    filled(random, 1, 3)[0].save(tmp_path / "cache")
    damaged = bytearray((tmp_path / "cache").read_bytes())
    damaged[-5] ^= 1
    (tmp_path / "cache").write_bytes(damaged)
    with pytest.raises(mha.Error) as caught:
        mha.KVCache.load(tmp_path / "cache")
    assert caught.value.code == "MHA_ERR_FORMAT"
    with pytest.raises(TypeError):
        mha.KVCache.load(3)


# ------------------------------------------------------------------ errors -----


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        (dict(kind="stack"), mha.Error, '"ring"'),
        (dict(dtype="f8"), mha.Error, '"i8"'),
        (dict(dtype=numpy.float32), TypeError, "dtype"),
        (dict(capacity=-1), mha.Error, "capacity"),
        (dict(kind="paged", page_tokens=33), mha.Error, "32"),
        (dict(kv_heads="many"), TypeError, "str"),
    ],
)
def test_caches_that_cannot_be(arguments: dict, kind: type, text: str) -> None:
    full = {"sequences": 1, "capacity": 8, "kv_heads": 1, "head_width": 4, **arguments}
    with pytest.raises(kind, match=re.escape(text)):
        mha.KVCache(**full)


def test_calls_that_cannot_be(random: Any) -> None:
    cache, key, value = filled(random, 2, 60)
    with pytest.raises(mha.Error, match="no room.*at most 64"):
        cache.append(key, value)
    with pytest.raises(mha.Error, match="no such sequence"):
        cache.append(key[:, :, :1], value[:, :, :1], sequences=[0, 2])
    with pytest.raises(mha.Error, match="the cache has 2"):
        cache.append(key[:, :1], value[:, :1])
    with pytest.raises(mha.Error, match="they must agree"):
        cache.append(key, value[:1])
    with pytest.raises(mha.Error, match="f64"):
        cache.append(key.astype("float64"), value)
    with pytest.raises(mha.Error, match="width 7"):
        cache.attention(tokens(random, 2, 4, 1, 7))
    with pytest.raises(mha.Error, match="2"):
        cache.attention(tokens(random, 3, 4, 1, D))
    with pytest.raises(TypeError, match="key_starts"):
        cache.attention(tokens(random, 2, 4, 1, D), key_starts=[0, 1])
    assert cache.lengths == [60, 60]


@pytest.mark.parametrize(
    ("method", "arguments", "text"),
    [
        ("truncate", (0, 10), "sequence 0 has those from 0 up to 9"),
        ("truncate", (5, 1), "2 sequences"),
        ("fork", (0, 7), "2 sequences"),
        ("copy", (0, 1, 5, 9), "up to 9"),
        ("remove", (0, 8, 2), "up to 9"),
        ("read", (0, 8, 2), "up to 9"),
        ("read", (2,), "the cache has 2"),
        ("reorder", ([0, 5],), "2 sequences"),
        ("reorder", ([0],), "parents"),
    ],
)
def test_changes_that_cannot_be(random: Any, method: str, arguments: tuple, text: str) -> None:
    cache, key, _ = filled(random, 2, 9)
    with pytest.raises(mha.Error, match=re.escape(text)):
        getattr(cache, method)(*arguments)
    assert cache.lengths == [9, 9] and (held(cache) == key[0]).all()


def test_rings_lose_no_tokens_in_the_middle(random: Any) -> None:
    with pytest.raises(mha.Error, match="kind ring"):
        filled(random, 1, 9, kind="ring")[0].remove(0, 1, 2)


def test_a_cache_in_use_is_left_alone(random: Any) -> None:
    """While one thread's long call reads, others may read and must not write."""
    cache = mha.KVCache(1, 4096, 8, 64)
    key = tokens(random, 1, 8, 4096, 64)
    cache.append(key, key)
    query = tokens(random, 1, 8, 2048, 64)
    refused = []
    reader = threading.Thread(target=lambda: cache.attention(query, threads=1))
    reader.start()
    while reader.is_alive():
        try:
            cache.truncate(0, 4096)
        except RuntimeError as error:
            refused.append(str(error))
            cache.attention(query[:, :, :1], threads=1)
        time.sleep(0.001)
    reader.join()
    assert refused and "another thread" in refused[0]
    cache.truncate(0, 0)
