/* SPDX-License-Identifier: MIT */
/*
 * One problem, checked from every side:
 *   - outputs of the fast path and of the library's f64 path against the row model;
 *   - nothing written that should not be;
 *   - the same bits with a plan and a pool, and without log-sum-exp and weights.
 *
 * The error E of an output element is
 *
 *      |o - o64| / (u * sum_j p_j |v_j| * (1 + max_j (sum_c |q_c k_jc| * scale + |bias_j|)))
 *
 * with u = 2^-24, after the rounding to f16 or bf16 storage has been taken off. In the same way
 * that of a log-sum-exp is in units of u * (1 + max + |lse|), that of a weight in units of
 * u * p * (1 + max), that of a score in units of u * (1 + its own magnitude).
 */
#ifndef PROBLEM_CHECK_H
#define PROBLEM_CHECK_H

#include <stdbool.h>

#include "problem/problem.h"

/* What E may be at most. */
#define CHECK_LIMIT 8.0

typedef struct check_result {
    bool failed;
    double output, lse, weights; /* worst E of each kind */
    double f64;                  /* worst E of the f64 path against the row model, u = 2^-53 */
    char what[256];              /* the first thing that is wrong */
} check_result;

/* Runs the problem several times; `pool` may be NULL. Its outputs are those of the last run. */
void check_problem(problem *p, mha_pool *pool, check_result *result);

#endif
