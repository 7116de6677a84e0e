/* SPDX-License-Identifier: MIT */
/*
 * Passes over a row of logits, one number per entry of the vocabulary. They use the widest vectors
 * of the machine, and give the same bits with any of them.
 */
#ifndef MODEL_SCAN_H
#define MODEL_SCAN_H

#include <stddef.h>

/* The largest number; NaN are passed over, and without any other it is -INFINITY. */
float scan_most(const float *x, ptrdiff_t count);

/* The sum of exp(x - most), where most is not below any x. NaN if an x is NaN, or most infinite. */
double scan_exp_sum(const float *x, ptrdiff_t count, float most);

/* Numbers are searched in blocks of so many. */
enum { SCAN_BLOCK = 64 };

/* The first block from `first` on, a multiple of SCAN_BLOCK, that has a number above the limit:
 * where it begins, or `count` if there is none. */
ptrdiff_t scan_above(const float *x, ptrdiff_t count, ptrdiff_t first, float limit);

#endif
