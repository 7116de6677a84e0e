/* SPDX-License-Identifier: MIT */
/*
 * The oracle of linears and layers: the formulas of the public header in double precision, written
 * plainly. Attention itself is left to problem/oracle.h, given one dense mask that already accounts
 * for causal, windows, lengths and the keys every row sees.
 *
 * A number comes with its size: what is computed in f32 is about u * size wrong, u = 2^-24, and
 * comparisons count in such units. A sum adds the size of its own rounding, the sum of absolute
 * values; errors of what goes into it join as independent ones do, by the root of their squares.
 * Plain sums of absolute values from stage to stage would allow a thousand times as much.
 */
#ifndef MHA_TEST_LAYER_ORACLE_H
#define MHA_TEST_LAYER_ORACLE_H

#include "support/problems.h"

typedef struct sized {
    double x, size;
} sized;

/* y = x W^T + bias for one row, W rounded as `config->stored` says. Exact inputs have size 0. */
void linear_oracle(const mha_linear_config *config, const sized *x, sized *y);

/* The weights of output n, [inputs], rounded likewise. */
void linear_stored(const mha_linear_config *config, ptrdiff_t n, double *weights);

/* One call of mha_layer_run() without a cache. Owns nothing; call.options must be given. */
typedef struct layer_problem {
    mha_layer_config config;
    mha_layer_weights weights;
    mha_layer_call call;
} layer_problem;

/* The configuration with its defaults filled in, and the columns of the weights. */
mha_layer_config layer_defaults(const mha_layer_config *config);
ptrdiff_t layer_keys(const layer_problem *p);
ptrdiff_t layer_columns(const layer_problem *p);

/* The problem as the operator knows it: lengths, offsets and masks, S keys, no tensors. */
attention_call layer_operator(const layer_problem *p);

/* What the call must give: rows past a query length are left at 0. */
typedef struct layer_answer {
    sized *output;  /* [B][L][output_width] */
    sized *weights; /* [B][H][L][columns], in the mode the options ask for, not averaged */
    sized *lse;     /* [B][H][L] */
} layer_answer;

layer_answer layer_oracle(const layer_problem *p);
void layer_answer_free(layer_answer *answer);

/* Compare output, weights and log-sum-exp in memory with the oracle. Only limit has to be set in
 * `result`. */
void layer_compare(const layer_problem *p, comparison *result);

#endif
