/* SPDX-License-Identifier: MIT */
/*
 * Two layers that learn the same tasks from pictures, for claim 8: a 3 x 3 convolution, and nine
 * heads of attention with relative positions. Pictures are tori of LEARN_SIDE x LEARN_SIDE pixels
 * with LEARN_INPUTS channels, so that there is no border.
 *
 *      convolution   Y[q] = b + sum over the nine taps t of X[q + t] W_t
 *      attention     Y = b + sum over nine heads of A_h X W_V_h W_O_h,
 *                    A_h = softmax(X W_Q_h (X W_K_h)^T / sqrt(D) + R_h[p(k) - p(q)])
 *
 * All of W and b, and the table R_h of each head, are learnt. With W_Q = 0 and the right R the
 * heads are the convolution, so attention can do all that the convolution can.
 *
 * A task is to give an output for each pixel, or to tell classes of pictures apart: then what
 * counts is the mean square of each output over the picture, from which a linear layer makes the
 * scores of the classes.
 */
#ifndef CLAIMS_FILTER_LEARNER_H
#define CLAIMS_FILTER_LEARNER_H

#include <stdbool.h>
#include <stdint.h>

#include <mha/mha.h>

enum { LEARN_SIDE = 6, LEARN_PIXELS = LEARN_SIDE * LEARN_SIDE, LEARN_INPUTS = 3 };
enum { LEARN_TAPS = 9, LEARN_HEADS = 9, LEARN_WIDTH = 4, LEARN_OUTPUTS_MAX = 8 };
enum { LEARN_CLASSES_MAX = 8, LEARN_BATCH_MAX = 64 };

/* The pixel that is `row` and `column`, each less than LEARN_SIDE, away on the torus. */
static inline int learner_pixel(int from, int row, int column)
{
    const int r = (from / LEARN_SIDE + row + LEARN_SIDE) % LEARN_SIDE;
    return r * LEARN_SIDE + (from + column + LEARN_SIDE) % LEARN_SIDE;
}

typedef enum learner_kind { LEARN_CONVOLUTION, LEARN_ATTENTION, LEARNER_KINDS } learner_kind;

/* Pictures, and what they should give: `wanted` for each pixel, or a class each. */
typedef struct learner_batch {
    int count;           /* up to LEARN_BATCH_MAX */
    const float *x;      /* [count][LEARN_PIXELS][LEARN_INPUTS] */
    const float *wanted; /* [count][LEARN_PIXELS][outputs]; NULL: there are classes */
    const int *classes;  /* [count] */
} learner_batch;

typedef struct filter_learner filter_learner;

/* `classes` is 0 if outputs are wanted for each pixel. The first weights follow from the seed.
 * *made is NULL after an error. */
mha_status filter_learner_create(filter_learner **made, learner_kind kind, int outputs, int classes,
                                 uint64_t seed);
void filter_learner_free(filter_learner *p);

/* The number of weights that are learnt, without those that make classes of outputs. */
ptrdiff_t filter_learner_weights(const filter_learner *p);

/* Multiply-adds of the layer's products for one picture, forward. */
double filter_learner_products(const filter_learner *p);

/* One step of Adam, with beta_1 = 0.9 and beta_2 = 0.99. */
mha_status filter_learner_step(filter_learner *p, const learner_batch *batch, double rate);

/* Adds to *error the sum of squared differences from `wanted`, or the number of pictures for which
 * another class has the largest score. */
mha_status filter_learner_error(filter_learner *p, const learner_batch *batch, double *error);

/*
 * All weights; they may be copied and changed. Of the convolution: taps [9][inputs][outputs], row
 * by row, then b. Of attention: W_Q, W_K and W_V, [heads * width][inputs] each, W_O [outputs][heads
 * * width], b, and R [heads][LEARN_PIXELS], where place (r, c) of the picture stands for the key r
 * rows down and c columns to the right of the query. Then, if there are classes, their matrix
 * [classes][outputs] and biases.
 */
float *filter_learner_values(filter_learner *p, ptrdiff_t *count);

/* The loss of a batch, and its gradients by all weights, which stay valid until the next call. */
mha_status filter_learner_gradients(filter_learner *p, const learner_batch *batch, double *loss,
                                    const float **gradients);

#endif
