/* SPDX-License-Identifier: MIT */
/*
 * Operations on one row of numbers: embedding, ReLU, layer norm, dropout, softmax, and their
 * backward passes. Every sum has a fixed order, so the bits are always the same.
 */
#ifndef TRANSLATOR_ROW_MATH_H
#define TRANSLATOR_ROW_MATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* y += x */
void row_add(const float *x, int width, float *y);

/* y = embedding * scale + code. y may be the same as code. */
void row_embed(const float *embedding, float scale, const float *code, int width, float *y);

/* x = max(x, 0); NaN stays NaN. */
void row_relu(float *x, int width);

/* Replaces the gradient of y = relu(x) in d_x by that of x. */
void row_relu_backward(const float *y, int width, float *d_x);

/* ---------------------------------------------------------------- norm ----- */

#define ROW_NORM_EPSILON 1e-5f /* is added to the variance */

/* y = (x - mean) / deviation * weight + bias; stats = {mean, 1 / deviation}. y may be the same as
 * x. */
void row_norm(const float *x, int width, const float *weight, const float *bias, float *y,
              float stats[2]);

/* Adds the gradients of x, weight and bias to d_x, d_weight and d_bias. */
void row_norm_backward(const float *x, const float stats[2], const float *weight, const float *d_y,
                       int width, float *d_x, float *d_weight, float *d_bias);

/* ------------------------------------------------------------- dropout ----- */

/* Dropout at one point of the network: some numbers become 0, the others are scaled up. Which ones
 * depends only on key, row and column. */
typedef struct row_dropout {
    uint64_t key;
    uint32_t threshold; /* probability times 65536; 0: no dropout */
    float scale;
} row_dropout;

/* probability in [0, 1) is rounded to a multiple of 1/65536. */
row_dropout row_dropout_make(double probability, uint64_t key);

/* y = x with dropout applied. y may be the same as x. */
void row_drop(const row_dropout *dropout, ptrdiff_t row, const float *x, int width, float *y);

/* ------------------------------------------------------------- softmax ----- */

typedef struct row_score {
    double loss; /* negative logarithm of the probability of the expected word */
    bool right;  /* no word is more likely */
} row_score;

/* Returns the score of a row of logits. The logits are replaced by exp(logit - largest), and *sum
 * is the sum of these. */
row_score row_softmax(float *logits, int words, int expected, float *sum);

/* Replaces what row_softmax() has left by share * d(loss)/d(logits), for a target of which
 * `smoothing` is spread over all words. */
void row_softmax_backward(float *logits, int words, int expected, float sum, float smoothing,
                          float share);

#endif
