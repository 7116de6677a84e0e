/* SPDX-License-Identifier: MIT */
/* Names of tensors of encoder-decoders: T5; BART, mBART, Marian and the translator of this project,
 * which share theirs; and OpenNMT's, as in converted CTranslate2 models. */
#include "model/bind_rules.h"

/* --------------------------------------------------------------------- T5 ----- */

static const tensor_rule t5_rules[] = {
    MATRIX(IN_STACK(tokens), "@.embed_tokens.weight shared.weight", WORDS, EMBEDDING, 0),
    MATRIX(IN_STACK(relative), "@.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
           BUCKETS, HEADS, 0),
    NORM(IN_STACK(final_norm), "@.final_layer_norm", WIDTH, 0),
    NORM(IN_LAYER(self.norms.before), "layer.0.layer_norm", WIDTH, 0),
    LINEAR(IN_LAYER(self.q), "layer.0.SelfAttention.q", QUERIES, WIDTH, 0),
    LINEAR(IN_LAYER(self.k), "layer.0.SelfAttention.k", KEYS, WIDTH, 0),
    LINEAR(IN_LAYER(self.v), "layer.0.SelfAttention.v", KEYS, WIDTH, 0),
    LINEAR(IN_LAYER(self.o), "layer.0.SelfAttention.o", WIDTH, QUERIES, 0),
    NORM(IN_LAYER(cross.norms.before), "layer.1.layer_norm", WIDTH, RULE_DECODER),
    LINEAR(IN_LAYER(cross.q), "layer.1.EncDecAttention.q", QUERIES, WIDTH, RULE_DECODER),
    LINEAR(IN_LAYER(cross.k), "layer.1.EncDecAttention.k", KEYS, WIDTH, RULE_DECODER),
    LINEAR(IN_LAYER(cross.v), "layer.1.EncDecAttention.v", KEYS, WIDTH, RULE_DECODER),
    LINEAR(IN_LAYER(cross.o), "layer.1.EncDecAttention.o", WIDTH, QUERIES, RULE_DECODER),
    MATRIX(IN_MODEL(output.weight), "lm_head.weight", WORDS, EMBEDDING, RULE_OPTIONAL),
    RULES_END};

#define T5_FEED_FORWARD(layer_, stack_)                                                            \
    NORM(IN_LAYER(ff.norms.before), layer_ ".layer_norm", WIDTH, stack_),                          \
        LINEAR(IN_LAYER(ff.up), layer_ ".DenseReluDense.wi", INNER, WIDTH,                         \
               stack_ | RULE_NOT_GATED),                                                           \
        LINEAR(IN_LAYER(ff.gate), layer_ ".DenseReluDense.wi_0", INNER, WIDTH,                     \
               stack_ | RULE_GATED),                                                               \
        LINEAR(IN_LAYER(ff.up), layer_ ".DenseReluDense.wi_1", INNER, WIDTH, stack_ | RULE_GATED), \
        LINEAR(IN_LAYER(ff.down), layer_ ".DenseReluDense.wo", WIDTH, INNER, stack_)

static const tensor_rule t5_feed_forward[] = {T5_FEED_FORWARD("layer.1", RULE_ENCODER),
                                              T5_FEED_FORWARD("layer.2", RULE_DECODER), RULES_END};

const tensor_layout t5_layout = {.prefix = "",
                                 .layers = "@.block.#.",
                                 .tied_if_missing = true,
                                 .tables = {t5_rules, t5_feed_forward}};

/* ------------------------------------------------------------ BART, Marian ----- */

static const tensor_rule pair_rules[] = {
    MATRIX(IN_STACK(tokens), "@.embed_tokens.weight shared.weight", WORDS, EMBEDDING, 0),
    MATRIX(IN_STACK(position), "@.embed_positions.weight", POSITIONS, WIDTH, RULE_LEARNED),
    NORM(IN_STACK(final_norm), "@.layer_norm", WIDTH, RULE_NORM_FIRST),
    LINEAR(IN_LAYER(self.q), "self_attn.q_proj", QUERIES, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(self.k), "self_attn.k_proj", KEYS, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(self.v), "self_attn.v_proj", KEYS, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(self.o), "self_attn.out_proj", WIDTH, QUERIES, RULE_BIAS),
    LINEAR(IN_LAYER(cross.q), "encoder_attn.q_proj", QUERIES, WIDTH, RULE_BIAS | RULE_DECODER),
    LINEAR(IN_LAYER(cross.k), "encoder_attn.k_proj", KEYS, WIDTH, RULE_BIAS | RULE_DECODER),
    LINEAR(IN_LAYER(cross.v), "encoder_attn.v_proj", KEYS, WIDTH, RULE_BIAS | RULE_DECODER),
    LINEAR(IN_LAYER(cross.o), "encoder_attn.out_proj", WIDTH, QUERIES, RULE_BIAS | RULE_DECODER),
    LINEAR(IN_LAYER(ff.up), "fc1", INNER, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(ff.down), "fc2", WIDTH, INNER, RULE_BIAS),
    MATRIX(IN_MODEL(output.weight), "lm_head.weight", WORDS, EMBEDDING, RULE_OPTIONAL),
    VECTOR(IN_MODEL(output.bias), "final_logits_bias", WORDS, RULE_OPTIONAL),
    RULES_END};

#define PAIR_NORMS(place_, when_)                                            \
    NORM(IN_LAYER(self.norms.place_), "self_attn_layer_norm", WIDTH, when_), \
        NORM(IN_LAYER(cross.norms.place_), "encoder_attn_layer_norm", WIDTH, \
             when_ | RULE_DECODER),                                          \
        NORM(IN_LAYER(ff.norms.place_), "final_layer_norm", WIDTH, when_)

static const tensor_rule pair_norms[] = {PAIR_NORMS(before, RULE_NORM_FIRST),
                                         PAIR_NORMS(after, RULE_NORM_LAST), RULES_END};

static const tensor_rule bart_norms[] = {
    NORM(IN_STACK(embedding_norm), "@.layernorm_embedding", WIDTH, 0), RULES_END};

const tensor_layout pair_layout = {
    .prefix = "model.", .layers = "@.layers.#.", .tables = {pair_rules, pair_norms}};

const tensor_layout bart_layout = {
    .prefix = "model.", .layers = "@.layers.#.", .tables = {pair_rules, pair_norms, bart_norms}};

/* ---------------------------------------------------------------- OpenNMT ----- */

static const tensor_rule opennmt_rules[] = {
    MATRIX(IN_STACK(tokens), "@/embeddings/weight", WORDS, EMBEDDING, 0),
    MATRIX(IN_STACK(position), "@/position_encodings/encodings", POSITIONS, WIDTH, RULE_LEARNED),
    NORM(IN_STACK(final_norm), "@/layer_norm", WIDTH, RULE_NORM_FIRST),
    PART(IN_LAYER(self.q), "self_attention/linear_0", QUERIES, QKV_Q, RULE_BIAS),
    PART(IN_LAYER(self.k), "self_attention/linear_0", KEYS, QKV_K, RULE_BIAS),
    PART(IN_LAYER(self.v), "self_attention/linear_0", KEYS, QKV_V, RULE_BIAS),
    LINEAR(IN_LAYER(self.o), "self_attention/linear_1", WIDTH, QUERIES, RULE_BIAS),
    LINEAR(IN_LAYER(cross.q), "attention/linear_0", QUERIES, WIDTH, RULE_BIAS | RULE_DECODER),
    PART(IN_LAYER(cross.k), "attention/linear_1", KEYS, KV_K, RULE_BIAS | RULE_DECODER),
    PART(IN_LAYER(cross.v), "attention/linear_1", KEYS, KV_V, RULE_BIAS | RULE_DECODER),
    LINEAR(IN_LAYER(cross.o), "attention/linear_2", WIDTH, QUERIES, RULE_BIAS | RULE_DECODER),
    LINEAR(IN_LAYER(ff.up), "ffn/linear_0", INNER, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(ff.down), "ffn/linear_1", WIDTH, INNER, RULE_BIAS),
    LINEAR(IN_MODEL(output), "decoder/projection", WORDS, EMBEDDING,
           RULE_BIAS_MAYBE | RULE_OPTIONAL),
    RULES_END};

#define OPENNMT_NORMS(place_, when_)                                                             \
    NORM(IN_LAYER(self.norms.place_), "self_attention/layer_norm", WIDTH, when_),                \
        NORM(IN_LAYER(cross.norms.place_), "attention/layer_norm", WIDTH, when_ | RULE_DECODER), \
        NORM(IN_LAYER(ff.norms.place_), "ffn/layer_norm", WIDTH, when_)

static const tensor_rule opennmt_norms[] = {OPENNMT_NORMS(before, RULE_NORM_FIRST),
                                            OPENNMT_NORMS(after, RULE_NORM_LAST), RULES_END};

const tensor_layout opennmt_layout = {.prefix = "",
                                      .layers = "@/layer_#/",
                                      .probe = "encoder/embeddings/weight",
                                      .tables = {opennmt_rules, opennmt_norms}};
