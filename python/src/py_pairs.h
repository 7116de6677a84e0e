/* SPDX-License-Identifier: MIT */
/* Gradients of biases and masks, which have one number per pair of query and key. */
#ifndef MHAP_PAIRS_H
#define MHAP_PAIRS_H

#include "py_numbers.h"

/*
 * Sets *out to where the library writes the gradient of `given`, an array that broadcasts to
 * (B, H, L, S): normally `gradient`, a contiguous f32 array of the shape of `given`. The library
 * sums over axes of extent 1, but not over the last one. In that case *out is memory of `kept` with
 * all columns, and *columns (else NULL) must be passed to mhap_pairs_sum() after the call.
 */
int mhap_pairs_out(const mha_shape *shape, const mhap_array *given, const mhap_array *gradient,
                   mhap_kept *kept, mha_out *out, float **columns);

/* Sums the columns into the gradient. `columns` may be NULL. The GIL is not needed. */
void mhap_pairs_sum(const mha_shape *shape, const float *columns, const mhap_array *gradient);

#endif
