/* SPDX-License-Identifier: MIT */
/* The oracle of the network: a plain implementation of the formulas of transformer.h in double, one
 * sentence pair and one row at a time. Also small cases for tests of the network. */
#ifndef MHA_TEST_NETWORK_ORACLE_H
#define MHA_TEST_NETWORK_ORACLE_H

#include "translator/network.h"

typedef struct oracle_loss {
    double sum;      /* negative log-likelihood of all expected words */
    double smoothed; /* the loss that is differentiated: mean per word, with label smoothing */
    int64_t right;
    double kink; /* the smallest distance of a number from where a derivative jumps: inputs of a
                    relu from 0, sides of boxes from each other */
} oracle_loss;

/* `dropped` is a network whose last forward pass was over the same batch; the oracle applies the
 * same dropout. NULL: no dropout. */
oracle_loss network_oracle(const transformer_config *config, const double *values, const batch *b,
                           double smoothing, const network *dropped);

/* Width 16, 2 heads, inner width 24, 1 + 2 layers, and so many words that some never occur. */
extern const transformer_config network_small;
/* The same in Marian's form, with one vocabulary. */
extern const transformer_config network_small_marian;
/* The same as network_small, with pictures as its source. */
extern const transformer_config network_small_captions;
/* The same with 5 queries, 3 classes of one kind and 4 of another, one of them "nothing". */
extern const transformer_config network_small_detection;
/* The weights that the oracle has for the loss of a detector. */
extern const detection_weights network_oracle_weights;

/* Parameters as after some training: no norm is 1, no bias is 0. The caller frees them. */
float *network_case_values(const transformer_config *config, uint64_t seed);

/* Random words in `pairs` sentence pairs of 1 to `longest` words per side, or random things in
 * pictures; free() it. */
batch *network_case_batch(const transformer_config *config, uint64_t seed, int pairs, int longest);

/* Pair `number` of a batch alone. Its arrays point into the batch, except for the starts. */
typedef struct lone_pair {
    batch batch;
    int64_t starts[TRANSFORMER_SIDES][2];
} lone_pair;
void network_case_pair(const batch *all, int number, lone_pair *out);

#endif
