/* SPDX-License-Identifier: MIT */
/*
 * The way of a head's output along the residual stream to the logit of a word, past all other parts
 * of the model: their outputs are what they were. All of it is computed in double.
 *
 *      direct_walk()       follows the stream of a row, with the deviations that its norms have, or
 *                          with given ones, and with or without the output of a head
 *      direct_gradient()   the same way backwards: with given deviations the logit is linear in
 *                          what every head adds
 *
 * The logit of a word is its own minus the mean of all words, without the part that is due to the
 * bias of the output matrix, and before a cap.
 */
#ifndef HEADS_DIRECT_PATH_H
#define HEADS_DIRECT_PATH_H

#include "heads/head_names.h"
#include "model/stream_path.h"
#include "translator/translator.h"

typedef struct direct_path {
    const mha_model *model; /* NULL: a translator */
    const translator *translator;
    stream_path stream;
    stream_part *parts;  /* [stream.parts] */
    int *attentions;     /* [attention_count] the parts that are attentions */
    float **projections; /* [attention_count] W_O: [width][inner] */
    int attention_count;
    ptrdiff_t head_width, inner; /* inner: heads * head_width */
    double *mean_word;           /* [width] */
} direct_path;

/* MHA_ERR_FLAG: the model has no such path; MHA_ERR_DTYPE: its matrices cannot be read.
 * direct_path_free() either way. */
mha_status direct_path_make(direct_path *path, const mha_model *model, head_shape shape);
mha_status direct_path_of_translator(direct_path *path, const translator *model);
void direct_path_free(direct_path *path);

/* Deviations of a row: of the norms inside of and after each part, and of the last norm. */
static inline ptrdiff_t direct_norms(const direct_path *path)
{
    return 2 * (ptrdiff_t)path->stream.parts + 1;
}

/* to[width] = the direction of a word, for the functions below. */
mha_status direct_word(const direct_path *path, int32_t word, float *row, double *to);

/* *to = the part of a word's logit that is due to the bias of the output matrix, minus its mean. */
mha_status direct_bias(const direct_path *path, int32_t word, double *to);

/* What a run of the model gave, f32: streams[0] and parts of mha_model_call. */
typedef struct direct_rows {
    const float *embedded; /* [rows][width] */
    const float *parts;    /* [parts][rows][width] */
    int64_t rows;
} direct_rows;

/* What is taken away from a part; `part` -1: nothing. */
typedef struct direct_removal {
    int part;
    const double *output; /* [width] */
} direct_removal;

/* The logit of a row in the direction `word`. inverse[direct_norms()]: 1 / the deviation of every
 * norm, read if `held`, else written. room: 2 * width numbers. */
double direct_walk(const direct_path *path, const direct_rows *run, int64_t row, const double *word,
                   const direct_removal *removal, bool held, double *inverse, double *room);

/* What a logit is the sum of, with given deviations; see direct_gradient(). */
typedef struct direct_sums {
    const direct_rows *run;
    int64_t row;
    double embedded; /* the stream before the first part */
    double norms;    /* the biases of all norms */
    double *parts;   /* [stream.parts] what each part computes */
} direct_sums;

/* pulled[attention_count][inner] = the gradient of the logit of a row with respect to the outputs
 * of all heads, before W_O, with these deviations. sums: NULL, or filled from its run. room: 2 *
 * width numbers. */
void direct_gradient(const direct_path *path, const double *word, const double *inverse,
                     float *pulled, direct_sums *sums, double *room);

/* to[width] = W_O times the output of one head, [head_width]. */
void direct_output(const direct_path *path, int attention, int head, const float *output,
                   double *to);

#endif
