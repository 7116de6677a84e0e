# SPDX-License-Identifier: MIT
"""OpenBLAS by hand: two products for every head, the softmax between them in NumPy.

What one would write by hand with a BLAS. Blocks of rows fit into the L2 cache; causal and padded
attention multiply only the keys that are not masked.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import glob

import numpy as np

from .cases import Case
from .contender import Contender, Results, Runner, Unable
from .inputs import Inputs, band

LIBRARY = "openblas"
ROWS = 128  # of scores at a time

_ROW_MAJOR, _PLAIN, _TRANSPOSED = 101, 111, 112


def _load() -> ctypes.CDLL:
    names = glob.glob("/usr/lib/*/openblas-pthread/libopenblas.so.0")
    name = names[0] if names else ctypes.util.find_library("openblas")
    if name is None:
        raise ImportError("OpenBLAS is not installed; Debian has it in libopenblas0-pthread")
    return ctypes.CDLL(name)


_blas = _load()
_sgemm = _blas.cblas_sgemm
_sgemm.restype = None
_sgemm.argtypes = [
    *[ctypes.c_int] * 6,
    ctypes.c_float,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_float,
    ctypes.c_void_p,
    ctypes.c_int,
]


def version() -> str:
    _blas.openblas_get_config.restype = ctypes.c_char_p
    return _blas.openblas_get_config().decode()


def product(
    a: int, b: int, c: int, sizes: tuple[int, int, int], strides: tuple[int, int, int], **how: float
) -> None:
    """c[m, n] = scale a[m, k] b, each given by its address and its row stride in floats.

    b is [k, n], or [n, k] if `transposed`.
    """
    m, n, k = sizes
    layout = _TRANSPOSED if how.get("transposed") else _PLAIN
    _sgemm(
        _ROW_MAJOR, _PLAIN, layout, m, n, k, how.get("scale", 1.0), a, strides[0], b, strides[1],
        0.0, c, strides[2],
    )  # fmt: skip


class _Head:
    """Attention of one head, block by block, in scores that all heads share."""

    def __init__(self, case: Case, inputs: Inputs):
        self.case, self.scale = case, case.D**-0.5
        self.scores = np.empty((min(ROWS, case.L), case.S), dtype=np.float32)
        self.mask = inputs.mask
        if case.window >= 0 or case.causal:
            self.mask = band(case)
        if self.mask is not None and self.mask.dtype == bool:
            self.mask = np.where(self.mask, np.float32(0), np.float32(-np.inf))

    def keys(self, begin: int, end: int, length: int) -> tuple[int, int]:
        """The first and one past the last key that rows begin..end attend to."""
        first = max(0, begin - self.case.window) if self.case.window >= 0 else 0
        last = min(end, length) if self.case.causal and not self.case.one_token else length
        return first, last

    def run(self, q: np.ndarray, k: np.ndarray, v: np.ndarray, o: np.ndarray, length: int) -> None:
        """q and o [L, D], k and v [S, D], of which `length` keys count."""
        for begin in range(0, q.shape[0], ROWS):
            end = min(begin + ROWS, q.shape[0])
            self._block(q, k, v, o, begin, end, *self.keys(begin, end, length))

    def _block(self, q, k, v, o, begin: int, end: int, first: int, last: int) -> None:
        d, stride = self.case.D, self.case.S
        rows, count = end - begin, last - first
        scores = self.scores[:rows, :count]
        product(
            q[begin].ctypes.data, k[first].ctypes.data, self.scores.ctypes.data,
            (rows, count, d), (d, d, stride), transposed=True, scale=self.scale,
        )  # fmt: skip
        if self.mask is not None:
            scores += self.mask[begin:end, first:last]
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        total = scores.sum(axis=1, keepdims=True)
        product(
            self.scores.ctypes.data, v[first].ctypes.data, o[begin].ctypes.data,
            (rows, d, count), (stride, d, d),
        )  # fmt: skip
        o[begin:end] /= total


def _attention(case: Case, inputs: Inputs, threads: int) -> Runner:
    if case.kind != "attention" or case.want != "output" or case.dtype != "f32":
        raise Unable("is f32, the output alone")
    _blas.openblas_set_num_threads(threads)
    head, group = _Head(case, inputs), case.H // case.G
    q, k, v = inputs.query, inputs.key, inputs.value
    output = np.zeros_like(q)
    lengths = [case.S] * case.B if inputs.lengths is None else inputs.lengths.tolist()

    def run() -> np.ndarray:
        for b, length in enumerate(lengths):
            rows = length if case.pad == "pad" else case.L
            for h in range(case.H):
                g = h // group
                head.run(q[b, h, :rows], k[b, g], v[b, g], output[b, h, :rows], length)
        return output

    return Runner(run, lambda o: {"output": o})


def _linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, y: np.ndarray) -> None:
    """y[m, n] = x[m, k] weight[n, k]^T + bias."""
    (m, k), n = x.shape, weight.shape[0]
    product(x.ctypes.data, weight.ctypes.data, y.ctypes.data, (m, n, k), (k, k, n), transposed=True)
    y += bias


def _layer(case: Case, inputs: Inputs, threads: int) -> Runner:
    if case.kind != "layer" or case.want != "output":
        raise Unable("is for layers, the output alone")
    _blas.openblas_set_num_threads(threads)
    head, w = _Head(case, inputs), inputs.weights
    x = inputs.query.reshape(-1, case.E)
    qkv = np.empty((x.shape[0], 3 * case.E), dtype=np.float32)
    heads, output = np.empty_like(x), np.empty_like(x)
    q, k, v, o = (np.empty((case.L, case.D), dtype=np.float32) for _ in range(4))
    lengths = [case.S] * case.B if inputs.lengths is None else inputs.lengths.tolist()

    def run() -> Results:
        _linear(x, w["in"], w["in_bias"], qkv)
        parts = qkv.reshape(case.B, case.L, 3, case.H, case.D)
        joined = heads.reshape(case.B, case.L, case.H, case.D)
        for b, length in enumerate(lengths):
            for h in range(case.H):
                for part, one in enumerate((q, k, v)):
                    np.copyto(one, parts[b, :, part, h])
                head.run(q, k, v, o, length)
                joined[b, :, h] = o
        _linear(heads, w["o"], w["o_bias"], output)
        return {"output": output.reshape(case.B, case.L, case.E)}

    return Runner(run, lambda r: r)


CONTENDERS = (
    Contender(LIBRARY, "sgemm and NumPy", _attention),
    Contender(LIBRARY, "sgemm and NumPy, layer", _layer),
)
