# SPDX-License-Identifier: MIT
"""Packed sequences in torch's own operators: all sequences as one batch, for the dense path."""

from typing import NamedTuple

import torch
from torch import Tensor


class Side(NamedTuple):
    """Where each row of all queries, or of all keys, stands."""

    sequence: Tensor  # [rows]
    place: Tensor  # [rows] within its sequence
    counts: Tensor  # [rows]: whether it is in a sequence, and not past the true length
    lengths: Tensor  # [sequences], the true lengths


def _side(rows: int, starts: Tensor, lengths: Tensor | None) -> Side:
    number = torch.arange(rows, device=starts.device)
    sequence = torch.bucketize(number, starts[1:].contiguous(), right=True)
    sequence = sequence.clamp(max=max(len(starts) - 2, 0))
    place = number - starts[sequence]
    all_rows = starts[1:] - starts[:-1]
    lengths = all_rows if lengths is None else torch.minimum(all_rows, lengths)
    counts = (place >= 0) & (place < lengths[sequence])
    return Side(sequence, place.clamp(min=0), counts, lengths)


def _flat(tensor: Tensor, packed: bool) -> Tensor:
    """(B, H, L, D) as (1, H, B * L, D), the form of packed rows."""
    return tensor if packed else tensor.transpose(0, 1).flatten(1, 2)[None]


class Ragged:
    """A call whose queries, keys or both are packed."""

    def __init__(self, tensors: list[Tensor | None]) -> None:
        query, key, value = tensors[:3]
        k_lengths, (q_lengths, q_starts, k_starts) = tensors[9], tensors[13:16]
        self._packed = q_starts is not None, k_starts is not None
        self._query, self._key, self._value = query, key, value
        if q_starts is None:
            q_starts = torch.arange(query.shape[0] + 1, device=query.device) * query.shape[2]
        if k_starts is None:
            k_starts = torch.arange(key.shape[0] + 1, device=query.device) * key.shape[2]
        rows = [
            t.shape[2] if packed else t.shape[0] * t.shape[2]
            for t, packed in zip((query, key), self._packed)
        ]
        self.queries = _side(rows[0], q_starts, q_lengths)
        self.keys = _side(rows[1], k_starts, k_lengths)

    def rows(self) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value, each (1, H, rows of all sequences, D)."""
        q_packed, k_packed = self._packed
        return (
            _flat(self._query, q_packed),
            _flat(self._key, k_packed),
            _flat(self._value, k_packed),
        )

    def pairs(self, tensor: Tensor) -> Tensor:
        """A tensor over (B, H, L, S) of the sequences, each axis of full size or 1, as (1, H, rows,
        keys). Pairs of different sequences, which are hidden, get any number."""
        batch, _, rows, keys = tensor.shape
        b = self.queries.sequence.clamp(max=batch - 1)[:, None]
        i = self.queries.place.clamp(max=rows - 1)[:, None]
        j = self.keys.place.clamp(max=keys - 1)[None, :]
        return tensor[b, :, i, j].movedim(-1, 0)[None]

    def back(self, tensor: Tensor) -> Tensor:
        """(1, H, rows of all, D) in the form of the query."""
        if self._packed[0]:
            return tensor
        batch, heads, rows, _ = self._query.shape
        return tensor.reshape(heads, batch, rows, -1).transpose(0, 1)

    def like_rows(self) -> Tensor:
        """A tensor with batches, heads and rows of the sequences."""
        lengths = self.queries.lengths
        longest = int(lengths.max()) if len(lengths) else 0
        return self._query.new_empty((len(lengths), self._query.shape[1], longest, 1))

    def longest_keys(self) -> int:
        return int(self.keys.place.max()) + 1 if len(self.keys.place) else 0


def dense_of(tensors: list[Tensor | None]) -> Ragged | None:
    """The call as packed sequences, if any of it is packed."""
    return Ragged(tensors) if tensors[14] is not None or tensors[15] is not None else None
