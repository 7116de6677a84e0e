# SPDX-License-Identifier: MIT
"""Attention over the ranks of an MPI job, with the bits of one machine.

    from mpi4py import MPI
    import mha.mpi

    group = mha.mpi.Group(MPI.COMM_WORLD)
    tokens = group.rows(4096)                 # which tokens this rank has
    o = group.attention(q, k, v, tokens=4096, causal=True)

q, k and v are this rank's rows, [batch, heads, rows, width], of NumPy or PyTorch, in float32, float16 or
bfloat16 (of NumPy that of ml_dtypes); the result has the type of q. All
ranks call the same methods in the same order. torch_attention() has gradients. The library is that of
libmha_mpi for the MPI that mpi4py uses, found by its name or as MHA_MPI_LIBRARY says.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np

__all__ = ["Error", "Group", "torch_attention"]

_SCHEMES = {"auto": 0, "gather": 1, "all-to-all": 2, "grid": 3, "ring": 4}
_SPLITS = {"blocks": 0, "zigzag": 1}
_TYPES = {"float32": 0, "float16": 1, "int16": 2}  # bfloat16 is held as its bits, in int16
_pointer = ctypes.c_void_p
_size = ctypes.c_ssize_t


class Error(RuntimeError):
    """What libmha_mpi refused, or what went wrong between ranks; `code` is an mha_status."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class _Shape(ctypes.Structure):
    _fields_ = [(n, _size) for n in ("B", "H", "G", "L", "S", "D", "Dv")] + [
        (n, ctypes.c_int) for n in ("q_type", "k_type", "v_type", "o_type")
    ]


class _View(ctypes.Structure):
    _fields_ = [("data", _pointer), ("sb", _size), ("sh", _size), ("sl", _size)]


class _Options(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("flags", ctypes.c_uint32),
        ("scale", ctypes.c_float),
        ("softcap", ctypes.c_float),
        ("position", ctypes.c_int),
        ("offset", _size),
        ("offsets", _pointer),
        ("window_left", _size),
        ("window_right", _size),
        ("attend_mask", _View),
        ("ignore_mask", _View),
        ("add_mask", _View),
        ("add_mask_type", ctypes.c_int),
        ("bias", _View),
        ("bias_type", ctypes.c_int),
        ("alibi_slopes", _pointer),
        ("sinks", _pointer),
        ("q_lengths", _pointer),
        ("k_lengths", _pointer),
        ("q_starts", _pointer),
        ("k_starts", _pointer),
        ("q_documents", _pointer),
        ("k_documents", _pointer),
        ("q_documents_sb", _size),
        ("k_documents_sb", _size),
        ("lse", _View),
        ("weights", _View),
        ("weights_type", ctypes.c_int),
        ("weights_mode", ctypes.c_int),
        ("weights_heads", _pointer),
        ("weights_head_count", _size),
        ("weights_rows", _pointer),
        ("weights_row_count", _size),
        ("message", _pointer),
        ("message_size", ctypes.c_size_t),
        ("gates", _pointer),
        ("gates_sb", _size),
        ("dropout", ctypes.c_float),
        ("dropout_seed", ctypes.c_uint64),
        ("head_modes", _pointer),
        ("head_means", _pointer),
        ("statistics", _pointer),
        ("dropout_first", ctypes.c_int64 * 4),
    ]


class _Gradients(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("d_o", _View),
        ("d_o_type", ctypes.c_int),
        ("d_lse", _View),
        ("d_q", _View),
        ("d_k", _View),
        ("d_v", _View),
        ("d_bias", _View),
        ("d_add_mask", _View),
        ("d_alibi_slopes", _pointer),
        ("d_sinks", _pointer),
        ("d_gates", _pointer),
    ]


class _Layout(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("split", ctypes.c_int),
        ("tokens", _size),
        ("runs", _size),
        ("starts", _pointer),
        ("ranks", _pointer),
    ]


class _GroupConfig(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("timeout", ctypes.c_double),
        ("message_bytes", ctypes.c_size_t),
        ("message", _pointer),
        ("message_size", ctypes.c_size_t),
    ]


class _PlanConfig(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("scheme", ctypes.c_int),
        ("head_ranks", ctypes.c_int),
        ("heads", _size),
        ("chunk", _size),
        ("message", _pointer),
        ("message_size", ctypes.c_size_t),
    ]


def _find_library() -> str:
    given = os.environ.get("MHA_MPI_LIBRARY")
    if given:
        return given
    from mpi4py import MPI

    name = "openmpi" if MPI.get_vendor()[0] == "Open MPI" else "mpich"
    return f"libmha_mpi-{name}.so.0.1"


def _load(path: str) -> ctypes.CDLL:
    library = ctypes.CDLL(path)
    views = [_View] * 4
    library.mha_status_string.restype = ctypes.c_char_p
    library.mha_mpi_group_free.argtypes = [_pointer]
    library.mha_mpi_rows.argtypes = [_pointer, _pointer, ctypes.c_int, _pointer]
    library.mha_mpi_rows.restype = _size
    library.mha_mpi_plan_create.argtypes = [_pointer] * 6
    library.mha_mpi_plan_free.argtypes = [_pointer]
    library.mha_mpi_plan_work_size.argtypes = [_pointer, _pointer, ctypes.c_int, ctypes.c_int]
    library.mha_mpi_plan_work_size.restype = ctypes.c_size_t
    library.mha_mpi_plan_explain.argtypes = [_pointer, ctypes.c_char_p, ctypes.c_size_t]
    library.mha_mpi_plan_explain.restype = ctypes.c_size_t
    tail = [_pointer, ctypes.c_size_t, _pointer]
    library.mha_mpi_plan_run.argtypes = [_pointer, *views, _pointer, *tail]
    library.mha_mpi_plan_backward.argtypes = [_pointer, *views, _pointer, _pointer, *tail]
    return library


def _view(array: np.ndarray) -> _View:
    """Strides of elements; those of a rank without rows are not 0, which would mean shared."""
    steps = [s // array.itemsize for s in array.strides[:3]]
    if array.size == 0:
        steps = [1, 1, 1]
    return _View(array.ctypes.data, *steps)


def _type_of(x: Any) -> str:
    """The name of the type of an array or tensor; bfloat16 of NumPy is that of ml_dtypes."""
    return str(x.dtype).removeprefix("torch.")


def _numpy(x: Any) -> np.ndarray:
    """An array whose last axis is contiguous; that of a tensor shares its memory."""
    x = x.detach() if hasattr(x, "detach") else np.asarray(x)
    if x.ndim != 4 or _type_of(x) not in ("float32", "float16", "bfloat16"):
        raise ValueError("arrays are [batch, heads, rows, width] of float32, float16 or bfloat16")
    if hasattr(x, "detach"):
        import torch

        array = (x.view(torch.int16) if x.dtype == torch.bfloat16 else x).numpy()
    else:
        array = x.view(np.int16) if _type_of(x) == "bfloat16" else x
    fits = array.size == 0 or array.shape[3] < 2 or array.strides[3] == array.itemsize
    return array if fits else np.ascontiguousarray(array)


def _like(x: Any, array: np.ndarray) -> Any:
    """The array as x is one, array or tensor; bits of bfloat16 as bfloat16 again."""
    if hasattr(x, "detach"):
        import torch

        tensor = torch.from_numpy(array)
        return tensor.view(torch.bfloat16) if array.dtype == np.int16 else tensor
    return array.view(x.dtype) if array.dtype == np.int16 else array


class _Call:
    """Shape, options and plan of one call; the plan is freed with it."""

    def __init__(self, group: Group, q: np.ndarray, k: np.ndarray, v: np.ndarray,
                 settings: dict[str, Any]) -> None:
        names = {"tokens", "causal", "split", "scheme", "scale", "softcap", "window", "offset",
                 "sinks", "alibi_slopes", "head_ranks", "chunk"}
        unknown = set(settings) - names
        if unknown or "tokens" not in settings:
            raise TypeError(f"unknown settings {sorted(unknown)}" if unknown else "tokens is missing")
        tokens = settings["tokens"]
        queries, keys = tokens if isinstance(tokens, tuple) else (tokens, tokens)
        self.group = group
        self.kept: list[Any] = []
        self.shape = _Shape(q.shape[0], q.shape[1], k.shape[1], queries, keys, q.shape[3],
                            v.shape[3], _TYPES[str(q.dtype)], _TYPES[str(k.dtype)],
                            _TYPES[str(v.dtype)], _TYPES[str(q.dtype)])
        self.text = ctypes.create_string_buffer(256)
        self.options = self._options(settings, queries, keys)
        split = _SPLITS[settings.get("split", "zigzag")]
        config = _PlanConfig(ctypes.sizeof(_PlanConfig), _SCHEMES[settings.get("scheme", "auto")],
                             settings.get("head_ranks", 0), 0, settings.get("chunk", 0),
                             ctypes.addressof(self.text), len(self.text))
        layouts = [_Layout(ctypes.sizeof(_Layout), split, n, 0, None, None) for n in (queries, keys)]
        self.plan = _pointer()
        group._check(group._library.mha_mpi_plan_create(
            ctypes.byref(self.plan), group._group, ctypes.byref(config), ctypes.byref(self.shape),
            ctypes.byref(layouts[0]), ctypes.byref(layouts[1])), self.text)

    def _options(self, settings: dict[str, Any], queries: int, keys: int) -> _Options:
        o = _Options(size=ctypes.sizeof(_Options))
        o.flags = 1 if settings.get("causal") else 0
        o.scale = settings.get("scale", 0.0)
        o.softcap = settings.get("softcap", 0.0)
        window = settings.get("window")
        if window is not None:
            o.flags |= 2
            o.window_left, o.window_right = window
        offset = settings.get("offset")
        if offset is not None or queries == keys:
            o.position, o.offset = 3, offset or 0
        for name in ("sinks", "alibi_slopes"):
            if settings.get(name) is not None:
                numbers = np.ascontiguousarray(settings[name], np.float32)
                if numbers.shape != (self.shape.H,):
                    raise ValueError(f"{name} needs one number for each head")
                self.kept.append(numbers)
                setattr(o, name, numbers.ctypes.data)
        o.message, o.message_size = ctypes.addressof(self.text), len(self.text)
        return o

    def work(self, backward: bool) -> np.ndarray:
        size = self.group._library.mha_mpi_plan_work_size(
            self.plan, ctypes.byref(self.options), 1, int(backward))
        return np.empty(max(size, 1), np.uint8)

    def __del__(self) -> None:
        if getattr(self, "plan", None):
            self.group._library.mha_mpi_plan_free(self.plan)


class Group:
    """The ranks of an mpi4py communicator. Free it before MPI ends, on all ranks."""

    def __init__(self, comm: Any, *, timeout: float = 300.0, message_bytes: int = 0,
                 library: str | None = None) -> None:
        self._group = _pointer()
        self._library = _load(library or _find_library())
        text = ctypes.create_string_buffer(256)
        config = _GroupConfig(ctypes.sizeof(_GroupConfig), timeout, message_bytes,
                              ctypes.addressof(text), len(text))
        self._check(self._library.mha_mpi_group_from_int(
            ctypes.byref(self._group), ctypes.c_int(comm.py2f()), ctypes.byref(config)), text)
        self.rank: int = comm.Get_rank()
        self.ranks: int = comm.Get_size()

    def free(self) -> None:
        """All ranks together."""
        self._library.mha_mpi_group_free(self._group)
        self._group = _pointer()

    def _check(self, status: int, text: ctypes.Array[ctypes.c_char]) -> None:
        if status:
            name = self._library.mha_status_string(ctypes.c_int(status)).decode()
            said = text.value.decode()
            raise Error(status, f"{name}; {said}" if said else name)

    def rows(self, tokens: int, split: str = "zigzag") -> np.ndarray:
        """The tokens whose rows this rank has."""
        layout = _Layout(ctypes.sizeof(_Layout), _SPLITS[split], tokens, 0, None, None)
        count = self._library.mha_mpi_rows(self._group, ctypes.byref(layout), self.rank, None)
        to = np.empty(count, np.int64)
        self._library.mha_mpi_rows(self._group, ctypes.byref(layout), self.rank, to.ctypes.data)
        return to

    def attention(self, q: Any, k: Any, v: Any, *, return_lse: bool = False, **settings: Any) -> Any:
        """This rank's rows of the output, with their log-sum-exp if requested.

        tokens is the number on all ranks, or a pair for queries and keys. Settings: causal, split, scheme,
        head_ranks, chunk, scale, softcap, window (left, right), offset, sinks, alibi_slopes.
        """
        arrays = [_numpy(x) for x in (q, k, v)]
        call = _Call(self, *arrays, settings)
        shape = arrays[0].shape
        o = np.zeros((*shape[:3], arrays[2].shape[3]), arrays[0].dtype)
        lse = np.zeros((*shape[:3], 1), np.float32)
        call.options.lse = _view(lse)
        work = call.work(False)
        status = self._library.mha_mpi_plan_run(
            call.plan, *[_view(x) for x in arrays], _view(o), ctypes.byref(call.options),
            work.ctypes.data, work.nbytes, None)
        self._check(status, call.text)
        return (_like(q, o), _like(q, lse[..., 0])) if return_lse else _like(q, o)

    def attention_backward(self, d_o: Any, q: Any, k: Any, v: Any, o: Any, lse: Any,
                           **settings: Any) -> tuple[Any, Any, Any]:
        """Gradients of this rank's rows of q, k and v, in float32."""
        arrays = [_numpy(x) for x in (q, k, v, o, d_o)]
        call = _Call(self, *arrays[:3], settings)
        sums = np.ascontiguousarray(lse, np.float32)[..., None]
        outs = [np.zeros(x.shape, np.float32) for x in arrays[:3]]
        call.options.lse = _view(sums)
        g = _Gradients(size=ctypes.sizeof(_Gradients), d_o=_view(arrays[4]),
                       d_o_type=_TYPES[str(arrays[4].dtype)])
        g.d_q, g.d_k, g.d_v = (_view(x) for x in outs)
        work = call.work(True)
        status = self._library.mha_mpi_plan_backward(
            call.plan, *[_view(x) for x in arrays[:4]], ctypes.byref(call.options),
            ctypes.byref(g), work.ctypes.data, work.nbytes, None)
        self._check(status, call.text)
        first, second, third = (_like(q, x) for x in outs)
        return first, second, third

    def explain(self, q: Any, k: Any, v: Any, **settings: Any) -> str:
        """What a call would do, and why."""
        call = _Call(self, _numpy(q), _numpy(k), _numpy(v), settings)
        text = ctypes.create_string_buffer(4096)
        self._library.mha_mpi_plan_explain(call.plan, text, len(text))
        return text.value.decode()


def torch_attention(group: Group, q: Any, k: Any, v: Any, **settings: Any) -> Any:
    """Group.attention() of tensors, with gradients; sums of gradients are float32."""
    import torch

    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, q: Any, k: Any, v: Any) -> Any:
            o, lse = group.attention(q, k, v, return_lse=True, **settings)
            ctx.save_for_backward(q, k, v, o, lse)
            return o

        @staticmethod
        def backward(ctx: Any, *d_o: Any) -> Any:
            saved = ctx.saved_tensors
            gradients = group.attention_backward(d_o[0].contiguous(), *saved, **settings)
            return tuple(g.to(x.dtype) for g, x in zip(gradients, saved))

    return Attention.apply(q, k, v)
