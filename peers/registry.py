# SPDX-License-Identifier: MIT
"""The libraries that are installed, and the reasons why others are missing."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # --help and --list do without NumPy
    from .contender import Contender

OURS = "mha"
ITSELF = "itself"  # the library of contenders that are ours, measured for comparison
MODULES = {
    OURS: "ours",
    "torch": "torch_peer",
    "onnxruntime": "onnx_peer",
    "jax": "jax_peer",
    "openblas": "openblas_peer",
    "llama.cpp": "llama_peer",
    "openvino": "openvino_peer",
    "ctranslate2": "ctranslate2_peer",
}
PEERS = tuple(name for name in MODULES if name != OURS)


@dataclass
class Found:
    """What can be measured on this machine."""

    versions: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)  # name to reason
    contenders: list[Contender] = field(default_factory=list)


def find(names: tuple[str, ...] = tuple(MODULES)) -> Found:
    """Imports these libraries. If one cannot be imported, it is listed with the reason."""
    found = Found()
    for name in names:
        try:
            module = importlib.import_module(f".{MODULES[name]}", __package__)
            found.versions[name] = module.version()
            found.contenders += module.CONTENDERS
        except Exception as error:
            from .contender import reason_of

            found.missing[name] = reason_of(error)
    return found
