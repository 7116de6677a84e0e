# SPDX-License-Identifier: MIT
"""The operator mha::attention: torch's own checks of it, gradients of every option, compilers."""

import pytest

torch = pytest.importorskip("torch")
from torch import Tensor  # noqa: E402

import mha.torch  # noqa: E402


@pytest.fixture(autouse=True)
def _alone():
    """One thread, since these tensors are tiny."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


B, H, G, L, S, D, DV = 2, 4, 2, 5, 7, 8, 6


def inputs(dtype: torch.dtype = torch.float32, seed: int = 0) -> list[Tensor]:
    draw = torch.Generator().manual_seed(seed)
    shapes = ((B, H, L, D), (B, G, S, D), (B, G, S, DV))
    return [torch.randn(s, generator=draw, dtype=torch.float64).to(dtype) for s in shapes]


def drawn(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# Every option, alone and together: settings, and tensors that may have gradients.
OPTIONS = {
    "plain": ({}, {}),
    "scale": ({"scale": -0.3}, {}),
    "softcap": ({"softcap": 1.5}, {}),
    "causal": ({"causal": True, "position": "top-left"}, {}),
    "bottom-right": ({"causal": True, "position": "bottom-right"}, {}),
    "offset": ({"causal": True, "position": -2}, {}),
    "window": ({"window": (1, 2), "position": 1}, {}),
    "open window": ({"window": (None, 0), "position": 1}, {}),
    "bool mask": ({"mask": drawn(B, 1, L, S) > 0}, {}),
    "ignore_mask": ({"ignore_mask": drawn(L, S) > 0}, {}),
    "column mask": ({"mask": drawn(B, 1, 1, S) > 0}, {}),
    "row mask": ({"mask": drawn(B, 1, L, 1) > 0}, {}),
    "lengths": ({"key_lengths": torch.tensor([3, 0])}, {}),
    "lengths, bottom-right": (
        {"key_lengths": torch.tensor([3, 6]), "causal": True, "position": "bottom-right"},
        {},
    ),
    "documents": (
        {
            "query_documents": torch.tensor([[0, 0, 1, 1, 2]] * B),
            "key_documents": torch.tensor([[0, 0, 0, 1, 1, 3, 3]] * B),
        },
        {},
    ),
    "float mask": ({}, {"mask": drawn(B, H, L, S)}),
    "float row mask": ({}, {"mask": drawn(B, 1, L, 1)}),
    "float mask with -inf": ({}, {"mask": drawn(L, S).masked_fill(drawn(L, S) > 0, -torch.inf)}),
    "bias": ({}, {"bias": drawn(H, L, S)}),
    "alibi": ({"position": "bottom-right"}, {"alibi_slopes": drawn(H).abs()}),
    "sinks": ({}, {"sinks": drawn(H)}),
    "gates": ({}, {"gates": drawn(H)}),
    "gates of batches": ({}, {"gates": drawn(B, H)}),
    "all": (
        {
            "causal": True,
            "position": "bottom-right",
            "window": (4, None),
            "softcap": 2.0,
            "ignore_mask": drawn(B, 1, L, S, seed=2) > 1,
            "key_lengths": torch.tensor([7, 5]),
        },
        {
            "mask": drawn(B, 1, L, S),
            "bias": drawn(1, H, 1, S),
            "alibi_slopes": drawn(H).abs(),
            "sinks": drawn(H),
            "gates": drawn(B, H),
        },
    ),
}


# The library takes these as float32 whatever the type of the rest.
FLOAT32 = {"alibi_slopes", "sinks", "gates"}


def call(name: str, tensors: list[Tensor], **more: object) -> object:
    """attention() with the options of that name; `tensors` are q, k, v and those of the name."""
    settings, named = OPTIONS[name]
    return mha.torch.attention(*tensors[:3], **settings, **dict(zip(named, tensors[3:])), **more)


def leaves(name: str, dtype: torch.dtype) -> list[Tensor]:
    tensors = inputs(dtype) + [t.to(dtype) for t in OPTIONS[name][1].values()]
    return [t.clone().requires_grad_() for t in tensors]


def operator_arguments(name: str, dtype: torch.dtype, weights: int = 0) -> tuple:
    """The arguments that attention() passes to the operator."""
    caught = []

    class Catch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is torch.ops.mha.attention.default:
                caught.append(args)
            return func(*args, **(kwargs or {}))

    tensors = leaves(name, dtype)
    with Catch(), torch.no_grad():
        call(name, tensors, return_weights=weights > 0, average_weights=weights == 2)
    (found,) = caught
    return tuple(
        t.clone().requires_grad_(t.is_floating_point()) if isinstance(t, Tensor) else t
        for t in found
    )


@pytest.mark.parametrize("name", ["plain", "bool mask", "documents", "float row mask", "all"])
def test_opcheck(name: str) -> None:
    torch.library.opcheck(
        torch.ops.mha.attention.default, operator_arguments(name, torch.float32, weights=1)
    )


@pytest.mark.parametrize(
    "dtype, weights", [(torch.float16, 0), (torch.bfloat16, 2), (torch.float64, 0)]
)
def test_opcheck_types(dtype: torch.dtype, weights: int) -> None:
    arguments = operator_arguments("float mask", dtype, weights)
    torch.library.opcheck(torch.ops.mha.attention.default, arguments)


def test_opcheck_strides() -> None:
    tensors = [torch.randn(B, L, H, D).transpose(1, 2), torch.randn(B, G, D, S).transpose(2, 3)]
    arguments = operator_arguments("causal", torch.float32)
    arguments = (*(t.requires_grad_() for t in tensors), *arguments[2:])
    torch.library.opcheck(torch.ops.mha.attention.default, arguments)


def _finite(lse: Tensor) -> Tensor:
    """Log-sum-exp of rows that have a key; gradcheck cannot subtract infinities."""
    return lse.masked_fill(lse == -torch.inf, 0.0)


def everything(name: str, tensors: list[Tensor]) -> tuple[Tensor, ...]:
    result = call(name, tensors, return_lse=True, return_weights=True)
    return result.output, _finite(result.lse), result.weights


@pytest.mark.parametrize("name", [n for n in OPTIONS if not FLOAT32 & OPTIONS[n][1].keys()])
def test_gradcheck_float64(name: str) -> None:
    torch.autograd.gradcheck(
        lambda *tensors: everything(name, tensors), leaves(name, torch.float64), fast_mode=True
    )


@pytest.mark.parametrize("name", [n for n in OPTIONS if FLOAT32 & OPTIONS[n][1].keys()])
def test_gradcheck_of_float32_vectors(name: str) -> None:
    """Steps that are large enough for float32, from numbers that are exact in it."""
    step = 2.0**-12
    tensors = leaves(name, torch.float64)
    fixed = [t.detach() for t in tensors[:3]]
    vectors = [(t.detach() / step).round().mul(step).requires_grad_() for t in tensors[3:]]
    torch.autograd.gradcheck(
        lambda *vectors: everything(name, [*fixed, *vectors]), vectors, eps=step, atol=1e-5
    )


@pytest.mark.parametrize("name", OPTIONS)
def test_gradgradcheck_float64(name: str) -> None:
    torch.autograd.gradgradcheck(
        lambda *tensors: call(name, tensors), leaves(name, torch.float64), fast_mode=True
    )


@pytest.mark.parametrize("related", [False, True])
def test_second_derivatives_of_self_attention(related: bool) -> None:
    """Where query, key and value are one tensor, or computed from each other."""

    def loss(x: Tensor) -> Tensor:
        k = x * 2 if related else x
        return mha.torch.attention(x, k, k + x if related else x, causal=True).square().sum()

    x = drawn(1, 2, 3, 4).requires_grad_()
    first, again = (torch.autograd.grad(loss(x), x, create_graph=c)[0] for c in (False, True))
    torch.testing.assert_close(first, again)
    torch.autograd.gradgradcheck(loss, x)


def gradients(name: str, dtype: torch.dtype, average: bool = False) -> list[Tensor]:
    """Gradients of a function of output and log-sum-exp, and of the weights if requested."""
    tensors = leaves(name, dtype)
    result = call(name, tensors, return_lse=True, return_weights=average, average_weights=average)
    loss = (result.output.to(torch.float64) * drawn(B, H, L, DV, seed=5)).sum()
    loss = loss + (_finite(result.lse) * drawn(B, H, L, seed=6)).sum()
    if average:
        loss = loss + (result.weights * drawn(B, L, S, seed=7)).sum()
    return list(torch.autograd.grad(loss, tensors))


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_gradients_float32(name: str, average: bool) -> None:
    """The library's backward pass against float64, which gradcheck has found exact."""
    found = gradients(name, torch.float32, average)
    for got, right in zip(found, gradients(name, torch.float64, average)):
        torch.testing.assert_close(got, right.float(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradients_have_the_type_of_their_tensor(dtype: torch.dtype) -> None:
    found = gradients("all", dtype)
    assert all(g.dtype == dtype for g in found)
    for got, right in zip(found, gradients("all", torch.float64)):
        torch.testing.assert_close(got.double(), right, atol=5e-2, rtol=5e-2)


@pytest.mark.parametrize("wanted", range(6))
def test_gradient_of_one_tensor_alone(wanted: int) -> None:
    """Only what is requested is computed, with the same result."""
    tensors = [t.detach() for t in leaves("all", torch.float32)]
    whole = leaves("all", torch.float32)
    call("all", whole).sum().backward()
    tensors[wanted].requires_grad_()
    call("all", tensors).sum().backward()
    assert torch.equal(tensors[wanted].grad, whole[wanted].grad)
    assert all(t.grad is None for i, t in enumerate(tensors) if i != wanted)


def test_double_backward_float32() -> None:
    """A gradient penalty, in the types that are used for training."""

    def penalty(dtype: torch.dtype) -> list[Tensor]:
        tensors = leaves("all", dtype)
        first = torch.autograd.grad(call("all", tensors).square().sum(), tensors, create_graph=True)
        return list(torch.autograd.grad(sum(g.square().sum() for g in first), tensors))

    for got, right in zip(penalty(torch.float32), penalty(torch.float64)):
        torch.testing.assert_close(got, right.float(), atol=1e-3, rtol=1e-4)


def test_gradient_of_expanded_tensors() -> None:
    """Tensors whose elements share memory: gradients are summed where they were expanded."""
    q, k, v = inputs()
    bias = torch.randn(1, 1, 1, S, requires_grad=True)
    value = torch.randn(1, G, 1, DV, requires_grad=True)
    mha.torch.attention(
        q, k, value.expand(B, G, S, DV), bias=bias.expand(B, H, L, S)
    ).sum().backward()
    again = [bias.detach().double().requires_grad_(), value.detach().double().requires_grad_()]
    q, k, v = (t.double() for t in (q, k, v))
    mha.torch.attention(q, k, again[1].expand(B, G, S, DV), bias=again[0]).sum().backward()
    torch.testing.assert_close(bias.grad.double(), again[0].grad, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(value.grad.double(), again[1].grad, atol=1e-5, rtol=1e-5)


def test_empty_rows_and_hidden_garbage() -> None:
    """A row without keys gives 0 and gradients of 0; NaN in masked keys has no effect."""
    q, k, v = (t.requires_grad_() for t in inputs())
    with torch.no_grad():
        k[:, :, 3:], v[:, :, 3:] = torch.nan, torch.nan
    lengths = torch.tensor([3, 0])
    output = mha.torch.attention(q, k, v, key_lengths=lengths)
    output.sum().backward()
    assert torch.equal(output[1], torch.zeros_like(output[1]))
    assert all(torch.isfinite(t.grad).all() for t in (q, k, v))
    assert not q.grad[1].any() and not v.grad[:, :, 3:].any()


@pytest.mark.parametrize("shape", [(0, H, L, S), (B, H, 0, S), (B, H, L, 0)])
def test_empty_extents(shape: tuple[int, int, int, int]) -> None:
    batch, heads, rows, keys = shape
    q = torch.randn(batch, heads, rows, D, requires_grad=True)
    k = torch.randn(batch, heads, keys, D, requires_grad=True)
    output = mha.torch.attention(q, k, k)
    assert output.shape == (batch, heads, rows, D) and not output.any()
    output.sum().backward()
    assert not q.grad.any() and not k.grad.any()


@pytest.mark.parametrize("name", OPTIONS)
def test_the_way_around_the_dispatcher_gives_the_same_bits(name: str) -> None:
    tensors = leaves(name, torch.float32)
    watched = call(name, tensors, return_lse=True, return_weights=True)
    with torch.no_grad():
        direct = call(name, tensors, return_lse=True, return_weights=True)
        alone = call(name, tensors)
    with torch.inference_mode():
        inferred = call(name, [t.clone() for t in tensors])
    assert all(torch.equal(a, b) for a, b in zip(watched, direct))
    assert torch.equal(alone, direct.output) and torch.equal(inferred, alone)
    assert alone.grad_fn is None and watched.output.grad_fn is not None
    assert alone.stride() == watched.output.stride()


def test_output_has_the_memory_order_of_the_query() -> None:
    q, k, v = inputs()
    assert mha.torch.attention(q, k, v).is_contiguous()
    transposed = q.transpose(1, 2).contiguous().transpose(1, 2)
    assert mha.torch.attention(transposed, k, v).transpose(1, 2).is_contiguous()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", ["plain", "bool mask", "all"])
def test_compile(name: str, backend: str) -> None:
    def function(*tensors: Tensor) -> Tensor:
        result = call(name, tensors, return_weights=True)
        return result.output.sum() + result.weights.square().sum()

    torch.compiler.reset()
    compiled = torch.compile(function, backend=backend, fullgraph=True)
    first, second = leaves(name, torch.float32), leaves(name, torch.float32)
    compiled(*first).backward()
    function(*second).backward()
    for got, right in zip(first, second):
        torch.testing.assert_close(got.grad, right.grad)


def test_compile_with_dynamic_lengths() -> None:
    torch.compiler.reset()
    compiled = torch.compile(
        lambda q, k, v: mha.torch.attention(q, k, v, causal=True, position="bottom-right"),
        backend="aot_eager",
        fullgraph=True,
        dynamic=True,
    )
    for keys in (3, 7, 12):
        q, k = torch.randn(1, 2, 3, 8), torch.randn(1, 2, keys, 8, requires_grad=True)
        right = mha.torch.attention(q, k, k, causal=True, position="bottom-right")
        assert torch.equal(compiled(q, k, k), right)


def test_export() -> None:
    class Model(torch.nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return mha.torch.attention(q, k, v)

    program = torch.export.export(Model(), tuple(inputs()))
    assert torch.ops.mha.attention.default in [n.target for n in program.graph.nodes]
    assert torch.equal(program.module()(*inputs()), mha.torch.attention(*inputs()))


def test_meta_and_fake_tensors() -> None:
    real = mha.torch.attention(*inputs(), return_lse=True, return_weights=True)
    meta = [t.to("meta") for t in inputs()]
    shapes = mha.torch.attention(*meta, return_lse=True, return_weights=True)
    with torch._subclasses.FakeTensorMode() as mode:
        fake = [mode.from_tensor(t) for t in inputs()]
        faked = mha.torch.attention(*fake, return_lse=True, return_weights=True)
    for found in (shapes, faked):
        for a, b in zip(found, real):
            assert (a.shape, a.stride(), a.dtype) == (b.shape, b.stride(), b.dtype)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype: torch.dtype) -> None:
    q, k, v = inputs()
    q.requires_grad_()
    with torch.autocast("cpu", dtype):
        output = mha.torch.attention(q, k, v)
        assert mha.torch.attention(*inputs(torch.float64)).dtype == torch.float64
    low = [t.detach().to(dtype) for t in (q, k, v)]
    assert output.dtype == dtype and torch.equal(output, mha.torch.attention(*low))
    output.sum().backward()
    assert q.grad.dtype == torch.float32


def test_dropout_follows_torchs_generator() -> None:
    tensors = inputs()

    def dropped(seed: int, **more: object) -> Tensor:
        torch.manual_seed(seed)
        return mha.torch.attention(*tensors, dropout=0.5, **more)

    assert torch.equal(dropped(1), dropped(1)) and not torch.equal(dropped(1), dropped(2))
    own = [torch.Generator().manual_seed(7) for _ in range(2)]
    assert torch.equal(dropped(1, generator=own[0]), dropped(2, generator=own[1]))
    before = torch.get_rng_state()
    mha.torch.attention(*tensors)
    assert torch.equal(torch.get_rng_state(), before)


def test_dropout_keeps_the_mean() -> None:
    q = torch.zeros(64, 1, 64, 8)
    v = torch.ones(64, 1, 64, 8)
    for p in (0.1, 0.9):
        torch.manual_seed(0)
        output = mha.torch.attention(q, q, v, dropout=p)
        error = (p / (1 - p) / (64 * 64 * 64)) ** 0.5
        assert abs(output[..., 0].mean().item() - 1) < 5 * error
        assert output.std() > 0.01


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_with_dropout(dtype: torch.dtype) -> None:
    """Both passes and the implementation in torch's operators drop the same weights."""

    def function(*tensors: Tensor, name: str = "all") -> Tensor:
        torch.manual_seed(3)
        return call(name, tensors, dropout=0.4)

    masked = leaves("float mask", torch.float64)
    torch.autograd.gradcheck(lambda *t: function(*t, name="float mask"), masked, fast_mode=True)
    tensors = leaves("all", torch.float64)
    right = torch.autograd.grad(function(*tensors).square().sum(), tensors)
    low = leaves("all", dtype)
    found = torch.autograd.grad(function(*low).square().sum(), low)
    for got, exact in zip(found, right):
        torch.testing.assert_close(got.double(), exact, atol=2e-5, rtol=2e-5)


def test_dropout_compiles() -> None:
    torch.compiler.reset()
    q, k, v = inputs()
    q.requires_grad_()
    compiled = torch.compile(
        lambda q: mha.torch.attention(q, k, v, dropout=0.5), backend="aot_eager", fullgraph=True
    )
    torch.manual_seed(0)
    first = compiled(q)
    assert not torch.equal(first, compiled(q))
    first.sum().backward()
    assert torch.isfinite(q.grad).all()


def test_threads_are_torchs_and_change_no_bit() -> None:
    q, k, v = (torch.randn(2, 4, 300, 32) for _ in range(3))
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            leaf = q.clone().requires_grad_()
            output = mha.torch.attention(leaf, k, v)
            output.sum().backward()
            found.append((output, leaf.grad))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(*found))


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        ({"causal": True}, "position"),
        ({"position": "middle"}, "bottom-right"),
        ({"mask": torch.ones(1, 1, 1, L, S, dtype=torch.bool)}, "5 axes"),
        ({"mask": torch.ones(L, S + 1, dtype=torch.bool)}, "mask"),
        ({"dropout": 1.5}, "dropout"),
        ({"softcap": -1.0}, "softcap"),
        ({"average_weights": True}, "average_weights averages weights, but none are requested"),
        ({"window": (-2, -3), "position": 0}, r"the window is \(-2, -3\)"),
        ({"query_documents": torch.zeros(B, L, dtype=torch.int32)}, "documents need both"),
        ({"key_documents": torch.zeros(B, S, dtype=torch.int32)}, "documents need both"),
    ],
)
def test_errors_say_what_is_wrong(wrong: dict, sentence: str) -> None:
    for grad in (False, True):
        tensors = [t.requires_grad_(grad) for t in inputs()]
        with pytest.raises(ValueError, match=sentence):
            mha.torch.attention(*tensors, **wrong)


def test_what_is_no_tensor_and_other_axes() -> None:
    q, k, v = inputs()
    with pytest.raises(TypeError, match="query is of type ndarray; it must be a torch.Tensor"):
        mha.torch.attention(q.numpy(), k, v)
    with pytest.raises(TypeError, match="value is of type NoneType"):
        mha.torch.attention(q, k, None)
    for name in ("mask", "bias", "gates", "ignore_mask", "key_lengths", "key_documents"):
        with pytest.raises(TypeError, match=f"{name} is of type list"):
            mha.torch.attention(q, k, v, **{name: [1, 2]})
    with pytest.raises(ValueError, match=r"key has shape .*; it must be .* key\[None\] adds"):
        mha.torch.attention(q, k[0], v)
    for window in (3, (1,), (1, 2, 3)):
        with pytest.raises(TypeError, match=r"window is .*; it must be a pair \(left, right\)"):
            mha.torch.attention(q, k, v, window=window, position=0)


def test_dropout_factors_over_many_keys() -> None:
    """More keys than the largest width of a head: the factors are computed in pieces."""
    q, k = torch.randn(1, 2, 3, 4, dtype=torch.float64), torch.randn(1, 2, 1500, 4).double()
    v = torch.randn(1, 2, 1500, 4, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(1)
    output = mha.torch.attention(q, k, v, dropout=0.25)
    (gradient,) = torch.autograd.grad(output.sum(), v)
    # The output is linear in the values: sum of gradient times values.
    torch.testing.assert_close((gradient * v).sum(), output.sum())


def test_bfloat16_is_native_unless_switched_off():
    draw = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(1, 2, 70, 64, generator=draw).bfloat16() for _ in range(3))
    wanted = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double())
    native = mha.torch.attention(q, k, v)
    before = mha.torch.set_arithmetic("exact")
    try:
        exact = mha.torch.attention(q, k, v)
    finally:
        assert mha.torch.set_arithmetic(before) == "exact"
    assert before == "native"
    assert (native != exact).any() == mha.isa().endswith("bf16")
    for got in (native, exact):
        torch.testing.assert_close(got.double(), wanted, rtol=2e-2, atol=2e-2)
    with pytest.raises(ValueError, match="'exact' or 'native'"):
        mha.torch.set_arithmetic("fast")
