#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares models of every family with the library transformers.

    compare_transformers.py PROGRAM [NAME]...

PROGRAM is the test program model_outputs. Models with random weights are made by transformers and
saved as folders; hidden states, logits, labels and the pooler's output must be those of
transformers, except for rounding. With names, only models whose name contains one of them.
"""
import math
import os
import subprocess
import sys
import tempfile

NAME = "compare_transformers"

try:
    import numpy
    import torch
    import transformers as hf
except ImportError as missing:
    print(f"{NAME}: {missing}: pip install torch transformers")
    print(f"{NAME}: 0 passed, 0 failed, 1 skipped")
    sys.exit(0)

hf.utils.logging.set_verbosity_error()
hf.utils.logging.disable_progress_bar()
torch.set_grad_enabled(False)

LENGTHS = ((11, 14), (4, 5))  # tokens of source and target, per sequence
TOLERANCE = 2e-5

ENCODER = dict(vocab_size=99, hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
               intermediate_size=37, max_position_embeddings=40)
DISTILBERT = dict(vocab_size=99, dim=32, n_layers=3, n_heads=4, hidden_dim=37,
                  max_position_embeddings=40)
DECODER = dict(vocab_size=99, hidden_size=32, num_hidden_layers=4, num_attention_heads=4,
               num_key_value_heads=2, intermediate_size=37, max_position_embeddings=64)
GEMMA = dict(DECODER, head_dim=16, num_hidden_layers=7)
WINDOWS = dict(query_pre_attn_scalar=24, sliding_window=5)
T5 = dict(vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_decoder_layers=3,
          num_heads=4, decoder_start_token_id=0)
PAIR = dict(vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=3,
            encoder_attention_heads=4, decoder_attention_heads=8, encoder_ffn_dim=37,
            decoder_ffn_dim=41, max_position_embeddings=40, pad_token_id=1, eos_token_id=2,
            bos_token_id=0, decoder_start_token_id=2, forced_eos_token_id=2)
MARIAN = dict(PAIR, pad_token_id=60, decoder_start_token_id=60, eos_token_id=0,
              forced_eos_token_id=0, scale_embedding=True, activation_function="swish")
IMAGE = dict(hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=37,
             image_size=32, patch_size=8)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)

# name of the class, its configuration
MODELS = [
    ("BertModel", hf.BertConfig(**ENCODER)),
    ("BertForMaskedLM", hf.BertConfig(**ENCODER)),
    ("BertForSequenceClassification", hf.BertConfig(**ENCODER, num_labels=5)),
    ("BertForTokenClassification", hf.BertConfig(**ENCODER)),
    ("RobertaModel", hf.RobertaConfig(**ENCODER, type_vocab_size=1)),
    ("RobertaForMaskedLM", hf.RobertaConfig(**ENCODER, type_vocab_size=1)),
    ("RobertaForSequenceClassification", hf.RobertaConfig(**ENCODER, type_vocab_size=1)),
    ("XLMRobertaForMaskedLM", hf.XLMRobertaConfig(**ENCODER, type_vocab_size=1)),
    ("CamembertForMaskedLM", hf.CamembertConfig(**ENCODER, type_vocab_size=1)),
    ("DistilBertModel", hf.DistilBertConfig(**DISTILBERT)),
    ("DistilBertForMaskedLM", hf.DistilBertConfig(**DISTILBERT)),
    ("DistilBertForSequenceClassification", hf.DistilBertConfig(**DISTILBERT)),
    ("AlbertModel", hf.AlbertConfig(**ENCODER, embedding_size=16)),
    ("AlbertForMaskedLM", hf.AlbertConfig(**ENCODER, embedding_size=16)),
    ("AlbertForSequenceClassification", hf.AlbertConfig(**ENCODER, embedding_size=16)),
    ("ElectraModel", hf.ElectraConfig(**ENCODER, embedding_size=16)),
    ("ElectraForMaskedLM", hf.ElectraConfig(**ENCODER, embedding_size=16)),
    ("ElectraForSequenceClassification", hf.ElectraConfig(**ENCODER, embedding_size=16)),
    ("ViTModel", hf.ViTConfig(**IMAGE)),
    ("ViTForImageClassification", hf.ViTConfig(**IMAGE)),
    ("DeiTModel", hf.DeiTConfig(**IMAGE)),
    ("DeiTForImageClassification", hf.DeiTConfig(**IMAGE)),
    ("DeiTForImageClassificationWithTeacher", hf.DeiTConfig(**IMAGE)),
    ("GPT2LMHeadModel", hf.GPT2Config(vocab_size=99, n_embd=32, n_layer=3, n_head=4,
                                      n_positions=40, bos_token_id=98, eos_token_id=98)),
    ("GPT2LMHeadModel", hf.GPT2Config(vocab_size=99, n_embd=32, n_layer=3, n_head=4,
                                      n_positions=40, bos_token_id=98, eos_token_id=98, n_inner=50,
                                      scale_attn_by_inverse_layer_idx=True)),
    ("LlamaModel", hf.LlamaConfig(**DECODER)),
    ("LlamaForCausalLM", hf.LlamaConfig(**DECODER)),
    ("LlamaForCausalLM", hf.LlamaConfig(**DECODER, tie_word_embeddings=True, rope_scaling=LLAMA3,
                                        head_dim=16, attention_bias=True)),
    ("LlamaForCausalLM", hf.LlamaConfig(**DECODER, rope_scaling=dict(rope_type="linear",
                                                                     factor=3.0))),
    ("MistralForCausalLM", hf.MistralConfig(**DECODER, sliding_window=7)),
    ("MistralForCausalLM", hf.MistralConfig(**DECODER, sliding_window=None)),
    ("Qwen2ForCausalLM", hf.Qwen2Config(**DECODER)),
    ("Qwen2ForCausalLM", hf.Qwen2Config(**DECODER, use_sliding_window=True, max_window_layers=2,
                                        sliding_window=5)),
    ("Qwen3ForCausalLM", hf.Qwen3Config(**DECODER, head_dim=16)),
    ("GemmaForCausalLM", hf.GemmaConfig(**GEMMA)),
    ("Gemma2ForCausalLM", hf.Gemma2Config(**GEMMA, **WINDOWS)),
    ("Gemma3ForCausalLM", hf.Gemma3TextConfig(**GEMMA, **WINDOWS)),
    ("T5ForConditionalGeneration", hf.T5Config(**T5)),
    ("T5ForConditionalGeneration", hf.T5Config(**T5, feed_forward_proj="gated-gelu",
                                               tie_word_embeddings=False)),
    ("T5EncoderModel", hf.T5Config(**T5)),
    ("BartForConditionalGeneration", hf.BartConfig(**PAIR, scale_embedding=True)),
    ("MBartForConditionalGeneration", hf.MBartConfig(**PAIR)),
    ("MarianMTModel", hf.MarianConfig(**MARIAN)),
    ("MarianMTModel", hf.MarianConfig(**MARIAN, share_encoder_decoder_embeddings=False,
                                      decoder_vocab_size=77)),
]


def make_model(kind, config):
    """A model whose weights are large enough that every part of it matters."""
    torch.manual_seed(1)
    model = getattr(hf, kind)(config).eval()
    for weight in model.parameters():
        if weight.dim() == 1:
            torch.nn.init.normal_(weight, 0.5, 0.2)
        else:
            torch.nn.init.normal_(weight, 0, 0.35)
    for name, buffer in model.named_buffers():
        if name == "final_logits_bias":
            buffer.normal_()
    return model


def make_ids(words):
    """Lists of source and target ids."""
    pairs = []
    for source, target in LENGTHS:
        pairs.append(([3 + (5 * n + source) % (words - 5) for n in range(source)],
                      [3 + (7 * n + target) % (words - 5) for n in range(target)]))
    return pairs


def make_pixels(config):
    count = 3 * config.image_size ** 2
    numbers = (numpy.arange(count) * 37 % 101).astype(numpy.float32) / numpy.float32(50) - 1
    return torch.from_numpy(numpy.asarray(numpy.float32(numbers))).view(
        1, 3, config.image_size, config.image_size)


def wanted(model, kind, source, target):
    """Hidden states, logits, labels, pooled: None where the model has none."""
    base = getattr(model, model.base_model_prefix, model) if model.base_model_prefix else model
    inputs = {}
    if kind == 3:
        inputs["pixel_values"] = make_pixels(model.config)
    elif kind == 2:
        inputs = dict(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target]))
        result = model(**inputs, output_hidden_states=True)
        return result.decoder_hidden_states[-1], result.logits, None, None
    else:
        inputs["input_ids"] = torch.tensor([target])
    states = base(**inputs)
    pooled = getattr(states, "pooler_output", None)
    final = None if base is model else model(**inputs).logits
    name = type(model).__name__
    labels = final if "Sequence" in name or "Image" in name else None
    logits = None if labels is not None or "Token" in name else final
    return states.last_hidden_state, logits, labels, pooled


def compare(program, folder, kind, config):
    """None, or what is different."""
    model = make_model(kind, config)
    model.save_pretrained(folder)
    model = getattr(hf, kind).from_pretrained(folder, dtype=torch.float32,
                                              attn_implementation="eager").eval()
    words = getattr(config, "decoder_vocab_size", None) or getattr(config, "vocab_size", 99)
    pairs = make_ids(words) if not hasattr(config, "image_size") else [([], [])]
    ids, output = os.path.join(folder, "ids"), os.path.join(folder, "output")
    with open(ids, "w", encoding="ascii") as file:
        for source, target in pairs:
            file.write(" ".join(map(str, source)) + "\n" + " ".join(map(str, target)) + "\n")
    done = subprocess.run([program, folder, ids, output], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        return done.stderr.strip()
    number = int(done.stdout.split()[0])
    found, at = numpy.fromfile(output, dtype=numpy.float32), 0
    for source, target in pairs:
        for what, part in zip(("hidden states", "logits", "labels", "pooled"),
                              wanted(model, number, source, target)):
            if part is None:
                continue
            right = part.reshape(-1).numpy()
            mine = found[at:at + len(right)]
            at += len(right)
            if len(mine) != len(right):
                return f"{what} are missing"
            most = float(numpy.abs(right).max())
            error = float(numpy.abs(mine - right).max())
            if not error <= TOLERANCE * max(1.0, most) or not math.isfinite(most):
                return f"{what} differ by {error:.2e}, with numbers up to {most:.2f}"
    return None if at == len(found) else "there is more output than expected"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program, names = sys.argv[1], sys.argv[2:]
    passed = failed = 0
    for kind, config in MODELS:
        if names and not any(name in kind for name in names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            problem = compare(program, folder, kind, config)
        print(f"ok   {kind}" if problem is None else f"FAIL {kind}: {problem}", flush=True)
        passed += problem is None
        failed += problem is not None
    print(f"{NAME}: {passed} passed, {failed} failed, 0 skipped")
    sys.exit(failed > 0)


main()
