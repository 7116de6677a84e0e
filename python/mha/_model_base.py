# SPDX-License-Identifier: MIT
"""The beginning of mha.Model: opening, what a model is, texts as ids; and mha.State."""

from __future__ import annotations

import os
from typing import Any, Self

from ._model_types import ModelInfo, choice, numpy
from .tokenizer import MISSING, Tokenizer

try:
    from ._core import Model as _Model
    from ._core import State as _State
except ImportError:  # built without libmha_model

    class _Model:  # type: ignore[no-redef]
        @classmethod
        def _open(cls, path: bytes, storage: int, tokenizer: bytes | None) -> Any:
            raise ImportError(MISSING)

    class _State:  # type: ignore[no-redef]
        pass


KINDS = ("encoder", "decoder", "cross")  # of attention
_MODEL_KINDS = ("encoder", "decoder", "encoder-decoder", "image-encoder")
_STORES = ("f32", "f16", "bf16", "i8", "q8", "q4")


class State(_State):
    """Keys and values of running sequences: `model.state()`, for prompts that are used again.

    One call at a time may use a state; a second one raises a RuntimeError.
    """

    @classmethod
    def load(cls, model: ModelBase, path: str | os.PathLike[str]) -> Self:
        """A state that `save()` has written, for a model of the same weights."""
        return cls._load(model, os.fsencode(path))

    def __repr__(self) -> str:
        lengths = [self.length(n) for n in range(min(self.sequences, 8))]
        more = ", ..." if self.sequences > 8 else ""
        return f"<mha.State: tokens {', '.join(map(str, lengths))}{more}>"


def check_state(state: Any) -> None:
    if state is not None and not isinstance(state, State):
        raise TypeError(f"state is a {type(state).__name__}; give an mha.State or None")


class ModelBase(_Model):
    """An open model."""

    path: str
    _threads: int | None = None
    _is_pruned: bool = False

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        store: str | None = None,
        tokenizer: str | os.PathLike[str] | None = None,
        threads: int | None = None,
    ) -> Self:
        """Open a folder in Hugging Face's form, a GGUF file, a file of llama2.c, or a translator
        of `mha train`.

        store: how matrices are stored in memory: "f32", "f16", "bf16", "i8", "q8" or "q4"; None is
        the type of the file. tokenizer: its path, if it is not beside the model. threads: of all
        calls; None is the number of mha.set_threads().
        """
        storage = 0 if store is None else 1 + choice(store, "store", _STORES)
        beside = None if tokenizer is None else os.fsencode(tokenizer)
        self = cls._open(os.fsencode(path), storage, beside)
        self._threads = threads
        self.path = os.fspath(path)
        return self

    # ------------------------------------------------------------- what it is -----

    @property
    def info(self) -> ModelInfo:
        """What the model is: family, layers, widths, parameters."""
        info = self._info()
        info["kind"] = _MODEL_KINDS[info["kind"]]
        info["layers"] = {
            kind: layers for kind, layers in zip(KINDS, info["layers"], strict=True) if layers
        }
        return ModelInfo(**info)

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The model's tokenizer; None if it has none."""
        return Tokenizer._of(self)

    @property
    def target_tokenizer(self) -> Tokenizer | None:
        """The tokenizer for the texts that an encoder-decoder writes; mostly the same."""
        return Tokenizer._of(self, True)

    def heads(self, layer: int, kind: str | None = None) -> int:
        """The heads of one attention. Layers of a pruned model differ."""
        number = self._kind(kind)
        count = self._heads(number, layer)
        if count < 0:
            raise ValueError(f"there is no {KINDS[number]} layer {layer}")
        return count

    def __repr__(self) -> str:
        i = self.info
        layers = " + ".join(f"{count} {kind}" for kind, count in i.layers.items())
        return (
            f"<mha.Model: {i.family}, {i.kind}, layers {layers} of {i.heads} heads, "
            f"width {i.width}, {i.parameters / 1e6:.1f} million parameters>"
        )

    def _kind(self, kind: str | None) -> int:
        """The number of a kind of attention; None if the model has only one."""
        if kind is not None:
            return choice(kind, "kind", KINDS)
        there = self.info.layers
        if len(there) != 1:
            raise ValueError(f"the model has several kinds of attention: say which of {[*there]}")
        return KINDS.index(next(iter(there)))

    def _text_tokenizer(self) -> Tokenizer:
        tokenizer = self.tokenizer
        if tokenizer is None:
            raise ValueError(
                "the model has no tokenizer: open it with tokenizer=PATH, or give token ids"
            )
        return tokenizer

    def _ids(self, text: Any, marks: bool = True) -> Any:
        """The ids of a text, or ids as they are given."""
        np = numpy()
        if isinstance(text, str):
            return np.array(self._text_tokenizer().encode(text, marks=marks), np.int32)
        ids = np.asarray(text)
        if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
            raise TypeError(f"{text!r:.60} is not a text, nor a list of token ids")
        if ids.size and not (ids.min() >= 0 and ids.max() < 1 << 31):
            raise ValueError("ids are 0 to the size of the vocabulary")
        return ids.astype(np.int32)
