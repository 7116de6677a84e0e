/* SPDX-License-Identifier: MIT */
/*
 * What every head of a translator does on one sentence pair: the decoder reads the target words
 * that are given, so that rows and columns are known before.
 *
 *      kind      rows                             columns
 *      encoder   source words, end included       the same
 *      decoder   WORD_BEGIN, target words         the same, up to the row
 *      cross     WORD_BEGIN, target words         source words, end included
 *
 * Row i of decoder and cross is the one that says expected word i: the target word i, then
 * WORD_END.
 */
#ifndef HEADS_CAPTURE_H
#define HEADS_CAPTURE_H

#include "model/head_settings.h"
#include "model/translator.h"

typedef struct capture_options {
    const uint8_t *changes[ATTENTION_KINDS]; /* [layers][heads] of head_mode; NULL: none */
    const float *means[ATTENTION_KINDS];     /* [layers][heads][width of a head], for HEAD_MEAN */
    bool weights;                            /* keep weights */
    bool vectors;                            /* keep the other arrays of capture_heads */
} capture_options;

typedef struct capture_heads {
    int layers, heads, rows, columns, width; /* width of a head */
    float *weights;                          /* [layers][heads][rows][columns] */
    float *q;           /* [layers][heads][rows][width], as in q . k / sqrt(width) */
    float *k, *v;       /* [layers][heads][columns][width] */
    float *value_norms; /* [layers][heads][columns]: |v_j W_O of the head| */
    float *outputs;     /* [layers][heads][rows][width]: of the heads, before W_O */
    float *direct;      /* [layers][heads][rows]: what the head itself adds to the row's `logit`, by
                         * way of the last norm alone, its deviation held; NULL for the encoder, whose
                         * heads reach the logits only through others */
} capture_heads;

typedef struct capture {
    int source[CORPUS_TOKENS_MAX], source_count; /* WORD_END included */
    int target[CORPUS_TOKENS_MAX], target_count; /* what the decoder reads, WORD_BEGIN first */
    int expected[CORPUS_TOKENS_MAX];             /* [target_count] what it is to say */
    int predicted[CORPUS_TOKENS_MAX];            /* [target_count] what it says; never WORD_BEGIN */
    double log_likelihood[CORPUS_TOKENS_MAX];    /* of the expected words */
    double logit[CORPUS_TOKENS_MAX];             /* of the expected words, less the mean of all */
    double deviation[CORPUS_TOKENS_MAX];         /* in the last norm; with vectors, as the next */
    double norm_logit[CORPUS_TOKENS_MAX];        /* the part of `logit` that its bias gives */
    capture_heads kind[ATTENTION_KINDS];
} capture;

/* NULL: no memory, or words that the model does not have. source and target without special words
 * at their ends. */
capture *capture_create(const translator *model, const int *source, int source_count,
                        const int *target, int target_count, const capture_options *options,
                        mha_pool *pool);
void capture_free(capture *capture);

#endif
