# SPDX-License-Identifier: MIT
"""What Model.capture() returns: the weights and vectors of heads, with the tokens they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from .heatmap import Heatmap


@dataclass(frozen=True)
class CapturedLayer:
    """One attention: arrays of one text; None for what was not requested."""

    kind: str  # "encoder", "decoder" or "cross"
    layer: int
    numbers: list[int]  # the heads that `weights` shows
    rows: list[str]  # tokens of the queries
    columns: list[str]  # and of the keys
    weights: Any = None  # (heads, rows, columns)
    q: Any = None  # (heads, rows, head_width), after norm and rotation
    k: Any = None  # (key heads, columns, head_width)
    v: Any = None
    heads: Any = None  # (heads, rows, head_width): weights times values, before W_O
    statistics: Any = None

    def heatmap(self, heads: Sequence[int] | None = None, across: int = 4) -> Heatmap:
        """The weights of all heads, or of some, as pictures."""
        if self.weights is None:
            raise ValueError("the weights were not captured: capture(..., weights=True)")
        chosen = range(len(self.numbers)) if heads is None else [self._at(h) for h in heads]
        return Heatmap(
            self.weights[list(chosen)],
            self.rows,
            self.columns,
            titles=[f"{self.kind} {self.layer}, head {self.numbers[n]}" for n in chosen],
            across=across,
        )

    def _at(self, head: int) -> int:
        if head not in self.numbers:
            raise ValueError(f"head {head} was not captured: there are {self.numbers}")
        return self.numbers.index(head)

    def _repr_html_(self) -> str:
        if self.weights is None:
            return f"<p>{escape(repr(self))}</p>"
        return self.heatmap()._repr_html_()

    def __repr__(self) -> str:
        return (
            f"<mha.CapturedLayer: {self.kind} {self.layer}, {len(self.numbers)} heads, "
            f"{len(self.rows)} x {len(self.columns)} tokens>"
        )


class Capture:
    """The captured attentions of one text, by layer, or by kind and layer.

    capture[3], capture["decoder", 3]   a CapturedLayer
    capture.tokens                      the tokens; of an encoder-decoder, those of the source
    capture.target_tokens               what the decoder of an encoder-decoder reads
    capture.weights                     {layer or (kind, layer): weights}
    """

    def __init__(
        self,
        text: str | None,
        labels: dict[str, list[str]],
        layers: dict[tuple[str, int], CapturedLayer],
    ) -> None:
        self.text = text
        self.layers = layers
        self._labels = labels
        self.tokens = labels.get("encoder") or labels.get("decoder") or []
        self.target_tokens = labels.get("decoder") if "encoder" in labels else None
        self._single = len({kind for kind, _ in layers}) == 1

    def __getitem__(self, key: Any) -> CapturedLayer:
        if isinstance(key, int) and self._single:
            key = (next(iter(self.layers))[0], key)
        try:
            return self.layers[key]
        except (KeyError, TypeError):
            known = ", ".join(map(repr, self.layers))
            raise KeyError(f"{key!r} was not captured; there are {known}") from None

    def __iter__(self) -> Iterator[CapturedLayer]:
        return iter(self.layers.values())

    def __len__(self) -> int:
        return len(self.layers)

    @property
    def weights(self) -> dict[Any, Any]:
        """Weights by layer, or by (kind, layer) if there are several kinds."""
        return {
            key[1] if self._single else key: entry.weights for key, entry in self.layers.items()
        }

    def select(
        self,
        kinds: str | Sequence[str] | None = None,
        layers: Sequence[int] | int | None = None,
        heads: Sequence[int] | None = None,
    ) -> Capture:
        """A Capture with some of the entries, and the weights of some heads; None is all."""
        wanted = [kinds] if isinstance(kinds, str) else kinds
        only = [layers] if isinstance(layers, int) else layers
        entries = {}
        for (kind, layer), entry in self.layers.items():
            if (wanted is None or kind in wanted) and (only is None or layer in only):
                if heads is not None:
                    places = [entry._at(head) for head in heads]
                    shown = None if entry.weights is None else entry.weights[places]
                    entry = replace(entry, numbers=list(heads), weights=shown)
                entries[kind, layer] = entry
        if not entries:
            known = ", ".join(map(repr, self.layers))
            raise ValueError(f"nothing of that was captured; there are {known}")
        return Capture(self.text, self._labels, entries)

    def _repr_html_(self) -> str:
        return "".join(entry._repr_html_() for entry in self)

    def __repr__(self) -> str:
        return f"<mha.Capture: {len(self)} layers, {len(self.tokens)} tokens>"
