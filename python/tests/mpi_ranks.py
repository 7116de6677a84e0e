# SPDX-License-Identifier: MIT
"""What test_mpi.py runs on several ranks: compares with the same call on one machine."""

import importlib.util
import sys

import numpy as np
from mpi4py import MPI

# The module alone, without the extension of the package; its folder also has a torch, which is not PyTorch.
spec = importlib.util.spec_from_file_location("mha_mpi", f"{sys.argv[1]}/mpi.py")
assert spec is not None and spec.loader is not None
mha_mpi = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mha_mpi)

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

# ------------------------------------------------------------------ options

own_rows = group.rows(TOKENS)
mask = random.random((B, 1, TOKENS, TOKENS)) < 0.8
padding = random.random((B, TOKENS)) < 0.1
bias = random.standard_normal((1, H, TOKENS, TOKENS)).astype(np.float32)
documents = np.sort(random.integers(0, 3, (B, TOKENS)), axis=1)
gates = random.random((B, H))
lengths = [TOKENS, 40]


def reference(allowed: np.ndarray, extra: np.ndarray | float, gates: np.ndarray) -> np.ndarray:
    """Attention in float64, of grouped heads."""
    keys, values = (np.repeat(x, H // G, axis=1).astype(np.float64) for x in (k, v))
    scores = q.astype(np.float64) @ keys.swapaxes(2, 3) / np.sqrt(D) + extra
    scores = np.where(allowed, scores, -np.inf)
    weights = np.exp(scores - np.maximum(scores.max(axis=3, keepdims=True), -1e300))
    sums = weights.sum(axis=3, keepdims=True)
    return np.where(sums > 0, weights / np.where(sums > 0, sums, 1), 0) @ values * gates[..., None, None]


def of_rows(options: dict, rows: np.ndarray) -> dict:
    """These options for some of the rows."""
    cut = {name: x[:, :, rows] for name, x in options.items() if getattr(x, "ndim", 0) == 4}
    cut |= {name: x[:, rows] for name, x in options.items() if name == "query_documents"}
    return options | cut


seen = np.ones((B, H, TOKENS, TOKENS), bool)
before = np.arange(TOKENS) < np.array(lengths)[:, None]
one = np.ones((B, H))
cases: dict[str, tuple[dict, np.ndarray | None]] = {
    "mask": ({"mask": mask}, reference(seen & mask, 0.0, one)),
    "a mask of numbers": ({"mask": np.where(mask, bias[:, :1], np.float32(-np.inf))},
                          reference(seen & mask, bias[:, :1], one)),
    "ignore_mask without rows": ({"ignore_mask": padding}, reference(seen & ~padding[:, None, None], 0.0, one)),
    "bias": ({"bias": bias.astype(np.float16)}, reference(seen, bias.astype(np.float16), one)),
    "bias of heads without rows": ({"bias": np.ascontiguousarray(bias[:, :, 3])},
                                   reference(seen, bias[:, :, 3:4], one)),
    "gates": ({"gates": gates}, reference(seen, 0.0, gates)),
    "key_lengths": ({"key_lengths": lengths}, reference(seen & before[:, None, None], 0.0, one)),
    "documents": ({"query_documents": documents, "key_documents": documents},
                  reference(seen & (documents[:, None, :, None] == documents[:, None, None]), 0.0, one)),
    "offsets": ({"causal": True, "offset": [0, -5]}, None),
    "query_lengths": ({"query_lengths": lengths}, None),
    "dropout": ({"dropout": 0.25, "dropout_seed": 2**40 + 7, "causal": True}, None),
}
for name, (options, expected) in cases.items():
    want, lse = alone.attention(q, k, v, return_lse=True, tokens=TOKENS, **options)
    if expected is not None:
        check(abs(want - expected).max() < (2e-3 if "bias" in name else 1e-4), f"{name}: {abs(want - expected).max()}")
    wanted = alone.attention_backward(d_o, q, k, v, want, lse, tokens=TOKENS, **options)
    own = of_rows(options, own_rows)
    parts = [x[:, :, own_rows] for x in (q, k, v, d_o)]
    for scheme in ("gather", "all-to-all"):
        how = {**own, "tokens": TOKENS, "scheme": scheme}
        o, sums = group.attention(*parts[:3], return_lse=True, **how)
        check(same(o, want[:, :, own_rows]), f"{name}, {scheme}: other bits")
        got = group.attention_backward(parts[3], *parts[:3], o, sums, **how)
        check(all(same(a, b[:, :, own_rows]) for a, b in zip(got, wanted)), f"{name}, {scheme}: other gradients")
plain = alone.attention(q, k, v, tokens=TOKENS, causal=True)
dropped = [alone.attention(q, k, v, tokens=TOKENS, causal=True, dropout=0.25, dropout_seed=seed) for seed in (1, 2)]
check(not same(plain, dropped[0]) and not same(dropped[0], dropped[1]), "dropout does nothing")
check(abs(dropped[0].mean() - plain.mean()) < 0.1, "dropout changes the mean")

# Given runs: the last rank has most, and in three pieces; queries lie otherwise than keys.
last = group.ranks - 1
runs = mha_mpi.Runs([0, 9, 10, 30, TOKENS], [last, 0, last, last])
q_rows, k_rows = group.rows(TOKENS, runs), group.rows(TOKENS, "blocks")
check(group.rank not in (0, last) or len(q_rows) == (TOKENS if last == 0 else 1 if group.rank == 0 else 56), "runs")
want = alone.attention(q, k, v, tokens=TOKENS, mask=mask)
got = group.attention(q[:, :, q_rows], k[:, :, k_rows], v[:, :, k_rows], tokens=TOKENS, split=(runs, "blocks"),
                      mask=mask[:, :, q_rows])
check(same(got, want[:, :, q_rows]), "given runs: other bits")

# Threads change no bit.
pooled = mha_mpi.Group(MPI.COMM_WORLD, threads=2 + group.rank % 2, timeout=60)
check(pooled.threads == 2 + group.rank % 2 and group.threads == 1, "threads")
parts = [x[:, :, own_rows] for x in (q, k, v)]
check(same(pooled.attention(*parts, **settings), whole[:, :, own_rows]), "threads: other bits")
pooled.free()

# ----------------------------------------------------------------- refusals


def refused(what: str, *words: str, tensors: tuple = (), **options: object) -> None:
    """All ranks refuse, the one that is wrong with a sentence, and the group works on."""
    wrong = options.pop("wrong", None)
    try:
        group.attention(*(tensors or parts), **{"tokens": TOKENS, **options})
    except (ValueError, TypeError, mha_mpi.Error) as error:
        if wrong in (None, group.rank):
            check(all(word in str(error) for word in words), f"{what}: {error}")
        else:
            check(isinstance(error, mha_mpi.Error) and "refuses" in str(error), f"{what} elsewhere: {error}")
        return
    check(False, f"{what} is not refused")


refused("integers", "float32, float16 or bfloat16", tensors=(q.astype(np.int16), k, v))
refused("rows of another rank", "rank", "needs", tensors=(parts[0][:, :, :1], *parts[1:]))
refused("weights", "does not take return_weights", return_weights=True)
refused("packed sequences", "does not take key_starts, query_starts", query_starts=[0], key_starts=[0])
refused("a word", "unknown settings ['casual']", casual=True)
refused("a mask of all rows", "[batch, heads, this rank's rows, all keys]", mask=mask[:, :, :5])
refused("a mask of whole numbers", "must be of bool or float32", mask=np.ones((B, TOKENS), np.int32))
refused("a bias of bool", "bias is of bool", bias=padding)
refused("dropout without a seed", "dropout_seed", dropout=0.1)
refused("documents of one side", "belong together", key_documents=documents)
refused("a length too many", "key_lengths has the shape (3,)", key_lengths=[1, 2, 3])
refused("a split", '"blocks", "zigzag" or mha.mpi.Runs', split="diagonal")
refused("a scheme", "auto, gather", scheme="star")
refused("a rank that does not exist", "ranks are from 0", split=mha_mpi.Runs([0, TOKENS], [99]))
for wrong in range(group.ranks):
    odd = {"gates": [1.0]} if group.rank == wrong else {}
    refused("gates of one rank", "gates has the shape (1,)", wrong=wrong, **odd)
if group.ranks > 1:
    refused("other seeds", "MHA_ERR_AGREE", dropout=0.1, dropout_seed=group.rank)
try:
    mha_mpi.Group(MPI.COMM_WORLD, threads=-1 if group.rank == 0 else 1)
    check(False, "-1 threads")
except mha_mpi.Error as error:
    check(error.code == -19, f"{error}")
try:
    mha_mpi.Runs([0, 1], [0, 1])
    check(False, "runs without an end")
except ValueError:
    checks += 1
try:
    # Rank 0 has other tokens, whose rows it has not, or of which the others disagree.
    group.attention(*half, tokens=TOKENS + (group.rank == 0))
    check(False, "ranks with different tokens")
except (ValueError, mha_mpi.Error) as error:
    check(group.rank == 0 or getattr(error, "code", 0) in (-28, -1), f"{error}")

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
    slopes = torch.ones(H, requires_grad=True)
    try:
        mha_mpi.torch_attention(group, *own, tokens=TOKENS, causal=True, alibi_slopes=slopes)
        check(False, "gradients of slopes")
    except ValueError as error:
        check("no gradients of alibi_slopes" in str(error), f"{error}")
    o = mha_mpi.torch_attention(group, *own, tokens=TOKENS, mask=torch.from_numpy(mask[:, :, rows]),
                                bias=torch.from_numpy(bias[:, :, rows]).bfloat16())
    want_masked = alone.attention(*brief, tokens=TOKENS, mask=mask, bias=torch.from_numpy(bias).bfloat16())
    check(torch.equal(o, want_masked[:, :, rows]), "masks of PyTorch")
    near = alone.attention(q, k, v, tokens=TOKENS, causal=True)
    check(abs(want.float().numpy() - near).max() < 0.05, "bfloat16 is near float32")
except ImportError:
    pass
alone.free()
group.free()
if MPI.COMM_WORLD.Get_rank() == 0:
    print(f"{checks} checks on {MPI.COMM_WORLD.Get_size()} ranks")
