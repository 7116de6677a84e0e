# SPDX-License-Identifier: MIT
"""Whole models: sentence vectors, generated text, scores, and what every head attends to.

    model = mha.Model.open("all-MiniLM-L6-v2")    # a folder, a GGUF file, a file of llama2.c
    model.encode(["one text", "another"])         # an array (2, width)
    model.generate("Once upon a time", most=40)   # a decoder or an encoder-decoder
    model.capture("the cat").weights[0]           # (heads, tokens, tokens) of layer 0

Needs NumPy. A model never changes, and any number of threads may run it; the GIL is released.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

from ._captured import Capture, CapturedLayer
from ._model_types import (
    Generation,
    ModelInfo,
    ModelResult,
    Score,
    choice,
    items,
    label,
    listener,
    numpy,
    packed,
    score_of,
    utf8,
)
from .tokenizer import MISSING, Token, Tokenizer, is_message

if TYPE_CHECKING:
    import numpy as np

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
_POOLINGS = ("mean", "first", "last", "max")
_MODES = {"normal": 0, "uniform": 1}
_MEAN_MODE = 2

# Gates by the head they belong to: (kind, layer, head), or (layer, head) if a model has only one
# kind of attention. A value is a factor, or "uniform", or a vector in place of the head's output.
Gates = Mapping[tuple[Any, ...], Any]

_active_gates: ContextVar[tuple[tuple[Any, Gates], ...]] = ContextVar("gates", default=())


class State(_State):
    """Keys and values of running sequences: `model.state()`, for prompts that are used again.

    One call at a time may use a state; a second one raises a RuntimeError.
    """

    @classmethod
    def load(cls, model: Model, path: str | os.PathLike[str]) -> Self:
        """A state that `save()` has written, for a model of the same weights."""
        return cls._load(model, os.fsencode(path))

    def __repr__(self) -> str:
        lengths = [self.length(n) for n in range(min(self.sequences, 8))]
        more = ", ..." if self.sequences > 8 else ""
        return f"<mha.State: tokens {', '.join(map(str, lengths))}{more}>"


class Model(_Model):
    """A model as it was published: `Model.open(path)`."""

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

    # ------------------------------------------------------------------ heads -----

    @contextmanager
    def gates(self, gates: Gates) -> Iterator[Self]:
        """Change heads in all calls of this thread or task within the context.

            with model.gates({(0, 3): 0.0}):     # head 3 of layer 0 is disabled
                model.generate("Once upon a time")

        gates: {(kind, layer, head): value}, without the kind if the model has only one. A value is
        a factor of the head's output, or "uniform" for equal weights, or a vector of head_width
        numbers in place of its output. Inner contexts and arguments named gates come last.
        """
        self._settings(gates)
        before = _active_gates.set((*_active_gates.get(), (self, gates)))
        try:
            yield self
        finally:
            _active_gates.reset(before)

    def _settings(self, gates: Gates | None) -> Any:
        """The arrays of all gates that are active, for the extension; None if there are none."""
        active = [given for model, given in _active_gates.get() if model is self]
        if gates is not None:
            active.append(gates)
        merged = {key: value for given in active for key, value in items(given)}
        if not merged:
            return None
        np = numpy()
        arrays: list[list[Any]] = [[None] * 3, [None] * 3, [None] * 3]
        width = self.info.head_width
        for key, value in merged.items():
            kind, place, count = self._place(key)
            if arrays[0][kind] is None:
                arrays[0][kind] = np.ones(count, np.float32)
                arrays[1][kind] = np.zeros(count, np.uint8)
            if isinstance(value, str):
                choice(value, f"gates[{key}]", tuple(_MODES))
                arrays[1][kind][place] = _MODES[value]
            elif np.ndim(value) == 0:
                arrays[0][kind][place] = float(value)
            else:
                if arrays[2][kind] is None:
                    arrays[2][kind] = np.zeros((count, width), np.float32)
                if np.shape(value) != (width,):
                    raise ValueError(f"gates[{key}] has shape {np.shape(value)}, not ({width},)")
                arrays[1][kind][place] = _MEAN_MODE
                arrays[2][kind][place] = value
        return tuple(map(tuple, arrays))

    def _place(self, key: Any) -> tuple[int, int, int]:
        """The kind of a head, its place among all heads of that kind, and their number."""
        if not isinstance(key, tuple) or len(key) not in (2, 3):
            raise TypeError(f"gates has {key!r}; name heads as (kind, layer, head)")
        kind = self._kind(key[0] if len(key) == 3 else None)
        layer, head = key[-2:]
        counts: list[int] = []
        while (count := self._heads(kind, len(counts))) >= 0:
            counts.append(count)
        if not 0 <= layer < len(counts) or not 0 <= head < counts[layer]:
            raise ValueError(f"there is no head {key}: {len(counts)} layers of {counts[:1]} heads")
        return kind, sum(counts[:layer]) + head, sum(counts)

    def prune(self, remove: Sequence[tuple[Any, ...]]) -> Self:
        """A model without some heads, named as those of gates; what both have is shared."""
        np = numpy()
        keep: list[Any] = [None] * 3
        for key in remove:
            kind, place, count = self._place(tuple(key))
            if keep[kind] is None:
                keep[kind] = np.ones(count, np.uint8)
            keep[kind][place] = 0
        pruned = self._prune(*keep)
        pruned._threads = self._threads
        pruned.path = self.path
        pruned._is_pruned = True
        return pruned

    def is_changed(self, gates: Gates | None = None) -> bool:
        """Whether calls compute something else than the model of the file: it is pruned, or there
        are gates, as an argument or by a context."""
        return self._is_pruned or self._settings(gates) is not None

    # -------------------------------------------------------------- sentences -----

    def encode(
        self,
        texts: str | Sequence[str],
        pooling: str | None = None,
        normalize: bool | None = None,
        *,
        longest: int = 0,
        gates: Gates | None = None,
    ) -> np.ndarray:
        """One vector per text: f32 (texts, width), or (width,) for a single text.

        pooling: "mean", "first", "last" or "max"; None is what the model's files say. normalize:
        vectors of length 1; None is what the files say. longest: more tokens are cut off.
        """
        np = numpy()
        single = isinstance(texts, str)
        data = [utf8(text) for text in ([texts] if single else texts)]
        out = np.empty((len(data), self.info.width), np.float32)
        if data:
            self._encode(
                data,
                out,
                pooling=0 if pooling is None else 1 + choice(pooling, "pooling", _POOLINGS),
                normalize={None: 0, True: 1, False: -1}[normalize],
                longest=longest,
                heads=self._settings(gates),
                threads=self._threads,
            )
        return out[0] if single else out

    # --------------------------------------------------------------- generate -----

    def generate(
        self,
        prompt: Any,
        most: int = 0,
        *,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 0.0,
        min_p: float = 0.0,
        repetition_penalty: float = 0.0,
        repetition_last: int = 0,
        seed: int = 0,
        stop: str | Sequence[str] = (),
        ignore_end: bool = False,
        state: State | None = None,
        stream: Callable[..., Any] | None = None,
        gates: Gates | None = None,
        details: bool = False,
    ) -> Any:
        """Continue a prompt, or translate it with an encoder-decoder; returns the new text.

        prompt: a text, or a list of messages for a chat ({"role": ..., "content": ...}); or a list
        of texts, which are computed together and give a list; ids in place of a text.
        most: new tokens per prompt; 0 is as many as fit. temperature 0 is the most probable token.
        stop: texts that end it. state: continues its sequences, which get prompts and new tokens.
        stream: called with every piece of text as it is complete, as stream(text) for one prompt,
        stream(text, number) for several; it ends the sequence by returning True.
        details: Generation tuples in place of texts.
        """
        _check_state(state)
        prompts, many = self._prompts(prompt, state)
        starts, ids = packed(prompts)
        if not 0 <= seed < 1 << 64:
            raise ValueError(f"seed is {seed}; use 0 to 2**64 - 1")
        results = self._generate(
            starts,
            ids,
            most=most,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            repetition_last=repetition_last,
            seed=seed,
            stops=[utf8(text) for text in ([stop] if isinstance(stop, str) else stop)],
            ignore_end=ignore_end,
            state=state,
            heads=self._settings(gates),
            callback=None if stream is None else listener(stream, many),
            threads=self._threads,
        )
        made = [Generation(text, ids, chance, ended) for ids, text, chance, ended in results]
        shown = made if details else [generation.text for generation in made]
        return shown if many else shown[0]

    def stream(self, prompt: Any, most: int = 0, **options: Any) -> Iterator[str]:
        """The pieces of the text that `generate()` makes for one prompt, one after another.

        Ending the loop early ends the generation.
        """
        pieces: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        stopped = threading.Event()

        def hear(text: str) -> bool:
            if text:
                pieces.put(("text", text))
            return stopped.is_set()

        def work() -> None:
            try:
                self.generate(prompt, most, stream=hear, **options)
                pieces.put(("end", None))
            except BaseException as error:  # raised again in the thread that reads
                pieces.put(("error", error))

        if self._is_many(prompt):
            raise TypeError("stream() continues one prompt; for several use generate(stream=...)")
        active = _active_gates.get()

        def work_with_gates() -> None:
            _active_gates.set(active)
            work()

        worker = threading.Thread(target=work_with_gates, daemon=True)
        worker.start()
        try:
            while True:
                what, value = pieces.get()
                if what == "text":
                    yield value
                elif what == "error":
                    raise value
                else:
                    return
        finally:
            stopped.set()
            worker.join()

    @staticmethod
    def _is_many(prompt: Any) -> bool:
        if isinstance(prompt, str) or hasattr(prompt, "shape"):
            return False
        first = next(iter(prompt), None)
        return not (is_message(first) or hasattr(first, "__index__"))

    def _prompts(self, prompt: Any, state: State | None) -> tuple[list[Any], bool]:
        """The ids of each prompt, and whether there are several."""
        many = self._is_many(prompt)
        parts = list(prompt) if many else [prompt]
        if not parts:
            raise ValueError("prompt is an empty list; give at least one")
        decodes = self.info.kind == "decoder"
        return [
            self._prompt(part, not (decodes and state is not None and state.length(b) > 0))
            for b, part in enumerate(parts)
        ], many

    def _prompt(self, part: Any, begins: bool) -> Any:
        if not isinstance(part, str):
            part = list(part)
            if part and is_message(part[0]):
                part = self._text_tokenizer().chat(part)
        return self._ids(part, marks=begins)

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

    def state(
        self,
        sequences: int = 1,
        capacity: int = 0,
        *,
        source_capacity: int = 0,
        dtype: str = "f32",
    ) -> State:
        """An empty state of a decoder, for generate() and run().

        capacity: most tokens of a sequence; 0 is the longest sequence of the model. dtype: "f32",
        "f16", "bf16" or "i8".
        """
        return State._create(self, sequences, capacity, source_capacity, dtype)

    # ------------------------------------------------------------------ score -----

    def score(self, texts: Any, *, gates: Gates | None = None) -> Any:
        """How probable texts are, token by token, for a decoder: a Score, or a list of them.

        texts: a text, ids, or a list of these. Logarithms are natural.
        """
        np = numpy()
        many = self._is_many(texts)
        parts = [self._ids(text) for text in (texts if many else [texts])]
        if not parts:
            return []
        starts, ids = packed(parts)
        out = np.zeros(len(ids), np.float64)
        heads = self._settings(gates)
        self._score(starts, ids, out, heads=heads, threads=self._threads)
        scores = [score_of(ids[a:b], out[a:b]) for a, b in zip(starts, starts[1:])]
        return scores if many else scores[0]

    # -------------------------------------------------------------------- run -----

    def run(
        self,
        inputs: Any = None,
        *,
        source: Any = None,
        pixels: Any = None,
        segments: Any = None,
        state: State | None = None,
        sequences: Any = None,
        hidden: bool = True,
        logits: bool | str = False,
        source_hidden: bool = False,
        pooled: bool = False,
        labels: bool = False,
        streams: bool = False,
        gates: Gates | None = None,
    ) -> ModelResult:
        """One forward pass: a ModelResult with what was requested.

        inputs: a text or ids, or a list of these; for an encoder-decoder, what the decoder reads,
        with `source` for its encoder. pixels: (pictures, channels, height, width) of an image
        encoder. logits: True, or "last" for the last row of each sequence. segments: the token
        types of BERT, one per id, in a list for each text. With a state, text b continues its
        sequence sequences[b].
        """
        np = numpy()
        info = self.info
        _check_state(state)
        if inputs is None and source is None and pixels is None:
            raise ValueError("there is nothing to run: give inputs, source or pixels")
        arguments: dict[str, Any] = {"state": state, "heads": self._settings(gates)}
        starts = np.zeros(1, np.int64)
        if inputs is not None:
            starts, arguments["ids"] = packed(self._several(inputs, state))
            arguments["starts"] = starts
            if segments is not None:
                first = segments[0] if len(segments) else 0
                nested = [segments] if np.ndim(first) == 0 else segments
                arguments["segments"] = np.concatenate([np.asarray(s, np.int32) for s in nested])
        count = len(starts) - 1
        if source is not None:
            parts = self._several(source, None)
            arguments["source_starts"], arguments["source_ids"] = packed(parts)
            count = len(parts)
        if pixels is not None:
            arguments["pixels"] = np.ascontiguousarray(pixels, np.float32)
            picture = info.channels * info.image_size**2
            count = arguments["pixels"].size // max(1, picture)
            starts = np.arange(count + 1, dtype=np.int64) * info.positions
        if sequences is not None:
            arguments["sequences"] = np.ascontiguousarray(sequences, np.int64)
        rows = int(starts[-1])
        layers = info.layers.get("decoder" if "decoder" in info.kind else "encoder", 0)
        shapes: dict[str, tuple[int, ...]] = {}
        if hidden and (rows or pixels is not None):
            shapes["hidden"] = (rows, info.width)
        if logits == "last":
            arguments["logit_rows"] = starts[1:] - 1
            shapes["logits"] = (count, info.vocabulary)
        elif logits:
            shapes["logits"] = (rows, info.vocabulary)
        if source_hidden:
            shapes["source_hidden"] = (len(arguments.get("source_ids", ())), info.width)
        if pooled:
            shapes["pooled"] = (count, info.width)
        if labels:
            shapes["labels"] = (count, info.labels)
        if streams:
            shapes["streams"] = (layers + 1, rows, info.width)
        results = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
        self._run(**arguments, **results, threads=self._threads)
        return ModelResult(starts, **results)

    def _several(self, inputs: Any, state: State | None) -> list[Any]:
        """The ids of one text or of several."""
        if hasattr(inputs, "ndim"):
            many = inputs.ndim == 2
        else:
            many = self._is_many(inputs)
        parts = list(inputs) if many else [inputs]
        if not parts:
            raise ValueError("the list of texts is empty; give at least one")
        begins = state is None or state.length(0) == 0
        return [self._ids(text, marks=begins) for text in parts]

    # ---------------------------------------------------------------- capture -----

    def capture(
        self,
        text: Any = None,
        kinds: str | Sequence[str] | None = None,
        layers: Sequence[int] | int | None = None,
        heads: Sequence[int] | None = None,
        *,
        target: Any = None,
        pixels: Any = None,
        weights: bool = True,
        vectors: bool = False,
        statistics: Any = False,
        gates: Gates | None = None,
    ) -> Capture:
        """What the heads compute for one text: a Capture, with the tokens and an entry per layer.

        kinds, layers: of which attentions; None is all. heads: whose weights; None is all.
        weights: (heads, rows, columns). vectors: queries, keys, values and outputs of heads.
        statistics: as in mha.attention(). target: for an encoder-decoder the text that it writes;
        None is what it generates. pixels: the picture of an image encoder, in place of a text.
        """
        arguments, rows, labels = self._capture_inputs(text, target, pixels)
        chosen = self._chosen_layers(kinds, layers)
        np = numpy()
        entries = []
        for kind, layer in chosen:
            count = self._heads(kind, layer)
            source = "encoder" if kind != 1 else "decoder"
            queries, keys = rows["decoder" if kind else "encoder"], rows[source]
            shown = count if heads is None else len(heads)
            entry: dict[str, Any] = {"weights": None, "q": None, "k": None, "v": None}
            entry["heads"] = None
            if weights:
                entry["weights"] = np.zeros((shown, queries, keys), np.float32)
            if vectors:
                width = self.info.head_width
                for name in ("q", "heads"):
                    entry[name] = np.zeros((count, queries, width), np.float32)
                for name in ("k", "v"):
                    entry[name] = np.zeros((count, keys, width), np.float32)
            entries.append(entry)
        tuples = [
            (
                kind,
                layer,
                entry["weights"],
                heads if weights else None,
                None,
                statistics or None,
                *(entry[name] for name in ("q", "k", "v", "heads")),
            )
            for (kind, layer), entry in zip(chosen, entries, strict=True)
        ]
        found = self._run(
            **arguments, captures=tuples, heads=self._settings(gates), threads=self._threads
        )
        made = {}
        info = self.info
        for (kind, layer), entry, measured in zip(chosen, entries, found, strict=True):
            if vectors and entry["heads"].shape[0] == info.heads:
                for name in ("k", "v"):
                    entry[name] = entry[name][: info.key_heads]
            made[KINDS[kind], layer] = CapturedLayer(
                KINDS[kind],
                layer,
                list(range(self._heads(kind, layer))) if heads is None else list(heads),
                rows=labels["decoder" if kind else "encoder"],
                columns=labels["encoder" if kind != 1 else "decoder"],
                statistics=measured,
                **entry,
            )
        return Capture(text if isinstance(text, str) else None, labels, made)

    def _chosen_layers(self, kinds: Any, layers: Any) -> list[tuple[int, int]]:
        info = self.info
        if kinds is None:
            kinds = list(info.layers)
        wanted = [kinds] if isinstance(kinds, str) else kinds
        only = [layers] if isinstance(layers, int) else layers
        chosen = []
        for kind in wanted:
            number = choice(kind, "kinds", KINDS)
            count = info.layers.get(kind, 0)
            for layer in range(count) if only is None else only:
                if not 0 <= layer < count:
                    raise ValueError(f"there is no {kind} layer {layer}: there are {count}")
                chosen.append((number, layer))
        return chosen

    def _capture_inputs(
        self, text: Any, target: Any, pixels: Any
    ) -> tuple[dict[str, Any], dict[str, int], dict[str, list[str]]]:
        """Arguments of _run, and the rows and their labels on the side of each stack."""
        np = numpy()
        info = self.info
        if info.kind == "image-encoder":
            if pixels is None:
                raise ValueError("an image encoder captures a picture: give pixels=")
            side = info.image_size // max(1, info.patch)
            marks = ["[CLS]", "[DIST]"][: info.positions - side * side]
            names = [*marks, *(f"{y},{x}" for y in range(side) for x in range(side))]
            data = np.ascontiguousarray(pixels, np.float32)
            return {"pixels": data}, {"encoder": len(names)}, {"encoder": names}
        if text is None:
            raise ValueError("capture() needs a text, or token ids")
        ids = self._ids(text)
        labels = self._labels(self.tokenizer, ids)
        starts = np.array([0, len(ids)], np.int64)
        if info.kind != "encoder-decoder":
            side_name = "decoder" if info.kind == "decoder" else "encoder"
            return {"starts": starts, "ids": ids}, {side_name: len(ids)}, {side_name: labels}
        out = self._target_ids(ids, target)
        arguments = {
            "source_starts": starts,
            "source_ids": ids,
            "starts": np.array([0, len(out)], np.int64),
            "ids": out,
        }
        words = self._labels(self.target_tokenizer, out)
        return (
            arguments,
            {"encoder": len(ids), "decoder": len(out)},
            {"encoder": labels, "decoder": words},
        )

    def _target_ids(self, source: Any, target: Any) -> Any:
        """What the decoder reads: its start mark, then the target text, or what is generated."""
        np = numpy()
        state = self.state()
        made = self.generate(source, most=1 if target is not None else 0, state=state, details=True)
        start = state.tokens()[:1]
        if target is None:
            return np.array(start + made.ids, np.int32)
        if isinstance(target, str):
            tokenizer = self.target_tokenizer
            if tokenizer is None:
                raise ValueError("the model has no tokenizer: give the target as token ids")
            target = tokenizer.encode(target)
            if target and target[-1] == tokenizer.marks.get("end"):
                target = target[:-1]
        return np.array([*start, *map(int, target)], np.int32)

    @staticmethod
    def _labels(tokenizer: Tokenizer | None, ids: Any) -> list[str]:
        if tokenizer is None:
            return [str(id) for id in ids.tolist()]
        return [label(tokenizer, id) for id in ids.tolist()]


def _check_state(state: Any) -> None:
    if state is not None and not isinstance(state, State):
        raise TypeError(f"state is a {type(state).__name__}; give an mha.State or None")


__all__ = [
    "Capture",
    "CapturedLayer",
    "Generation",
    "Model",
    "ModelInfo",
    "ModelResult",
    "Score",
    "State",
    "Token",
]
