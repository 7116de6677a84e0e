/* SPDX-License-Identifier: MIT */
/*
 * Everything that the heads of a translator compute on one sentence pair. The decoder reads the
 * target words that are given (teacher forcing), so rows and columns are known in advance.
 *
 *      kind      rows                             columns
 *      encoder   source words, end included       the same
 *      decoder   WORD_BEGIN, target words         the same, up to the row
 *      cross     WORD_BEGIN, target words         source words, end included
 *
 * Row i of decoder and cross predicts expected word i: target word i or, after the last one,
 * WORD_END.
 */
#ifndef HEADS_CAPTURE_H
#define HEADS_CAPTURE_H

#include "translator/head_settings.h"
#include "translator/translator.h"

typedef struct capture_options {
    const uint8_t *changes[ATTENTION_KINDS]; /* [layers][heads] of head_mode; NULL: none */
    const float *means[ATTENTION_KINDS];     /* [layers][heads][width of a head], for HEAD_MEAN */
    bool weights;                            /* capture the weights */
    bool vectors;                            /* capture all arrays of capture_heads */
} capture_options;

/* The heads of one kind. Arrays that were not requested are NULL. */
typedef struct capture_heads {
    int layers, heads, rows, columns, width; /* width of a head */
    float *weights;                          /* [layers][heads][rows][columns] */
    float *q;           /* [layers][heads][rows][width], as in q . k / sqrt(width) */
    float *k, *v;       /* [layers][heads][columns][width] */
    float *value_norms; /* [layers][heads][columns]: |W_O v_j|, with the head's part of W_O */
    float *outputs;     /* [layers][heads][rows][width]: weights times values, before W_O */
    float *direct;      /* [layers][heads][rows]: direct effect, what the head adds to the row's
                         * `logit` through the last norm alone, with the deviation of that norm as
                         * it is. NULL for the encoder: its heads reach the logits only through
                         * cross-attention */
} capture_heads;

typedef struct capture {
    int source[CORPUS_TOKENS_MAX], source_count; /* WORD_END included */
    int target[CORPUS_TOKENS_MAX], target_count; /* the decoder's input, WORD_BEGIN first */
    int expected[CORPUS_TOKENS_MAX];             /* [target_count] the right next words */
    int predicted[CORPUS_TOKENS_MAX];         /* [target_count] of largest logit; not WORD_BEGIN */
    double log_likelihood[CORPUS_TOKENS_MAX]; /* of the expected words */
    double logit[CORPUS_TOKENS_MAX];      /* of the expected words, minus the mean of all words */
    double deviation[CORPUS_TOKENS_MAX];  /* of the last norm; only with vectors, as the next */
    double norm_logit[CORPUS_TOKENS_MAX]; /* the part of `logit` that is due to the norm's bias */
    capture_heads kind[ATTENTION_KINDS];
} capture;

/* Runs the model on a pair; source and target are word numbers without WORD_BEGIN and WORD_END.
 * NULL: out of memory, or words that the model does not have, or too many of them. */
capture *capture_create(const translator *model, const int *source, int source_count,
                        const int *target, int target_count, const capture_options *options,
                        mha_pool *pool);
void capture_free(capture *capture);

#endif
