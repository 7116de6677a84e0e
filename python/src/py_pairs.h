/* SPDX-License-Identifier: MIT */
/* Gradients of biases and masks, which have numbers for pairs of a query and a key. */
#ifndef MHAP_PAIRS_H
#define MHAP_PAIRS_H

#include "py_numbers.h"

/*
 * Where the library is to write the gradient of `given`, an array that broadcasts to (B, H, L, S):
 * *out, inside of `gradient`, a contiguous f32 array of the shape of `given`. Axes of 1 are summed
 * over by the library, which cannot do that with the last one: memory of `kept` with all columns
 * then stands in, and *columns, else NULL, is for mhap_pairs_sum() after the call.
 */
int mhap_pairs_out(const mha_shape *shape, const mhap_array *given, const mhap_array *gradient,
                   mhap_kept *kept, mha_out *out, float **columns);

/* Sum the columns into the gradient. Columns may be NULL. The GIL is not needed. */
void mhap_pairs_sum(const mha_shape *shape, const float *columns, const mhap_array *gradient);

#endif
