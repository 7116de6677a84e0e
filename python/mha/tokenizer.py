# SPDX-License-Identifier: MIT
"""Text to token ids and back, with the tokenizers of published models."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Self

MISSING = (
    "this build of mha has no models: install the development files of PCRE2 and utf8proc "
    "(Debian: libpcre2-dev libutf8proc-dev) and build the package again"
)

try:
    from ._core import Tokenizer as _Tokenizer
except ImportError:  # built without libmha_model

    class _Tokenizer:  # type: ignore[no-redef]
        @classmethod
        def _open(cls, path: Any) -> Any:
            raise ImportError(MISSING)


_MARKS, _PLAIN, _SKIP_MARKS = 1, 2, 4  # the flags of the C library
_SPECIAL, _UNKNOWN, _CONTINUES = 1, 2, 4
_MARK_NAMES = ("begin", "end", "unknown", "pad", "class", "separator", "mask", "turn_end")


class Token(NamedTuple):
    """One token, and the characters text[begin:end] that it was made from.

    A mark that was added has begin == end. With pairs, tokens of segment 1 have places in the
    second text.
    """

    id: int
    piece: str  # as the vocabulary has it: "##ing", "Ġthe"
    begin: int
    end: int
    segment: int
    special: bool  # a mark such as [CLS], not text
    unknown: bool  # stands for text that the vocabulary does not have
    continues: bool  # continues the word that the token before it began


Message = Mapping[str, str] | tuple[str, str]


def is_message(object: Any) -> bool:
    return isinstance(object, Mapping) or (
        isinstance(object, tuple) and len(object) == 2 and all(isinstance(o, str) for o in object)
    )


def _pair_of(message: Any) -> tuple[str, str]:
    if isinstance(message, Mapping) and {"role", "content"} <= set(message):
        message = (message["role"], message["content"])
    if not isinstance(message, tuple) or len(message) != 2:
        raise TypeError(
            f"{message!r} is not a message; give {{'role': 'user', 'content': 'Hello'}}"
        )
    return message


class _Places:
    """Characters of a text by the places of its bytes in UTF-8."""

    def __init__(self, text: str, data: bytes) -> None:
        self.ascii = len(text) == len(data)
        if not self.ascii:
            begins = (int((byte & 0xC0) != 0x80) for byte in data)
            self.counts = [0, *accumulate(begins)]  # characters that begin before a byte

    def range(self, begin: int, end: int) -> tuple[int, int]:
        """The characters that the bytes [begin, end) have a part of."""
        if self.ascii:
            return begin, end
        first, last = self.counts[begin], self.counts[end]
        inside = begin < len(self.counts) - 1 and self.counts[begin + 1] == first
        return (first - 1 if inside and end > begin else first), last


class Tokenizer(_Tokenizer):
    """The tokenizer of a model: `Tokenizer.open(path)`, or `model.tokenizer`.

    A tokenizer never changes: any number of threads may use it at the same time.
    """

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a folder in Hugging Face's form, or one of its files: tokenizer.json, vocab.txt,
        vocab.json with merges.txt, *.tiktoken, *.model and *.spm of SentencePiece, tokenizer.bin
        of llama2.c, or a GGUF file."""
        return cls._open(path)

    def encode(
        self, text: str, marks: bool = True, pair: str | None = None, *, plain: bool = False
    ) -> list[int]:
        """The ids of a text; with marks, those that the model expects around it.

        pair: a second text, as BERT compares sentences. plain: marks that are written in the text,
        such as "[SEP]", are ordinary text.
        """
        return self._encode(*_bytes(text, pair), _flags(marks, plain), True)

    def tokens(
        self, text: str, marks: bool = True, pair: str | None = None, *, plain: bool = False
    ) -> list[Token]:
        """The tokens of a text, with their pieces and places in it."""
        data, second = _bytes(text, pair)
        places = [_Places(text, data), _Places(pair or "", second or b"")]
        found = []
        for id, flags, segment, begin, end in self._encode(
            data, second, _flags(marks, plain), False
        ):
            begin, end = places[segment if pair is not None else 0].range(begin, end)
            shown = (bool(flags & bit) for bit in (_SPECIAL, _UNKNOWN, _CONTINUES))
            found.append(Token(id, self.piece(id), begin, end, segment, *shown))
        return found

    def decode(self, ids: Iterable[int], skip_marks: bool = False) -> str:
        """The text of some tokens. Bytes that are not UTF-8 become U+FFFD."""
        return self._decode(_plain_list(ids), _SKIP_MARKS if skip_marks else 0)

    @property
    def marks(self) -> dict[str, int]:
        """The ids of marks by name: "begin", "end", "unknown", "pad", "class", "separator",
        "mask", "turn_end"; only those that the tokenizer has."""
        found = {name: self._mark(number) for number, name in enumerate(_MARK_NAMES)}
        return {name: id for name, id in found.items() if id is not None}

    def is_mark(self, id: int) -> bool:
        """Whether an id is a mark such as [CLS] or </s>, not text."""
        return bool(self._flags(id) & _SPECIAL)

    def chat(self, messages: Sequence[Message], reply: bool = True) -> str:
        """The text of a chat in the form that the model was trained on.

        messages: [{"role": "user", "content": "Hello"}, ...] or pairs of role and content.
        reply: the text ends where the assistant's reply begins.
        """
        return self._chat([_pair_of(message) for message in messages], reply)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"<mha.Tokenizer: {self.kind}, {self.size} ids>"


def _bytes(text: str, pair: str | None) -> tuple[bytes, bytes | None]:
    for name, given in (("text", text), ("pair", pair)):
        if not isinstance(given, str) and (name == "text" or given is not None):
            raise TypeError(f"{name} is a {type(given).__name__}; give a str")
    return text.encode(), None if pair is None else pair.encode()


def _flags(marks: bool, plain: bool) -> int:
    return (_MARKS if marks else 0) | (_PLAIN if plain else 0)


def _plain_list(ids: Any) -> Any:
    """Ids as something that the extension reads: arrays as they are, others as a list."""
    return ids if hasattr(ids, "shape") else list(ids)
