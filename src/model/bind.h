/* SPDX-License-Identifier: MIT */
/*
 * From the names of tensors to their places in a model. Every family has a layout: tables of rules,
 * and a rule says where a tensor goes, how it may be called, and what extents it must have.
 *
 * In names, "@" stands for "encoder" or "decoder" and "#" for the number of the layer. Alternatives
 * are separated by blanks.
 */
#ifndef MODEL_BIND_H
#define MODEL_BIND_H

#include "model/binding.h"

typedef enum tensor_scope {
    SCOPE_MODEL, /* offset in model_binding */
    SCOPE_STACK, /* in bound_stack */
    SCOPE_LAYER  /* in bound_layer; the name follows one of the layer prefixes */
} tensor_scope;

/* Names of linears and norms are without ".weight" and ".bias". */
typedef enum tensor_form { FORM_MATRIX, FORM_VECTOR, FORM_LINEAR, FORM_NORM } tensor_form;

typedef enum tensor_extent {
    EXTENT_ANY,
    EXTENT_ONE, /* of a vector: it has no second extent */
    EXTENT_WIDTH,
    EXTENT_EMBEDDING, /* width of the embedding */
    EXTENT_INNER,
    EXTENT_QUERIES, /* heads * head width */
    EXTENT_KEYS,    /* key/value heads * head width */
    EXTENT_HEAD,
    EXTENT_HEADS,
    EXTENT_WORDS,
    EXTENT_POSITIONS,
    EXTENT_SEGMENTS,
    EXTENT_BUCKETS,
    EXTENT_PATCH /* channels * patch * patch */
} tensor_extent;

/* Outputs of a tensor that has those of several matrices, one after the other. */
typedef enum tensor_part {
    PART_ALL,
    PART_QKV_Q,
    PART_QKV_K,
    PART_QKV_V,
    PART_KV_K,
    PART_KV_V
} tensor_part;

enum {
    RULE_OPTIONAL = 1 << 0,
    RULE_BIAS = 1 << 1,       /* a linear has a bias */
    RULE_BIAS_MAYBE = 1 << 2, /* it may have one */
    RULE_TRANSPOSED = 1 << 3, /* stored as [inputs][outputs] (GPT-2) */
    RULE_ENCODER = 1 << 4,    /* only this stack */
    RULE_DECODER = 1 << 5,
    /* The rule holds only for models of this kind. */
    RULE_NORM_FIRST = 1 << 6,
    RULE_NORM_LAST = 1 << 7,
    RULE_GATED = 1 << 8,
    RULE_NOT_GATED = 1 << 9,
    RULE_QK_NORM = 1 << 10,
    RULE_LEARNED = 1 << 11,  /* learned positions */
    RULE_PROJECT = 1 << 12,  /* the embedding has another width than the model */
    RULE_SEGMENTS = 1 << 13, /* token types */
    RULE_SEQUENCE_LABELS = 1 << 14,
    RULE_TRANSFORM = 1 << 15, /* there is a transform before the output */
    RULE_LABELS = 1 << 16,    /* there is a classifier */
    RULE_EXTRA = 1 << 17      /* there are tokens before the patches */
};

typedef struct tensor_rule {
    tensor_scope scope;
    tensor_form form;
    size_t at;
    const char *names; /* NULL ends a table */
    tensor_extent outputs, inputs;
    unsigned flags;
    tensor_part part;
} tensor_rule;

enum { LAYOUT_TABLES_MAX = 4 };
typedef struct tensor_layout {
    const char *prefix; /* that all names may have, such as "bert." */
    const char *layers; /* what the names of a layer begin with; alternatives */
    const char *probe;  /* a tensor that only this layout of the family has */
    bool output_needs_transform, tied_if_missing;
    const tensor_rule *tables[LAYOUT_TABLES_MAX];
} tensor_layout;

extern const tensor_layout bert_layout, roberta_layout, distilbert_layout, albert_layout,
    electra_layout, vit_layout, deit_layout, gpt2_layout, llama_layout, llama2c_layout,
    gemma2_layout, t5_layout, bart_layout, pair_layout, opennmt_layout, gguf_bert_layout,
    gguf_gpt2_layout, gguf_llama_layout, gguf_gemma2_layout;

/* Finds all tensors of a model and checks their extents. `d` receives what only tensors say:
 * labels, and whether the output is tied. On error everything is freed. */
mha_status model_bind(model_binding *binding, model_description *d, const weight_source *source,
                      const tensor_layout *layout, const char *path, char *message,
                      size_t message_size);
void model_binding_free(model_binding *binding);

#endif
