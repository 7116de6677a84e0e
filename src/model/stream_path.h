/* SPDX-License-Identifier: MIT */
/*
 * The residual stream of the stack that reads ids as a path from the embeddings to the logits, for
 * tools that follow what single parts and heads add to it:
 *
 *      x = streams[0] of mha_model_call
 *      for every part: x = after(x + inside(what the part computes))     parts of mha_model_call
 *      logit of word w = output row w . last(x)
 *
 * A norm without a weight is left out: a model whose norms come before its parts has only `last`,
 * one whose norms come after them only `after`.
 */
#ifndef MODEL_STREAM_PATH_H
#define MODEL_STREAM_PATH_H

#include <stdbool.h>

#include <mha/mha_model.h>

/* The weights belong to the model. */
typedef struct stream_norm {
    const float *weight, *bias; /* [width]; weight NULL: no norm; bias NULL: 0 */
} stream_norm;

typedef struct stream_part {
    bool is_attention;
    mha_attention_kind kind; /* of an attention */
    int layer;
    stream_norm inside, after;
} stream_part;

typedef struct stream_path {
    ptrdiff_t width;
    int parts;
    bool centred; /* norms subtract the mean */
    double eps;
    stream_norm last;
} stream_path;

/* False: the logits are not the output matrix times the rows of this path. */
bool stream_path_of(const mha_model *model, stream_path *path);
stream_part stream_path_part(const mha_model *model, int part);

/* to[width][H * head width] = W_O of an attention. MHA_ERR_DTYPE: it is not stored in a type that
 * can be read row by row; of the next two, too. */
mha_status stream_path_projection(const mha_model *model, mha_attention_kind kind, int layer,
                                  float *to);

/* to[width] = the row of the output matrix of a word, times the model's factor of its input; and
 * the mean of those of all words. */
mha_status stream_path_word(const mha_model *model, ptrdiff_t word, float *to);
mha_status stream_path_mean_word(const mha_model *model, double *to);

/* *to = the bias of a word's logit minus the mean of those of all words; 0 if the model has none.
 */
mha_status stream_path_bias(const mha_model *model, ptrdiff_t word, double *to);

#endif
