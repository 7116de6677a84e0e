# SPDX-License-Identifier: MIT
"""What the cases of pictures have in common: the models, their weights and their results.

`vit-fashion` is a folder that `mha train --images` wrote: PEERS_PICTURES (--classifier), or
models/vit-fashion unless given. `vit-tiny` has the sizes of DeiT-tiny and random weights: it is written
once, in the form of transformers, in PEERS_BUILD or build. All contenders read the same folder, and
get the same pictures.
"""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .cases import PICTURE_MODELS, Case
from .contender import Unable

_ROOT = Path(__file__).resolve().parents[1]
# DeiT-tiny's; "hidden_size" and so on are the names of ViTConfig.
_TINY = {
    "image_size": 224,
    "patch_size": 16,
    "num_channels": 3,
    "hidden_size": 192,
    "num_hidden_layers": 12,
    "num_attention_heads": 3,
    "intermediate_size": 768,
}
_CLASSES = 1000


def _tiny() -> Path:
    """The folder with random weights, made by transformers if it is not there."""
    path = Path(os.environ.get("PEERS_BUILD", _ROOT / "build")) / "peers" / "vit-tiny"
    if (path / "config.json").exists():
        return path
    import torch
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(1)
    # Deviations of 0.02 would leave the logits nearly the same for all pictures.
    config = ViTConfig(**_TINY, num_labels=_CLASSES, initializer_range=0.06)
    model = ViTForImageClassification(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(".bias"):
                parameter.normal_(std=0.1)
    path.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(path)
    return path


def _trained() -> Path:
    path = Path(os.environ.get("PEERS_PICTURES", _ROOT / "models" / "vit-fashion"))
    if not (path / "config.json").exists():
        raise Unable(f"{path} is no folder of a model; --classifier names one")
    return path


def folder(model: str) -> Path:
    """The folder of a model."""
    return _tiny() if model == "vit-tiny" else _trained()


@dataclass(frozen=True)
class Weights:
    """A model in f32: parameters by the names of transformers, without the "vit." before them."""

    side: int
    channels: int
    patch: int
    stride: int
    width: int
    heads: int
    layers: int
    epsilon: float
    relu: bool  # gelu otherwise
    pooled: bool  # the mean of all rows is classified; the token of the class otherwise
    given: dict[str, np.ndarray]

    @property
    def across(self) -> int:
        """Patches in a row of the picture."""
        return (self.side - self.patch) // self.stride + 1

    @property
    def tokens(self) -> int:
        return self.across**2 + (not self.pooled)


@functools.cache
def weights(model: str) -> Weights:
    from safetensors.numpy import load_file

    path = folder(model)
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    if config["model_type"] not in ("vit", "mha_vit"):
        raise Unable(f"{path} has a model of the type {config['model_type']}, not vit or mha_vit")
    stored = load_file(path / "model.safetensors")
    given = {name.removeprefix("vit."): x.astype(np.float32) for name, x in stored.items()}
    return Weights(
        side=config["image_size"],
        channels=config["num_channels"],
        patch=config["patch_size"],
        stride=config.get("patch_stride", config["patch_size"]),
        width=config["hidden_size"],
        heads=config["num_attention_heads"],
        layers=config["num_hidden_layers"],
        epsilon=config["layer_norm_eps"],
        relu=config["hidden_act"] == "relu",
        pooled=config.get("pooling", "class") == "mean",
        given=given,
    )


def make(rng: np.random.Generator, case: Case) -> np.ndarray:
    """Pictures [B, channels, side, side] whose pixels are normally distributed, as they are after
    the mean is subtracted; none if there is no such model, which the contenders then say."""
    try:
        w = weights(case.model)
    except (Unable, ImportError):
        return np.zeros((case.B, 1, 1, 1), dtype=np.float32)
    return rng.standard_normal((case.B, w.channels, w.side, w.side), dtype=np.float32)


def refuse(case: Case) -> None:
    if not case.is_model or case.model not in PICTURE_MODELS:
        raise Unable("is for models of pictures")
    folder(case.model)
