# SPDX-License-Identifier: MIT
"""Models with attention of their own, which transformers' interface does not reach: a warning when
such a model is meant to run on libmha, and an error on request."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.pytorch_utils import Conv1D

from ._attention import attention
from ._heads import layers

_Model = TypeVar("_Model", bound=torch.nn.Module)


def _is_ours(name: Any) -> bool:
    return isinstance(name, str) and ALL_ATTENTION_FUNCTIONS.get(name) is attention


def has_own_attention(model: PreTrainedModel) -> bool:
    """Whether the code of a model computes attention without the interface."""
    can_set = getattr(type(model), "_can_set_attn_implementation", None)
    return can_set is not None and not can_set()


def warn_own(model: PreTrainedModel, level: int) -> None:
    warnings.warn(
        f"{type(model).__name__} has attention of its own, which transformers cannot exchange: it "
        "does not run on libmha. If it supports 'sdpa', load it that way and run it within "
        "`with mha.torch.sdpa():`; mha.hf.require(model) makes this an error",
        stacklevel=level + 1,
    )


def _watched(method: Callable[..., Any], handle: Callable[..., Any]) -> Callable[..., Any]:
    """A method that gets the name of an implementation, preceded by handle(model, name), which
    returns the name to go on with."""
    if hasattr(method, "_mha_watched"):
        return method

    @functools.wraps(method)
    def watched(self: PreTrainedModel, attn_implementation: Any, *args: Any, **kw: Any) -> Any:
        if _is_ours(attn_implementation) and has_own_attention(self):
            attn_implementation = handle(self, attn_implementation)
        return method(self, attn_implementation, *args, **kw)

    watched._mha_watched = True  # type: ignore[attr-defined]
    return watched


def _at_loading(model: PreTrainedModel, name: str) -> None:
    """The model is loaded with its default instead, where it would raise KeyError or run with an
    implementation that it does not know."""
    warn_own(model, 3)


def _at_switching(model: PreTrainedModel, name: str) -> str:
    warn_own(model, 3)
    return name


def watch() -> None:
    """Let transformers warn when such a model is loaded with our name, or switched to it. Its own
    behaviour is a KeyError, or a line in its log."""
    kind: Any = PreTrainedModel
    for name, handle in (
        ("_check_and_adjust_attn_implementation", _at_loading),
        ("set_attn_implementation", _at_switching),
    ):
        if hasattr(kind, name):
            setattr(kind, name, _watched(getattr(kind, name), handle))


def _strangers(model: nn.Module) -> list[str]:
    """Names of modules that look like attention and are no part of transformers' interface: their
    class is named so, and they own projections."""
    known = set(layers(model))
    found = []
    for name, module in model.named_modules():
        if "attention" not in type(module).__name__.lower():
            continue
        projections = sum(isinstance(child, (nn.Linear, Conv1D)) for child in module.children())
        prefix = f"{name}." if name else ""
        if projections >= 2 and not any(k == name or k.startswith(prefix) for k in known):
            found.append(name)
    return found


def require(model: _Model) -> _Model:
    """Return the model if all of its attention runs on libmha, else raise a ValueError that names
    the layers that do not, and says what to do.

        model = mha.hf.require(AutoModel.from_pretrained(name, attn_implementation="mha"))
    """
    found = layers(model)
    others = [name for name, m in found.items() if not _is_ours(m.config._attn_implementation)]
    strangers = _strangers(model)
    if strangers or not found:
        named = f" ({', '.join(strangers[:3])}{', ...' if len(strangers) > 3 else ''})"
        raise ValueError(
            f"{type(model).__name__} has attention that transformers' interface does not reach"
            f"{named if strangers else ''}, so it does not run on libmha. If the model supports "
            "'sdpa', load it that way and run it within `with mha.torch.sdpa():`"
        )
    if others:
        runs = found[others[0]].config._attn_implementation
        raise ValueError(
            f"{others[0]} and {len(others) - 1} other layers of {type(model).__name__} run on "
            f"{runs!r}: call mha.hf.register() and model.set_attn_implementation('mha')"
        )
    return model
