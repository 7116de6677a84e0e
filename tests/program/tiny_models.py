# SPDX-License-Identifier: MIT
"""Writes small models with random weights, in the form of Hugging Face, into folders bert, gpt2,
t5, marian, vit, llama and qwen3 of the current one. They know a few words; longer words are cut into
tokens."""
import json
import math
import os
import random
import struct

WIDTH, HEADS, INNER, LAYERS, POSITIONS = 24, 3, 32, 2, 40
random.seed(7)


def tensor(*shape, scale=0.3, add=0.0):
    count = math.prod(shape)
    return list(shape), [random.gauss(0.0, scale) + add for _ in range(count)]


def norm(name, bias=True):
    made = {f"{name}.weight": tensor(WIDTH, scale=0.1, add=1.0)}
    if bias:
        made[f"{name}.bias"] = tensor(WIDTH, scale=0.1)
    return made


def linear(name, outputs, inputs, bias=True, transposed=False):
    made = {f"{name}.weight": tensor(*((inputs, outputs) if transposed else (outputs, inputs)))}
    if bias:
        made[f"{name}.bias"] = tensor(outputs, scale=0.1)
    return made


def write(folder, config, tensors, texts):
    os.makedirs(folder, exist_ok=True)
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        part = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(f"{folder}/model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
    with open(f"{folder}/config.json", "w") as file:
        json.dump(config, file)
    for name, content in texts.items():
        with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
            file.write(content)


def bert():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sleep", "##s", "black",
             "un", "##believ", "##ably", "?", ".", "does", "dog"]
    tensors = {"embeddings.word_embeddings.weight": tensor(len(words), WIDTH),
               "embeddings.position_embeddings.weight": tensor(POSITIONS, WIDTH),
               "embeddings.token_type_embeddings.weight": tensor(2, WIDTH)}
    tensors.update(norm("embeddings.LayerNorm"))
    for n in range(LAYERS):
        at = f"encoder.layer.{n}"
        for part in ("query", "key", "value"):
            tensors.update(linear(f"{at}.attention.self.{part}", WIDTH, WIDTH))
        tensors.update(linear(f"{at}.attention.output.dense", WIDTH, WIDTH))
        tensors.update(norm(f"{at}.attention.output.LayerNorm"))
        tensors.update(linear(f"{at}.intermediate.dense", INNER, WIDTH))
        tensors.update(linear(f"{at}.output.dense", WIDTH, INNER))
        tensors.update(norm(f"{at}.output.LayerNorm"))
    config = {"architectures": ["BertModel"], "model_type": "bert", "hidden_size": WIDTH,
              "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
              "intermediate_size": INNER, "max_position_embeddings": POSITIONS,
              "type_vocab_size": 2, "vocab_size": len(words), "hidden_act": "gelu",
              "layer_norm_eps": 1e-12, "pad_token_id": 0}
    write("bert", config, tensors, {"vocab.txt": "\n".join(words) + "\n"})


def byte_letters():
    """The letters that byte-level BPE writes for the 256 bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {b: chr(b) for b in plain}
    for b in range(256):
        letters.setdefault(b, chr(256 + len(letters) - len(plain)))
    return [letters[b] for b in range(256)]


def byte_words():
    """The words and the files of a small byte-level tokenizer; its last word ends a text."""
    merges = ["\u0120 t", "h e", "\u0120t he", "c a", "\u0120 ca", "\u0120ca t"]
    words = byte_letters() + [merge.replace(" ", "") for merge in merges] + ["<|endoftext|>"]
    return words, {"vocab.json": json.dumps({word: n for n, word in enumerate(words)}),
                   "merges.txt": "#version: 0.2\n" + "\n".join(merges) + "\n"}


def gpt2():
    words, files = byte_words()
    tensors = {"wte.weight": tensor(len(words), WIDTH), "wpe.weight": tensor(POSITIONS, WIDTH)}
    for n in range(LAYERS):
        tensors.update(norm(f"h.{n}.ln_1"))
        tensors.update(norm(f"h.{n}.ln_2"))
        tensors.update(linear(f"h.{n}.attn.c_attn", 3 * WIDTH, WIDTH, transposed=True))
        tensors.update(linear(f"h.{n}.attn.c_proj", WIDTH, WIDTH, transposed=True))
        tensors.update(linear(f"h.{n}.mlp.c_fc", INNER, WIDTH, transposed=True))
        tensors.update(linear(f"h.{n}.mlp.c_proj", WIDTH, INNER, transposed=True))
    tensors.update(norm("ln_f"))
    end = len(words) - 1
    config = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": WIDTH,
              "n_layer": LAYERS, "n_head": HEADS, "n_inner": INNER, "n_positions": POSITIONS,
              "n_ctx": POSITIONS, "vocab_size": len(words), "activation_function": "gelu_new",
              "layer_norm_epsilon": 1e-5, "bos_token_id": end, "eos_token_id": end}
    write("gpt2", config, tensors, files)


def llama(family):
    """Rotary positions, norms by the root mean square, one key/value head; family "qwen3" norms
    queries and keys too."""
    words, files = byte_words()
    width = WIDTH // HEADS
    tensors = {"model.embed_tokens.weight": tensor(len(words), WIDTH),
               "lm_head.weight": tensor(len(words), WIDTH)}
    tensors.update(norm("model.norm", bias=False))
    for n in range(LAYERS):
        at = f"model.layers.{n}"
        for part in ("input_layernorm", "post_attention_layernorm"):
            tensors.update(norm(f"{at}.{part}", bias=False))
        for part, outputs in (("q", WIDTH), ("k", width), ("v", width), ("o", WIDTH)):
            tensors.update(linear(f"{at}.self_attn.{part}_proj", outputs, WIDTH, bias=False))
            if family == "qwen3" and part in "qk":
                name = f"{at}.self_attn.{part}_norm.weight"
                tensors[name] = tensor(width, scale=0.1, add=1.0)
        for part, outputs, inputs in (("gate", INNER, WIDTH), ("up", INNER, WIDTH),
                                      ("down", WIDTH, INNER)):
            tensors.update(linear(f"{at}.mlp.{part}_proj", outputs, inputs, bias=False))
    end = len(words) - 1
    config = {"architectures": [f"{family.capitalize()}ForCausalLM"], "model_type": family,
              "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
              "num_key_value_heads": 1, "head_dim": width, "intermediate_size": INNER,
              "max_position_embeddings": POSITIONS, "vocab_size": len(words), "hidden_act": "silu",
              "rms_norm_eps": 1e-5, "rope_theta": 100.0, "tie_word_embeddings": False,
              "bos_token_id": end, "eos_token_id": end}
    write(family, config, tensors, files)


PIECES = ["<pad>", "</s>", "<unk>", "\u2581", "\u2581the", "\u2581cat", "\u2581sleep", "s",
          "\u2581le", "\u2581chat", "\u2581dort", ".", "a", "b", "c", "d", "e", "t", "o", "r"]


def unigram():
    special = [{"id": n, "content": PIECES[n], "single_word": False, "lstrip": False,
                "rstrip": False, "normalized": False, "special": True} for n in range(3)]
    mark = {"SpecialToken": {"id": "</s>", "type_id": 0}}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": True,
                          "prepend_scheme": "always", "split": True},
        "post_processor": {"type": "TemplateProcessing",
                           "single": [{"Sequence": {"id": "A", "type_id": 0}}, mark],
                           "pair": [{"Sequence": {"id": "A", "type_id": 0}}, mark,
                                    {"Sequence": {"id": "B", "type_id": 0}}, mark],
                           "special_tokens": {"</s>": {"id": "</s>", "ids": [1],
                                                       "tokens": ["</s>"]}}},
        "decoder": {"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": True,
                    "prepend_scheme": "always", "split": True},
        "model": {"type": "Unigram", "unk_id": 2, "byte_fallback": False,
                  "vocab": [[piece, -float(n)] for n, piece in enumerate(PIECES)]}}
    return json.dumps(tokenizer)


def t5():
    words, width = len(PIECES), WIDTH // HEADS
    tensors = {"shared.weight": tensor(words, WIDTH)}
    for side in ("encoder", "decoder"):
        for n in range(LAYERS):
            at, part = f"{side}.block.{n}.layer", 0
            for name in ("SelfAttention", *(["EncDecAttention"] if side == "decoder" else [])):
                for matrix in "qkv":
                    tensors.update(linear(f"{at}.{part}.{name}.{matrix}", HEADS * width, WIDTH,
                                          bias=False))
                tensors.update(linear(f"{at}.{part}.{name}.o", WIDTH, HEADS * width, bias=False))
                if n == 0 and name == "SelfAttention":
                    tensors[f"{at}.{part}.{name}.relative_attention_bias.weight"] = tensor(8, HEADS)
                tensors.update(norm(f"{at}.{part}.layer_norm", bias=False))
                part += 1
            tensors.update(linear(f"{at}.{part}.DenseReluDense.wi", INNER, WIDTH, bias=False))
            tensors.update(linear(f"{at}.{part}.DenseReluDense.wo", WIDTH, INNER, bias=False))
            tensors.update(norm(f"{at}.{part}.layer_norm", bias=False))
        tensors.update(norm(f"{side}.final_layer_norm", bias=False))
    config = {"architectures": ["T5ForConditionalGeneration"], "model_type": "t5",
              "d_model": WIDTH, "d_kv": width, "num_heads": HEADS, "d_ff": INNER,
              "num_layers": LAYERS, "num_decoder_layers": LAYERS, "vocab_size": words,
              "relative_attention_num_buckets": 8, "relative_attention_max_distance": 16,
              "feed_forward_proj": "relu", "layer_norm_epsilon": 1e-6, "pad_token_id": 0,
              "eos_token_id": 1, "decoder_start_token_id": 0, "tie_word_embeddings": True}
    write("t5", config, tensors, {"tokenizer.json": unigram()})


def marian():
    tensors = {"model.shared.weight": tensor(len(PIECES), WIDTH),
               "final_logits_bias": tensor(1, len(PIECES))}
    for side in ("encoder", "decoder"):
        for n in range(LAYERS):
            at = f"model.{side}.layers.{n}"
            for name in ("self_attn", *(["encoder_attn"] if side == "decoder" else [])):
                for matrix in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    tensors.update(linear(f"{at}.{name}.{matrix}", WIDTH, WIDTH))
                tensors.update(norm(f"{at}.{name}_layer_norm"))
            tensors.update(linear(f"{at}.fc1", INNER, WIDTH))
            tensors.update(linear(f"{at}.fc2", WIDTH, INNER))
            tensors.update(norm(f"{at}.final_layer_norm"))
    config = {"architectures": ["MarianMTModel"], "model_type": "marian", "d_model": WIDTH,
              "encoder_layers": LAYERS, "decoder_layers": LAYERS, "encoder_ffn_dim": INNER,
              "decoder_ffn_dim": INNER, "encoder_attention_heads": HEADS,
              "decoder_attention_heads": HEADS, "vocab_size": len(PIECES),
              "max_position_embeddings": POSITIONS, "activation_function": "relu",
              "scale_embedding": True, "static_position_embeddings": True, "pad_token_id": 0,
              "eos_token_id": 1, "decoder_start_token_id": 0, "bad_words_ids": [[0]]}
    write("marian", config, tensors, {"tokenizer.json": unigram()})


def vit():
    size, patch = 12, 4
    tensors = {"embeddings.cls_token": tensor(1, 1, WIDTH),
               "embeddings.position_embeddings": tensor(1, (size // patch) ** 2 + 1, WIDTH),
               "embeddings.patch_embeddings.projection.weight": tensor(WIDTH, 3, patch, patch),
               "embeddings.patch_embeddings.projection.bias": tensor(WIDTH, scale=0.1)}
    for n in range(LAYERS):
        at = f"encoder.layer.{n}"
        for part in ("query", "key", "value"):
            tensors.update(linear(f"{at}.attention.attention.{part}", WIDTH, WIDTH))
        tensors.update(linear(f"{at}.attention.output.dense", WIDTH, WIDTH))
        tensors.update(linear(f"{at}.intermediate.dense", INNER, WIDTH))
        tensors.update(linear(f"{at}.output.dense", WIDTH, INNER))
        tensors.update(norm(f"{at}.layernorm_before"))
        tensors.update(norm(f"{at}.layernorm_after"))
    tensors.update(norm("layernorm"))
    config = {"architectures": ["ViTModel"], "model_type": "vit", "hidden_size": WIDTH,
              "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
              "intermediate_size": INNER, "image_size": size, "patch_size": patch,
              "num_channels": 3, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "qkv_bias": True}
    write("vit", config, tensors, {})
    with open("picture.ppm", "wb") as file:
        file.write(b"P6\n# a picture\n9 7\n255\n" + bytes(n * 37 % 256 for n in range(9 * 7 * 3)))


bert()
gpt2()
t5()
vit()
marian()
llama("llama")
llama("qwen3")
