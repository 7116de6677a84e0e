# SPDX-License-Identifier: MIT
"""Attention over the ranks of an MPI job, with the bits of one machine.

    from mpi4py import MPI
    import mha.mpi

    group = mha.mpi.Group(MPI.COMM_WORLD)
    tokens = group.rows(4096)                 # which tokens this rank has
    o = group.attention(q, k, v, tokens=4096, causal=True)

q, k and v are this rank's rows, [batch, heads, rows, width], of NumPy or PyTorch, in float32, float16 or
bfloat16 (of NumPy that of ml_dtypes); the result has the type of q. All
ranks call the same methods in the same order. torch_attention() has gradients. Group(..., threads=N) computes
with N threads, best with one rank on each machine. The library is that of
libmha_mpi for the MPI that mpi4py uses, found by its name or as MHA_MPI_LIBRARY says.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np

__all__ = ["Error", "Group", "Runs", "torch_attention"]

_SCHEMES = {"auto": 0, "gather": 1, "all-to-all": 2, "grid": 3, "ring": 4}
_SPLITS = {"blocks": 0, "zigzag": 1}
_TYPES = {"float32": 0, "float16": 1, "int16": 2}  # bfloat16 is held as its bits, in int16
_SETTINGS = {
    "tokens", "causal", "split", "scheme", "head_ranks", "chunk", "scale", "softcap", "window", "offset", "sinks",
    "alibi_slopes", "gates", "mask", "ignore_mask", "bias", "query_lengths", "key_lengths", "query_documents",
    "key_documents", "dropout", "dropout_seed",
}
# What mha.attention() or libmha_mpi has, but not this module: docs/mpi.md.
_ABSENT = {
    "return_weights", "average_weights", "weights_heads", "weights_rows", "statistics", "head_modes", "head_means",
    "query_starts", "key_starts", "arithmetic", "layout", "position", "out", "want",
}
_CAUSAL, _WINDOW, _TRAINING = 1, 2, 8
_ERR_MPI, _ERR_TIMEOUT = -26, -27
_pointer = ctypes.c_void_p
_size = ctypes.c_ssize_t
_lost: list[Any] = []  # what MPI may still write to after it has failed


class Runs:
    """A split that is given: run n is tokens [starts[n], starts[n + 1]) and belongs to ranks[n].

    starts is ascending, from 0 to the number of tokens; runs may be empty, and so may ranks.
    """

    def __init__(self, starts: Any, ranks: Any) -> None:
        self.starts = np.ascontiguousarray(starts, np.int64)
        self.ranks = np.ascontiguousarray(ranks, np.intc)
        if self.ranks.ndim != 1 or self.starts.shape != (len(self.ranks) + 1,):
            raise ValueError("Runs needs one start more than ranks: the last one is the number of tokens")


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
        ("arithmetic", ctypes.c_int),
        ("scale64", ctypes.c_double),
        ("softcap64", ctypes.c_double),
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
    library.mha_pool_create.argtypes = [_pointer, ctypes.c_int]
    library.mha_pool_threads.argtypes = [_pointer]
    library.mha_pool_free.argtypes = [_pointer]
    library.mha_mpi_group_free.argtypes = [_pointer]
    library.mha_mpi_agree.argtypes = [_pointer, _pointer, _pointer, ctypes.c_size_t]
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


def _bits(x: Any) -> np.ndarray:
    """An array of the same memory, with bfloat16 as its bits."""
    if hasattr(x, "detach"):
        import torch

        x = x.detach()
        return (x.view(torch.int16) if x.dtype == torch.bfloat16 else x).numpy()
    return x.view(np.int16) if _type_of(x) == "bfloat16" else x


def _numpy(x: Any) -> np.ndarray:
    """An array whose last axis is contiguous; that of a tensor shares its memory."""
    x = x if hasattr(x, "detach") else np.asarray(x)
    if x.ndim != 4 or _type_of(x) not in ("float32", "float16", "bfloat16"):
        raise ValueError("arrays are [batch, heads, rows, width] of float32, float16 or bfloat16")
    array = _bits(x)
    fits = array.size == 0 or array.shape[3] < 2 or array.strides[3] == array.itemsize
    return array if fits else np.ascontiguousarray(array)


def _like(x: Any, array: np.ndarray) -> Any:
    """The array as x is one, array or tensor; bits of bfloat16 as bfloat16 again."""
    if hasattr(x, "detach"):
        import torch

        tensor = torch.from_numpy(array)
        return tensor.view(torch.bfloat16) if array.dtype == np.int16 else tensor
    return array.view(x.dtype) if array.dtype == np.int16 else array


def _layout(tokens: int, split: Any) -> _Layout:
    """Of a name or of runs, whose arrays must stay alive."""
    if isinstance(split, Runs):
        return _Layout(ctypes.sizeof(_Layout), 2, tokens, len(split.ranks), split.starts.ctypes.data,
                       split.ranks.ctypes.data)
    if split not in _SPLITS:
        raise ValueError(f"split is {split!r}; it is \"blocks\", \"zigzag\" or mha.mpi.Runs(starts, ranks)")
    return _Layout(ctypes.sizeof(_Layout), _SPLITS[split], tokens, 0, None, None)


def _pair(x: Any) -> tuple[Any, Any]:
    """For queries and for keys."""
    return x if isinstance(x, tuple) else (x, x)


def _requires_grad(x: Any) -> bool:
    return bool(getattr(x, "requires_grad", False))


class _Call:
    """Shape, options and plan of one call; the plan is freed with it."""

    def __init__(self, group: Group, settings: dict[str, Any], *tensors: Any, lse: Any = None) -> None:
        self.group = group
        self.plan = _pointer()
        self.kept: list[Any] = []
        self.text = ctypes.create_string_buffer(256)
        try:
            config, layouts = self._prepare(settings, tensors)
            if lse is not None:
                self._set_lse(lse)
        except Exception:
            # The other ranks are not left waiting: no shape is what all refuse.
            group._library.mha_mpi_plan_create(ctypes.byref(self.plan), group._group, None, None, None, None)
            raise
        group._check(group._library.mha_mpi_plan_create(
            ctypes.byref(self.plan), group._group, ctypes.byref(config), ctypes.byref(self.shape),
            ctypes.byref(layouts[0]), ctypes.byref(layouts[1])), self.text)

    def _prepare(self, settings: dict[str, Any], tensors: tuple[Any, ...]) -> tuple[Any, list[_Layout]]:
        """Everything that can be wrong on this rank alone, before the ranks agree."""
        unknown = set(settings) - _SETTINGS
        absent = sorted(unknown & _ABSENT)
        if absent:
            raise TypeError(f"mha.mpi does not take {', '.join(absent)}; docs/mpi.md says what it takes, and what "
                            "libmha_mpi has for programs in C")
        if unknown or "tokens" not in settings:
            raise TypeError(f"unknown settings {sorted(unknown)}" if unknown else "tokens is missing")
        queries, keys = _pair(settings["tokens"])
        layouts = [_layout(n, split) for n, split in zip((queries, keys), _pair(settings.get("split", "zigzag")))]
        self.arrays = [_numpy(x) for x in tensors]
        q, k, v = self.arrays[:3]
        self.shape = _Shape(q.shape[0], q.shape[1], k.shape[1], queries, keys, q.shape[3],
                            v.shape[3], _TYPES[str(q.dtype)], _TYPES[str(k.dtype)],
                            _TYPES[str(v.dtype)], _TYPES[str(q.dtype)])
        self.rows = q.shape[2]
        self._check_rows(layouts)
        self.options = self._options(settings, queries, keys)
        scheme = settings.get("scheme", "auto")
        if scheme not in _SCHEMES:
            raise ValueError(f"scheme is {scheme!r}; it is one of {', '.join(_SCHEMES)}")
        config = _PlanConfig(ctypes.sizeof(_PlanConfig), _SCHEMES[scheme], settings.get("head_ranks", 0), 0,
                             settings.get("chunk", 0), ctypes.addressof(self.text), len(self.text))
        return config, layouts

    def _check_rows(self, layouts: list[_Layout]) -> None:
        """The library cannot know how large arrays are."""
        q, k, v, *others = self.arrays
        rows = [self.group._rows(layout) for layout in layouts]
        wanted = {
            "q": (*q.shape[:2], rows[0], q.shape[3]),
            "k": (q.shape[0], k.shape[1], rows[1], q.shape[3]),
            "v": (q.shape[0], k.shape[1], rows[1], v.shape[3]),
            "o": (*q.shape[:2], rows[0], v.shape[3]),
            "d_o": (*q.shape[:2], rows[0], v.shape[3]),
        }
        for name, array in zip(wanted, (q, k, v, *others)):
            if array.shape != wanted[name]:
                raise ValueError(f"{name} has the shape {array.shape}; rank {self.group.rank} needs {wanted[name]}")

    def _options(self, settings: dict[str, Any], queries: int, keys: int) -> _Options:
        s = self.shape
        o = _Options(size=ctypes.sizeof(_Options))
        o.flags = _CAUSAL if settings.get("causal") else 0
        o.scale = settings.get("scale", 0.0)
        o.softcap = settings.get("softcap", 0.0)
        window = settings.get("window")
        if window is not None:
            o.flags |= _WINDOW
            o.window_left, o.window_right = window
        offset = settings.get("offset")
        if offset is not None and np.ndim(offset):
            o.position, o.offsets = 3, self._list("offset", offset, np.int64, (s.B,))
        elif offset is not None or queries == keys:
            o.position, o.offset = 3, offset or 0
        for name in ("sinks", "alibi_slopes"):
            if settings.get(name) is not None:
                setattr(o, name, self._list(name, settings[name], np.float32, (s.H,)))
        if settings.get("gates") is not None:
            each = np.ndim(settings["gates"]) == 2
            o.gates = self._list("gates", settings["gates"], np.float32, (s.B, s.H) if each else (s.H,))
            o.gates_sb = s.H if each else 0
        for name, field in (("query_lengths", "q_lengths"), ("key_lengths", "k_lengths")):
            if settings.get(name) is not None:
                setattr(o, field, self._list(name, settings[name], np.int64, (s.B,)))
        self._set_masks(o, settings, keys)
        self._set_documents(o, settings, keys)
        dropout = settings.get("dropout", 0.0)
        if dropout and settings.get("dropout_seed") is None:
            raise ValueError("dropout needs a dropout_seed, the same on all ranks and another one for every step")
        if dropout:
            o.flags |= _TRAINING
            o.dropout, o.dropout_seed = dropout, settings["dropout_seed"]
        o.message, o.message_size = ctypes.addressof(self.text), len(self.text)
        return o

    def _set_lse(self, lse: Any) -> None:
        """The log-sum-exp of the forward pass."""
        sums = np.ascontiguousarray(lse, np.float32)
        if sums.shape != self.arrays[0].shape[:3]:
            raise ValueError(f"lse has the shape {sums.shape}; rank {self.group.rank} needs {self.arrays[0].shape[:3]}")
        self.kept.append(sums)
        self.options.lse = _view(sums[..., None])

    def _list(self, name: str, x: Any, kind: Any, shape: tuple[int, ...]) -> int:
        """The address of small numbers that all ranks have."""
        x = x.detach() if hasattr(x, "detach") else x
        numbers = np.ascontiguousarray(x, kind)
        if numbers.shape != shape:
            raise ValueError(f"{name} has the shape {numbers.shape}; it must be {shape}")
        self.kept.append(numbers)
        return numbers.ctypes.data

    def _set_masks(self, o: _Options, settings: dict[str, Any], keys: int) -> None:
        for name, boolean, number in (("mask", "attend_mask", "add_mask"), ("ignore_mask", "ignore_mask", ""),
                                      ("bias", "", "bias")):
            if settings.get(name) is None:
                continue
            x = settings[name] if hasattr(settings[name], "detach") else np.asarray(settings[name])
            kind = _type_of(x)
            if kind == "bool" and boolean:
                setattr(o, boolean, self._mask(name, x, keys))
            elif kind in ("float32", "float16", "bfloat16") and number:
                setattr(o, number, self._mask(name, x, keys))
                setattr(o, number + "_type", _TYPES["int16" if kind == "bfloat16" else kind])
            else:
                kinds = ["bool"] * bool(boolean) + ["float32, float16 or bfloat16"] * bool(number)
                raise ValueError(f"{name} is of {kind}; it must be of {' or '.join(kinds)}")

    def _mask(self, name: str, x: Any, keys: int) -> _View:
        """A view of a mask; a stride of 0 says that an axis is shared."""
        array = _bits(x)
        steps = [step // array.itemsize for step in array.strides]
        if array.size and (steps[-1] != 1 or min(steps) < 1):
            array = np.ascontiguousarray(array)
        batches, heads, rows = self.shape.B, self.shape.H, self.rows
        full = {2: (batches, keys), 3: (batches, heads, keys), 4: (batches, heads, rows, keys)}.get(array.ndim)
        # Only of batches and heads: a rank may have one row where others have more.
        few = array.ndim - 2 if array.ndim == 4 else array.ndim - 1
        if full is None or any(n != m and not (n == 1 and axis < few)
                               for axis, (n, m) in enumerate(zip(array.shape, full))):
            raise ValueError(
                f"{name} has the shape {array.shape}; it must be [batch, heads, this rank's rows, all keys], here "
                f"{(batches, heads, rows, keys)}, or without rows or without heads and rows if these share it; "
                "batch and heads may be 1")
        self.kept.append(array)
        steps = [0, 0, 0]
        for axis in range(array.ndim - 1):
            if array.shape[axis] != 1 or axis == 2:
                steps[axis] = array.strides[axis] // array.itemsize or 1
        return _View(array.ctypes.data, *steps)

    def _set_documents(self, o: _Options, settings: dict[str, Any], keys: int) -> None:
        given = [settings.get(name) is not None for name in ("query_documents", "key_documents")]
        if any(given) and not all(given):
            raise ValueError("query_documents and key_documents belong together")
        if all(given):
            o.q_documents = self._list("query_documents", settings["query_documents"], np.int32,
                                       (self.shape.B, self.rows))
            o.k_documents = self._list("key_documents", settings["key_documents"], np.int32, (self.shape.B, keys))
            o.q_documents_sb, o.k_documents_sb = max(self.rows, 1), keys

    def work(self, backward: bool) -> np.ndarray:
        size = self.group._library.mha_mpi_plan_work_size(
            self.plan, ctypes.byref(self.options), self.group.threads, int(backward))
        return np.empty(max(size, 1), np.uint8)

    def __del__(self) -> None:
        if getattr(self, "plan", None):
            self.group._library.mha_mpi_plan_free(self.plan)


class Group:
    """The ranks of an mpi4py communicator. Free it before MPI ends, on all ranks.

    threads is how many threads of this rank compute, 0 for one on every CPU that it may use; bits do not
    depend on it. It may be another number on every rank.
    """

    def __init__(self, comm: Any, *, threads: int = 1, timeout: float = 300.0, message_bytes: int = 0,
                 library: str | None = None) -> None:
        self._group = _pointer()
        self._pool = _pointer()
        self._library = _load(library or _find_library())
        text = ctypes.create_string_buffer(256)
        config = _GroupConfig(ctypes.sizeof(_GroupConfig), timeout, message_bytes,
                              ctypes.addressof(text), len(text))
        self._check(self._library.mha_mpi_group_from_int(
            ctypes.byref(self._group), ctypes.c_int(comm.py2f()), ctypes.byref(config)), text)
        self.rank: int = comm.Get_rank()
        self.ranks: int = comm.Get_size()
        self._start(threads)

    def _start(self, threads: int) -> None:
        """The threads of this rank. What one rank cannot start, all refuse."""
        status = self._library.mha_pool_create(ctypes.byref(self._pool), threads) if threads != 1 else 0
        number = ctypes.c_int(-status)
        agreed = self._library.mha_mpi_agree(self._group, ctypes.byref(number), None, 0) or -number.value
        if agreed:
            self.free()
            said = f"threads is {threads}, it must be from 0 to 1024" if status else "another rank has no threads"
            self._check(agreed, ctypes.create_string_buffer(said.encode()))
        self.threads: int = self._library.mha_pool_threads(self._pool)

    def free(self) -> None:
        """All ranks together."""
        self._library.mha_mpi_group_free(self._group)
        self._library.mha_pool_free(self._pool)
        self._group, self._pool = _pointer(), _pointer()

    def _check(self, status: int, text: ctypes.Array[ctypes.c_char], *used: Any) -> None:
        """Raises what a call has refused; `used` is memory that MPI may still use after it has failed."""
        if status in (_ERR_MPI, _ERR_TIMEOUT):
            _lost.append(used)
        if status:
            name = self._library.mha_status_string(ctypes.c_int(status)).decode()
            said = text.value.decode()
            raise Error(status, f"{name}; {said}" if said else name)

    def _rows(self, layout: _Layout) -> int:
        count: int = self._library.mha_mpi_rows(self._group, ctypes.byref(layout), self.rank, None)
        if count < 0:
            raise ValueError(f"{layout.tokens} tokens cannot be split like this: starts ascend from 0 to "
                             f"{layout.tokens}, and ranks are from 0 to {self.ranks - 1}")
        return count

    def rows(self, tokens: int, split: Any = "zigzag") -> np.ndarray:
        """The tokens whose rows this rank has."""
        layout = _layout(tokens, split)
        to = np.empty(self._rows(layout), np.int64)
        self._library.mha_mpi_rows(self._group, ctypes.byref(layout), self.rank, to.ctypes.data)
        return to

    def attention(self, q: Any, k: Any, v: Any, *, return_lse: bool = False, **settings: Any) -> Any:
        """This rank's rows of the output, with their log-sum-exp if requested.

        tokens is the number on all ranks, or a pair for queries and keys. Other settings:

        split                  "zigzag", "blocks" or Runs(starts, ranks); a pair for queries and keys
        scheme                 "auto", "gather", "all-to-all", "grid" or "ring"; head_ranks of a grid, chunk of a ring
        causal, window (left, right), offset (or one for each batch), scale, softcap
        sinks, alibi_slopes    [heads]; gates also [batch, heads]
        mask                   bool, True to attend, or numbers to add; ignore_mask: True to ignore; bias: numbers
                               [batch, heads, this rank's rows, all keys], or [batch, heads, all keys] or
                               [batch, all keys] if rows share it; batch and heads may be 1
        query_lengths, key_lengths      [batch], of all tokens
        query_documents, key_documents  [batch, this rank's rows] and [batch, all keys]
        dropout, dropout_seed
        """
        call = _Call(self, settings, q, k, v)
        arrays = call.arrays
        shape = arrays[0].shape
        o = np.zeros((*shape[:3], arrays[2].shape[3]), arrays[0].dtype)
        lse = np.zeros((*shape[:3], 1), np.float32)
        call.options.lse = _view(lse)
        work = call.work(False)
        status = self._library.mha_mpi_plan_run(
            call.plan, *[_view(x) for x in arrays], _view(o), ctypes.byref(call.options),
            work.ctypes.data, work.nbytes, self._pool)
        self._check(status, call.text, call, work, o, lse)
        return (_like(q, o), _like(q, lse[..., 0])) if return_lse else _like(q, o)

    def attention_backward(self, d_o: Any, q: Any, k: Any, v: Any, o: Any, lse: Any,
                           **settings: Any) -> tuple[Any, Any, Any]:
        """Gradients of this rank's rows of q, k and v, in float32."""
        call = _Call(self, settings, q, k, v, o, d_o, lse=lse)
        arrays = call.arrays
        outs = [np.zeros(x.shape, np.float32) for x in arrays[:3]]
        g = _Gradients(size=ctypes.sizeof(_Gradients), d_o=_view(arrays[4]),
                       d_o_type=_TYPES[str(arrays[4].dtype)])
        g.d_q, g.d_k, g.d_v = (_view(x) for x in outs)
        work = call.work(True)
        status = self._library.mha_mpi_plan_backward(
            call.plan, *[_view(x) for x in arrays[:4]], ctypes.byref(call.options),
            ctypes.byref(g), work.ctypes.data, work.nbytes, self._pool)
        self._check(status, call.text, call, work, outs)
        first, second, third = (_like(q, x) for x in outs)
        return first, second, third

    def explain(self, q: Any, k: Any, v: Any, **settings: Any) -> str:
        """What a call would do, and why."""
        call = _Call(self, settings, q, k, v)
        text = ctypes.create_string_buffer(4096)
        self._library.mha_mpi_plan_explain(call.plan, text, len(text))
        return text.value.decode()


def torch_attention(group: Group, q: Any, k: Any, v: Any, **settings: Any) -> Any:
    """Group.attention() of tensors, with gradients of q, k and v; sums of gradients are float32."""
    import torch

    learned = sorted(name for name, x in settings.items() if _requires_grad(x))
    if learned:
        raise ValueError(f"torch_attention() has no gradients of {', '.join(learned)}; detach() them, or compute "
                         "them with libmha_mpi (docs/mpi.md)")

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
