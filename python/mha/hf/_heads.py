# SPDX-License-Identifier: MIT
"""Measures what the heads of a model attend to, and disables some of them.

Both use attributes of attention layers that `attention` reads: _mha_gates, factors by head, and
_mha_record, a function that gets the statistics of each call.
"""

from __future__ import annotations

import html
import inspect
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from ._attention import attention


def layers(model: torch.nn.Module) -> dict[str, torch.nn.Module]:
    """The modules of a model that compute attention through transformers' interface, by name, in
    the order of the model: first those of an encoder, then those of a decoder."""
    return {
        name: module
        for name, module in model.named_modules()
        if "ALL_ATTENTION_FUNCTIONS" in inspect.unwrap(type(module).forward).__code__.co_names
    }


def _layers_on_mha(model: torch.nn.Module) -> dict[str, torch.nn.Module]:
    """`layers`, all of which must use `attention`: others would ignore gates."""
    found = layers(model)
    names = {module.config._attn_implementation for module in found.values()}
    strangers = [name for name in names if ALL_ATTENTION_FUNCTIONS.get(name) is not attention]
    if strangers or not found:
        runs = f"runs on {strangers[0]!r}" if strangers else "has no attention that mha can reach"
        raise ValueError(
            f"{type(model).__name__} {runs}: call mha.hf.register() and "
            "model.set_attn_implementation('mha') first"
        )
    return found


@contextmanager
def gates(
    model: torch.nn.Module, heads: Iterable[tuple[int | str, int]], factor: float = 0.0
) -> Iterator[None]:
    """Disable heads of a model within the context: `heads` are pairs of a layer, by its number
    or name in `layers(model)`, and a head. Their output is multiplied by `factor`.

        with mha.hf.gates(model, [(3, 7), (3, 8)]):
            loss = model(**inputs, labels=labels).loss

    Contexts may be nested; a head that is named again has the factor of the inner one.
    """
    found = _layers_on_mha(model)
    numbered = list(found.values())
    chosen: dict[torch.nn.Module, dict[int, float]] = {}
    for pair in heads:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(f"heads has {pair!r}; give pairs of a layer and a head, as [(3, 7)]")
        layer, head = pair
        try:
            module = found[layer] if isinstance(layer, str) else numbered[layer]
        except (KeyError, IndexError):
            raise ValueError(
                f"there is no layer {layer!r}; layers are 0 to {len(found) - 1}, or by name "
                f"{', '.join(found)}"
            ) from None
        chosen.setdefault(module, dict(module.__dict__.get("_mha_gates", {})))[head] = factor
    with ExitStack() as stack:
        for module, closed in chosen.items():
            stack.enter_context(_attribute(module, "_mha_gates", closed))
        yield


@contextmanager
def _attribute(module: torch.nn.Module, name: str, value: Any) -> Iterator[None]:
    """Set an attribute of a module within the context."""
    before = {name: module.__dict__[name]} if name in module.__dict__ else {}
    module.__dict__[name] = value
    try:
        yield
    finally:
        del module.__dict__[name]
        module.__dict__.update(before)


@dataclass(frozen=True)
class Heads:
    """What each head of each layer attends to: means over the tokens that are not padding.

    `layers` names the layers in the order in which they ran; `table[name][layer]` is a tensor with
    a number per head. Weights are those of the keys at the token itself, before and after it, and
    at the very first token; `entropy` is in nats, `distance` in tokens. print() and notebooks show
    a table.
    """

    layers: list[str]
    table: dict[str, list[torch.Tensor]]

    def __getitem__(self, name: str) -> list[torch.Tensor]:
        return self.table[name]

    def rows(self) -> Iterator[tuple[str, int, list[float]]]:
        """Layer, head and the statistics in the order of `table`."""
        for number, layer in enumerate(self.layers):
            columns = [column[number].tolist() for column in self.table.values()]
            for head, numbers in enumerate(zip(*columns)):
                yield layer, head, list(numbers)

    def __str__(self) -> str:
        width = max(map(len, ["layer", *self.layers]))
        lines = [f"{'layer':{width}} head " + " ".join(f"{name:>8}" for name in self.table)]
        for layer, head, numbers in self.rows():
            lines.append(f"{layer:{width}} {head:4} " + " ".join(f"{x:8.3f}" for x in numbers))
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """A table in which larger numbers of a column have darker cells."""
        most = [
            max(float(layer.max()) for layer in column) or 1.0 for column in self.table.values()
        ]
        names = "".join(f"<th>{html.escape(name)}</th>" for name in self.table)
        lines = [f"<table><tr><th>layer</th><th>head</th>{names}</tr>"]
        for layer, head, numbers in self.rows():
            shades = (max(x, 0.0) / top * 0.6 for x, top in zip(numbers, most))
            cells = "".join(
                f'<td style="background:rgba(70,110,200,{shade:.2f})">{x:.3f}</td>'
                for x, shade in zip(numbers, shades)
            )
            lines.append(f"<tr><td>{html.escape(layer)}</td><td>{head}</td>{cells}</tr>")
        return "\n".join([*lines, "</table>"])


def heads(model: torch.nn.Module, inputs: Mapping[str, Any]) -> Heads:
    """Run a model once and measure its heads in the same pass, without a matrix of weights.

    `inputs` are the arguments of the model, such as a tokenizer returns. Padding tokens, according
    to `attention_mask` (for a decoder with an encoder `decoder_attention_mask`), do not count.

        inputs = tokenizer(["The cat that I saw ran away."], return_tensors="pt")
        print(mha.hf.heads(model, inputs))
    """
    found = _layers_on_mha(model)
    if not isinstance(inputs, Mapping):
        raise TypeError(
            f"inputs is a {type(inputs).__name__}; give what a tokenizer returns, or "
            "{'input_ids': ...}"
        )
    names: list[str] = []
    table: dict[str, list[torch.Tensor]] = {name: [] for name in _STATISTICS}
    with torch.no_grad(), ExitStack() as stack:
        for name, module in found.items():
            counts = inputs.get(_padding_name(model, name))

            def record(rows: Any, name: str = name, counts: torch.Tensor | None = counts) -> None:
                names.append(name)
                for statistic, column in table.items():
                    column.append(_mean(getattr(rows, statistic), rows.key, counts))

            stack.enter_context(_attribute(module, "_mha_record", record))
        model(**inputs)
    return Heads(names, table)


_STATISTICS = ("entropy", "largest", "distance", "self", "previous", "next", "first")


def _padding_name(model: torch.nn.Module, layer: str) -> str:
    """The input that marks the padding among a layer's queries."""
    if getattr(model.config, "is_encoder_decoder", False) and "decoder" in layer.split("."):
        return "decoder_attention_mask"
    return "attention_mask"


def _mean(rows: Any, key: Any, counts: torch.Tensor | None) -> torch.Tensor:
    """Means per head over batch and rows (B, H, L) that attend to a key and are not padding."""
    rows, seen = torch.as_tensor(rows).double(), torch.as_tensor(key) >= 0
    if counts is not None and counts.shape == (rows.shape[0], rows.shape[2]):
        seen = seen & counts.bool()[:, None, :]
    return (rows * seen).sum((0, 2)) / seen.sum((0, 2)).clamp(min=1)
