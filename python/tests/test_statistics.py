# SPDX-License-Identifier: MIT
"""head_statistics() and attention(statistics=...) against statistics of the weights."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")

import mha

B, H, L, S, D = 2, 3, 6, 6, 8


@pytest.fixture
def qkv(random: Any) -> Any:
    return tuple(random.standard_normal((B, H, L, D), dtype=np.float32) for _ in range(3))


def of_rows(weights: Any) -> dict[str, Any]:
    """Statistics of rows, from their weights (B, H, L, S) with offset 0."""
    w = weights.astype(np.float64)
    i, j = np.arange(L)[:, None], np.arange(S)[None, :]
    logs = np.log(np.where(w > 0, w, 1))

    def at(shift: int) -> Any:
        return np.where(j == i + shift, w, 0).sum(-1)

    return {
        "entropy": -(w * logs).sum(-1),
        "largest": w.max(-1),
        "distance": (w * np.abs(i - j)).sum(-1),
        "self": at(0),
        "previous": at(-1),
        "next": at(1),
        "first": w[..., 0],
        "mass": w.sum(-1),
        "key": np.where(w.any(-1), w.argmax(-1), -1),
    }


def close(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("causal", [False, True])
def test_of_rows_and_heads(qkv: Any, causal: bool) -> None:
    got = mha.attention(*qkv, causal=causal, return_weights=True, statistics=True)
    wanted = of_rows(got.weights)
    rows, heads = got.statistics.rows, got.statistics.heads
    assert rows._fields == tuple(wanted)
    for name, array in rows._asdict().items():
        assert array.shape == (B, H, L)
        close(array, wanted[name])
        if name != "key":
            close(getattr(heads, name), wanted[name].mean(-1))
    assert np.array_equal(heads.rows, np.full((B, H), L))
    assert got.statistics.columns is got.statistics.top_keys is got.statistics.top_weights is None


def test_of_columns_and_lists(qkv: Any) -> None:
    got = mha.attention(*qkv, return_weights=True, statistics={"columns": True, "top": 3})
    close(got.statistics.columns, got.weights.sum(-2))
    order = np.argsort(-got.weights, -1, kind="stable")[..., :3]
    assert np.array_equal(got.statistics.top_keys, order)
    close(got.statistics.top_weights, np.take_along_axis(got.weights, order, -1))
    assert got.statistics.rows is None and got.statistics.heads is None


def test_first_keys(qkv: Any) -> None:
    got = mha.attention(*qkv, return_weights=True, statistics={"rows": True, "first_keys": 3})
    close(got.statistics.rows.first, got.weights[..., :3].sum(-1))


def test_without_an_output(qkv: Any) -> None:
    options = {"causal": True, "sinks": [0.3, -0.2, 1.0]}
    wanted = mha.attention(*qkv, **options, statistics=True).statistics
    for got in (
        mha.head_statistics(*qkv[:2], **options),
        mha.head_statistics(*qkv, **options),
        mha.head_statistics(*qkv[:2], **options, statistics=["rows", "heads"]),
    ):
        for one, two in zip((*got.rows, *got.heads), (*wanted.rows, *wanted.heads)):
            assert np.array_equal(one, two)


def test_without_an_output_packed(qkv: Any) -> None:
    q, k = qkv[0][0], qkv[1][0]
    starts = [0, 4, 6]
    got = mha.head_statistics(q, k, query_starts=starts, key_starts=starts)
    assert got.rows.entropy.shape == (2, H, 4)
    for b, (first, last) in enumerate(((0, 4), (4, 6))):
        alone = mha.head_statistics(q[:, first:last], k[:, first:last])
        assert np.array_equal(got.rows.entropy[b, :, : last - first], alone.rows.entropy)
        assert np.array_equal(got.heads.entropy[b], alone.heads.entropy)


def test_kinds_of_arrays(qkv: Any) -> None:
    torch = pytest.importorskip("torch")
    wanted = mha.head_statistics(*qkv[:2]).rows
    got = mha.head_statistics(*(torch.from_numpy(x) for x in qkv[:2])).rows
    assert isinstance(got.entropy, torch.Tensor) and got.key.dtype == torch.int64
    own = mha.head_statistics(*(memoryview(x) for x in qkv[:2])).rows
    assert isinstance(own.entropy, mha.Array)
    for one, two, three in zip(wanted, got, own):
        assert np.array_equal(one, two.numpy())
        assert np.array_equal(one, np.asarray(three))
        assert one.tolist() == three.tolist()


def test_memory_outlives_the_call(qkv: Any) -> None:
    entropy = mha.head_statistics(*qkv[:2]).rows.entropy
    kept = entropy.copy()
    for _ in range(100):
        mha.head_statistics(*qkv[:2])
    assert np.array_equal(entropy, kept)


def test_as_a_picture(qkv: Any) -> None:
    statistics = mha.head_statistics(*qkv[:2], statistics=["heads", "columns"])
    html = statistics._repr_html_()
    assert html.count("<tr>") == 1 + B * H
    assert "<th>entropy</th>" in html and "<svg" in html
    assert "columns=(2, 3, 6), heads=(2, 3), rows=None" in repr(statistics)
    one = mha.head_statistics(qkv[0][0, 0], qkv[1][0, 0], statistics=["heads", "columns"])
    assert one.heads.entropy.shape == () and one._repr_html_().count("<tr>") == 2
    assert mha.head_statistics(*qkv[:2], statistics=["rows"])._repr_html_() == ""


def test_what_cannot_be(qkv: Any) -> None:
    def run(statistics: Any) -> Any:
        return mha.attention(*qkv, statistics=statistics)

    with pytest.raises(mha.Error, match='an element of statistics is "row"; use one of "rows"'):
        run(["row"])
    with pytest.raises(mha.Error, match='top needs a number; write {"top": 5}'):
        run(["top"])
    with pytest.raises(mha.Error, match="top is 65; use 0 to 64"):
        run({"top": 65})
    with pytest.raises(TypeError, match="statistics is a str"):
        run("rows")
    with pytest.raises(TypeError, match="statistics is an int"):
        run(3)
    with pytest.raises(TypeError, match="top is a str; it must be an integer"):
        run({"top": "3"})
    with pytest.raises(mha.Error, match="statistics requests nothing"):
        mha.head_statistics(*qkv[:2], statistics=False)
