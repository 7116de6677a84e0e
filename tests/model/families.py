# SPDX-License-Identifier: MIT
"""Small random models of every family, made by transformers: five configurations each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import transformers as tf

VOCABULARY = 211


def sizes(n: int) -> dict[str, int]:
    """Widths, heads and layers that differ between the configurations."""
    heads = (4, 3, 6, 2, 8)[n]
    return {
        "heads": heads,
        "key_heads": (2, 3, 2, 1, 4)[n],
        "width": heads * (8, 16, 12, 24, 10)[n],
        "inner": (64, 50, 37, 96, 130)[n],
        "layers": (2, 3, 2, 4, 3)[n],
    }


def bert_like(kind: str, n: int) -> Any:
    s = sizes(n)
    common = {
        "vocab_size": VOCABULARY,
        "hidden_size": s["width"],
        "num_hidden_layers": s["layers"],
        "num_attention_heads": s["heads"],
        "intermediate_size": s["inner"],
        "max_position_embeddings": 90,
        "hidden_act": ("gelu", "gelu_new", "relu", "gelu", "silu")[n],
        "type_vocab_size": 2,
        "pad_token_id": 1 if "roberta" in kind else 0,
    }
    if kind == "bert":
        return tf.BertForMaskedLM(tf.BertConfig(**common))
    if kind == "roberta":
        return tf.RobertaForMaskedLM(tf.RobertaConfig(**common | {"type_vocab_size": 1}))
    if kind == "xlm-roberta":
        return tf.XLMRobertaForMaskedLM(tf.XLMRobertaConfig(**common | {"type_vocab_size": 1}))
    if kind == "electra":
        return tf.ElectraModel(
            tf.ElectraConfig(**common, embedding_size=s["width"] if n % 2 else 20)
        )
    return tf.AlbertForMaskedLM(tf.AlbertConfig(**common, embedding_size=16 + n))


def distilbert(n: int) -> Any:
    s = sizes(n)
    return tf.DistilBertForMaskedLM(
        tf.DistilBertConfig(
            vocab_size=VOCABULARY,
            dim=s["width"],
            n_layers=s["layers"],
            n_heads=s["heads"],
            hidden_dim=s["inner"],
            max_position_embeddings=90,
            activation=("gelu", "relu")[n % 2],
        )
    )


def gpt2(n: int) -> Any:
    s = sizes(n)
    return tf.GPT2LMHeadModel(
        tf.GPT2Config(
            vocab_size=VOCABULARY,
            n_embd=s["width"],
            n_layer=s["layers"],
            n_head=s["heads"],
            n_inner=None if n % 2 else s["inner"],
            n_positions=90,
            scale_attn_by_inverse_layer_idx=n == 3,
            activation_function=("gelu_new", "gelu", "relu", "gelu_new", "silu")[n],
            bos_token_id=0,
            eos_token_id=0,
        )
    )


def llama_like(kind: str, n: int) -> Any:
    s = sizes(n)
    common: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": s["width"],
        "intermediate_size": s["inner"],
        "num_hidden_layers": s["layers"],
        "num_attention_heads": s["heads"],
        "num_key_value_heads": s["key_heads"],
        "max_position_embeddings": 90,
        "tie_word_embeddings": n % 2 == 0,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    if kind == "llama":
        rope = None
        if n == 2:
            rope = {
                "rope_type": "llama3",
                "rope_theta": 10000.0,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 40,
            }
        if n == 3:
            rope = {"rope_type": "linear", "rope_theta": 500000.0, "factor": 2.0}
        extra: dict[str, Any] = {"attention_bias": n == 1, "mlp_bias": n == 1}
        if rope:
            extra["rope_parameters"] = rope
        return tf.LlamaForCausalLM(tf.LlamaConfig(**common, **extra))
    if kind == "mistral":
        window = (5, 7, None, 3, 60)[n]
        return tf.MistralForCausalLM(
            tf.MistralConfig(**common, sliding_window=window, head_dim=16 if n == 4 else None)
        )
    if kind == "qwen2":
        extra = {"use_sliding_window": n == 3, "sliding_window": 6, "max_window_layers": 2}
        return tf.Qwen2ForCausalLM(tf.Qwen2Config(**common, **extra))
    if kind == "qwen3":
        return tf.Qwen3ForCausalLM(tf.Qwen3Config(**common, head_dim=(16, 8, 12, 24, 10)[n]))
    if kind == "gemma":
        return tf.GemmaForCausalLM(tf.GemmaConfig(**common, head_dim=16))
    if kind == "gemma2":
        return tf.Gemma2ForCausalLM(
            tf.Gemma2Config(
                **common, head_dim=16, query_pre_attn_scalar=20 + n, sliding_window=(5, 9)[n % 2]
            )
        )
    return tf.Gemma3ForCausalLM(
        tf.Gemma3TextConfig(
            **common, head_dim=16, query_pre_attn_scalar=16, sliding_window=(5, 9)[n % 2]
        )
    )


def t5(n: int) -> Any:
    s = sizes(n)
    return tf.T5ForConditionalGeneration(
        tf.T5Config(
            vocab_size=VOCABULARY,
            d_model=s["width"],
            d_kv=(8, 16, 12, 24, 10)[n],
            d_ff=s["inner"],
            num_layers=s["layers"],
            num_decoder_layers=s["layers"] - n % 2,
            num_heads=s["heads"],
            relative_attention_num_buckets=(32, 8, 16, 32, 12)[n],
            relative_attention_max_distance=(128, 20, 30, 64, 40)[n],
            feed_forward_proj=("relu", "gated-gelu")[n % 2],
            tie_word_embeddings=n % 2 == 0,
            decoder_start_token_id=0,
        )
    )


def bart_like(kind: str, n: int) -> Any:
    s = sizes(n)
    common = {
        "vocab_size": VOCABULARY,
        "d_model": s["width"],
        "encoder_layers": s["layers"],
        "decoder_layers": max(1, s["layers"] - 1),
        "encoder_attention_heads": s["heads"],
        "decoder_attention_heads": s["heads"],
        "encoder_ffn_dim": s["inner"],
        "decoder_ffn_dim": s["inner"],
        "max_position_embeddings": 90,
        "activation_function": ("gelu", "relu", "swish", "gelu_new", "gelu")[n],
        "scale_embedding": n % 2 == 0,
        "pad_token_id": 1,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "decoder_start_token_id": 2,
        "forced_eos_token_id": None,
    }
    if kind == "bart":
        return tf.BartForConditionalGeneration(tf.BartConfig(**common))
    if kind == "mbart":
        return tf.MBartForConditionalGeneration(tf.MBartConfig(**common))
    return tf.MarianMTModel(tf.MarianConfig(**common))


def vit(kind: str, n: int) -> Any:
    s = sizes(n)
    common = {
        "hidden_size": s["width"],
        "num_hidden_layers": s["layers"],
        "num_attention_heads": s["heads"],
        "intermediate_size": s["inner"],
        "image_size": (32, 24, 28, 32, 40)[n],
        "patch_size": (8, 6, 7, 16, 8)[n],
        "num_channels": (3, 1)[n % 2],
        "qkv_bias": n != 2,
        "num_labels": 5,
    }
    if kind == "vit":
        return tf.ViTForImageClassification(tf.ViTConfig(**common))
    return tf.DeiTForImageClassificationWithTeacher(tf.DeiTConfig(**common))


def randomise(model: Any, seed: int) -> Any:
    """Weights that make every part matter: norms off 1, biases off 0."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if not weight.requires_grad:  # sines and cosines of positions
                continue
            noise = torch.randn(weight.shape, generator=generator)
            if weight.ndim < 2:
                weight.add_(0.3 * noise)
            else:
                spread = 0.9 / weight.shape[-1] ** 0.5
                weight.copy_(noise * (0.5 if "embed" in name or "wte" in name else spread))
        for name, buffer in model.named_buffers():
            if name == "final_logits_bias":
                buffer.copy_(torch.randn(buffer.shape, generator=generator))
    model.tie_weights()
    return model.eval()


FAMILIES = {
    "bert": lambda n: bert_like("bert", n),
    "roberta": lambda n: bert_like("roberta", n),
    "xlm-roberta": lambda n: bert_like("xlm-roberta", n),
    "electra": lambda n: bert_like("electra", n),
    "albert": lambda n: bert_like("albert", n),
    "distilbert": distilbert,
    "gpt2": gpt2,
    "llama": lambda n: llama_like("llama", n),
    "mistral": lambda n: llama_like("mistral", n),
    "qwen2": lambda n: llama_like("qwen2", n),
    "qwen3": lambda n: llama_like("qwen3", n),
    "gemma": lambda n: llama_like("gemma", n),
    "gemma2": lambda n: llama_like("gemma2", n),
    "gemma3_text": lambda n: llama_like("gemma3_text", n),
    "t5": t5,
    "bart": lambda n: bart_like("bart", n),
    "mbart": lambda n: bart_like("mbart", n),
    "marian": lambda n: bart_like("marian", n),
    "vit": lambda n: vit("vit", n),
    "deit": lambda n: vit("deit", n),
}


def models(names: list[str]) -> Iterator[tuple[str, int, Any]]:
    """Every configuration of the named families."""
    for name in names:
        for n in range(5):
            torch.manual_seed(n)
            model = FAMILIES[name](n)
            model.set_attn_implementation("eager")
            yield name, n, randomise(model, 17 * n + 3)
