/* SPDX-License-Identifier: MIT */
/* The measure of all errors: how many times its bound an error is. */
#ifndef PROBLEM_COMPARE_H
#define PROBLEM_COMPARE_H

#include <mha/mha.h>

/* Half the distance between neighbours of `type` around x; 0 for f32 and f64, whose rounding
 * counts as the computation's own. */
double compare_half_ulp(mha_dtype type, double x);

/*
 * (|got - want| - allowance) / bound, at least 0. Infinite when one is NaN or infinite and the
 * other is not the same, and for any error where the bound is 0: NaN never passes, nor does 0 for
 * -inf.
 */
double compare_error(double got, double want, double bound, double allowance);

#endif
