# SPDX-License-Identifier: MIT
"""A layer in JAX: products around jax.nn.dot_product_attention, forward and in training."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from .cases import Case
from .contender import Contender, Runner, Unable
from .inputs import RATE, Inputs

LIBRARY = "jax"
Weights = dict[str, jax.Array]


def _weights(inputs: Inputs) -> Weights:
    """[in, out]: XLA multiplies from the right."""
    return {name: jnp.asarray(w.T) for name, w in inputs.weights.items()}


def _attend(case: Case, lengths: jax.Array | None, p: Weights, x: jax.Array) -> jax.Array:
    parts = (x @ p["in"] + p["in_bias"]).reshape(case.B, case.L, 3, case.H, case.D)
    heads = jax.nn.dot_product_attention(
        parts[:, :, 0],
        parts[:, :, 1],
        parts[:, :, 2],
        is_causal=case.causal,
        key_value_seq_lengths=lengths,
    )
    return heads.reshape(case.B, case.L, case.E) @ p["o"] + p["o_bias"]


def _step(forward: Callable) -> Callable:
    """A training step: output, gradients, new weights."""

    def step(p: Weights, x: jax.Array, d_output: jax.Array) -> tuple:
        output, back = jax.vjp(forward, p, x)
        d_p, d_x = back(d_output)
        return output, d_p, d_x, jax.tree.map(lambda w, d: w - RATE * d, p, d_p)

    return jax.jit(step, donate_argnums=0)


def _training(forward: Callable, p: Weights, x: jax.Array, d_output: jax.Array) -> Runner:
    step, state = _step(forward), {"p": p}

    def run() -> tuple:
        output, d_p, d_x, state["p"] = step(state["p"], x, d_output)
        return jax.block_until_ready((output, d_x, d_p))

    def read(result: tuple) -> dict[str, np.ndarray]:
        output, d_x, d_p = result
        gradients = {f"d_{name}": np.asarray(d).T for name, d in d_p.items()}
        return {"output": np.asarray(output), "d_query": np.asarray(d_x)} | gradients

    return Runner(run, read)


def _layer(case: Case, inputs: Inputs, threads: int) -> Runner:
    if case.kind != "layer" or case.wants_weights:
        raise Unable("is for layers without weights or cache")
    p, x = _weights(inputs), jnp.asarray(inputs.query)
    lengths = jnp.asarray(inputs.lengths, dtype=jnp.int32) if case.pad else None

    def forward(p: Weights, x: jax.Array) -> jax.Array:
        return _attend(case, lengths, p, x)

    if case.want == "train":
        return _training(forward, p, x, jnp.asarray(inputs.d_output))
    compiled = jax.jit(forward)
    return Runner(
        lambda: jax.block_until_ready(compiled(p, x)), lambda o: {"output": np.asarray(o)}
    )


CONTENDERS = (Contender(LIBRARY, "products + dot_product_attention", _layer),)
