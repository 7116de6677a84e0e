/* SPDX-License-Identifier: MIT */
/*
 * Results in memory compared with the oracle. The measure of all errors is E: how many units an
 * element is away from what it must be, as oracle.h defines units. For an output of an f32, f16 or
 * bf16 call,
 *
 *      E = |o - o64| / (2^-24 * sum_j p_j |v_j| * (1 + max_j (sum_c |q_c k_jc| * scale +
 * |bias_j|)))
 *
 * after the rounding to f16 or bf16 storage has been subtracted, and in native arithmetic on bf16
 * that of p, which is at most 2^-8 * sum_j p_j |v_j|. For an f64 call 2^-53 stands for 2^-24 and
 * the limit is eight times as large, because the oracle is no more precise than that.
 */
#ifndef PROBLEM_COMPARE_H
#define PROBLEM_COMPARE_H

#include <stdbool.h>

#include "problem/attention_call.h"

/*
 * E of `got`, a number of `type` that was computed in f32 or f64 (`work`), if it must be `want`.
 * Half a spacing of a type other than `work` is free, because it is the rounding of the store.
 * INFINITY where NaN or infinity do not match, and for any error where the unit is 0.
 */
double compare_error(mha_dtype type, mha_dtype work, double got, double want, double unit);

typedef struct comparison {
    double limit;                /* largest E allowed; the only field that has to be set */
    double output, lse, weights; /* largest E of each kind */
    double worst;                /* of all three */
    ptrdiff_t failures;
    char first[200]; /* the first failure in words */
} comparison;

/* Compares every output of the call with the oracle. */
void compare_call(const attention_call *call, comparison *result);

/* The same for the call and its f64 twin, which has the same numbers, with one pass of the oracle:
 * results[0] is of the call, results[1] of the twin. */
void compare_twins(const attention_call *call, const attention_call *twin, comparison results[2]);

#endif
