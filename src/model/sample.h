/* SPDX-License-Identifier: MIT */
/* Chooses tokens by their logits. */
#ifndef MODEL_SAMPLE_H
#define MODEL_SAMPLE_H

#include <mha/mha_model.h>

/* The natural logarithm of the softmax at `id`. */
double sample_log_probability(const float *logits, ptrdiff_t words, int32_t id);

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
