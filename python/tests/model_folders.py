# SPDX-License-Identifier: MIT
"""Small models in Hugging Face's form that tests write themselves, with random weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat dog sat ran on a mat and saw big ##s ##ing".split()


def write_safetensors(path: Path, tensors: dict[str, Any]) -> None:
    header, start = {}, 0
    for name, array in tensors.items():
        end = start + array.nbytes
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    data = b"".join(np.ascontiguousarray(array).tobytes() for array in tensors.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


class _Weights:
    """Random tensors by name."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(20170612)
        self.tensors: dict[str, Any] = {}

    def matrix(self, name: str, *shape: int) -> None:
        numbers = self.random.standard_normal(shape) / np.sqrt(shape[-1])
        self.tensors[name] = numbers.astype("float32")

    def norm(self, name: str, width: int, bias: bool) -> None:
        self.tensors[f"{name}.weight"] = (1 + self.random.random(width) / 9).astype("float32")
        if bias:
            self.matrix(f"{name}.bias", width)

    def linear(self, name: str, outputs: int, inputs: int, bias: bool) -> None:
        self.matrix(f"{name}.weight", outputs, inputs)
        if bias:
            self.matrix(f"{name}.bias", outputs)


def _tokenizer(folder: Path) -> None:
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "BertTokenizer", "do_lower_case": True}), encoding="utf-8"
    )


def write_bert(folder: Path, width: int = 32, layers: int = 2, heads: int = 4) -> Path:
    """An encoder with a vocabulary of WordPiece."""
    w = _Weights()
    w.matrix("embeddings.word_embeddings.weight", len(WORDS), width)
    w.matrix("embeddings.position_embeddings.weight", 64, width)
    w.matrix("embeddings.token_type_embeddings.weight", 2, width)
    w.norm("embeddings.LayerNorm", width, True)
    for n in range(layers):
        at = f"encoder.layer.{n}"
        for name in ("query", "key", "value"):
            w.linear(f"{at}.attention.self.{name}", width, width, True)
        w.linear(f"{at}.attention.output.dense", width, width, True)
        w.norm(f"{at}.attention.output.LayerNorm", width, True)
        w.linear(f"{at}.intermediate.dense", 2 * width, width, True)
        w.linear(f"{at}.output.dense", width, 2 * width, True)
        w.norm(f"{at}.output.LayerNorm", width, True)
    w.linear("pooler.dense", width, width, True)
    config = {
        "model_type": "bert",
        "architectures": ["BertModel"],
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 2 * width,
        "hidden_act": "gelu",
        "vocab_size": len(WORDS),
        "max_position_embeddings": 64,
        "type_vocab_size": 2,
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
    }
    return _write(folder, config, w)


def write_llama(folder: Path, width: int = 32, layers: int = 2, heads: int = 4) -> Path:
    """A decoder with two key/value heads; its tokenizer is that of the encoder."""
    w = _Weights()
    w.matrix("model.embed_tokens.weight", len(WORDS), width)
    head_width = width // heads
    for n in range(layers):
        at = f"model.layers.{n}"
        w.norm(f"{at}.input_layernorm", width, False)
        w.linear(f"{at}.self_attn.q_proj", width, width, False)
        w.linear(f"{at}.self_attn.k_proj", 2 * head_width, width, False)
        w.linear(f"{at}.self_attn.v_proj", 2 * head_width, width, False)
        w.linear(f"{at}.self_attn.o_proj", width, width, False)
        w.norm(f"{at}.post_attention_layernorm", width, False)
        w.linear(f"{at}.mlp.gate_proj", 2 * width, width, False)
        w.linear(f"{at}.mlp.up_proj", 2 * width, width, False)
        w.linear(f"{at}.mlp.down_proj", width, 2 * width, False)
    w.norm("model.norm", width, False)
    w.linear("lm_head", len(WORDS), width, False)
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": 2,
        "intermediate_size": 2 * width,
        "hidden_act": "silu",
        "vocab_size": len(WORDS),
        "max_position_embeddings": 128,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "bos_token_id": 2,
        "eos_token_id": 3,
    }
    return _write(folder, config, w)


def _write(folder: Path, config: dict[str, Any], weights: _Weights) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    write_safetensors(folder / "model.safetensors", weights.tensors)
    _tokenizer(folder)
    return folder
