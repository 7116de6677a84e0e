/* SPDX-License-Identifier: MIT */
/* The oracle of the network: the formulas of transformer.h in double precision, one sentence pair
 * and one row after another, written plainly. Beside it, small cases for its tests. */
#ifndef MHA_TEST_NETWORK_ORACLE_H
#define MHA_TEST_NETWORK_ORACLE_H

#include "model/network.h"

typedef struct oracle_loss {
    double sum;      /* negative log-likelihood of all expected words */
    double smoothed; /* mean a word of the loss that is differentiated */
    int64_t right;
    double kink; /* the smallest absolute value that went into a relu */
} oracle_loss;

/* dropped: a network whose last forward pass, over the same batch, dropped what is to be dropped
 * here too. NULL: no dropout. */
oracle_loss network_oracle(const transformer_config *config, const double *values, const batch *b,
                           double smoothing, const network *dropped);

/* Width 16, 2 heads, 24 inside, 1 + 2 layers, and words enough that some never occur. */
extern const transformer_config network_small;

/* Parameters of a model that has been trained a little: no norm is 1, no bias is 0. free(). */
float *network_case_values(const transformer_config *config, uint64_t seed);

/* Random words in `pairs` sentence pairs of 1 to `longest` words a side. free(). */
batch *network_case_batch(const transformer_config *config, uint64_t seed, int pairs, int longest);

/* Pair `number` of a batch alone; its arrays are those of the batch, but for the starts. */
typedef struct lone_pair {
    batch batch;
    int64_t starts[TRANSFORMER_SIDES][2];
} lone_pair;
void network_case_pair(const batch *all, int number, lone_pair *out);

#endif
