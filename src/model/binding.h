/* SPDX-License-Identifier: MIT */
/*
 * Where each weight of a model is: views of the tensors of its files, by their place in the model
 * and not by name. NULL data: the model has no such weight. Extents are checked against the
 * description when the binding is made.
 */
#ifndef MODEL_BINDING_H
#define MODEL_BINDING_H

#include "format/weight_source.h"
#include "model/description.h"

/* The weight from input c to output n is element n*out_stride + c*in_stride. Block types have
 * in_stride 1. */
typedef struct bound_matrix {
    const void *data;
    mha_dtype type;
    ptrdiff_t outputs, inputs, out_stride, in_stride;
    const weight_tensor *tensor; /* that it is a part of */
    ptrdiff_t first;             /* which output of the tensor is its first one */
} bound_matrix;

typedef struct bound_vector {
    const void *data;
    mha_dtype type;
    ptrdiff_t count;
    const weight_tensor *tensor; /* as of a matrix */
    ptrdiff_t first;
} bound_vector;

typedef struct bound_norm {
    bound_vector weight, bias;
} bound_norm;

typedef struct bound_linear {
    bound_matrix weight;
    bound_vector bias;
} bound_linear;

typedef struct bound_norms {
    bound_norm before, inside, after;
} bound_norms;

/* Heads are the outputs of q and k: a layer of a pruned model may have fewer than others. */
typedef struct bound_attention {
    bound_norms norms;
    bound_linear q, k, v, o;
    bound_vector q_norm, k_norm;
} bound_attention;

typedef struct bound_feed_forward {
    bound_norms norms;
    bound_linear gate, up, down;
} bound_feed_forward;

typedef struct bound_layer {
    bound_attention self, cross;
    bound_feed_forward ff;
} bound_layer;

typedef struct bound_stack {
    bound_layer *layers;            /* [layers], or 1 if they are shared */
    bound_matrix tokens;            /* rows are tokens: [vocabulary][embedding width] */
    bound_matrix position;          /* POSITION_LEARNED: [positions][width] */
    bound_matrix segments;          /* token types */
    bound_norm embedding_norm;      /* of the sum */
    bound_linear embedding_project; /* ALBERT: embedding width to width */
    bound_norm final_norm;
    bound_matrix relative; /* POSITION_RELATIVE: [buckets][heads] */
    bound_linear patches;  /* ViT: channels * patch * patch to width */
    bound_vector class_token, distillation_token;
} bound_stack;

typedef struct model_binding {
    bound_stack stack[STACKS];
    bound_linear transform; /* BERT: before the output matrix; width to embedding width */
    bound_norm transform_norm;
    bound_linear output; /* to logits; the weight may be that of the embedding */
    bound_linear pooler;
    bound_linear label_transform, label; /* classifier */
    bound_linear label_distilled; /* DeiT: label for the second token; the labels are the mean */
    int64_t parameters;           /* every weight counted once */
    void **copies;                /* tensors that were not aligned to their elements, owned */
    size_t copy_count;
} model_binding;

/* A model's files, described and bound: the input of the forward pass. */
typedef struct model_files {
    weight_source *source;
    model_description description;
    model_binding binding;
    char *path;                  /* that was opened, owned */
    char *folder;                /* of config.json, owned; NULL: a single file says everything */
    char *tokenizer_path;        /* owned; NULL: none was found */
    char *target_tokenizer_path; /* owned; NULL: the same */
} model_files;

/* Opens, describes and binds whatever is at `path`. On error everything is freed. The caller ends
 * with model_files_close(). */
mha_status model_files_open(model_files *files, const char *path, char *message,
                            size_t message_size);
void model_files_close(model_files *files);

/* The text of mha_model_describe() from the table. */
size_t model_files_describe(const model_files *files, size_t memory_bytes, const char *arithmetic,
                            char *text, size_t size);

#endif
