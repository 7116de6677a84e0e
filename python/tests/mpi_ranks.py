# SPDX-License-Identifier: MIT
"""What test_mpi.py runs on several ranks: compares with the same call on one machine."""

import sys

import numpy as np
from mpi4py import MPI

sys.path.insert(0, sys.argv[1])
import mpi as mha_mpi  # noqa: E402  the module alone, without the extension of the package

group = mha_mpi.Group(MPI.COMM_WORLD, timeout=60)
alone = mha_mpi.Group(MPI.COMM_SELF)
random = np.random.default_rng(7)
B, H, G, TOKENS, D = 2, 6, 3, 57, 12
q = random.standard_normal((B, H, TOKENS, D), np.float32)
k, v = (random.standard_normal((B, G, TOKENS, D), np.float32) for _ in range(2))
d_o = random.standard_normal(q.shape, np.float32)
checks = 0


def check(same: bool, what: str) -> None:
    global checks
    checks += 1
    if not same:
        print(f"rank {group.rank}: {what}", flush=True)
        MPI.COMM_WORLD.Abort(1)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


settings = {"tokens": TOKENS, "causal": True, "sinks": np.arange(H) / 3}
whole, lse = alone.attention(q, k, v, return_lse=True, **settings)
gradients = alone.attention_backward(d_o, q, k, v, whole, lse, **settings)
for split in ("zigzag", "blocks"):
    rows = group.rows(TOKENS, split)
    own = [x[:, :, rows] for x in (q, k, v, d_o)]
    for scheme in ("auto", "gather", "all-to-all", "grid"):
        how = {**settings, "split": split, "scheme": scheme}
        o, sums = group.attention(*own[:3], return_lse=True, **how)
        check(same(o, whole[:, :, rows]) and same(sums, lse[:, :, rows]), f"{scheme}: other bits")
        got = group.attention_backward(own[3], *own[:3], o, sums, **how)
        for name, a, b in zip("qkv", got, gradients):
            check(same(a, b[:, :, rows]), f"{scheme}: other bits in d_{name}")
    check("scheme" in group.explain(*own[:3], **settings, split=split), "explain")

half = [x[:, :, group.rows(TOKENS)].astype(np.float16) for x in (q, k, v)]
want = alone.attention(*(x.astype(np.float16) for x in (q, k, v)), tokens=TOKENS)
check(same(group.attention(*half, tokens=TOKENS), want[:, :, group.rows(TOKENS)]), "float16")

try:
    group.attention(*half, tokens=TOKENS + (group.rank == 0))
    check(group.ranks == 1, "ranks with different tokens")
except mha_mpi.Error as error:
    # One rank has nobody to disagree with: its rows of 57 tokens cannot be those of 58.
    check(error.code in (-28, -14, -3, -1) or group.ranks == 1, f"{error}")

try:
    import torch

    rows = group.rows(TOKENS)
    own = [torch.from_numpy(np.ascontiguousarray(x[:, :, rows])).requires_grad_() for x in (q, k, v)]
    o = mha_mpi.torch_attention(group, *own, **settings)
    o.backward(torch.from_numpy(np.ascontiguousarray(d_o[:, :, rows])))
    for name, x, b in zip("qkv", own, gradients):
        check(same(x.grad.numpy(), b[:, :, rows]), f"torch: other bits in d_{name}")
    brief = [torch.from_numpy(x).bfloat16() for x in (q, k, v)]
    want = alone.attention(*brief, tokens=TOKENS, causal=True)
    own = [x[:, :, rows].requires_grad_() for x in brief]
    o = mha_mpi.torch_attention(group, *own, tokens=TOKENS, causal=True)
    check(o.dtype == torch.bfloat16 and torch.equal(o, want[:, :, rows]), "bfloat16")
    o.sum().backward()
    check(all(x.grad.dtype == torch.bfloat16 and x.grad.isfinite().all() for x in own),
          "gradients of bfloat16")
    near = alone.attention(q, k, v, tokens=TOKENS, causal=True)
    check(abs(want.float().numpy() - near).max() < 0.05, "bfloat16 is near float32")
except ImportError:
    pass
try:
    group.attention(q.astype(np.int16), k, v, tokens=TOKENS)
    check(False, "integers")
except ValueError:
    checks += 1
alone.free()
group.free()
if MPI.COMM_WORLD.Get_rank() == 0:
    print(f"{checks} checks on {MPI.COMM_WORLD.Get_size()} ranks")
