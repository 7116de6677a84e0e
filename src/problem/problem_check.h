/* SPDX-License-Identifier: MIT */
/*
 * One problem, checked from every side:
 *   - outputs of the fast path and of the library's f64 path compared with the oracle;
 *   - nothing written that should not be;
 *   - the same bits with a plan and a pool, and without log-sum-exp, weights and statistics.
 */
#ifndef PROBLEM_CHECK_H
#define PROBLEM_CHECK_H

#include <stdbool.h>

#include "problem/problem.h"

/* What E (compare.h) may be at most. */
#define CHECK_LIMIT 8.0

typedef struct check_result {
    bool failed;
    double output, lse, weights; /* worst E of each kind */
    double f64;                  /* worst E of the f64 path, in units of 2^-53 */
    char what[320];              /* the first thing that is wrong */
} check_result;

/* Runs the problem several times; `pool` may be NULL. Its outputs are those of the last run. */
void check_problem(problem *p, mha_pool *pool, check_result *result);

#endif
