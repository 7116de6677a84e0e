# SPDX-License-Identifier: MIT
"""Heads of an mha.Model: changed in a context, removed, and the model written without them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self

from ._model_base import ModelBase
from ._model_types import choice, items, numpy

_MODES = {"normal": 0, "uniform": 1}
_MEAN_MODE = 2

# Gates by the head they belong to: (kind, layer, head), or (layer, head) if a model has only one
# kind of attention. A value is a factor, or "uniform", or a vector in place of the head's output.
Gates = Mapping[tuple[Any, ...], Any]

active_gates: ContextVar[tuple[tuple[Any, Gates], ...]] = ContextVar("gates", default=())


class ModelHeads(ModelBase):
    """A model whose heads can be changed."""

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
        before = active_gates.set((*active_gates.get(), (self, gates)))
        try:
            yield self
        finally:
            active_gates.reset(before)

    def _settings(self, gates: Gates | None) -> Any:
        """The arrays of all gates that are active, for the extension; None if there are none."""
        active = [given for model, given in active_gates.get() if model is self]
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

    def save(
        self, path: str | os.PathLike[str], *, zeros: bool = False, replace: bool = False
    ) -> None:
        """Write the model, pruned or not, to a new folder, which `Model.open()` opens.

            model.prune([(0, 3)]).save("smaller")

        The folder has smaller matrices, in the types of the file, and all other files of the
        original. config.json lists the removed heads as "pruned_heads", which transformers 4 reads,
        or in another way: see docs/models.md. zeros: matrices keep their shapes instead, and have
        zeros where removed heads are read; a GGUF or llama2.c file is written so, as such a file.
        replace: a model that is at the path is replaced.
        """
        self._save(os.fsencode(path), zeros, replace)

    def is_changed(self, gates: Gates | None = None) -> bool:
        """Whether calls compute something else than the model of the file: it is pruned, or there
        are gates, as an argument or by a context."""
        return self._is_pruned or self._settings(gates) is not None
