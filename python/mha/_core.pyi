# SPDX-License-Identifier: MIT
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import (
    Any,
    Literal,
    Protocol,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    final,
    overload,
)

from ._types import Gradients, Result, Statistics
from .layer import Rope

_Layout: TypeAlias = Literal["bhld", "blhd"]
_Position: TypeAlias = Literal["top-left", "bottom-right"] | int | Sequence[int] | Any
_Modes: TypeAlias = Literal[True, "softmax", "raw", "softcap", "bias"]
_Mode: TypeAlias = bool | _Modes
_Parts: TypeAlias = Literal[True] | Mapping[str, bool | int] | Iterable[str]
_Statistics: TypeAlias = bool | _Parts

# Arrays of NumPy and PyTorch; results have the type of the query. For others they are an Array.
class _Native(Protocol):
    def __array_wrap__(self, array: Any, /) -> Any: ...

_Like = TypeVar("_Like", bound=_Native)
_Out = TypeVar("_Out")

version: str

class Error(ValueError):
    status: int
    code: str | None

@final
class Array:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    def tolist(self) -> Any: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class _How(TypedDict, total=False):
    layout: _Layout
    scale: float | None
    causal: bool
    position: _Position | None
    window: tuple[int | None, int | None] | None
    mask: Any
    ignore_mask: Any
    bias: Any
    alibi_slopes: Any
    sinks: Any
    softcap: float
    query_lengths: Any
    key_lengths: Any
    query_starts: Any
    key_starts: Any
    query_documents: Any
    key_documents: Any
    arithmetic: Literal["exact", "native"]
    threads: int | None

class _Training(_How, total=False):
    dropout: float
    dropout_seed: int
    gates: Any

class _Weights(_How, total=False):
    lse: Any
    heads: Any
    rows: Any
    head_modes: Sequence[str | int] | None
    return_weights: _Mode
    average_weights: bool

class _Seeing(_Training, total=False):
    head_modes: Sequence[str | int] | None
    statistics: _Statistics

# Options that do not affect the type of the result.
class _Common(_Training, total=False):
    head_modes: Sequence[str | int] | None
    head_means: Any
    average_weights: bool
    weights_heads: Any
    weights_rows: Any

class _Plain(_Common, total=False):
    return_lse: Literal[False]
    return_weights: Literal[False]
    weights_out: None
    lse_out: None
    statistics: Literal[False]

class _Given(_Common, total=False):
    out: Any
    weights_out: Any
    lse_out: Any

class _AskLse(TypedDict, total=False):
    return_lse: bool

class _AskWeights(TypedDict, total=False):
    return_weights: _Mode

class _AskStatistics(TypedDict, total=False):
    statistics: _Statistics

class _BesideLse(_Given, _AskWeights, _AskStatistics, total=False): ...
class _BesideWeights(_Given, _AskLse, _AskStatistics, total=False): ...
class _BesideStatistics(_Given, _AskLse, _AskWeights, total=False): ...
class _Options(_Given, _AskLse, _AskWeights, _AskStatistics, total=False): ...

@overload
def attention(
    query: _Like, key: Any, value: Any, *, out: None = None, **options: Unpack[_Plain]
) -> _Like: ...
@overload
def attention(
    query: Any, key: Any, value: Any, *, out: None = None, **options: Unpack[_Plain]
) -> Array: ...
@overload
def attention(
    query: Any, key: Any, value: Any, *, out: _Out, **options: Unpack[_Plain]
) -> _Out: ...
@overload
def attention(
    query: Any, key: Any, value: Any, *, return_lse: Literal[True], **options: Unpack[_BesideLse]
) -> Result: ...
@overload
def attention(
    query: Any, key: Any, value: Any, *, return_weights: _Modes, **options: Unpack[_BesideWeights]
) -> Result: ...
@overload
def attention(
    query: Any, key: Any, value: Any, *, statistics: _Parts, **options: Unpack[_BesideStatistics]
) -> Result: ...
@overload
def attention(query: Any, key: Any, value: Any, **options: Unpack[_Options]) -> Any: ...
def attention_backward(
    d_output: Any,
    query: Any,
    key: Any,
    value: Any,
    output: Any,
    lse: Any,
    *,
    want: Iterable[str] = ("query", "key", "value"),
    d_lse: Any = None,
    **options: Unpack[_Training],
) -> Gradients: ...
@overload
def attention_weights(
    query: Any, key: Any, *, out: None = None, **options: Unpack[_Weights]
) -> Any: ...
@overload
def attention_weights(query: Any, key: Any, *, out: _Out, **options: Unpack[_Weights]) -> _Out: ...
def head_statistics(
    query: Any, key: Any, value: Any = None, **options: Unpack[_Seeing]
) -> Statistics: ...
def merge(
    output: Any,
    lse: Any,
    output2: Any,
    lse2: Any,
    *,
    layout: _Layout = "bhld",
    out: Any = None,
    lse_out: Any = None,
) -> Result: ...
def norm(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    kind: Literal["layer", "rms"] = "layer",
    eps: float = 1e-05,
    residual: Any = None,
    sum_out: Any = None,
    out: Any = None,
    threads: int | None = None,
) -> Any: ...
def set_threads(count: int | None, /) -> None: ...
def get_threads() -> int: ...
def isa() -> str: ...

class _LayerSees(TypedDict, total=False):
    sequences: Any
    query_positions: Any
    key_positions: Any
    batch_first: bool | None

class _LayerUses(_LayerSees, total=False):
    cache: KVCache | None
    cache_use: Literal["step", "recall"]

class _LayerStore(_Options, _LayerSees, total=False): ...
class _LayerPlain(_Plain, _LayerUses, total=False): ...
class _LayerLse(_BesideLse, _LayerUses, total=False): ...
class _LayerWeights(_BesideWeights, _LayerUses, total=False): ...
class _LayerStatistics(_BesideStatistics, _LayerUses, total=False): ...

class _LayerOptions(_Options, _LayerSees, total=False):
    cache: KVCache | None
    cache_use: Literal["step", "store", "recall"]

class Layer:
    def __new__(
        cls,
        width: int,
        heads: int,
        *,
        weights: dict[str, Any],
        kv_heads: int | None = None,
        head_width: int | None = None,
        value_head_width: int | None = None,
        key_width: int | None = None,
        value_width: int | None = None,
        output_width: int | None = None,
        stored: Literal["f32", "f16", "bf16", "i8"] = "f32",
        norm: Literal["none", "rms", "layer"] | None = None,
        norm_eps: float = 0.0,
        rope: Rope | None = None,
        add_zero_attn: bool = False,
        batch_first: bool = True,
        threads: int | None = None,
    ) -> Self: ...
    @property
    def config(self) -> dict[str, Any]: ...
    @property
    def nbytes(self) -> int: ...
    @overload
    def __call__(
        self,
        query: None = None,
        key: Any = None,
        value: Any = None,
        *,
        cache: KVCache,
        cache_use: Literal["store"],
        **options: Unpack[_LayerStore],
    ) -> None: ...
    @overload
    def __call__(
        self,
        query: _Like,
        key: Any = None,
        value: Any = None,
        *,
        out: None = None,
        **options: Unpack[_LayerPlain],
    ) -> _Like: ...
    @overload
    def __call__(
        self,
        query: Any,
        key: Any = None,
        value: Any = None,
        *,
        out: None = None,
        **options: Unpack[_LayerPlain],
    ) -> Array: ...
    @overload
    def __call__(
        self,
        query: Any,
        key: Any = None,
        value: Any = None,
        *,
        out: _Out,
        **options: Unpack[_LayerPlain],
    ) -> _Out: ...
    @overload
    def __call__(
        self,
        query: Any,
        key: Any = None,
        value: Any = None,
        *,
        return_lse: Literal[True],
        **options: Unpack[_LayerLse],
    ) -> Result: ...
    @overload
    def __call__(
        self,
        query: Any,
        key: Any = None,
        value: Any = None,
        *,
        return_weights: _Modes,
        **options: Unpack[_LayerWeights],
    ) -> Result: ...
    @overload
    def __call__(
        self,
        query: Any,
        key: Any = None,
        value: Any = None,
        *,
        statistics: _Parts,
        **options: Unpack[_LayerStatistics],
    ) -> Result: ...
    @overload
    def __call__(
        self,
        query: Any = None,
        key: Any = None,
        value: Any = None,
        **options: Unpack[_LayerOptions],
    ) -> Any: ...
    def tape(
        self,
        query: Any,
        key: Any = None,
        value: Any = None,
        *,
        query_positions: Any = None,
        key_positions: Any = None,
        batch_first: bool | None = None,
        **options: Unpack[_Options],
    ) -> Tape: ...
    def update(self, weights: dict[str, Any], /) -> None: ...
    def _prune(self, keep: Sequence[bool], /) -> Self: ...

@final
class Tape:
    @property
    def result(self) -> Any: ...
    @property
    def output(self) -> Any: ...
    def backward(
        self,
        d_output: Any,
        *,
        d_lse: Any = None,
        want: Iterable[str] | None = None,
        threads: int | None = None,
    ) -> dict[str, Any]: ...

class KVCache:
    def __new__(
        cls,
        sequences: int,
        capacity: int,
        kv_heads: int,
        head_width: int,
        *,
        kind: Literal["contiguous", "ring", "paged"] = "contiguous",
        value_head_width: int | None = None,
        dtype: Literal["f32", "f16", "bf16", "i8"] = "f32",
        value_dtype: Literal["f32", "f16", "bf16", "i8"] | None = None,
        page_tokens: int = 0,
        pages: int = 0,
    ) -> Self: ...
    @property
    def lengths(self) -> list[int]: ...
    @property
    def firsts(self) -> list[int]: ...
    @property
    def config(self) -> dict[str, Any]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def free_pages(self) -> int: ...
    def append(
        self,
        key: Any,
        value: Any,
        *,
        sequences: Any = None,
        lengths: Any = None,
        layout: Literal["bhld", "blhd"] = "bhld",
    ) -> None: ...
    @overload
    def attention(
        self,
        query: _Like,
        *,
        sequences: Any = None,
        out: None = None,
        **options: Unpack[_Plain],
    ) -> _Like: ...
    @overload
    def attention(
        self,
        query: Any,
        *,
        sequences: Any = None,
        out: None = None,
        **options: Unpack[_Plain],
    ) -> Array: ...
    @overload
    def attention(
        self, query: Any, *, sequences: Any = None, out: _Out, **options: Unpack[_Plain]
    ) -> _Out: ...
    @overload
    def attention(
        self,
        query: Any,
        *,
        sequences: Any = None,
        return_lse: Literal[True],
        **options: Unpack[_BesideLse],
    ) -> Result: ...
    @overload
    def attention(
        self,
        query: Any,
        *,
        sequences: Any = None,
        return_weights: _Modes,
        **options: Unpack[_BesideWeights],
    ) -> Result: ...
    @overload
    def attention(
        self,
        query: Any,
        *,
        sequences: Any = None,
        statistics: _Parts,
        **options: Unpack[_BesideStatistics],
    ) -> Result: ...
    @overload
    def attention(
        self, query: Any, *, sequences: Any = None, **options: Unpack[_Options]
    ) -> Any: ...
    def truncate(self, sequence: int, length: int, /) -> None: ...
    def fork(self, to: int, source: int, /) -> None: ...
    def copy(self, to: int, source: int, first: int, count: int, /) -> None: ...
    def remove(self, sequence: int, first: int, count: int, /) -> None: ...
    def shift(
        self, sequence: int, first: int, count: int, rope: Rope | None, delta: int, /
    ) -> None: ...
    def reorder(self, parents: Any, /) -> None: ...
    def read(self, sequence: int, first: int = -1, count: int = -1) -> tuple[Array, Array]: ...
    def save(self, path: str | PathLike[str], /) -> None: ...
    @classmethod
    def load(cls, path: str | PathLike[str], /) -> Self: ...

_Store: TypeAlias = Literal["f32", "f16", "bf16", "i8", "q8", "q4"]
_Activation: TypeAlias = Literal["relu", "gelu", "gelu_tanh", "gelu_quick", "silu", "tanh"]

class Linear:
    def __new__(
        cls,
        weight: Any,
        bias: Any = None,
        *,
        store: _Store | None = "f32",
        activation: _Activation | None = None,
    ) -> Self: ...
    @overload
    def __call__(
        self,
        x: _Like,
        *,
        residual: Any = None,
        out: None = None,
        threads: int | None = None,
    ) -> _Like: ...
    @overload
    def __call__(
        self, x: Any, *, residual: Any = None, out: None = None, threads: int | None = None
    ) -> Array: ...
    @overload
    def __call__(
        self, x: Any, *, residual: Any = None, out: _Out, threads: int | None = None
    ) -> _Out: ...
    def update(self, weight: Any, bias: Any = None, /) -> None: ...
    @property
    def inputs(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    @property
    def nbytes(self) -> int: ...

class Stack:
    def __init__(self, layers: Sequence[tuple[Any, ...]]) -> None: ...
    def __call__(self, x: Any, starts: Any, *, threads: int | None = None) -> Any: ...

class FeedForward:
    def __new__(
        cls,
        up: Any,
        down: Any,
        *,
        gate: Any = None,
        up_bias: Any = None,
        down_bias: Any = None,
        gate_bias: Any = None,
        store: Literal["f32", "f16", "bf16", "i8"] | None = "f32",
        activation: _Activation | None = None,
    ) -> Self: ...
    @overload
    def __call__(
        self, x: _Like, *, residual: Any = None, out: None = None, threads: int | None = None
    ) -> _Like: ...
    @overload
    def __call__(
        self, x: Any, *, residual: Any = None, out: None = None, threads: int | None = None
    ) -> Array: ...
    @overload
    def __call__(
        self, x: Any, *, residual: Any = None, out: _Out, threads: int | None = None
    ) -> _Out: ...
    @property
    def nbytes(self) -> int: ...

def _presets() -> list[tuple[str, str, int, int, int, int, int, bool]]: ...
def _uniform(outputs: int, inputs: int, bound: float, seed: int, /) -> Array: ...

# The compiled part of mha.Tokenizer, mha.Model and mha.State; missing without libmha_model.

class Tokenizer:
    @classmethod
    def _open(cls, path: str | PathLike[str], /) -> Self: ...
    @classmethod
    def _of(cls, model: Model, target: bool = False, /) -> Self | None: ...
    @overload
    def _encode(
        self, text: bytes, pair: bytes | None, flags: int, ids_only: Literal[True], /
    ) -> list[int]: ...
    @overload
    def _encode(
        self, text: bytes, pair: bytes | None, flags: int, ids_only: Literal[False], /
    ) -> list[tuple[int, int, int, int, int]]: ...
    def _decode(self, ids: Any, flags: int, /) -> str: ...
    def _flags(self, id: int, /) -> int: ...
    def _mark(self, mark: int, /) -> int | None: ...
    def _chat(self, messages: list[tuple[str, str]], reply: bool, /) -> str: ...
    def piece(self, id: int, /) -> str: ...
    def find(self, piece: str, /) -> int | None: ...
    @property
    def size(self) -> int: ...
    @property
    def kind(self) -> str: ...

class Model:
    @classmethod
    def _open(cls, path: bytes, storage: int, tokenizer: bytes | None, /) -> Self: ...
    @classmethod
    def families(cls) -> list[str]: ...
    def _info(self) -> dict[str, Any]: ...
    def describe(self) -> str: ...
    def _heads(self, kind: int, layer: int, /) -> int: ...
    def _prune(self, encoder: Any, decoder: Any, cross: Any, /) -> Self: ...
    def _save(self, path: bytes, zeros: bool, replace: bool, /) -> None: ...
    def _run(self, **arguments: Any) -> list[Statistics | None]: ...
    def _encode(
        self,
        texts: list[bytes],
        out: Any,
        *,
        pooling: int,
        normalize: int,
        longest: int,
        heads: Any,
        threads: int | None,
    ) -> None: ...
    def _generate(
        self, starts: Any, ids: Any, **options: Any
    ) -> list[tuple[list[int], str, float, bool, float, float]]: ...
    def _score(
        self, starts: Any, ids: Any, out: Any, *, heads: Any, threads: int | None
    ) -> None: ...

class State:
    @classmethod
    def _create(
        cls, model: Model, sequences: int, capacity: int, source_capacity: int, dtype: str, /
    ) -> Self: ...
    @classmethod
    def _load(cls, model: Model, path: bytes, /) -> Self: ...
    def length(self, sequence: int = 0, /) -> int: ...
    def tokens(self, sequence: int = 0, /) -> list[int]: ...
    def truncate(self, length: int, sequence: int = 0, /) -> None: ...
    def fork(self, to: int, source: int, /) -> None: ...
    def reorder(self, parents: Any, /) -> None: ...
    def save(self, path: str | PathLike[str], /) -> None: ...
    @property
    def sequences(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def model(self) -> Any: ...
