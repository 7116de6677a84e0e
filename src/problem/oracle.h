/* SPDX-License-Identifier: MIT */
/*
 * The independent oracle: one query row of a call in double precision, step by step as the public
 * header words it, with the magnitudes that bound its rounding errors. It shares no line with the
 * library, so it can also judge the library's own f64 path (src/core/reference.c).
 */
#ifndef PROBLEM_ORACLE_H
#define PROBLEM_ORACLE_H

#include <stdbool.h>

#include "problem/attention_call.h"

/*
 * What a row must be. An error of x is natural in units of u * x_size, u the unit roundoff (2^-24
 * or 2^-53), after an allowance of x_tiny times the smallest normal number for what exp() may lose
 * by underflow. With
 *
 *      size = 1 + max_j (sum_c |q_c k_jc| * scale + |bias_j|)      over attended keys and the sink
 *
 * these are
 *
 *      o_size       size * sum_j p_j |v_j|         o_tiny        sum_j |v_j|
 *      o_mass       sum_j p_j |v_j|
 *      lse_size     size + |lse|                   weights_tiny  1 for attended keys
 *      weights_size size * p_j, or 1 + the size of the score alone in the modes before softmax
 */
typedef struct oracle_row {
    ptrdiff_t attended; /* number of keys */
    double lse, lse_size;
    double *o, *o_size, *o_tiny, *o_mass;          /* [Dv] */
    double *weights, *weights_size, *weights_tiny; /* [S], in the mode of the options */
    double *scores, *sizes;                        /* [S], scratch; sizes < 0 where masked */
    double *q, *k, *v;                             /* [D], [D], [Dv], scratch */
} oracle_row;

/* Room for the rows of the call. False if out of memory. */
bool oracle_row_init(oracle_row *row, const attention_call *call);
void oracle_row_free(oracle_row *row);

void oracle_row_compute(oracle_row *row, const attention_call *call, ptrdiff_t b, ptrdiff_t h,
                        ptrdiff_t i);

#endif
