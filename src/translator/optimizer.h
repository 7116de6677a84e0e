/* SPDX-License-Identifier: MIT */
/*
 * AdamW with a clipped gradient and a learning rate schedule:
 *
 *      g = gradient * min(1, clip / norm)
 *      mean   = beta1 * mean   + (1 - beta1) * g
 *      square = beta2 * square + (1 - beta2) * g^2
 *      value -= rate * (mean' / (sqrt(square') + epsilon) + weight_decay * value)
 *
 * where mean' = mean / (1 - beta1^t) and square' = square / (1 - beta2^t), in step t from 1,
 * correct for both starting at 0. The bits do not depend on the number of threads.
 */
#ifndef TRANSLATOR_OPTIMIZER_H
#define TRANSLATOR_OPTIMIZER_H

#include "translator/training.h"

/* Elements [first, first + count) of one tensor: one task, and one partial sum of the norm. */
typedef struct optimizer_piece {
    size_t first, count;
    bool decays;
} optimizer_piece;

typedef struct optimizer {
    size_t count;         /* parameters */
    float *mean, *square; /* [count], initially 0 */
    optimizer_piece *pieces;
    size_t piece_count;
    double *sums; /* sums of squares, one per piece */
} optimizer;

/* Returns false if out of memory; then nothing needs to be freed. */
bool optimizer_init(optimizer *optimizer, const transformer_config *model);
void optimizer_free(optimizer *optimizer);

/* The learning rate of a step, counted from 0: it rises linearly to its maximum during the warm-up,
 * then falls as the schedule says: as half a cosine to 1 % of the maximum, where it stays, or in
 * proportion to 1/sqrt(step). */
double optimizer_rate(const training_config *config, int64_t step);

/* average += share * (values - average), elementwise. */
void optimizer_average(const optimizer *optimizer, const float *values, float share, float *average,
                       mha_pool *pool);

/* Step number `step`, counted from 0. Returns the norm of the gradient; if it is not finite,
 * nothing is changed. */
double optimizer_step(optimizer *optimizer, const training_config *config, int64_t step,
                      const float *gradients, float *values, mha_pool *pool);

#endif
