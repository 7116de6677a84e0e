# SPDX-License-Identifier: MIT
"""The part of libllama that runs a model, by ctypes.

Structures are passed by value, so their layout must be that of the library: the default values that
it returns are compared with what they are known to be.
"""

from __future__ import annotations

import ctypes

import numpy as np

from . import ggml

_Pointer = ctypes.c_void_p
_Int = ctypes.c_int32
_Unsigned = ctypes.c_uint32
_F32, _F16 = 0, 1
_SPARE = 256  # bytes after the fields that are used; the library reads only those it has


class _ModelParams(ctypes.Structure):
    """All defaults are right: nothing but the size matters."""

    _fields_ = [("spare", ctypes.c_char * 512)]


class _ContextParams(ctypes.Structure):
    _fields_ = [
        *((name, _Unsigned) for name in ("n_ctx", "n_batch", "n_ubatch", "n_seq_max")),
        *((name, _Unsigned) for name in ("unused_0", "unused_1", "unused_2")),
        *((name, _Int) for name in ("n_threads", "n_threads_batch")),
        *((name, _Int) for name in ("context", "rope_scaling", "pooling", "attention", "flash")),
        *((name, ctypes.c_float) for name in ("base", "scale", "ext", "attn", "fast", "slow")),
        ("yarn_orig_ctx", _Unsigned),
        ("defrag", ctypes.c_float),
        ("cb_eval", _Pointer),
        ("cb_eval_user_data", _Pointer),
        ("type_k", _Int),
        ("type_v", _Int),
        ("spare", ctypes.c_char * _SPARE),
    ]


class _Batch(ctypes.Structure):
    _fields_ = [
        ("n_tokens", _Int),
        *((name, _Pointer) for name in ("token", "embd", "pos", "n_seq_id", "seq_id", "logits")),
    ]


_SIGNATURES = {
    "llama_model_default_params": (_ModelParams, []),
    "llama_context_default_params": (_ContextParams, []),
    "llama_model_load_from_file": (_Pointer, [ctypes.c_char_p, _ModelParams]),
    "llama_init_from_model": (_Pointer, [_Pointer, _ContextParams]),
    "llama_free": (None, [_Pointer]),
    "llama_model_free": (None, [_Pointer]),
    "llama_batch_get_one": (_Batch, [_Pointer, _Int]),
    "llama_decode": (_Int, [_Pointer, _Batch]),
    "llama_get_memory": (_Pointer, [_Pointer]),
    "llama_memory_seq_rm": (ctypes.c_bool, [_Pointer, _Int, _Int, _Int]),
    "llama_get_logits_ith": (_Pointer, [_Pointer, _Int]),
    "llama_model_get_vocab": (_Pointer, [_Pointer]),
    "llama_vocab_n_tokens": (_Int, [_Pointer]),
    "llama_log_set": (None, [_Pointer, _Pointer]),
}

# Fields that tell one layout from another.
_DEFAULTS = {"n_ctx": 512, "n_batch": 2048, "n_ubatch": 512, "n_threads": 4, "flash": -1}
_DEFAULTS |= {"rope_scaling": -1, "pooling": -1, "attention": -1, "type_k": _F16, "type_v": _F16}


def _load() -> ctypes.CDLL:
    library = ggml.open_library("libllama.*so*")
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    library.llama_log_set(ctypes.cast(ggml.quiet, _Pointer), None)
    return library


_llama = _load()


def _context_params() -> _ContextParams:
    params = _llama.llama_context_default_params()
    for name, value in _DEFAULTS.items():
        if getattr(params, name) != value:
            raise ImportError(f"libllama has another layout: {name} is {getattr(params, name)}")
    return params


class Model:
    """A model with one context: tokens are appended, and removed again."""

    def __init__(self, path: str, tokens: int, threads: int, f16: bool, flash: bool):
        self._context = None
        self._model = _llama.llama_model_load_from_file(
            path.encode(), _llama.llama_model_default_params()
        )
        if not self._model:
            raise RuntimeError(f"llama.cpp cannot open {path}")
        params = _context_params()
        params.n_ctx = params.n_batch = tokens
        params.n_ubatch = min(tokens, params.n_ubatch)
        params.n_threads = params.n_threads_batch = threads
        params.type_k = params.type_v = _F16 if f16 else _F32
        params.flash = int(flash)
        self._context = _llama.llama_init_from_model(self._model, params)
        if not self._context:
            raise RuntimeError(f"llama.cpp cannot run {path}")
        self._memory = _llama.llama_get_memory(self._context)
        self._vocabulary = _llama.llama_vocab_n_tokens(_llama.llama_model_get_vocab(self._model))

    def __del__(self) -> None:
        if self._context:
            _llama.llama_free(self._context)
        if self._model:
            _llama.llama_model_free(self._model)

    def append(self, ids: np.ndarray) -> None:
        """Computes these tokens, and the logits of the last."""
        status = _llama.llama_decode(
            self._context, _llama.llama_batch_get_one(ids.ctypes.data, len(ids))
        )
        if status:
            raise RuntimeError(f"llama_decode returned {status}")

    def truncate(self, length: int) -> None:
        _llama.llama_memory_seq_rm(self._memory, 0, length, -1)

    def logits(self) -> np.ndarray:
        address = _llama.llama_get_logits_ith(self._context, -1)
        floats = ctypes.cast(address, ctypes.POINTER(ctypes.c_float))
        return np.ctypeslib.as_array(floats, (1, self._vocabulary)).copy()
