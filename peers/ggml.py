# SPDX-License-Identifier: MIT
"""The part of ggml that is needed for a graph of attention, by ctypes.

ggml counts dimensions from the innermost: NumPy's [B, H, L, D] is its D, L, H, B.
"""

from __future__ import annotations

import ctypes
import glob
import os

import numpy as np

_FOLDER = os.environ.get("PEERS_GGML", "")
_CPU = 0
_TYPES = {"float32": 0, "float16": 1, "int64": 27, "bfloat16": 30}
_FLOAT_BYTES = 4
_CONTEXT_BYTES = 1 << 20
_Pointer = ctypes.c_void_p
_Size = ctypes.c_size_t
_Long = ctypes.c_int64
_Float = ctypes.c_float

_SIGNATURES = {
    "ggml_init": (_Pointer, None),
    "ggml_free": (None, [_Pointer]),
    "ggml_version": (ctypes.c_char_p, []),
    "ggml_new_tensor_4d": (_Pointer, [_Pointer, ctypes.c_int, *[_Long] * 4]),
    "ggml_view_4d": (_Pointer, [_Pointer, _Pointer, *[_Long] * 4, *[_Size] * 4]),
    "ggml_reshape_4d": (_Pointer, [_Pointer, _Pointer, *[_Long] * 4]),
    "ggml_set_rows": (_Pointer, [_Pointer] * 4),
    "ggml_mul_mat": (_Pointer, [_Pointer] * 3),
    "ggml_add": (_Pointer, [_Pointer] * 3),
    "ggml_soft_max_ext": (_Pointer, [_Pointer, _Pointer, _Pointer, _Float, _Float]),
    "ggml_flash_attn_ext": (_Pointer, [_Pointer] * 5 + [_Float] * 3),
    "ggml_new_graph": (_Pointer, [_Pointer]),
    "ggml_build_forward_expand": (None, [_Pointer, _Pointer]),
    "ggml_backend_alloc_ctx_tensors": (_Pointer, [_Pointer, _Pointer]),
    "ggml_backend_buffer_free": (None, [_Pointer]),
    "ggml_backend_free": (None, [_Pointer]),
    "ggml_backend_tensor_set": (None, [_Pointer, _Pointer, _Size, _Size]),
    "ggml_backend_tensor_get": (None, [_Pointer, _Pointer, _Size, _Size]),
    "ggml_backend_graph_compute": (ctypes.c_int, [_Pointer, _Pointer]),
    "ggml_backend_get_device": (_Pointer, [_Pointer]),
    "ggml_backend_dev_backend_reg": (_Pointer, [_Pointer]),
    "ggml_backend_reg_get_proc_address": (_Pointer, [_Pointer, ctypes.c_char_p]),
    "ggml_log_set": (None, [_Pointer, _Pointer]),
}


class _InitParams(ctypes.Structure):
    _fields_ = [("size", _Size), ("memory", _Pointer), ("no_alloc", ctypes.c_bool)]


def open_library(pattern: str) -> ctypes.CDLL:
    found = sorted(glob.glob(os.path.join(_FOLDER, pattern))) if _FOLDER else []
    if not found:
        raise ImportError(
            "no libggml; npm's @node-llama-cpp/linux-x64 has it, PEERS_GGML is its bins/linux-x64"
        )
    return ctypes.CDLL(found[0], mode=ctypes.RTLD_GLOBAL)


def _load() -> tuple[ctypes.CDLL, ctypes.CDLL]:
    base, whole = open_library("libggml-base.so*"), open_library("libggml.*so*")
    _SIGNATURES["ggml_init"] = (_Pointer, [_InitParams])
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(base, name)
        function.restype, function.argtypes = result, arguments
    whole.ggml_backend_load_all_from_path.argtypes = [ctypes.c_char_p]
    whole.ggml_backend_init_by_type.restype = _Pointer
    whole.ggml_backend_init_by_type.argtypes = [ctypes.c_int, ctypes.c_char_p]
    return base, whole


_LogFunction = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, _Pointer)
quiet = _LogFunction(lambda level, text, data: None)
_base, _whole = _load()
_base.ggml_log_set(quiet, None)
_whole.ggml_backend_load_all_from_path(_FOLDER.encode())


def library_version() -> str:
    return f"ggml {_base.ggml_version().decode()} of llama.cpp"


def _new_backend(threads: int) -> int:
    backend = _whole.ggml_backend_init_by_type(_CPU, None)
    if not backend:
        raise ImportError(f"ggml finds no CPU backend in {_FOLDER}")
    registry = _base.ggml_backend_dev_backend_reg(_base.ggml_backend_get_device(backend))
    address = _base.ggml_backend_reg_get_proc_address(registry, b"ggml_backend_set_n_threads")
    ctypes.CFUNCTYPE(None, _Pointer, ctypes.c_int)(address)(backend, threads)
    return backend


class Graph:
    """Tensors and operators: the graph is built, then finish() allocates memory, then it runs.

    Operators take and return tensors as addresses.
    """

    def __init__(self, threads: int):
        self._backend = _new_backend(threads)
        self._context = _base.ggml_init(_InitParams(_CONTEXT_BYTES, None, True))
        self._graph = _base.ggml_new_graph(self._context)
        self._contents: list[tuple[int, np.ndarray]] = []
        self._buffer = None

    def __del__(self) -> None:
        if self._buffer:
            _base.ggml_backend_buffer_free(self._buffer)
        _base.ggml_free(self._context)
        _base.ggml_backend_free(self._backend)

    def tensor(self, x: np.ndarray) -> int:
        """A tensor with these numbers, at most 4-D."""
        x = np.ascontiguousarray(x)
        sizes = (*reversed(x.shape), 1, 1, 1, 1)[:4]
        made = _base.ggml_new_tensor_4d(self._context, _TYPES[x.dtype.name], *sizes)
        self._contents.append((made, x))
        return made

    def append(self, cache: int, rows: int, at: int) -> int:
        """The cache [B, G, S, D] once its token `at` is rows [B, G, 1, D]."""
        index = self.tensor(np.full((1, 1, 1, 1), at, dtype=np.int64))
        return _base.ggml_set_rows(self._context, cache, rows, index)

    def flash(self, q: int, k: int, v: int, mask: int | None, scale: float) -> int:
        """[B, L, H, D], which is not the order of q."""
        return _base.ggml_flash_attn_ext(self._context, q, k, v, mask, scale, 0.0, 0.0)

    def product(self, a: int, b: int) -> int:
        """b a^T over the last dimensions."""
        return _base.ggml_mul_mat(self._context, a, b)

    def add(self, a: int, b: int) -> int:
        return _base.ggml_add(self._context, a, b)

    def softmax(self, a: int, mask: int | None, scale: float) -> int:
        return _base.ggml_soft_max_ext(self._context, a, mask, scale, 0.0)

    def reshape(self, a: int, shape: tuple[int, int, int, int]) -> int:
        return _base.ggml_reshape_4d(self._context, a, *reversed(shape))

    def part_of_heads(self, qkv: int, part: int, b: int, length: int, heads: int, d: int) -> int:
        """q, k or v (part 0, 1, 2) of [B, L, 3 H D] in f32, seen as [B, H, L, D]."""
        row = 3 * heads * d * _FLOAT_BYTES
        head = d * _FLOAT_BYTES
        offset = part * heads * head
        return _base.ggml_view_4d(
            self._context, qkv, d, length, heads, b, row, head, row * length, offset
        )

    def finish(self, output: int) -> None:
        """Allocate memory for everything, and copy the numbers of the tensors."""
        _base.ggml_build_forward_expand(self._graph, output)
        self._buffer = _base.ggml_backend_alloc_ctx_tensors(self._context, self._backend)
        if not self._buffer:
            raise MemoryError("ggml found no memory for its tensors")
        for made, x in self._contents:
            _base.ggml_backend_tensor_set(made, x.ctypes.data, 0, x.nbytes)
        self._contents.clear()

    def run(self) -> None:
        if _base.ggml_backend_graph_compute(self._backend, self._graph) != 0:
            raise RuntimeError("ggml could not compute the graph")

    def read(self, made: int, shape: tuple[int, ...]) -> np.ndarray:
        """A tensor of f32 as an array of this shape."""
        x = np.empty(shape, dtype=np.float32)
        _base.ggml_backend_tensor_get(made, x.ctypes.data, 0, x.nbytes)
        return x
