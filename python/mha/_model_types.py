# SPDX-License-Identifier: MIT
"""What calls of mha.Model return, and the conversions between texts, ids and arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .tokenizer import Tokenizer


@dataclass(frozen=True)
class ModelInfo:
    """What a model is."""

    family: str  # "bert", "gpt2", "llama", ...
    kind: str  # "encoder", "decoder", "encoder-decoder" or "image-encoder"
    layers: dict[str, int]  # of each kind of attention: "encoder", "decoder", "cross"
    width: int
    inner: int
    heads: int
    key_heads: int
    head_width: int
    vocabulary: int
    positions: int  # the longest sequence; 0: no limit
    recommended: int  # tokens per text that the files recommend for vectors; 0: they do not say
    has_logits: bool
    labels: int
    parameters: int
    file_bytes: int
    memory_bytes: int
    image_size: int
    patch: int
    channels: int
    length_penalty: float  # that the files recommend for a beam search; 1: they do not say
    # Of an image encoder with up to four channels: a value of 0 to 255 of channel c becomes
    # (value / 255 - image_mean[c]) / image_deviation[c]; 0.5 and 0.5: the files do not say.
    image_mean: tuple[float, float, float, float]
    image_deviation: tuple[float, float, float, float]


class Generation(NamedTuple):
    """What `generate(details=True)` returns for a prompt."""

    text: str
    ids: list[int]  # the new tokens, without the end mark
    log_probability: float  # of the new tokens, before sampling changed the distribution
    ended: bool  # by an end mark or a stop, not by the limit
    score: float  # the mean log-probability of the new tokens and of the end mark
    confidence: float  # exp(score), from 0 to 1


class Score(NamedTuple):
    """How probable a text is for a decoder."""

    ids: list[int]
    log_probabilities: Any  # of each token given those before it; 0 for the first
    total: float
    perplexity: float


@dataclass(frozen=True)
class ModelResult:
    """What `run` has computed: rows of all sequences, one after another; None if not requested.

    Sequence b has the rows starts[b] to starts[b + 1].
    """

    starts: Any
    hidden: Any = None  # (rows, width), after the last norm
    logits: Any = None  # (rows, vocabulary)
    source_hidden: Any = None  # (source rows, width), of an encoder-decoder
    pooled: Any = None  # (sequences, width): BERT's pooler
    labels: Any = None  # (sequences, labels): logits of a classifier
    streams: Any = None  # (layers + 1, rows, width): the residual stream before each layer


def numpy() -> Any:
    """The module numpy, which only models need."""
    try:
        import numpy as np
    except ImportError as error:
        raise ImportError("mha.Model needs NumPy: pip install numpy") from error
    return np


def label(tokenizer: Tokenizer, id: int) -> str:
    """A token as a word to read: without the letters that stand for spaces."""
    if id >= tokenizer.size:
        return str(id)
    piece = tokenizer.piece(id)
    if tokenizer.is_mark(id):
        return piece
    text = tokenizer.decode([id]).strip()
    return text if text and "\ufffd" not in text else piece


def items(gates: Any) -> Any:
    if not isinstance(gates, Mapping):
        raise TypeError(
            f"gates is a {type(gates).__name__}; give a dict such as {{(layer, head): 0.0}}"
        )
    return gates.items()


def choice(value: Any, name: str, choices: tuple[str, ...]) -> int:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; use one of {', '.join(map(repr, choices))}")
    return choices.index(value)


def utf8(text: Any) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"a text is a {type(text).__name__}; give a str")
    return text.encode()


def packed(parts: Sequence[Any]) -> tuple[Any, Any]:
    """Sequences of ids one after another, and where they start."""
    np = numpy()
    starts = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=starts[1:])
    return starts, np.concatenate(parts) if parts else np.zeros(0, np.int32)


def score_of(ids: Any, logarithms: Any) -> Score:
    np = numpy()
    total = float(logarithms.sum())
    counted = max(1, len(ids) - 1)
    return Score(ids.tolist(), logarithms, total, float(np.exp(-total / counted)))


def listener(stream: Callable[..., Any], many: bool) -> Callable[[int, int, str], bool]:
    def hear(number: int, id: int, text: str) -> bool:
        return bool(stream(text, number) if many else stream(text))

    return hear
