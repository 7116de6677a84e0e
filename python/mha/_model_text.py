# SPDX-License-Identifier: MIT
"""Texts of an mha.Model: sentence vectors, generated text, scores."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ._model_base import State, check_state
from ._model_heads import Gates, ModelHeads, active_gates
from ._model_types import Generation, choice, listener, numpy, packed, score_of, utf8
from .tokenizer import is_message

if TYPE_CHECKING:
    import numpy as np

_POOLINGS = ("mean", "first", "last", "max")


class ModelText(ModelHeads):
    """A model that reads and writes texts."""

    def encode(
        self,
        texts: str | Sequence[str],
        pooling: str | None = None,
        normalize: bool | None = None,
        *,
        longest: int = 0,
        gates: Gates | None = None,
    ) -> np.ndarray:
        """One vector per text: f32 (texts, width), or (width,) for a single text. Of an
        encoder-decoder the encoder runs.

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
        beams: int = 1,
        best: int = 0,
        length_penalty: float | None = None,
    ) -> Any:
        """Continue a prompt, or translate it with an encoder-decoder; returns the new text.

        prompt: a text, or a list of messages for a chat ({"role": ..., "content": ...}); or a list
        of texts, which are computed together and give a list; ids in place of a text.
        most: new tokens per prompt; 0 is as many as fit. temperature 0 is the most probable token.
        stop: texts that end it. state: continues its sequences, which get prompts and new tokens.
        stream: called with every piece of text as it is complete, as stream(text) for one prompt,
        stream(text, number) for several; it ends the sequence by returning True.
        details: Generation tuples in place of texts, with a confidence.
        beams: a beam search with so many hypotheses per prompt, ranked by log-probability /
        length**length_penalty (None: as the files of the model recommend); best: a list of so many
        results for each prompt, the best first.
        """
        check_state(state)
        prompts, many = self._prompts(prompt, state)
        if not 0 <= seed < 1 << 64:
            raise ValueError(f"seed is {seed}; use 0 to 2**64 - 1")
        if best > beams:
            raise ValueError(f"best is {best}; there are only {beams} beams")
        options = dict(
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
            beams=beams,
            best=max(best, 1),
            length_penalty=self.info.length_penalty if length_penalty is None else length_penalty,
        )
        made = [
            Generation(text, ids, *rest)
            for some in _groups(prompts, beams)
            for ids, text, *rest in self._generate(*packed(some), **options)
        ]
        shown = made if details else [generation.text for generation in made]
        if best > 0:
            shown = [shown[n : n + best] for n in range(0, len(shown), best)]
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
        active = active_gates.get()

        def work_with_gates() -> None:
            active_gates.set(active)
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
        if getattr(first, "ndim", 0) > 0:  # arrays have __index__ too
            return True
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


def _groups(prompts: list[Any], beams: int) -> Iterator[list[Any]]:
    """Prompts of one call each: a beam search calls nothing back, and Ctrl-C waits for its end."""
    most = 256 if beams > 1 else max(len(prompts), 1)
    return (prompts[n : n + most] for n in range(0, len(prompts), most))
