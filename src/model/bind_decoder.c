/* SPDX-License-Identifier: MIT */
/* Names of tensors of decoders: GPT-2, Llama and its relatives, in the files of Hugging Face, GGUF
 * and llama2.c. */
#include "model/bind_rules.h"

/* ------------------------------------------------------------------ GPT-2 ----- */

/* Matrices are stored transposed. "attn.bias" is a mask and not a bias: no rule names it. */
static const tensor_rule gpt2_rules[] = {
    MATRIX(IN_STACK(tokens), "wte.weight", WORDS, EMBEDDING, 0),
    MATRIX(IN_STACK(position), "wpe.weight", POSITIONS, WIDTH, 0),
    NORM(IN_STACK(final_norm), "ln_f", WIDTH, 0),
    NORM(IN_LAYER(self.norms.before), "ln_1", WIDTH, 0),
    PART(IN_LAYER(self.q), "attn.c_attn", QUERIES, QKV_Q, RULE_BIAS | RULE_TRANSPOSED),
    PART(IN_LAYER(self.k), "attn.c_attn", KEYS, QKV_K, RULE_BIAS | RULE_TRANSPOSED),
    PART(IN_LAYER(self.v), "attn.c_attn", KEYS, QKV_V, RULE_BIAS | RULE_TRANSPOSED),
    LINEAR(IN_LAYER(self.o), "attn.c_proj", WIDTH, QUERIES, RULE_BIAS | RULE_TRANSPOSED),
    NORM(IN_LAYER(ff.norms.before), "ln_2", WIDTH, 0),
    LINEAR(IN_LAYER(ff.up), "mlp.c_fc", INNER, WIDTH, RULE_BIAS | RULE_TRANSPOSED),
    LINEAR(IN_LAYER(ff.down), "mlp.c_proj", WIDTH, INNER, RULE_BIAS | RULE_TRANSPOSED),
    MATRIX(IN_MODEL(output.weight), "lm_head.weight", WORDS, EMBEDDING, RULE_OPTIONAL),
    RULES_END};

const tensor_layout gpt2_layout = {
    .prefix = "transformer.", .layers = "h.#.", .tables = {gpt2_rules}};

static const tensor_rule gguf_gpt2_rules[] = {
    MATRIX(IN_STACK(tokens), "token_embd.weight", WORDS, EMBEDDING, 0),
    MATRIX(IN_STACK(position), "position_embd.weight", POSITIONS, WIDTH, 0),
    NORM(IN_STACK(final_norm), "output_norm", WIDTH, 0),
    NORM(IN_LAYER(self.norms.before), "attn_norm", WIDTH, 0),
    PART(IN_LAYER(self.q), "attn_qkv", QUERIES, QKV_Q, RULE_BIAS),
    PART(IN_LAYER(self.k), "attn_qkv", KEYS, QKV_K, RULE_BIAS),
    PART(IN_LAYER(self.v), "attn_qkv", KEYS, QKV_V, RULE_BIAS),
    LINEAR(IN_LAYER(self.o), "attn_output", WIDTH, QUERIES, RULE_BIAS),
    NORM(IN_LAYER(ff.norms.before), "ffn_norm", WIDTH, 0),
    LINEAR(IN_LAYER(ff.up), "ffn_up", INNER, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(ff.down), "ffn_down", WIDTH, INNER, RULE_BIAS),
    MATRIX(IN_MODEL(output.weight), "output.weight", WORDS, EMBEDDING, RULE_OPTIONAL),
    RULES_END};

const tensor_layout gguf_gpt2_layout = {
    .prefix = "", .layers = "blk.#.", .tied_if_missing = true, .tables = {gguf_gpt2_rules}};

/* ------------------------------------------------------------------ Llama ----- */

static const tensor_rule llama_rules[] = {
    MATRIX(IN_STACK(tokens), "embed_tokens.weight", WORDS, EMBEDDING, 0),
    NORM(IN_STACK(final_norm), "norm", WIDTH, 0),
    NORM(IN_LAYER(self.norms.before), "input_layernorm", WIDTH, 0),
    LINEAR(IN_LAYER(self.q), "self_attn.q_proj", QUERIES, WIDTH, RULE_BIAS_MAYBE),
    LINEAR(IN_LAYER(self.k), "self_attn.k_proj", KEYS, WIDTH, RULE_BIAS_MAYBE),
    LINEAR(IN_LAYER(self.v), "self_attn.v_proj", KEYS, WIDTH, RULE_BIAS_MAYBE),
    LINEAR(IN_LAYER(self.o), "self_attn.o_proj", WIDTH, QUERIES, RULE_BIAS_MAYBE),
    VECTOR(IN_LAYER(self.q_norm), "self_attn.q_norm.weight", HEAD, RULE_QK_NORM),
    VECTOR(IN_LAYER(self.k_norm), "self_attn.k_norm.weight", HEAD, RULE_QK_NORM),
    LINEAR(IN_LAYER(ff.gate), "mlp.gate_proj", INNER, WIDTH, RULE_BIAS_MAYBE),
    LINEAR(IN_LAYER(ff.up), "mlp.up_proj", INNER, WIDTH, RULE_BIAS_MAYBE),
    LINEAR(IN_LAYER(ff.down), "mlp.down_proj", WIDTH, INNER, RULE_BIAS_MAYBE),
    MATRIX(IN_MODEL(output.weight), "lm_head.weight", WORDS, EMBEDDING, RULE_OPTIONAL),
    RULES_END};

static const tensor_rule llama_norms[] = {
    NORM(IN_LAYER(ff.norms.before), "post_attention_layernorm", WIDTH, 0), RULES_END};

static const tensor_rule gemma2_norms[] = {
    NORM(IN_LAYER(self.norms.inside), "post_attention_layernorm", WIDTH, 0),
    NORM(IN_LAYER(ff.norms.before), "pre_feedforward_layernorm", WIDTH, 0),
    NORM(IN_LAYER(ff.norms.inside), "post_feedforward_layernorm", WIDTH, 0), RULES_END};

const tensor_layout llama_layout = {
    .prefix = "model.", .layers = "layers.#.", .tables = {llama_rules, llama_norms}};

const tensor_layout gemma2_layout = {
    .prefix = "model.", .layers = "layers.#.", .tables = {llama_rules, gemma2_norms}};

/* ------------------------------------------------------------- GGUF's Llama ----- */

static const tensor_rule gguf_llama_rules[] = {
    MATRIX(IN_STACK(tokens), "token_embd.weight", WORDS, EMBEDDING, 0),
    NORM(IN_STACK(final_norm), "output_norm", WIDTH, 0),
    NORM(IN_LAYER(self.norms.before), "attn_norm", WIDTH, 0),
    LINEAR(IN_LAYER(self.q), "attn_q", QUERIES, WIDTH, RULE_BIAS_MAYBE),
    LINEAR(IN_LAYER(self.k), "attn_k", KEYS, WIDTH, RULE_BIAS_MAYBE),
    LINEAR(IN_LAYER(self.v), "attn_v", KEYS, WIDTH, RULE_BIAS_MAYBE),
    LINEAR(IN_LAYER(self.o), "attn_output", WIDTH, QUERIES, RULE_BIAS_MAYBE),
    VECTOR(IN_LAYER(self.q_norm), "attn_q_norm.weight", HEAD, RULE_QK_NORM),
    VECTOR(IN_LAYER(self.k_norm), "attn_k_norm.weight", HEAD, RULE_QK_NORM),
    NORM(IN_LAYER(ff.norms.before), "ffn_norm", WIDTH, 0),
    LINEAR(IN_LAYER(ff.gate), "ffn_gate", INNER, WIDTH, RULE_BIAS_MAYBE),
    LINEAR(IN_LAYER(ff.up), "ffn_up", INNER, WIDTH, RULE_BIAS_MAYBE),
    LINEAR(IN_LAYER(ff.down), "ffn_down", WIDTH, INNER, RULE_BIAS_MAYBE),
    MATRIX(IN_MODEL(output.weight), "output.weight", WORDS, EMBEDDING, RULE_OPTIONAL),
    RULES_END};

static const tensor_rule gguf_gemma2_norms[] = {
    NORM(IN_LAYER(self.norms.inside), "post_attention_norm", WIDTH, 0),
    NORM(IN_LAYER(ff.norms.inside), "post_ffw_norm", WIDTH, 0), RULES_END};

const tensor_layout gguf_llama_layout = {
    .prefix = "", .layers = "blk.#.", .tied_if_missing = true, .tables = {gguf_llama_rules}};

const tensor_layout gguf_gemma2_layout = {.prefix = "",
                                          .layers = "blk.#.",
                                          .tied_if_missing = true,
                                          .tables = {gguf_llama_rules, gguf_gemma2_norms}};

/* ---------------------------------------------------------------- llama2.c ----- */

static const tensor_rule llama2c_rules[] = {
    MATRIX(IN_STACK(tokens), "tok_embeddings", WORDS, EMBEDDING, 0),
    VECTOR(IN_STACK(final_norm.weight), "norm", WIDTH, 0),
    VECTOR(IN_LAYER(self.norms.before.weight), "attention_norm", WIDTH, 0),
    MATRIX(IN_LAYER(self.q.weight), "wq", QUERIES, WIDTH, 0),
    MATRIX(IN_LAYER(self.k.weight), "wk", KEYS, WIDTH, 0),
    MATRIX(IN_LAYER(self.v.weight), "wv", KEYS, WIDTH, 0),
    MATRIX(IN_LAYER(self.o.weight), "wo", WIDTH, QUERIES, 0),
    VECTOR(IN_LAYER(ff.norms.before.weight), "ffn_norm", WIDTH, 0),
    MATRIX(IN_LAYER(ff.gate.weight), "w1", INNER, WIDTH, 0),
    MATRIX(IN_LAYER(ff.up.weight), "w3", INNER, WIDTH, 0),
    MATRIX(IN_LAYER(ff.down.weight), "w2", WIDTH, INNER, 0),
    MATRIX(IN_MODEL(output.weight), "output", WORDS, EMBEDDING, RULE_OPTIONAL),
    RULES_END};

const tensor_layout llama2c_layout = {.prefix = "",
                                      .layers = "layers.#.",
                                      .probe = "tok_embeddings",
                                      .tied_if_missing = true,
                                      .tables = {llama2c_rules}};
