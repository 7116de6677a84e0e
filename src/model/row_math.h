/* SPDX-License-Identifier: MIT */
/*
 * What a transformer does to one row of numbers between its products. Every sum has one order.
 */
#ifndef MODEL_ROW_MATH_H
#define MODEL_ROW_MATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* y += x */
void row_add(const float *x, int width, float *y);

/* y = embedding * scale + code. y may be code. */
void row_embed(const float *embedding, float scale, const float *code, int width, float *y);

/* x = max(x, 0); NaN stays. */
void row_relu(float *x, int width);

/* The way back, from the gradient of y = relu(x) to that of x, in place. */
void row_relu_backward(const float *y, int width, float *d_x);

/* ---------------------------------------------------------------- norm ----- */

/* y = (x - mean) / deviation * weight + bias; stats = {mean, 1 / deviation}. y may be x. */
void row_norm(const float *x, int width, const float *weight, const float *bias, float *y,
              float stats[2]);

/* The way back: d_x += the gradient of x; d_weight and d_bias += those of weight and bias. */
void row_norm_backward(const float *x, const float stats[2], const float *weight, const float *d_y,
                       int width, float *d_x, float *d_weight, float *d_bias);

/* ------------------------------------------------------------- dropout ----- */

/* One place where numbers are dropped, the others grow instead. Which ones follows from key, row
 * and column alone. */
typedef struct row_dropout {
    uint64_t key;
    uint32_t threshold; /* of 65536; 0: nothing is dropped */
    float scale;
} row_dropout;

/* probability in [0, 1): nearest multiple of 1/65536. */
row_dropout row_dropout_make(double probability, uint64_t key);

/* y = x, dropped out. y may be x. */
void row_drop(const row_dropout *dropout, ptrdiff_t row, const float *x, int width, float *y);

/* ------------------------------------------------------------- softmax ----- */

typedef struct row_score {
    double loss; /* negative logarithm of the probability of the expected word */
    bool right;  /* no word is likelier */
} row_score;

/* The score of a row of logits, of which exp(logit - largest) remains, and the sum of these. */
row_score row_softmax(float *logits, int words, int expected, float *sum);

/* From there to share * d(loss)/d(logits), when `smoothing` of the target is spread over all
 * words. */
void row_softmax_backward(float *logits, int words, int expected, float sum, float smoothing,
                          float share);

#endif
