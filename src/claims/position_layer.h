/* SPDX-License-Identifier: MIT */
/*
 * A small layer that learns to read places: queries and keys are the positions of T tokens, values
 * are one number per token, and a token has to output the numbers of some other places. The heads
 * divide the width T among them, so that the number of weights does not depend on the heads.
 */
#ifndef CLAIMS_POSITION_LAYER_H
#define CLAIMS_POSITION_LAYER_H

#include <mha/mha.h>

/* What is to be learnt. */
typedef struct position_task {
    int tokens, outputs, sequences;
    const float *x;      /* [sequences][tokens] */
    const float *wanted; /* [sequences][tokens][outputs] */
} position_task;

typedef struct position_layer position_layer;

/* The number of weights: W_Q and W_K [T][T], W_V [T], W_O [outputs][T], in this order. */
ptrdiff_t position_layer_weights(const position_task *task);

/* A layer with copies of these weights. *made is NULL after an error. */
mha_status position_layer_create(position_layer **made, const position_task *task, int heads,
                                 const float *weights);
void position_layer_free(position_layer *p);

/* The squared error on a task of the same tokens and outputs, as a share of the sum of squares of
 * `wanted`. */
mha_status position_layer_loss(position_layer *p, const position_task *task, double *loss);

/* One step of Adam, with beta_1 = 0.9 and beta_2 = 0.99, on all sequences; `loss` is that before
 * the step. */
mha_status position_layer_step(position_layer *p, const position_task *task, double rate,
                               double *loss);

#endif
