# SPDX-License-Identifier: MIT
"""mha.torch.scaled_dot_product_attention against torch's own, and the mode that routes to it.

The 2,000 random configurations compare with torch's math path in float64, rounded to the type of
the inputs: outputs and weights at the tolerances of torch.testing.assert_close for that type,
gradients at those of PyTorch's own test of fused attention on CPUs (GRADIENT_TOLERANCE).
"""

import os
import random
import warnings

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import Tensor  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

import mha.torch  # noqa: E402

SEED = int(os.environ.get("MHA_TEST_SEED", "1"))
EFFORT = float(os.environ.get("MHA_TEST_EFFORT", "1"))
CONFIGURATIONS, PARTS = 2000, 20
GRADIENT_TOLERANCE = {
    torch.float32: {"atol": 1e-5, "rtol": 5e-6},
    torch.float16: {"atol": 1e-2, "rtol": 1e-2},
    torch.bfloat16: {"atol": 5e-2, "rtol": 5e-2},
}

ours = mha.torch.scaled_dot_product_attention


def theirs(*args: object, **named: object) -> Tensor:
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(*args, **named)


@pytest.fixture(autouse=True)
def _alone_and_strict():
    """One thread, since these tensors are tiny; and falling back to torch is an error unless a test
    expects it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", mha.torch.FallbackWarning)
        yield
    torch.set_num_threads(threads)


class Draw:
    """One random configuration: tensors of a random type, and the arguments of the call."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.values = torch.Generator().manual_seed(seed)
        choose = self.choose
        self.dtype = choose.choice([torch.float32, torch.float32, torch.float16, torch.bfloat16])
        self.rows, self.keys = choose.randint(1, 20), choose.randint(1, 40)
        self.width, self.value_width = choose.randint(1, 24), choose.randint(1, 24)
        self.lead = tuple(choose.randint(1, 3) for _ in range(choose.choice([0, 1, 2, 2, 2, 2, 3])))
        self.groups = choose.choice([0, 0, 1, 2, 3]) if self.lead else 0
        self.arguments = {"enable_gqa": bool(self.groups)}
        if choose.random() < 0.3:
            self.arguments["scale"] = choose.uniform(-0.5, 0.5)
        self.query, self.key, self.value = self._inputs()
        self.mask = None
        kind = choose.choice(["none", "causal", "bool", "float", "float32", "hidden"])
        if kind == "causal":
            self.arguments["is_causal"] = True
        elif kind != "none":
            self.mask = self._mask(kind)

    def _tensor(self, *shape: int) -> Tensor:
        """Of this shape, with strides that are seldom those of a contiguous tensor."""
        order = list(range(len(shape)))
        self.choose.shuffle(order)
        tensor = torch.randn([shape[i] for i in order], generator=self.values)
        return tensor.permute([order.index(i) for i in range(len(shape))]).to(self.dtype)

    def _some(self, lead: tuple[int, ...]) -> tuple[int, ...]:
        """These axes, or fewer, or some of size 1: broadcast."""
        if self.choose.random() < 0.7:
            return lead
        lead = tuple(n if self.choose.random() < 0.7 else 1 for n in lead)
        return lead[self.choose.randint(0, len(lead)) :]

    def _inputs(self) -> tuple[Tensor, ...]:
        lead, heads = self.lead, ()
        if self.groups:
            shares = self.choose.randint(1, 3)
            lead, heads = lead[:-1], (self.groups,)
            query = self._tensor(*lead, self.groups * shares, self.rows, self.width)
        else:
            query = self._tensor(*self._some(lead), self.rows, self.width)
        key = self._tensor(*self._some(lead), *heads, self.keys, self.width)
        value = self._tensor(*self._some(lead), *heads, self.keys, self.value_width)
        return query, key, value

    def _mask(self, kind: str) -> Tensor:
        # The scores of query and key have these axes; torch requires a mask with no more axes.
        shapes = [t.shape[:-2] for t in (self.query, self.key)]
        if self.groups:
            lead = (*torch.broadcast_shapes(*(s[:-1] for s in shapes)), shapes[0][-1])
        else:
            lead = tuple(torch.broadcast_shapes(*shapes))
        shape = (*self._some(lead), self.rows, self.keys)
        shape = tuple(1 if self.choose.random() < 0.1 else n for n in shape)
        if kind == "bool":
            return torch.rand(shape, generator=self.values) < self.choose.random()
        mask = torch.randn(shape, generator=self.values)
        if kind == "hidden":
            mask = mask.masked_fill(torch.rand(shape, generator=self.values) < 0.5, -torch.inf)
        return mask if kind == "float32" else mask.to(self.dtype)

    def leaves(self, dtype: torch.dtype = None) -> list[Tensor]:
        """Query, key, value and mask that can have gradients, in their own type or another."""
        found = []
        for t in (self.query, self.key, self.value, self.mask):
            if t is not None and t.is_floating_point():
                t = t.detach().to(dtype or t.dtype).requires_grad_()
            found.append(t)
        return found


def compare(draw: Draw) -> None:
    exact, mine = draw.leaves(torch.float64), draw.leaves()
    right = theirs(*exact[:3], attn_mask=exact[3], **draw.arguments)
    # Weights are rounded to bf16 too, so sums that cancel have errors of the size of their terms.
    native = ours(*mine[:3], attn_mask=mine[3], **draw.arguments)
    tolerance = {"rtol": 1.6e-2, "atol": 1.6e-2} if draw.dtype == torch.bfloat16 else {}
    torch.testing.assert_close(native, right.to(draw.dtype), **tolerance)
    before = mha.torch.set_arithmetic("exact")
    try:
        found = ours(*mine[:3], attn_mask=mine[3], **draw.arguments)
    finally:
        mha.torch.set_arithmetic(before)
    torch.testing.assert_close(found, right.to(draw.dtype))
    pull = torch.randn(right.shape, generator=draw.values).to(draw.dtype)
    places = [i for i, t in enumerate(mine) if t is not None and t.requires_grad]
    right = torch.autograd.grad(right, [exact[i] for i in places], pull.double())
    got = torch.autograd.grad(found, [mine[i] for i in places], pull)
    for mine_gradient, gradient in zip(got, right):
        torch.testing.assert_close(
            mine_gradient.float(), gradient.float(), **GRADIENT_TOLERANCE[draw.dtype]
        )


@pytest.mark.parametrize("part", range(PARTS))
def test_random_configurations(part: int) -> None:
    for number in range(max(1, int(CONFIGURATIONS / PARTS * EFFORT))):
        seed = SEED * 1_000_000 + part * 10_000 + number
        try:
            compare(Draw(seed))
        except Exception as error:
            raise AssertionError(f"configuration of seed {seed}: Draw({seed})") from error


def test_draws_meet_everything() -> None:
    """The random configurations cover what they are meant to cover."""
    draws = [Draw(seed) for seed in range(300)]
    assert {d.dtype for d in draws} == set(GRADIENT_TOLERANCE)
    assert {d.query.dim() for d in draws} >= {2, 3, 4, 5}
    assert sum(d.groups > 0 for d in draws) > 50
    assert sum(d.mask is not None and d.mask.dtype == torch.bool for d in draws) > 20
    assert sum(not d.query.is_contiguous() for d in draws) > 50
    assert sum(d.query.shape[:-2] != d.key.shape[:-2] for d in draws) > 50


def test_long_sequences() -> None:
    """More than one tile in every direction, forward and backward."""
    tensors = [torch.randn(1, 2, 700, 64, requires_grad=True) for _ in range(3)]
    exact = [t.detach().double().requires_grad_() for t in tensors]
    found, right = ours(*tensors, is_causal=True), theirs(*exact, is_causal=True)
    torch.testing.assert_close(found, right.float())
    pull = torch.randn_like(found)
    got = torch.autograd.grad(found, tensors, pull)
    for mine, gradient in zip(got, torch.autograd.grad(right, exact, pull.double())):
        torch.testing.assert_close(mine, gradient.float(), atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("lead", [(), (2,), (2, 3), (2, 2, 3)])
def test_weights(lead: tuple[int, ...]) -> None:
    q, k, v = (torch.randn(*lead, n, 8) for n in (4, 6, 6))
    output, weights = ours(q, k, v, need_weights=True)
    assert torch.equal(output, ours(q, k, v))
    torch.testing.assert_close(weights, torch.softmax(q @ k.transpose(-2, -1) / 8**0.5, -1))


def test_weights_with_grouped_heads() -> None:
    q, k, v = torch.randn(2, 4, 3, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 1, 5, 8)
    output, weights = ours(q, k, v, enable_gqa=True, need_weights=True)
    torch.testing.assert_close(output, theirs(q, k, v, enable_gqa=True))
    torch.testing.assert_close(weights @ v, output)


def test_mask_and_causal_go_together() -> None:
    q, k, v = (torch.randn(1, 2, 5, 8) for _ in range(3))
    mask = torch.rand(5, 5) < 0.6
    both = mask & torch.ones(5, 5, dtype=torch.bool).tril()
    torch.testing.assert_close(
        ours(q, k, v, attn_mask=mask, is_causal=True), theirs(q, k, v, attn_mask=both)
    )


def test_float64_is_exact() -> None:
    q, k, v = (torch.randn(2, 3, 9, 8, dtype=torch.float64) for _ in range(3))
    torch.testing.assert_close(ours(q, k, v), theirs(q, k, v), atol=1e-13, rtol=1e-13)


def test_dropout() -> None:
    q, k, v = (torch.randn(1, 2, 5, 8) for _ in range(3))
    torch.manual_seed(0)
    first = ours(q, k, v, dropout_p=0.5)
    assert not torch.equal(first, ours(q, k, v, dropout_p=0.5))
    torch.manual_seed(0)
    assert torch.equal(first, ours(q, k, v, dropout_p=0.5))


def r(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.zeros(shape, dtype=dtype)


@pytest.mark.parametrize(
    "args, named",
    [
        ((r(4), r(5, 4), r(5, 4)), {}),
        ((r(2, 3, 4), r(2, 5, 6), r(2, 5, 4)), {}),
        ((r(1, 2, 3, 4), r(1, 2, 5, 4, dtype=torch.float64), r(1, 2, 5, 4)), {}),
        ((r(2, 4, 3, 4), r(2, 2, 5, 4), r(2, 2, 5, 4)), {}),
        ((r(2, 4, 3, 4), r(2, 3, 5, 4), r(2, 3, 5, 4)), {"enable_gqa": True}),
        ((r(3, 4), r(5, 4), r(5, 4)), {"enable_gqa": True}),
        ((r(1, 2, 3, 4), r(1, 2, 5, 4), r(1, 2, 5, 4), r(3, 6)), {}),
        ((r(1, 2, 3, 4), r(1, 2, 5, 4), r(1, 2, 5, 4), r(7, 2, 3, 5)), {}),
        ((r(1, 2, 3, 4), r(1, 2, 5, 4), r(1, 2, 5, 4), r(3, 5).int()), {}),
        ((r(1, 2, 3, 4), r(1, 2, 5, 4), r(1, 2, 5, 4), r(3, 5).double()), {}),
    ],
)
def test_errors_are_torchs(args: tuple, named: dict) -> None:
    with pytest.raises((RuntimeError, IndexError)) as right:
        theirs(*args, **named)
    with pytest.raises(type(right.value)):
        ours(*args, **named)
    assert "refuses" in mha.torch.explain(*args, **named) or args[0].dim() == 4


def test_keys_without_values() -> None:
    with pytest.raises(ValueError, match="5 keys and 6 values"):
        ours(r(1, 2, 3, 4), r(1, 2, 5, 4), r(1, 2, 6, 4))


FALLBACKS = {
    "wide": ((r(1, 1, 2, 1025),) * 3, {}, "1024"),
    "no width": ((r(1, 1, 2, 0), r(1, 1, 3, 0), r(1, 1, 3, 4)), {}, "width 0"),
    "scale": ((r(1, 1, 2, 4),) * 3, {"scale": 0.0}, "scale is 0"),
    "dropout": ((r(1, 1, 2, 4),) * 3, {"dropout_p": 1.0}, "dropout of 1"),
}


@pytest.mark.parametrize("name", FALLBACKS)
def test_what_torch_computes_is_told(name: str) -> None:
    args, named, reason = FALLBACKS[name]
    with pytest.warns(mha.torch.FallbackWarning, match=reason) as caught:
        found = ours(*args, **named)
    assert caught[0].filename == __file__
    assert torch.equal(found, F.scaled_dot_product_attention(*args, **named))
    assert mha.torch.explain(*args, **named).startswith("torch: ")
    with pytest.raises(NotImplementedError, match=reason):
        ours(*args, **named, need_weights=True)


def test_complex_numbers_go_to_torch() -> None:
    """torch does not support them either, and raises an error."""
    x = r(2, 3, 4, dtype=torch.complex64)
    with pytest.warns(mha.torch.FallbackWarning, match="complex64"):
        with pytest.raises(NotImplementedError, match="ComplexFloat"):
            ours(x, x, x)


def test_a_causal_call_without_gradients() -> None:
    """The short way for plain tensors."""
    x = torch.randn(2, 3, 5, 8)
    torch.testing.assert_close(ours(x, x, x, is_causal=True), theirs(x, x, x, is_causal=True))
    mask = torch.rand(2, 1, 5, 5) > 0.3
    mask |= torch.eye(5, dtype=torch.bool)
    torch.testing.assert_close(ours(x, x, x, mask, scale=0.2), theirs(x, x, x, mask, scale=0.2))


def test_forward_mode_goes_to_torch() -> None:
    x = torch.randn(3, 2, 5, 8)
    with pytest.warns(mha.torch.FallbackWarning, match="torch.func"), sdpa_kernel(SDPBackend.MATH):
        found = torch.func.jvp(lambda t: ours(t, x, x), (x,), (torch.ones_like(x),))
    torch.testing.assert_close(found[0], theirs(x, x, x))
    with pytest.warns(mha.torch.FallbackWarning, match="forward-mode"):
        with torch.autograd.forward_ad.dual_level(), sdpa_kernel(SDPBackend.MATH):
            dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
            found = torch.autograd.forward_ad.unpack_dual(ours(dual, x, x))
    assert found.tangent is not None


def test_subclasses_go_to_torch() -> None:
    class Mine(Tensor):
        pass

    x = torch.randn(1, 2, 5, 8)
    with pytest.warns(mha.torch.FallbackWarning, match="Mine"):
        found = ours(x.as_subclass(Mine), x, x)
    assert type(found) is Mine


@pytest.mark.parametrize(
    "dtype, grad, words",
    [
        (torch.float32, False, "nothing is kept"),
        (torch.float32, True, "forward and backward"),
        (torch.float64, True, "float64"),
    ],
)
def test_explain(dtype: torch.dtype, grad: bool, words: str) -> None:
    x = torch.randn(1, 2, 5, 8, dtype=dtype, requires_grad=grad)
    assert words in mha.torch.explain(x, x, x)
    with torch.no_grad():
        assert "nothing is kept" in mha.torch.explain(x, x, x)


# ------------------------------------------------------------------------------- the mode -----


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Counts the calls that reach the library."""
    found = []
    real = mha.attention

    def counted(*args: object, **named: object) -> object:
        found.append("attention")
        return real(*args, **named)

    monkeypatch.setattr(mha, "attention", counted)
    return found


def test_mode_routes_and_ends(calls: list[str]) -> None:
    x = torch.randn(1, 2, 5, 8)
    with mha.torch.sdpa():
        inside = F.scaled_dot_product_attention(x, x, x)
        torch.nn.functional.scaled_dot_product_attention(x, x, value=x, is_causal=True)
    assert len(calls) == 2
    torch.testing.assert_close(inside, F.scaled_dot_product_attention(x, x, x))
    assert len(calls) == 2


def test_mode_routes_gradients(calls: list[str]) -> None:
    x = torch.randn(1, 2, 5, 8, requires_grad=True)
    with mha.torch.sdpa():
        F.scaled_dot_product_attention(x, x, x).square().sum().backward()
    found, x.grad = x.grad, None
    theirs(x, x, x).square().sum().backward()
    torch.testing.assert_close(found, x.grad)
    assert len(calls) == 1


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_mode_reaches_every_attention_of_a_transformer(
    calls: list[str], grad: bool, padded: bool
) -> None:
    """Instead of torch's fused encoder path, with nested tensors."""
    torch.manual_seed(0)
    model = torch.nn.Transformer(16, 2, 2, 2, 32, dropout=0.0, batch_first=True).eval()
    source, target = torch.randn(2, 6, 16), torch.randn(2, 4, 16)
    padding = torch.tensor([[False] * 6, [False] * 4 + [True] * 2]) if padded else None
    causal = model.generate_square_subsequent_mask(4)
    with torch.set_grad_enabled(grad):
        named = {"src_key_padding_mask": padding, "memory_key_padding_mask": padding}
        right = model(source, target, tgt_mask=causal, tgt_is_causal=True, **named)
        assert not calls
        with mha.torch.sdpa():
            found = model(source, target, tgt_mask=causal, tgt_is_causal=True, **named)
    assert len(calls) == 2 + 2 * 2
    torch.testing.assert_close(found, right, atol=1e-5, rtol=1e-5)


def test_mode_gives_weights_of_torchs_module(calls: list[str]) -> None:
    layer = torch.nn.MultiheadAttention(16, 2, batch_first=True).eval()
    x = torch.randn(2, 5, 16)
    right = layer(x, x, x, average_attn_weights=False)
    with mha.torch.sdpa():
        found = layer(x, x, x, average_attn_weights=False)
    assert len(calls) == 1
    for a, b in zip(found, right):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_mode_with_compile(backend: str, calls: list[str]) -> None:
    torch.compiler.reset()
    x = torch.randn(1, 2, 5, 8)
    compiled = torch.compile(F.scaled_dot_product_attention, backend=backend, fullgraph=True)
    with mha.torch.sdpa():
        found = compiled(x, x, x)
    assert len(calls) == 1
    torch.testing.assert_close(found, theirs(x, x, x))
