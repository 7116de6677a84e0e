/* SPDX-License-Identifier: MIT */
/* Names of tensors of encoders: BERT and its relatives, ViT and DeiT. */
#include "model/bind_rules.h"

/* ------------------------------------------------------------------- BERT ----- */

static const tensor_rule bert_embedding[] = {
    MATRIX(IN_STACK(tokens), "embeddings.word_embeddings.weight", WORDS, EMBEDDING, 0),
    MATRIX(IN_STACK(position), "embeddings.position_embeddings.weight", POSITIONS, EMBEDDING, 0),
    MATRIX(IN_STACK(segments), "embeddings.token_type_embeddings.weight", SEGMENTS, EMBEDDING,
           RULE_SEGMENTS),
    NORM(IN_STACK(embedding_norm), "embeddings.LayerNorm", EMBEDDING, 0),
    LINEAR(IN_STACK(embedding_project), "embeddings_project encoder.embedding_hidden_mapping_in",
           WIDTH, EMBEDDING, RULE_BIAS | RULE_PROJECT),
    LINEAR(IN_MODEL(pooler), "pooler.dense pooler", WIDTH, WIDTH, RULE_BIAS | RULE_OPTIONAL),
    RULES_END};

static const tensor_rule bert_layer[] = {
    LINEAR(IN_LAYER(self.q), "attention.self.query", QUERIES, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(self.k), "attention.self.key", KEYS, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(self.v), "attention.self.value", KEYS, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(self.o), "attention.output.dense", WIDTH, QUERIES, RULE_BIAS),
    NORM(IN_LAYER(self.norms.after), "attention.output.LayerNorm", WIDTH, 0),
    LINEAR(IN_LAYER(ff.up), "intermediate.dense", INNER, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(ff.down), "output.dense", WIDTH, INNER, RULE_BIAS),
    NORM(IN_LAYER(ff.norms.after), "output.LayerNorm", WIDTH, 0),
    RULES_END};

static const tensor_rule bert_heads[] = {
    LINEAR(IN_MODEL(transform), "cls.predictions.transform.dense", EMBEDDING, WIDTH,
           RULE_BIAS | RULE_OPTIONAL),
    NORM(IN_MODEL(transform_norm), "cls.predictions.transform.LayerNorm", EMBEDDING,
         RULE_TRANSFORM),
    MATRIX(IN_MODEL(output.weight), "cls.predictions.decoder.weight", WORDS, EMBEDDING,
           RULE_OPTIONAL),
    VECTOR(IN_MODEL(output.bias), "cls.predictions.bias cls.predictions.decoder.bias", WORDS,
           RULE_OPTIONAL),
    LINEAR(IN_MODEL(label), "classifier", ANY, WIDTH,
           RULE_BIAS | RULE_OPTIONAL | RULE_SEQUENCE_LABELS),
    RULES_END};

const tensor_layout bert_layout = {.prefix = "bert.",
                                   .layers = "encoder.layer.#.",
                                   .output_needs_transform = true,
                                   .tables = {bert_embedding, bert_layer, bert_heads}};

static const tensor_rule roberta_heads[] = {
    LINEAR(IN_MODEL(transform), "lm_head.dense", EMBEDDING, WIDTH, RULE_BIAS | RULE_OPTIONAL),
    NORM(IN_MODEL(transform_norm), "lm_head.layer_norm", EMBEDDING, RULE_TRANSFORM),
    MATRIX(IN_MODEL(output.weight), "lm_head.decoder.weight", WORDS, EMBEDDING, RULE_OPTIONAL),
    VECTOR(IN_MODEL(output.bias), "lm_head.bias lm_head.decoder.bias", WORDS, RULE_OPTIONAL),
    LINEAR(IN_MODEL(label), "classifier.out_proj", ANY, WIDTH,
           RULE_BIAS | RULE_OPTIONAL | RULE_SEQUENCE_LABELS),
    LINEAR(IN_MODEL(label_transform), "classifier.dense", WIDTH, WIDTH, RULE_BIAS | RULE_LABELS),
    RULES_END};

const tensor_layout roberta_layout = {.prefix = "roberta.",
                                      .layers = "encoder.layer.#.",
                                      .output_needs_transform = true,
                                      .tables = {bert_embedding, bert_layer, roberta_heads}};

static const tensor_rule electra_heads[] = {
    LINEAR(IN_MODEL(transform), "generator_predictions.dense", EMBEDDING, WIDTH,
           RULE_BIAS | RULE_OPTIONAL),
    NORM(IN_MODEL(transform_norm), "generator_predictions.LayerNorm", EMBEDDING, RULE_TRANSFORM),
    LINEAR(IN_MODEL(output), "generator_lm_head", WORDS, EMBEDDING,
           RULE_BIAS_MAYBE | RULE_OPTIONAL),
    VECTOR(IN_MODEL(output.bias), "generator_lm_head.bias", WORDS, RULE_OPTIONAL),
    LINEAR(IN_MODEL(label), "classifier.out_proj", ANY, WIDTH,
           RULE_BIAS | RULE_OPTIONAL | RULE_SEQUENCE_LABELS),
    LINEAR(IN_MODEL(label_transform), "classifier.dense", WIDTH, WIDTH, RULE_BIAS | RULE_LABELS),
    RULES_END};

const tensor_layout electra_layout = {.prefix = "electra.",
                                      .layers = "encoder.layer.#.",
                                      .output_needs_transform = true,
                                      .tables = {bert_embedding, bert_layer, electra_heads}};

static const tensor_rule albert_layer[] = {
    LINEAR(IN_LAYER(self.q), "attention.query", QUERIES, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(self.k), "attention.key", KEYS, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(self.v), "attention.value", KEYS, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(self.o), "attention.dense", WIDTH, QUERIES, RULE_BIAS),
    NORM(IN_LAYER(self.norms.after), "attention.LayerNorm", WIDTH, 0),
    LINEAR(IN_LAYER(ff.up), "ffn", INNER, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(ff.down), "ffn_output", WIDTH, INNER, RULE_BIAS),
    NORM(IN_LAYER(ff.norms.after), "full_layer_layer_norm", WIDTH, 0),
    LINEAR(IN_MODEL(transform), "predictions.dense", EMBEDDING, WIDTH, RULE_BIAS | RULE_OPTIONAL),
    NORM(IN_MODEL(transform_norm), "predictions.LayerNorm", EMBEDDING, RULE_TRANSFORM),
    MATRIX(IN_MODEL(output.weight), "predictions.decoder.weight", WORDS, EMBEDDING, RULE_OPTIONAL),
    VECTOR(IN_MODEL(output.bias), "predictions.bias predictions.decoder.bias", WORDS,
           RULE_OPTIONAL),
    LINEAR(IN_MODEL(label), "classifier", ANY, WIDTH,
           RULE_BIAS | RULE_OPTIONAL | RULE_SEQUENCE_LABELS),
    RULES_END};

/* All layers have the weights of one, or each has its own. */
const tensor_layout albert_layout = {.prefix = "albert.",
                                     .layers = "encoder.albert_layer_groups.#.albert_layers.0.",
                                     .output_needs_transform = true,
                                     .tables = {bert_embedding, albert_layer}};

static const tensor_rule distilbert_rules[] = {
    MATRIX(IN_STACK(tokens), "embeddings.word_embeddings.weight", WORDS, EMBEDDING, 0),
    MATRIX(IN_STACK(position), "embeddings.position_embeddings.weight", POSITIONS, EMBEDDING, 0),
    NORM(IN_STACK(embedding_norm), "embeddings.LayerNorm", EMBEDDING, 0),
    LINEAR(IN_LAYER(self.q), "attention.q_lin", QUERIES, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(self.k), "attention.k_lin", KEYS, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(self.v), "attention.v_lin", KEYS, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(self.o), "attention.out_lin", WIDTH, QUERIES, RULE_BIAS),
    NORM(IN_LAYER(self.norms.after), "sa_layer_norm", WIDTH, 0),
    LINEAR(IN_LAYER(ff.up), "ffn.lin1", INNER, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(ff.down), "ffn.lin2", WIDTH, INNER, RULE_BIAS),
    NORM(IN_LAYER(ff.norms.after), "output_layer_norm", WIDTH, 0),
    LINEAR(IN_MODEL(transform), "vocab_transform", WIDTH, WIDTH, RULE_BIAS | RULE_OPTIONAL),
    NORM(IN_MODEL(transform_norm), "vocab_layer_norm", WIDTH, RULE_TRANSFORM),
    MATRIX(IN_MODEL(output.weight), "vocab_projector.weight", WORDS, EMBEDDING, RULE_OPTIONAL),
    VECTOR(IN_MODEL(output.bias), "vocab_projector.bias", WORDS, RULE_OPTIONAL),
    LINEAR(IN_MODEL(label), "classifier", ANY, WIDTH,
           RULE_BIAS | RULE_OPTIONAL | RULE_SEQUENCE_LABELS),
    LINEAR(IN_MODEL(label_transform), "pre_classifier", WIDTH, WIDTH, RULE_BIAS | RULE_LABELS),
    RULES_END};

const tensor_layout distilbert_layout = {.prefix = "distilbert.",
                                         .layers = "transformer.layer.#.",
                                         .output_needs_transform = true,
                                         .tables = {distilbert_rules}};

/* ------------------------------------------------------------- GGUF's BERT ----- */

static const tensor_rule gguf_bert_rules[] = {
    MATRIX(IN_STACK(tokens), "token_embd.weight", WORDS, EMBEDDING, 0),
    MATRIX(IN_STACK(position), "position_embd.weight", POSITIONS, EMBEDDING, 0),
    MATRIX(IN_STACK(segments), "token_types.weight", SEGMENTS, EMBEDDING, RULE_SEGMENTS),
    NORM(IN_STACK(embedding_norm), "token_embd_norm", EMBEDDING, 0),
    LINEAR(IN_LAYER(self.q), "attn_q", QUERIES, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(self.k), "attn_k", KEYS, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(self.v), "attn_v", KEYS, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(self.o), "attn_output", WIDTH, QUERIES, RULE_BIAS),
    NORM(IN_LAYER(self.norms.after), "attn_output_norm", WIDTH, 0),
    LINEAR(IN_LAYER(ff.up), "ffn_up", INNER, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(ff.down), "ffn_down", WIDTH, INNER, RULE_BIAS),
    NORM(IN_LAYER(ff.norms.after), "layer_output_norm", WIDTH, 0),
    RULES_END};

const tensor_layout gguf_bert_layout = {
    .prefix = "", .layers = "blk.#.", .output_needs_transform = true, .tables = {gguf_bert_rules}};

/* -------------------------------------------------------------------- ViT ----- */

/* The longer names are those of published files, the shorter ones those of transformers 5. */
static const tensor_rule vit_rules[] = {
    LINEAR(IN_STACK(patches), "embeddings.patch_embeddings.projection", WIDTH, PATCH, RULE_BIAS),
    MATRIX(IN_STACK(position), "embeddings.position_embeddings", POSITIONS, WIDTH, 0),
    VECTOR(IN_STACK(class_token), "embeddings.cls_token", WIDTH, RULE_EXTRA),
    NORM(IN_STACK(final_norm), "layernorm", WIDTH, 0),
    NORM(IN_LAYER(self.norms.before), "layernorm_before", WIDTH, 0),
    LINEAR(IN_LAYER(self.q), "attention.attention.query attention.q_proj", QUERIES, WIDTH,
           RULE_BIAS_MAYBE),
    LINEAR(IN_LAYER(self.k), "attention.attention.key attention.k_proj", KEYS, WIDTH,
           RULE_BIAS_MAYBE),
    LINEAR(IN_LAYER(self.v), "attention.attention.value attention.v_proj", KEYS, WIDTH,
           RULE_BIAS_MAYBE),
    LINEAR(IN_LAYER(self.o), "attention.output.dense attention.o_proj", WIDTH, QUERIES, RULE_BIAS),
    NORM(IN_LAYER(ff.norms.before), "layernorm_after", WIDTH, 0),
    LINEAR(IN_LAYER(ff.up), "intermediate.dense mlp.fc1", INNER, WIDTH, RULE_BIAS),
    LINEAR(IN_LAYER(ff.down), "output.dense mlp.fc2", WIDTH, INNER, RULE_BIAS),
    LINEAR(IN_MODEL(pooler), "pooler.dense", WIDTH, WIDTH, RULE_BIAS | RULE_OPTIONAL),
    LINEAR(IN_MODEL(label), "classifier cls_classifier", ANY, WIDTH, RULE_BIAS | RULE_OPTIONAL),
    RULES_END};

static const tensor_rule deit_rules[] = {
    VECTOR(IN_STACK(distillation_token), "embeddings.distillation_token", WIDTH, 0),
    LINEAR(IN_MODEL(label_distilled), "distillation_classifier", ANY, WIDTH,
           RULE_BIAS | RULE_OPTIONAL),
    RULES_END};

const tensor_layout vit_layout = {.prefix = "vit.",
                                  .layers = "encoder.layer.#. layers.#.",
                                  .output_needs_transform = true,
                                  .tables = {vit_rules}};

const tensor_layout deit_layout = {.prefix = "deit.",
                                   .layers = "encoder.layer.#. layers.#.",
                                   .output_needs_transform = true,
                                   .tables = {vit_rules, deit_rules}};
