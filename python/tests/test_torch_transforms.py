# SPDX-License-Identifier: MIT
"""Batched backward passes, transforms of torch.func, torch.fx, and compilation of any shape."""

import copy
import warnings

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

import mha.torch  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")
TYPES = [torch.float32, torch.float64]


def drawn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def causal(x: Tensor) -> Tensor:
    return mha.torch.attention(x, x, x, causal=True)


def stock(x: Tensor) -> Tensor:
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return F.scaled_dot_product_attention(x, x, x, is_causal=True)


# ------------------------------------------------------------------- batched backward -----


@pytest.mark.parametrize("dtype", TYPES)
def test_vectorized_jacobian_and_hessian(dtype: torch.dtype) -> None:
    x = drawn(1, 2, 3, 4, dtype=dtype)
    jacobian = torch.autograd.functional.jacobian
    assert torch.equal(jacobian(causal, x, vectorize=True), jacobian(causal, x))

    def loss(x: Tensor) -> Tensor:
        return causal(x).square().sum()

    hessian = torch.autograd.functional.hessian
    found, right = hessian(loss, x, vectorize=True), hessian(loss, x)
    torch.testing.assert_close(found, right)
    torch.testing.assert_close(right, hessian(lambda x: stock(x).square().sum(), x))


@pytest.mark.parametrize("dtype", TYPES)
def test_grads_that_are_batched(dtype: torch.dtype) -> None:
    x = drawn(2, 2, 5, 4, dtype=dtype).requires_grad_()
    result = mha.torch.attention(x, x, x, causal=True, return_lse=True)
    d_output, d_lse = drawn(3, 2, 2, 5, 4, dtype=dtype), drawn(3, 2, 2, 5, dtype=dtype, seed=1)

    def grad(*given: Tensor, **more: bool) -> Tensor:
        return torch.autograd.grad(tuple(result[:2]), x, given, retain_graph=True, **more)[0]

    found = grad(d_output, d_lse, is_grads_batched=True)
    assert torch.equal(found, torch.stack([grad(*one) for one in zip(d_output, d_lse)]))


@pytest.mark.parametrize("dtype", TYPES)
def test_vmap_over_a_backward_pass(dtype: torch.dtype) -> None:
    x = drawn(2, 2, 3, 4, dtype=dtype).requires_grad_()
    output = causal(x)
    many = drawn(3, 2, 2, 3, 4, dtype=dtype, seed=2)

    def grad(one: Tensor) -> Tensor:
        return torch.autograd.grad(output, x, one, retain_graph=True)[0]

    assert torch.equal(torch.func.vmap(grad)(many), torch.stack([grad(one) for one in many]))


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: torch.func.vmap(f, in_dims=1, out_dims=2),
        lambda f: torch.func.vmap(torch.func.vmap(f, in_dims=1)),
        lambda f: torch.func.vmap(torch.func.grad(lambda x: f(x).square().sum())),
        lambda f: torch.func.jacrev(lambda x: f(x[0])),
        lambda f: torch.func.vmap(torch.func.jacrev(f), in_dims=2),
    ],
    ids=["vmap", "vmap twice", "vmap of grad", "jacrev", "vmap of jacrev"],
)
def test_transforms_are_those_of_torch(transform) -> None:
    x = drawn(2, 2, 2, 3, 4, dtype=torch.float64)

    def ours(x: Tensor) -> Tensor:
        return mha.torch.scaled_dot_product_attention(x, x, x, is_causal=True)

    with warnings.catch_warnings():
        warnings.simplefilter("error", mha.torch.FallbackWarning)
        found = transform(ours)(x)
    torch.testing.assert_close(found, transform(stock)(x))


def test_vmap_maps_lists_and_seeds() -> None:
    """Arguments in a list, and a seed per element."""
    x = drawn(3, 1, 2, 4, 4)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        found = torch.func.vmap(
            lambda x: mha.torch.attention(x, x, x, dropout=0.5), randomness="different"
        )(x)
    assert found.shape == x.shape and not torch.equal(found[0], found[1])


# -------------------------------------------------------------------------- compilers -----


def test_compiled_for_any_shape() -> None:
    torch._dynamo.reset()
    ours = torch.compile(
        mha.torch.scaled_dot_product_attention, dynamic=True, fullgraph=True, backend="eager"
    )
    theirs = F.scaled_dot_product_attention
    for shape in ((2, 4, 6, 8), (3, 2, 5, 12), (5, 12)):
        x = drawn(*shape)
        torch.testing.assert_close(ours(x, x, x), theirs(x, x, x))
    x, mask = drawn(3, 2, 5, 12), drawn(5, 5) > 0
    right = theirs(x, x, x, mask).nan_to_num(0.0)
    torch.testing.assert_close(ours(x, x, x, mask), right)


def test_compiled_without_a_warning() -> None:
    """A call that torch computes is part of the graph, too: there is no warning while compiling."""
    torch._dynamo.reset()
    wide = drawn(1, 1, 3, 1100)
    ours = torch.compile(mha.torch.scaled_dot_product_attention, fullgraph=True, backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("error", mha.torch.FallbackWarning)
        found = ours(wide, wide, wide)
    torch.testing.assert_close(found, F.scaled_dot_product_attention(wide, wide, wide))


def test_compiled_positions_of_batches() -> None:
    torch._dynamo.reset()
    x = drawn(2, 2, 4, 8).requires_grad_()

    def loss(x: Tensor) -> Tensor:
        places = torch.tensor([0, 2])
        return mha.torch.attention(x, x, x, causal=True, position=places).square().sum()

    (right,) = torch.autograd.grad(loss(x), x)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    assert torch.equal(torch.autograd.grad(compiled(x), x)[0], right)


# -------------------------------------------------------------------------------- fx -----


class _Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        y, weights = self.heads(x, x, x, attn_mask=None)
        return F.scaled_dot_product_attention(y, y, y) + weights.sum()


def test_symbolic_trace_keeps_the_module() -> None:
    model, x = _Model().eval(), drawn(1, 4, 8)
    right = model(x)
    mha.torch.replace(model)
    with mha.torch.sdpa():
        graph = torch.fx.symbolic_trace(model)
    nodes = {node.op: node.target for node in graph.graph.nodes}
    functions = [node.target for node in graph.graph.nodes if node.op == "call_function"]
    assert nodes["call_module"] == "heads"
    assert mha.torch.scaled_dot_product_attention in functions
    assert F.scaled_dot_product_attention not in functions
    torch.testing.assert_close(graph(x), right)
    torch.testing.assert_close(copy.deepcopy(graph)(x), right)


def test_symbolic_trace_of_the_functions() -> None:
    x, w, o = drawn(2, 2, 4, 8), drawn(24, 8), drawn(8, 8)
    graph = torch.fx.symbolic_trace(lambda x: mha.torch.attention(x, x, x, causal=True))
    assert torch.equal(graph(x), causal(x))

    def project(y: Tensor) -> Tensor:
        given = (8, 2, w, None, None, None, False, 0.0, o, None)
        return F.multi_head_attention_forward(y, y, y, *given)[0]

    y = drawn(4, 2, 8)
    with mha.torch.sdpa():
        graph = torch.fx.symbolic_trace(project)
        torch.testing.assert_close(graph(y), project(y))
