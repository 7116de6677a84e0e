/* SPDX-License-Identifier: MIT */
/*
 * What a tool that looks at single heads needs beyond <mha/mha_model.h>: how long the values of a
 * head are after W_O, the factor of its scores, and where a decoder begins.
 */
#ifndef MODEL_INSPECT_H
#define MODEL_INSPECT_H

#include <stdbool.h>

#include <mha/mha_model.h>

/*
 * norms[H][columns] = |W_O v|, with the columns of W_O that read head h. v: [G][columns][D], as
 * mha_capture has it; head h reads key/value head h / (H / G). MHA_ERR_INDEX: there is no such
 * attention. MHA_ERR_DTYPE: W_O is not stored in a type that can be read row by row.
 */
mha_status model_value_norms(const mha_model *model, mha_attention_kind kind, ptrdiff_t layer,
                             const float *v, ptrdiff_t columns, float *norms);

/* The factor of q . k in the scores of an attention; 0: there is no such attention. */
float model_score_scale(const mha_model *model, mha_attention_kind kind, ptrdiff_t layer);

/* Whether scores have another part than q . k: a position bias (T5), or a cap. */
bool model_scores_differ(const mha_model *model, mha_attention_kind kind, ptrdiff_t layer);

/* How queries and keys are rotated, with width and base or frequencies, which belong to the model;
 * MHA_ROPE_NONE: they are not. */
mha_rope model_rotation(const mha_model *model, mha_attention_kind kind, ptrdiff_t layer);

/* Whether the queries and keys of every head are normed, before they are rotated. */
bool model_norms_heads(const mha_model *model, mha_attention_kind kind);

/* The kind of all norms of the stream, and what is added to their variances. */
mha_norm model_norm_kind(const mha_model *model, float *eps);

/* The first token that the decoder of an encoder-decoder reads; -1: the files do not say. */
int32_t model_decoder_start(const mha_model *model);

/* The tokens of an image encoder before its patches: of a class, of distillation. */
int model_picture_marks(const mha_model *model);

/* Pixels from one of its patches to the next, and patches along a side. */
int model_picture_stride(const mha_model *model);
int model_picture_across(const mha_model *model);

/* How the hidden states of an encoder become the vector of a text; never MHA_POOLING_MODEL. */
mha_pooling model_pooling(const mha_model *model);

/* The matrices of an attention. */
typedef enum model_projection {
    MODEL_PROJECTION_Q,
    MODEL_PROJECTION_K,
    MODEL_PROJECTION_V,
    MODEL_PROJECTION_O,
    MODEL_PROJECTIONS
} model_projection;

/* The extents of a matrix. Then weight[outputs][inputs] and bias[outputs], 0 if there is none, as
 * f32 of the model's files. MHA_ERR_INDEX: there is no such attention. MHA_ERR_DTYPE: the matrix is
 * not stored in a type that can be read row by row. */
mha_status model_projection_size(const mha_model *model, mha_attention_kind kind, ptrdiff_t layer,
                                 model_projection which, ptrdiff_t *outputs, ptrdiff_t *inputs);
mha_status model_projection_read(const mha_model *model, mha_attention_kind kind, ptrdiff_t layer,
                                 model_projection which, float *weight, float *bias);

/* Parts of every layer of the stack that reads ids: 2, or 3 with cross-attention. */
int model_layer_parts(const mha_model *model);

/* Whether the norms of that stack come before its parts. */
bool model_norm_first(const mha_model *model);

/*
 * The steps around a part, which are counted as in mha_model_call, from the stream before it and
 * from what it computed: input = before(stream), after = after(stream + inside(computed)); norms
 * that the model does not have are left out. All are [rows][width]. MHA_ERR_MEMORY: out of memory.
 */
mha_status model_part_steps(const mha_model *model, int part, ptrdiff_t rows, const float *stream,
                            const float *computed, float *input, float *after);

/*
 * logits[rows][vocabulary] of rows of the stream, [rows][width], as if no layer came after them:
 * the last norm, if the model has one, and the output matrix. Of the stream after the last layer
 * these are the logits of the model, to the bit. MHA_ERR_FLAG: the model predicts no tokens.
 */
mha_status model_lens(const mha_model *model, ptrdiff_t rows, const float *stream, float *logits,
                      mha_pool *pool);

#endif
