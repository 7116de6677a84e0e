# SPDX-License-Identifier: MIT
"""One forward pass of an mha.Model, and what its heads compute in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._captured import Capture, CapturedLayer
from ._model_base import KINDS, State, check_state
from ._model_heads import Gates
from ._model_text import ModelText
from ._model_types import ModelResult, choice, label, numpy, packed
from .tokenizer import Tokenizer


class ModelRun(ModelText):
    """A model whose calls return what it computes inside."""

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
        with `source` for its encoder; `source` alone runs only the encoder. pixels: (pictures,
        channels, height, width) of an image
        encoder. logits: True, or "last" for the last row of each sequence. segments: the token
        types of BERT, one per id, in a list for each text. With a state, text b continues its
        sequence sequences[b].
        """
        np = numpy()
        info = self.info
        check_state(state)
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
