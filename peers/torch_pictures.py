# SPDX-License-Identifier: MIT
"""PyTorch with vision transformers: plain modules with sdpa, as they are and compiled, and the model
of transformers where the folder is one that it opens."""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import pictures
from .cases import Case
from .contender import Contender, Runner, Unable
from .inputs import Inputs
from .torch_tools import array, compile_anew, set_threads, tensor

LIBRARY = "torch"


class Block(nn.Module):
    """A layer: norms before each part; q, k and v in one product."""

    def __init__(self, width: int, heads: int, inner: int, relu: bool, epsilon: float) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = (nn.LayerNorm(width, epsilon) for _ in range(2))
        self.joined, self.projected = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.activation = F.relu if relu else F.gelu

    def forward(self, x: Tensor) -> Tensor:
        B, L, E = x.shape
        parts = self.joined(self.before(x)).view(B, L, 3, self.heads, E // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        heads = F.scaled_dot_product_attention(q, k, v)
        x = x + self.projected(heads.transpose(1, 2).reshape(B, L, E))
        return x + self.down(self.activation(self.up(self.after(x))))


class Vision(nn.Module):
    """A vision transformer with a classifier; train_pictures.py trains it."""

    def __init__(self, sizes: dict, classes: int, tokens: int, pooled: bool) -> None:
        super().__init__()
        width = sizes["width"]
        self.pooled = pooled
        self.patches = nn.Conv2d(sizes["channels"], width, sizes["patch"], sizes["stride"])
        self.places = nn.Parameter(torch.zeros(1, tokens, width))
        self.mark = None if pooled else nn.Parameter(torch.zeros(1, 1, width))
        self.blocks = nn.Sequential(
            *(
                Block(width, sizes["heads"], sizes["inner"], sizes["relu"], sizes["epsilon"])
                for _ in range(sizes["layers"])
            )
        )
        self.norm = nn.LayerNorm(width, sizes["epsilon"])
        self.classifier = nn.Linear(width, classes)

    def hidden(self, pixels: Tensor) -> Tensor:
        x = self.patches(pixels).flatten(2).transpose(1, 2)
        if self.mark is not None:
            x = torch.cat([self.mark.expand(x.shape[0], -1, -1), x], dim=1)
        return self.norm(self.blocks(x + self.places))

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.hidden(pixels)
        return self.classifier(x.mean(1) if self.pooled else x[:, 0])


def _names(layers: int) -> dict[str, tuple[str, ...]]:
    """Of each module, those of the folder that are joined in it."""
    names = {
        "patches": ("embeddings.patch_embeddings.projection",),
        "norm": ("layernorm",),
        "classifier": ("classifier",),
    }
    for n in range(layers):
        at, attention = f"encoder.layer.{n}", f"encoder.layer.{n}.attention"
        names |= {
            f"blocks.{n}.before": (f"{at}.layernorm_before",),
            f"blocks.{n}.after": (f"{at}.layernorm_after",),
            f"blocks.{n}.joined": tuple(
                f"{attention}.attention.{one}" for one in ("query", "key", "value")
            ),
            f"blocks.{n}.projected": (f"{attention}.output.dense",),
            f"blocks.{n}.up": (f"{at}.intermediate.dense",),
            f"blocks.{n}.down": (f"{at}.output.dense",),
        }
    return names


@functools.cache
def vision(model: str) -> Vision:
    """The plain module with the weights of the folder."""
    w = pictures.weights(model)
    inner = w.given["encoder.layer.0.intermediate.dense.bias"].size
    classes = w.given["classifier.bias"].size
    sizes = {
        "width": w.width, "heads": w.heads, "inner": inner, "layers": w.layers, "relu": w.relu,
        "epsilon": w.epsilon, "channels": w.channels, "patch": w.patch, "stride": w.stride,
    }  # fmt: skip
    made = Vision(sizes, classes, w.tokens, w.pooled)
    state = {
        f"{name}.{kind}": torch.cat([tensor(w.given[f"{one}.{kind}"]) for one in sources])
        for name, sources in _names(w.layers).items()
        for kind in ("weight", "bias")
    }
    state["places"] = tensor(w.given["embeddings.position_embeddings"])
    if not w.pooled:
        state["mark"] = tensor(w.given["embeddings.cls_token"])
    made.load_state_dict(state)
    return made.eval()


@functools.cache
def _transformers(model: str) -> nn.Module:
    from transformers import ViTForImageClassification
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    path = str(pictures.folder(model))
    made = ViTForImageClassification.from_pretrained(path, attn_implementation="sdpa")
    return made.float().eval()


def _runner(call, inputs: Inputs) -> Runner:
    pixels = tensor(inputs.pixels)

    def run() -> Tensor:
        with torch.inference_mode():
            return call(pixels)

    return Runner(run, lambda logits: {"logits": array(logits)})


def _plain(case: Case, inputs: Inputs, threads: int, compiled: bool) -> Runner:
    pictures.refuse(case)
    set_threads(threads)
    made = vision(case.model)
    return _runner(compile_anew(made) if compiled else made, inputs)


def _eager(case: Case, inputs: Inputs, threads: int) -> Runner:
    return _plain(case, inputs, threads, compiled=False)


def _compiled(case: Case, inputs: Inputs, threads: int) -> Runner:
    return _plain(case, inputs, threads, compiled=True)


def _of_transformers(case: Case, inputs: Inputs, threads: int) -> Runner:
    pictures.refuse(case)
    if pictures.weights(case.model).pooled:
        raise Unable("has no mean of patches")
    set_threads(threads)
    made = _transformers(case.model)
    return _runner(lambda pixels: made(pixel_values=pixels).logits, inputs)


CONTENDERS = (
    Contender(LIBRARY, "ViT", _eager),
    Contender(LIBRARY, "ViT, compiled", _compiled),
    Contender(LIBRARY, "ViT of transformers", _of_transformers),
)
