# SPDX-License-Identifier: MIT
"""JAX on CPUs: jax.nn.dot_product_attention, and attention by its formula, both compiled by XLA.

XLA uses as many threads as the process has processors; __main__.py limits these.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from . import jax_layer
from .cases import Case
from .contender import Contender, Results, Runner, Unable
from .inputs import Inputs

LIBRARY = "jax"


def version() -> str:
    return f"JAX {jax.__version__} ({jax.default_backend()})"


def _tokens_first(x: np.ndarray) -> jax.Array:
    """[B, heads, tokens, D] as [B, tokens, heads, D], which is JAX's order."""
    return jnp.asarray(np.ascontiguousarray(x.transpose(0, 2, 1, 3)))


def _heads_first(x: jax.Array) -> np.ndarray:
    return np.asarray(x, dtype=np.float32).transpose(0, 2, 1, 3)


def _options(case: Case, inputs: Inputs) -> dict[str, object]:
    options: dict[str, object] = {"is_causal": case.causal and not case.one_token}
    if case.mask:
        name = "mask" if case.mask == "bool" else "bias"
        options[name] = jnp.asarray(inputs.mask)[None, None]
    if case.pad:
        options["key_value_seq_lengths"] = jnp.asarray(inputs.lengths, dtype=jnp.int32)
    if case.window >= 0:
        options["local_window_size"] = (case.window, 0 if case.causal else case.window)
    return options


def _arrays(inputs: Inputs) -> tuple[jax.Array, ...]:
    return tuple(map(_tokens_first, (inputs.query, inputs.key, inputs.value)))


def _ready(call: Callable[[], object]) -> Callable[[], object]:
    """Waits for the result, since JAX computes asynchronously."""
    return lambda: jax.block_until_ready(call())


def _function(case: Case, inputs: Inputs) -> Callable[..., jax.Array]:
    return partial(jax.nn.dot_product_attention, **_options(case, inputs))


def _dot_product(case: Case, inputs: Inputs, threads: int) -> Runner:
    if case.kind != "attention" or case.wants_weights:
        raise Unable("has no weights and no cache")
    q, k, v = _arrays(inputs)
    function = _function(case, inputs)
    if case.want == "grad":
        _, back = jax.jit(partial(jax.vjp, function))(q, k, v)
        step, d_output = jax.jit(lambda back, d: back(d)), _tokens_first(inputs.d_output)
        names = ("d_query", "d_key", "d_value")
        return Runner(
            _ready(lambda: step(back, d_output)), lambda d: dict(zip(names, map(_heads_first, d)))
        )
    compiled = jax.jit(function)
    return Runner(_ready(lambda: compiled(q, k, v)), lambda o: {"output": _heads_first(o)})


def _cache(case: Case, inputs: Inputs, threads: int) -> Runner:
    """The cache is donated to every step, so that XLA may write into it."""
    if case.kind != "cache":
        raise Unable("is for caches")
    q, k, v = _arrays(inputs)
    state = {"k": k.copy(), "v": v.copy()}
    fresh_k, fresh_v = k[:, -1:], v[:, -1:]

    def step(q, fresh_k, fresh_v, k, v):
        k = jax.lax.dynamic_update_slice_in_dim(k, fresh_k, case.S - 1, 1)
        v = jax.lax.dynamic_update_slice_in_dim(v, fresh_v, case.S - 1, 1)
        return jax.nn.dot_product_attention(q, k, v), k, v

    compiled = jax.jit(step, donate_argnums=(3, 4))

    def run() -> jax.Array:
        output, state["k"], state["v"] = compiled(q, fresh_k, fresh_v, state["k"], state["v"])
        return jax.block_until_ready(output)

    return Runner(run, lambda o: {"output": _heads_first(o)})


def _written_out(case: Case, inputs: Inputs, threads: int) -> Runner:
    if case.kind != "attention" or not case.wants_weights or case.G != case.H or case.mask:
        raise Unable("is for weights and statistics")
    q, k, v = (jnp.asarray(x) for x in (inputs.query, inputs.key, inputs.value))

    @jax.jit
    def call(q: jax.Array, k: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        scores = jnp.einsum("bhid,bhjd->bhij", q * case.D**-0.5, k)
        if case.causal:
            scores = jnp.where(jnp.tril(jnp.ones((case.L, case.S), bool)), scores, -jnp.inf)
        weights = jax.nn.softmax(scores, axis=-1)
        output = jnp.einsum("bhij,bhjd->bhid", weights, v)
        if case.want == "stats":
            return output, jax.scipy.special.entr(weights).sum(-1)
        return output, weights.mean(1) if case.want == "mean" else weights

    second = {"mean": "mean", "stats": "entropy"}.get(case.want, "weights")

    def read(result: tuple[jax.Array, jax.Array]) -> Results:
        return {"output": np.asarray(result[0]), second: np.asarray(result[1])}

    return Runner(_ready(lambda: call(q, k, v)), read)


CONTENDERS = (
    Contender(LIBRARY, "dot_product_attention", _dot_product),
    Contender(LIBRARY, "dot_product_attention, cache", _cache),
    Contender(LIBRARY, "written out", _written_out),
    *jax_layer.CONTENDERS,
)
