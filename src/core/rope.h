/* SPDX-License-Identifier: MIT */
/*
 * QK-norm and rotary position embedding of one head of Q or K, in place on f32. Everything is
 * elementwise or summed in one order, so the bits of a row do not depend on its place or on the
 * rows beside it.
 */
#ifndef MHAI_ROPE_H
#define MHAI_ROPE_H

#include "core/internal.h"

/*
 * Can heads of width D be rotated so? MHA_ERR_FLAG for unknown pairs, MHA_ERR_SHAPE for a width
 * that is odd or wider than the head, MHA_ERR_ALIGN for frequencies, MHA_ERR_SCALE for a base or
 * frequency that is not finite, or a base below 0. With MHA_ROPE_NONE the other fields are ignored.
 */
mha_status mhai_rope_check(const mha_rope *rope, ptrdiff_t D);

/* Elements of a head of width D that a checked rope rotates. */
ptrdiff_t mhai_rope_width(const mha_rope *rope, ptrdiff_t D);

/* Cosines and sines, [width/2] each, of the angles at a position, with the width of
 * mhai_rope_width(). Angles are computed in double. */
void mhai_rope_table(const mha_rope *rope, ptrdiff_t width, double position, float *cosines,
                     float *sines);

/* Rotates one head by a table. Elements from `width` on are not changed. */
void mhai_rope_rotate(float *head, mha_rope_pairs pairs, ptrdiff_t width, const float *cosines,
                      const float *sines);

/* Both steps: rotates one head of width D by the angles of a position. */
void mhai_rope_row(float *head, const mha_rope *rope, ptrdiff_t D, double position);

/* Normalises one head. weight NULL: 1, bias NULL: 0. */
void mhai_norm_row(float *head, ptrdiff_t D, mha_norm norm, float eps, const float *weight,
                   const float *bias);

/* Its gradient: d becomes the gradient of x, the head before normalisation. The sums [D] for the
 * gradients of weight and bias are added to. */
void mhai_norm_row_back(const float *x, ptrdiff_t D, mha_norm norm, float eps, const float *weight,
                        float *d, double *d_weight, double *d_bias);

#endif
