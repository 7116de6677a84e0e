# SPDX-License-Identifier: MIT
"""Options of mha.torch.attention() beyond masks: positions of batches, packed sequences, layouts,
lengths, modes of heads, statistics; float64 to its last digit; arguments of other libraries."""

import math

import pytest

torch = pytest.importorskip("torch")
from torch import Tensor  # noqa: E402

import mha.torch  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")
attention = mha.torch.attention
TYPES = [torch.float32, torch.float64]


class Watch(torch.utils._python_dispatch.TorchDispatchMode):
    """A mode that changes nothing, for which calls go through the operator."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def drawn(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


# -------------------------------------------------------------------------- positions -----


@pytest.mark.parametrize("position", [torch.tensor([0, 1]), [2, 0], torch.tensor([-1, 3])])
def test_gradients_with_positions_of_batches(position) -> None:
    x, k = drawn(2, 2, 2, 4).requires_grad_(), drawn(2, 2, 3, 4, seed=1).requires_grad_()

    def call(x: Tensor, k: Tensor) -> tuple[Tensor, ...]:
        result = attention(x, k, k, causal=True, position=position, return_weights=True)
        return result.output, result.weights

    torch.autograd.gradcheck(call, (x, k))
    torch.autograd.gradgradcheck(call, (x, k))


def test_positions_of_batches_are_those_of_each() -> None:
    x, k = drawn(2, 2, 2, 4), drawn(2, 2, 5, 4, seed=1)
    found = attention(x, k, k, causal=True, position=torch.tensor([1, 3]))
    for b, place in enumerate([1, 3]):
        one = slice(b, b + 1)
        assert torch.equal(
            found[one], attention(x[one], k[one], k[one], causal=True, position=place)
        )


@pytest.mark.parametrize("dtype", TYPES)
def test_positions_of_batches_by_every_way(dtype: torch.dtype) -> None:
    """The library's gradients, those of dense matrices, and of the operator."""
    x = drawn(2, 2, 4, 8, dtype=dtype).requires_grad_()
    settings = {"causal": True, "position": torch.tensor([0, 2]), "window": (2, None)}
    first, second = (
        torch.autograd.grad(attention(x, x, x, **settings).square().sum(), x, create_graph=again)[0]
        for again in (False, True)
    )
    torch.testing.assert_close(first, second)
    with Watch():
        (third,) = torch.autograd.grad(attention(x, x, x, **settings).square().sum(), x)
    torch.testing.assert_close(first, third)


# ----------------------------------------------------------------------------- packed -----

Q_STARTS, K_STARTS = torch.tensor([0, 3, 3, 8]), torch.tensor([0, 4, 6, 11])


def packed(dtype: torch.dtype) -> list[Tensor]:
    """Query, key, value, a bias over (H, L, S) and gates of sequences, all with gradients."""
    shapes = ((4, 8, 8), (2, 11, 8), (2, 11, 6), (4, 5, 5), (3, 4))
    tensors = [drawn(*shape, seed=n).to(dtype) for n, shape in enumerate(shapes)]
    return [
        t.float().requires_grad_() if n == 4 else t.requires_grad_() for n, t in enumerate(tensors)
    ]


def one_by_one(tensors: list[Tensor], **options: object) -> Tensor:
    """The same sequences, each alone."""
    query, key, value, bias, gates = tensors
    parts = []
    for b in range(3):
        rows, keys = (slice(int(s[b]), int(s[b + 1])) for s in (Q_STARTS, K_STARTS))
        L, S = rows.stop - rows.start, keys.stop - keys.start
        q, k, v = query[None, :, rows], key[None, :, keys], value[None, :, keys]
        parts.append(attention(q, k, v, bias=bias[:, :L, :S], gates=gates[b], **options)[0])
    return torch.cat(parts, 1)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_packed_sequences(dtype: torch.dtype, again: bool) -> None:
    tensors = packed(dtype)
    options = {"causal": True, "position": "bottom-right"}
    starts = {"query_starts": Q_STARTS, "key_starts": K_STARTS}
    found = attention(*tensors[:3], bias=tensors[3], gates=tensors[4], **options, **starts)
    right = one_by_one(tensors, **options)
    torch.testing.assert_close(found, right, rtol=0, atol=0)
    pairs = zip(
        torch.autograd.grad(found.square().sum(), tensors, create_graph=again),
        torch.autograd.grad(right.square().sum(), tensors),
    )
    for got, expected in pairs:
        torch.testing.assert_close(got, expected, rtol=2e-5, atol=2e-5)


def test_packed_keys_and_batched_queries() -> None:
    """And queries of several lengths: rows past them are 0, and have no gradient."""
    query, (_, key, value, *_) = drawn(3, 4, 5, 8, seed=9).requires_grad_(), packed(torch.float64)
    lengths = torch.tensor([5, 2, 0])
    found = attention(query, key, value, key_starts=K_STARTS, query_lengths=lengths)
    assert not found[1, :, 2:].any() and not found[2].any()
    torch.autograd.gradcheck(
        lambda *t: attention(*t, key_starts=K_STARTS, query_lengths=lengths), (query, key, value)
    )


def test_packed_dropout_drops_the_same_in_both_passes() -> None:
    query, key, value, *_ = packed(torch.float32)
    starts = {"query_starts": Q_STARTS, "key_starts": K_STARTS}
    found = []
    for again in (False, True):
        generator = torch.Generator().manual_seed(3)
        output = attention(query, key, value, dropout=0.4, generator=generator, **starts)
        found.append(torch.autograd.grad(output.square().sum(), query, create_graph=again)[0])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-4)


def test_packed_results_and_mistakes() -> None:
    query, key, value, *_ = (t.detach() for t in packed(torch.float32))
    starts = {"query_starts": Q_STARTS, "key_starts": K_STARTS}
    right = mha.attention(query, key, value, **starts, return_lse=True)
    found = attention(query, key, value, **starts, return_lse=True)
    assert torch.equal(found.output, right.output) and torch.equal(found.lse, right.lse)
    turned = (t.transpose(0, 1) for t in (query, key, value))
    output = attention(*turned, **starts, layout="blhd")
    assert torch.equal(output, right.output.transpose(0, 1))
    with pytest.raises(ValueError, match="no batch axis"):
        attention(query[None], key, value, **starts)
    with pytest.raises(ValueError, match="packed"):
        attention(query, key, value, **starts, return_weights=True)


# ----------------------------------------------------------------- layouts and lengths -----


def test_layout() -> None:
    x = drawn(2, 5, 4, 8, dtype=torch.float32)
    right = attention(*[x.transpose(1, 2)] * 3, causal=True)
    found = attention(x, x, x, causal=True, layout="blhd")
    assert torch.equal(found, right.transpose(1, 2)) and found.is_contiguous()
    with pytest.raises(ValueError, match='"bhld" or "blhd"'):
        attention(x, x, x, layout="lbhd")


@pytest.mark.parametrize("name", ["key_lengths", "query_lengths"])
def test_lengths_that_are_no_integers(name: str) -> None:
    x = drawn(2, 4, 8, 8)
    with pytest.raises(TypeError, match=name):
        attention(x, x, x, **{name: torch.tensor([7.5, 3.0])})
    with pytest.raises(TypeError, match=name):
        mha.attention(x, x, x, **{name: torch.tensor([7.5, 3.0])})
    with pytest.raises(TypeError, match=name):
        mha.attention(x, x, x, **{name: [7.5, 3]})


def test_lengths_of_queries_and_keys() -> None:
    x = drawn(2, 2, 4, 8).requires_grad_()
    lengths = {"query_lengths": torch.tensor([4, 2]), "key_lengths": torch.tensor([3, 4])}
    settings = {"causal": True, "position": "bottom-right", **lengths}
    right = mha.attention(*[x.detach()] * 3, **settings)
    assert torch.equal(attention(x, x, x, **settings).detach(), right)
    torch.autograd.gradcheck(lambda x: attention(x, x, x, **settings), x)


# ------------------------------------------------------------------------------ heads -----


def test_modes_of_heads() -> None:
    x, means, sinks = drawn(2, 3, 4, 5).requires_grad_(), drawn(3, 5, seed=1), drawn(3, seed=2)
    options = {
        "head_modes": ["normal", "uniform", "mean"],
        "head_means": means.float(),
        "sinks": sinks.float(),
        "causal": True,
        "return_lse": True,
        "return_weights": True,
    }
    right = mha.attention(*[x.detach()] * 3, **options)
    found = attention(x, x, x, **options)
    for got, expected in zip(found, right):
        torch.testing.assert_close(got.detach(), expected.to(got.dtype))
    torch.autograd.gradcheck(lambda x: tuple(attention(x, x, x, **options)), x)
    with pytest.raises(ValueError, match="each of the 3 heads"):
        attention(x, x, x, head_modes=["normal"])


@pytest.mark.parametrize("gradients", [False, True])
def test_statistics(gradients: bool) -> None:
    x = drawn(2, 3, 4, 8, dtype=torch.float32)
    right = mha.attention(x, x, x, causal=True, statistics=("rows", "columns")).statistics
    x.requires_grad_(gradients)
    result = attention(x, x, x, causal=True, statistics=("rows", "columns"), return_lse=True)
    assert torch.equal(result.statistics.rows.entropy, right.rows.entropy)
    assert torch.equal(result.statistics.columns, right.columns)
    output, lse, weights = result
    assert weights is None and lse is not None and output.requires_grad == gradients
    assert attention(x, x, x, return_lse=True).statistics is None


def test_statistics_are_not_part_of_the_operator() -> None:
    x = drawn(2, 3, 4, 8, dtype=torch.float32)
    with pytest.raises(NotImplementedError, match="head_statistics"):
        torch.func.vmap(lambda x: attention(x, x, x, statistics=True).output)(x[None])


# ---------------------------------------------------------------------------- float64 -----


@pytest.mark.parametrize(
    "options", [{"scale": 0.1}, {"softcap": 0.3}, {"scale": 0.1, "softcap": 0.3}]
)
def test_float64_is_exact_with_a_scale_or_a_soft_cap(options: dict[str, float]) -> None:
    q, k = drawn(1, 2, 5, 8), drawn(1, 2, 7, 8, seed=1)
    scores = q @ k.mT * options.get("scale", 8**-0.5)
    if cap := options.get("softcap"):
        scores = cap * torch.tanh(scores / cap)
    right = torch.softmax(scores, -1) @ k
    for found in (attention(q, k, k, **options), mha.attention(q, k, k, **options)):
        assert (found - right).abs().max() < 1e-14
    found = torch.softmax(q @ k.mT * 0.1, -1) @ k - mha.torch.scaled_dot_product_attention(
        q, k, k, scale=0.1
    )
    assert found.abs().max() < 1e-14


def test_scales_beyond_float32() -> None:
    x = drawn(1, 1, 3, 4)
    tiny = attention(x * 1e30, x * 1e30, x, scale=1e-60)
    torch.testing.assert_close(tiny, attention(x, x, x, scale=1.0), rtol=1e-12, atol=1e-12)
    with pytest.raises(mha.Error, match="scale is 0"):
        mha.attention(x, x, x, scale=0.0)
    with pytest.raises(mha.Error, match="scale"):
        mha.attention(x, x, x, scale=math.inf)
    with pytest.raises(mha.Error, match="softcap"):
        mha.attention(x, x, x, softcap=-1.0)


# ----------------------------------------------------------------- memory and messages -----


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_reading_does_not_copy_what_is_shared(dtype: torch.dtype) -> None:
    """Copy-on-write tensors are copied when they are written to, not when they are read."""
    x = drawn(3, 2, 5, 8).to(dtype)
    lazy = torch._lazy_clone(x)
    mask = torch._lazy_clone(drawn(5, 5) > 0)
    for part in (lazy, lazy[1:], lazy.transpose(1, 2)):
        right = attention(part.clone(), part.clone(), part.clone())
        assert torch.equal(attention(part, part, part), right)
        assert torch.equal(mha.torch.scaled_dot_product_attention(part, part, part), right)
    attention(lazy, lazy, lazy, mask=mask)
    for tensor in (lazy, x, mask):
        assert torch._C._is_cow_tensor(tensor)


@pytest.mark.parametrize(
    "name, here",
    [
        ("is_causal", "causal"),
        ("attn_mask", "mask where True attends"),
        ("cu_seqlens_q", "query_starts"),
        ("softmax_scale", "scale"),
        ("threads", "torch.set_num_threads"),
    ],
)
def test_names_of_other_libraries(name: str, here: str) -> None:
    x = drawn(1, 1, 2, 4)
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'; here it is {here}"):
        attention(x, x, x, **{name: None})
    with pytest.raises(TypeError, match="unexpected keyword argument 'casual'$"):
        attention(x, x, x, casual=True)


def test_the_profiler_shows_calls() -> None:
    x = drawn(1, 1, 2, 4)
    with torch.profiler.profile() as profile:
        attention(x, x, x)
        mha.torch.scaled_dot_product_attention(x, x, x)
    counts = {event.key: event.count for event in profile.key_averages()}
    assert counts["mha::attention"] == 2
