/* SPDX-License-Identifier: MIT */
/*
 * AdamW, the gradient clipped and the learning rate on a schedule:
 *
 *      g = gradient * min(1, clip / norm)
 *      mean   = beta1 * mean   + (1 - beta1) * g
 *      square = beta2 * square + (1 - beta2) * g^2
 *      value -= rate * (mean' / (sqrt(square') + epsilon) + weight_decay * value)
 *
 * where mean' = mean / (1 - beta1^t) and square' = square / (1 - beta2^t) in step t, from 1, take
 * off that both began at 0. The bits do not depend on the number of threads.
 */
#ifndef MODEL_OPTIMIZER_H
#define MODEL_OPTIMIZER_H

#include "model/training.h"

/* Elements [first, first + count) of one tensor: one task, and one part of the norm's sum. */
typedef struct optimizer_piece {
    size_t first, count;
    bool decays;
} optimizer_piece;

typedef struct optimizer {
    size_t count;         /* parameters */
    float *mean, *square; /* [count], 0 at first */
    optimizer_piece *pieces;
    size_t piece_count;
    double *sums; /* of squares, one a piece */
} optimizer;

/* False: no memory; nothing is to be freed then. */
bool optimizer_init(optimizer *optimizer, const transformer_config *model);
void optimizer_free(optimizer *optimizer);

/* The learning rate of a step, from 0: a line up to its highest during the warm-up, then half a
 * cosine down to 1 % of that, where it stays. */
double optimizer_rate(const training_config *config, int64_t step);

/* Step number `step`, from 0. Returns the norm of the gradient; one that is not finite changes
 * nothing. */
double optimizer_step(optimizer *optimizer, const training_config *config, int64_t step,
                      const float *gradients, float *values, mha_pool *pool);

#endif
