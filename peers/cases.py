# SPDX-License-Identifier: MIT
"""The cases that are measured. A case is written as a word, as in `mha help words`:

    b8h12l512d64:padk                  attention: batch, heads, queries, width of a head
    b1h32g8l1s4096d128:bf16            g key/value heads, s keys, element type
    cache:b1h32g8s4096d128             one token appended to a cache of s tokens, and its attention
    layer:bert-base:b8l128:pad         a layer with its projections
    decode:gpt2-small:s1024            one token through a layer with a cache
    model:minilm:l128                  a whole model: a sentence, or a prompt and its last logits
    model:smollm2:s1000                the logits of one token of a decoder, the last of s
    model:vit-fashion:b64              b pictures, and the logits of their classes
    translate:b64:beam=4               sentences translated, b at once, by a search of this width

followed by options after colons: causal, window=N, mask=bool50, mask=add, pad, padk, weights,
mean (weights averaged over heads), stats, grad (the backward pass alone), train (forward, backward,
all gradients, weights updated), f16, bf16; i8 for translations and whole models. Models in bf16 and
i8 have weights and products of that type, and are compared with their own results in f32.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

PRESETS = {
    "bert-base": (768, 12),
    "bert-large": (1024, 16),
    "gpt2-small": (768, 12),
    "gpt2-large": (1280, 20),
    "gpt3": (12288, 96),
    "transformer-base": (512, 8),
}

# Whole models: the type of their weights, and how many times faster than the best peer the library
# is meant to be, computing tokens together and one by one.
MODELS = {
    "minilm": ("f32", 1.15, 0.0),
    "smollm2": ("q4", 1.2, 1.0),
    "stories15m": ("f32", 1.2, 1.2),
    "vit-fashion": ("f32", 1.15, 0.0),
    "vit-tiny": ("f32", 1.15, 0.0),
}
PICTURE_MODELS = ("vit-fashion", "vit-tiny")
TRANSLATION_GOALS = {"f32": 1.2, "i8": 1.0}  # by the type of the weights
STATISTICS_GOAL = 1 / 1.15  # of a model with statistics, relative to the same without

LAYER_KINDS = ("layer", "decode")
WANTS = ("weights", "mean", "stats", "grad", "train")
SHORT = 128  # rows; operators with at most this many count as short sequences


@dataclass(frozen=True)
class Case:
    """A row of the table. Names are those of the header: B, H, G, L, S, D; E is a layer's width."""

    word: str
    kind: str = "attention"
    B: int = 1
    H: int = 1
    G: int = 1
    L: int = 1
    S: int = 1
    D: int = 64
    E: int = 0
    dtype: str = "f32"
    causal: bool = False
    window: int = -1  # keys before the row's own that it sees; -1: all
    mask: str = ""
    pad: str = ""
    want: str = "output"
    model: str = ""
    beams: int = 1

    @property
    def is_layer(self) -> bool:
        return self.kind in LAYER_KINDS

    @property
    def one_token(self) -> bool:
        """Whether it is a step of decoding."""
        if self.model in PICTURE_MODELS:
            return False
        return self.kind in ("cache", "decode") or self.L == 1

    @property
    def is_model(self) -> bool:
        return self.kind == "model"

    @property
    def is_lowered(self) -> bool:
        """Whether it is a model that is computed in another type than that of its file."""
        return self.is_model and self.dtype in ("bf16", "i8")

    @property
    def is_translation(self) -> bool:
        return self.kind == "translate"

    @property
    def wants_weights(self) -> bool:
        return self.want in ("weights", "mean", "stats")

    @property
    def is_masked(self) -> bool:
        return bool(self.causal or self.window >= 0 or self.mask or self.pad)

    @property
    def goal(self) -> float:
        """How many times faster than the best peer it is meant to be."""
        if self.is_model:
            return self._model_goal
        if self.is_translation:
            return TRANSLATION_GOALS[self.dtype]
        if self.wants_weights or self.one_token:
            return 2.0
        if not self.is_layer and self.L <= SHORT:
            return 2.0
        return 1.5 if self.is_masked else 1.15

    @property
    def _model_goal(self) -> float:
        if self.want == "stats":
            return STATISTICS_GOAL
        _, together, one_by_one = MODELS[self.model]
        return one_by_one if self.one_token else 1.5 if self.pad else together


class WordError(ValueError):
    """A word that is not a case; the message says which part is wrong, and what is possible."""


def _sizes(word: str, text: str, allowed: str) -> dict[str, int]:
    if not re.fullmatch(rf"([{allowed}]\d+)+", text):
        raise WordError(f'{word}: "{text}" is not made of numbers after {", ".join(allowed)}')
    return {letter.upper(): int(number) for letter, number in re.findall(r"([a-z])(\d+)", text)}


def _option(word: str, case: Case, text: str) -> Case:
    if text == "causal":
        return replace(case, causal=True)
    if re.fullmatch(r"window=\d+", text):
        return replace(case, window=int(text[7:]))
    if text in ("mask=bool50", "mask=add"):
        return replace(case, mask=text[5:].removesuffix("50"))
    if text in ("pad", "padk"):
        return replace(case, pad=text)
    if text in ("f16", "bf16"):
        return replace(case, dtype=text)
    if text == "i8" and case.is_model:
        return replace(case, dtype=text)
    if text in WANTS:
        return replace(case, want=text)
    raise WordError(
        f'{word}: "{text}" is no option; there are causal, window=N, mask=bool50, mask=add, pad, '
        f"padk, f16, bf16, i8 of models, {', '.join(WANTS)}"
    )


def _parse_layer(word: str, kind: str, parts: list[str]) -> tuple[Case, list[str]]:
    if len(parts) < 2 or parts[0] not in PRESETS:
        raise WordError(f"{word}: {kind}: is followed by one of {', '.join(PRESETS)}, and sizes")
    width, heads = PRESETS[parts[0]]
    sizes = {"B": 1} | _sizes(word, parts[1], "bs" if kind == "decode" else "bl")
    if kind == "decode":
        sizes["L"] = 1
    if "L" not in sizes or (kind == "decode" and "S" not in sizes):
        raise WordError(f"{word}: has no number of tokens, such as {kind}:{parts[0]}:l128")
    sizes.setdefault("S", sizes["L"])
    case = Case(word, kind, H=heads, G=heads, D=width // heads, E=width, **sizes)
    return replace(case, causal=kind == "decode"), parts[2:]


def _parse_model(word: str, parts: list[str]) -> tuple[Case, list[str]]:
    if len(parts) < 2 or parts[0] not in MODELS:
        raise WordError(f"{word}: model: is followed by one of {', '.join(MODELS)}, and sizes")
    if parts[0] in PICTURE_MODELS:
        return _parse_pictures(word, parts)
    dtype, _, one_by_one = MODELS[parts[0]]
    sizes = {"B": 1} | _sizes(word, parts[1], "bls" if one_by_one else "bl")
    if ("L" in sizes) == ("S" in sizes) or ("S" in sizes and sizes["B"] > 1):
        raise WordError(f"{word}: has either a number of tokens after l, or after s, and then no b")
    sizes.setdefault("S", sizes.get("L", 0))
    sizes.setdefault("L", 1)
    return Case(word, "model", dtype=dtype, model=parts[0], **sizes), parts[2:]


def _parse_pictures(word: str, parts: list[str]) -> tuple[Case, list[str]]:
    sizes = _sizes(word, parts[1], "b")
    if sizes["B"] < 1 or len(parts) > 2:
        raise WordError(f"{word}: models of pictures have a number of them after b, and no options")
    return Case(word, "model", model=parts[0], **sizes), []


def _parse_translation(word: str, parts: list[str]) -> tuple[Case, list[str]]:
    sizes = _sizes(word, parts[0], "b")
    case = Case(word, "translate", **sizes)
    if sizes["B"] < 1:
        raise WordError(f"{word}: no sentences are translated at once")
    for text in parts[1:]:
        if re.fullmatch(r"beam=[1-9]\d?", text):
            case = replace(case, beams=int(text[5:]))
        elif text == "i8":
            case = replace(case, dtype="i8")
        else:
            raise WordError(f'{word}: "{text}" is no option; translations have beam=N and i8')
    return case, []


def _parse_heads(word: str, kind: str, parts: list[str]) -> tuple[Case, list[str]]:
    sizes = {"B": 1} | _sizes(word, parts[0], "bhglsd")
    if kind == "cache":
        sizes["L"] = 1
    for letter in "HLD":
        if letter not in sizes:
            raise WordError(f"{word}: has no {letter.lower()}, such as b1h12l1024d64")
    sizes.setdefault("S", sizes["L"])
    sizes.setdefault("G", sizes["H"])
    if sizes["H"] % sizes["G"]:
        raise WordError(f"{word}: {sizes['H']} heads do not share {sizes['G']} key heads evenly")
    return Case(word, kind, **sizes), parts[1:]


def parse(word: str) -> Case:
    """The case of a word.

    >>> parse("b1h12l1024d64:causal").goal
    1.5
    """
    kind, colon, rest = word.partition(":")
    if colon and kind in LAYER_KINDS:
        case, options = _parse_layer(word, kind, rest.split(":"))
    elif colon and kind == "model":
        case, options = _parse_model(word, rest.split(":"))
    elif colon and kind == "translate":
        case, options = _parse_translation(word, rest.split(":"))
    elif colon and kind == "cache":
        case, options = _parse_heads(word, kind, rest.split(":"))
    else:
        case, options = _parse_heads(word, "attention", word.split(":"))
    for text in options:
        case = _option(word, case, text)
    if case.causal and case.L != case.S and not case.one_token:
        raise WordError(
            f"{word}: causal needs as many keys as queries here; peers align it variously"
        )
    if case.want == "train" and case.kind != "layer":
        raise WordError(f"{word}: train is for layers; grad is the backward pass of attention")
    if case.is_model and (case.mask or case.causal or case.window >= 0 or case.pad == "padk"):
        raise WordError(f"{word}: a model has no other options than pad, stats, bf16 and i8")
    if case.is_model and case.dtype not in (MODELS[case.model][0], "bf16", "i8"):
        raise WordError(f"{word}: models are measured in the type of their file, bf16 and i8")
    if case.is_lowered and case.model != "minilm":
        raise WordError(f"{word}: bf16 and i8 are measured for minilm")
    if case.is_model and case.want not in ("output", "stats"):
        raise WordError(f"{word}: {case.want} is not for models")
    if case.want in ("grad", "stats") and case.kind not in ("attention", "model"):
        raise WordError(f"{word}: {case.want} is for attention without projections")
    return case


# The table, by section. Words after "more" are measured with --all only.
SECTIONS: dict[str, dict[str, str]] = {
    "long": {
        "title": "Attention, all keys seen",
        "words": "b1h12l512d64 b1h12l1024d64 b1h12l2048d64 b1h12l4096d64 b1h12l1024d128 "
        "b1h12l2048d128 b8h12l512d64",
        "more": "b1h12l4096d128 b1h12l8192d64",
    },
    "short": {
        "title": "Attention, short sequences",
        "words": "b1h12l16d64 b1h8l64d64 b1h12l128d64 b32h12l128d64 b64h12l32d64",
        "more": "b1h1l8d64 b256h8l16d64",
    },
    "odd": {
        "title": "Attention, tiny calls, odd widths and few keys",
        "words": "b1h8l1s1d64 b8h4l20d40 b4h8l50d59 b16h8l24d40 b64h8l1s12d16 b8h8l32d64 "
        "b2h8l1024s77d40 b2h8l256s77d80 b2h8l64s77d160 b1h12l50d64:mask=add "
        "b1h12l200d64:mask=add b1h12l50d64:weights b1h12l200d64:weights b8h4l20d40:grad "
        "b16h8l24d64:grad b64h8l12d16:grad",
        "more": "b1h1l1s1d64 b1h12l100d64:mask=add b1h12l300d64:mask=add b1h12l100d64:weights "
        "b1h12l300d64:weights",
    },
    "masked": {
        "title": "Attention, causal, windowed, masked and padded",
        "words": "b1h12l512d64:causal b1h12l1024d64:causal b1h12l2048d64:causal "
        "b1h32g8l1024d128:causal b1h12l4096d64:causal:window=256 b1h12l1024d64:mask=bool50 "
        "b1h12l1024d64:mask=add b8h12l512d64:pad b8h12l512d64:padk",
        "more": "b1h12l4096d64:causal b1h12l8192d64:causal:window=256",
    },
    "lowp": {
        "title": "Attention in half precision",
        "words": "b1h12l128d64:bf16 b1h12l512d64:bf16 b1h12l1024d64:bf16 b1h12l2048d64:bf16 "
        "b1h12l1024d80:bf16 b1h12l1024d96:bf16 b1h12l1024d128:bf16 b1h12l1024d64:f16 "
        "b1h12l512d64:causal:bf16 b1h12l1024d64:causal:bf16 b1h12l1024d128:causal:bf16",
        "more": "b1h12l4096d64:bf16 b1h12l512d128:bf16 b1h12l2048d128:bf16",
    },
    "decode": {
        "title": "Decoding with grouped heads",
        "words": "b1h32g8l1s1024d128 b1h32g8l1s4096d128 b1h32g8l1s16384d128 "
        "b1h32g8l1s4096d128:bf16 b1h32g8l1s4096d128:f16 cache:b1h32g8s1024d128 "
        "cache:b1h32g8s4096d128 cache:b1h32g8s16384d128 cache:b1h32g8s4096d128:f16 "
        "cache:b8h32g8s1024d128",
        "more": "b1h12l1s1024d64 cache:b1h12s1024d64 cache:b1h32g8s16384d128:f16",
    },
    "weights": {
        "title": "Attention that shows its weights, or statistics of them",
        "words": "b1h12l128d64:weights b1h12l512d64:weights b1h12l1024d64:weights "
        "b1h12l1024d64:causal:weights b1h12l1024d64:mean b1h12l1024d64:stats b1h12l2048d64:stats",
        "more": "b1h12l2048d64:weights b1h12l4096d64:stats",
    },
    "gradients": {
        "title": "The backward pass of attention",
        "words": "b1h12l512d64:grad b1h12l1024d64:grad b1h12l2048d64:grad b1h12l1024d128:grad "
        "b1h12l1024d64:causal:grad b1h12l2048d64:causal:grad b1h12l1024d64:mask=add:grad",
        "more": "b1h32g8l1024d128:causal:grad",
    },
    "layer": {
        "title": "Layers",
        "words": "layer:bert-base:l128 layer:bert-base:l512 layer:bert-base:l1024 "
        "layer:bert-large:l128 layer:bert-large:l512 layer:bert-large:l1024 "
        "layer:gpt2-small:l128:causal layer:gpt2-small:l512:causal layer:gpt2-small:l1024:causal "
        "layer:gpt2-large:l128:causal layer:gpt2-large:l512:causal layer:gpt2-large:l1024:causal "
        "layer:gpt3:l128:causal layer:bert-base:l16 layer:bert-base:b8l128 "
        "layer:bert-base:b8l128:pad layer:bert-base:l128:weights layer:bert-base:l512:weights "
        "layer:bert-base:l512:mean decode:gpt2-small:s1024 decode:gpt2-large:s1024",
        "more": "layer:gpt3:l512:causal layer:gpt3:l1024:causal decode:gpt3:s1024",
    },
    "training": {
        "title": "Training steps of a layer",
        "words": "layer:bert-base:b8l128:train layer:bert-base:l512:train "
        "layer:gpt2-small:l1024:causal:train",
        "more": "layer:bert-large:l512:train layer:gpt2-large:l1024:causal:train",
    },
    "models": {
        "title": "Whole models",
        "words": "model:minilm:l16 model:minilm:l128 model:minilm:b64l128:pad "
        "model:smollm2:l512 model:smollm2:s1000 model:stories15m:s200 "
        "model:minilm:l128:stats model:smollm2:l512:stats model:smollm2:s1000:stats "
        "model:stories15m:s200:stats",
        "more": "model:minilm:l512 model:smollm2:s100 model:stories15m:l200",
    },
    "pictures": {
        "title": "Models of pictures",
        "words": "model:vit-fashion:b1 model:vit-fashion:b64 model:vit-tiny:b1 model:vit-tiny:b64",
        "more": "model:vit-fashion:b8 model:vit-tiny:b8",
    },
    "deployed": {
        "title": "Whole models in bf16 and int8",
        "words": "model:minilm:l16:bf16 model:minilm:l128:bf16 model:minilm:l16:i8 "
        "model:minilm:l128:i8 model:minilm:b64l128:pad:i8",
        "more": "model:minilm:l512:bf16 model:minilm:l512:i8",
    },
    "translate": {
        "title": "Translation",
        "words": "translate:b1:beam=1 translate:b1:beam=4 translate:b64:beam=1 "
        "translate:b64:beam=4 translate:b1:beam=1:i8 translate:b1:beam=4:i8 "
        "translate:b64:beam=1:i8 translate:b64:beam=4:i8",
        "more": "translate:b8:beam=4 translate:b8:beam=4:i8",
    },
    "memory": {
        "title": "Memory at 8192 tokens",
        "words": "b1h12l8192d64 b1h12l8192d64:causal b1h12l8192d64:mean b1h12l8192d64:stats",
        "more": "b1h12l8192d64:weights",
    },
}


def table(everything: bool = False) -> dict[str, list[Case]]:
    """The cases of each section; the long ones only if all are requested."""
    return {
        name: [
            parse(word)
            for word in (section["words"] + (" " + section["more"] if everything else "")).split()
        ]
        for name, section in SECTIONS.items()
    }


def title(section: str) -> str:
    """The title of a section; words of the command line have a general one."""
    return SECTIONS[section]["title"] if section in SECTIONS else "Cases"
