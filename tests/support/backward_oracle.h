/* SPDX-License-Identifier: MIT */
/*
 * What the gradients of attention must be, written from the public header alone:
 *
 *      oracle      in double precision, one row at a time, with a size for every element
 *      naive       the same formulas as plain loops in f32, from the stored output: the yardstick
 *
 * For one row, p the weights, x_j what gate and dropout multiply them with, dp_j = x_j d_o . v_j
 * and delta = sum_j p_j dp_j - d_lse:
 *
 *      ds_j = p_j (dp_j - delta)                     the gradient of a score after bias
 *      d_q = scale sum_j ds_j cap'_j k_j             d_sink  = -p_sink delta
 *      d_k_j += scale ds_j cap'_j q                  d_slope -= ds_j |i + offset - j|
 *      d_v_j += p_j x_j d_o                          d_bias_j = d_add_mask_j = ds_j
 *      d_gate = sum_j p_j (x_j / gate) d_o . v_j
 */
#ifndef MHA_TEST_BACKWARD_ORACLE_H
#define MHA_TEST_BACKWARD_ORACLE_H

#include "support/problems.h"

#include <stdint.h>

/* A forward call that has been run, and the gradients of what it returned. */
typedef struct backward_problem {
    attention_call forward;
    mha_view d_o, d_lse; /* d_lse.data NULL: 0 */
    mha_dtype d_o_type, d_lse_type;
} backward_problem;

typedef enum gradient_id {
    GRAD_Q,     /* [B][H][L][D] */
    GRAD_K,     /* [B][G][S][D] */
    GRAD_V,     /* [B][G][S][Dv] */
    GRAD_BIAS,  /* [B][H][L][S]: bias and additive mask, before any sum over axes */
    GRAD_ALIBI, /* [H] */
    GRAD_SINKS, /* [H] */
    GRAD_GATES, /* [B][1][1][H] */
    GRAD_COUNT
} gradient_id;

/* Row-major. An error of x is natural in units of u * size: the sum of the magnitudes that x is a
 * sum of, times the size of the scores they depend on (as in oracle_row). */
typedef struct gradient {
    ptrdiff_t n[4];
    double *x, *size;
} gradient;

typedef struct backward_answer {
    gradient of[GRAD_COUNT];
} backward_answer;

backward_answer backward_oracle(const backward_problem *p);
/* Sizes stay 0. */
backward_answer backward_naive(const backward_problem *p);
void backward_answer_free(backward_answer *answer);

/* Whether dropout keeps the weight of key j in row (b,h,i), as the header and the kernel table say:
 * Philox4x32-7 under the key `seed`, of the counter (j / 8, i, h, b); key j has 16 of the bits. */
bool oracle_keeps(uint64_t seed, double probability, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i,
                  ptrdiff_t j);

ptrdiff_t gradient_count(const gradient *g);
ptrdiff_t gradient_index(const gradient *g, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j);

/* Zeros. */
gradient gradient_new(const ptrdiff_t n[4]);
void gradient_free(gradient *g);

#endif
