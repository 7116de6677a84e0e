/* SPDX-License-Identifier: MIT */
/* Single elements and rows of storage types, in plain C: for all that is not worth a kernel. */
#ifndef MHAI_ELEMENT_H
#define MHAI_ELEMENT_H

#include <mha/mha.h>

/* "MHA_F32", for messages. */
const char *mhai_dtype_name(mha_dtype dtype);

/* One element of any storage type but the block types, as double and back (rounded to nearest
 * even). */
double mhai_element_read(const void *data, mha_dtype type, ptrdiff_t index);
void mhai_element_write(void *data, mha_dtype type, ptrdiff_t index, double x);

/*
 * Stores a row as i8, where x = stored * scale. Returns the scale, max|x| / 127: 0 for a row of
 * zeros, and NaN (with zeros stored) where any x is not finite, so that the damage shows.
 */
float mhai_quantize_row(const float *x, ptrdiff_t count, int8_t *stored);

/* to[n * to_step] = from[n * from_step] for n < count; steps count elements of `type`. */
void mhai_copy_strided(mha_dtype type, void *to, ptrdiff_t to_step, const void *from,
                       ptrdiff_t from_step, ptrdiff_t count);

#endif
