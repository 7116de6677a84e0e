/* SPDX-License-Identifier: MIT */
/* Chooses tokens by their logits. */
#ifndef MODEL_SAMPLE_H
#define MODEL_SAMPLE_H

#include <mha/mha_model.h>

/* The natural logarithm of the sum of exp(logit): a token's log-probability is its logit minus
 * this. NaN if a logit is NaN or infinite. */
double sample_log_total(const float *logits, ptrdiff_t words);

/* The ids with the largest logits, in descending order, of equal ones the first; forbidden ones are
 * left out. Returns their number, at most `room`. */
ptrdiff_t sample_best(const float *logits, ptrdiff_t words, const int32_t *forbidden,
                      ptrdiff_t forbidden_count, ptrdiff_t room, int32_t *ids);

typedef struct sample_request {
    const mha_sampling *sampling;
    const float *logits;
    ptrdiff_t words;
    const int32_t *history; /* tokens before, for the repetition penalty */
    ptrdiff_t history_count;
    const int32_t *forbidden;
    ptrdiff_t forbidden_count;
    double draw;      /* a random number in [0, 1) */
    float *scores;    /* [words], for use here */
    int32_t *ordered; /* [words], for use here */
} sample_request;

/*
 * Repetition penalty and forbidden tokens, then temperature, then the k most probable ones, of
 * these the most probable ones that together reach top_p, of these those that have at least min_p
 * of the probability of the first; one is drawn. Equal logits are ordered by their ids.
 */
int32_t sample_token(const sample_request *request);

#endif
