/* SPDX-License-Identifier: MIT */
/*
 * What happens to a head of Q or K between projection and scores, on f32 rows in place: QK-norm,
 * then rotation by position. Elementwise or in sums of one order, so that the bits of a row do not
 * depend on where it lies or which rows stand beside it.
 */
#ifndef MHAI_ROPE_H
#define MHAI_ROPE_H

#include "core/internal.h"

/*
 * Can heads of width D be turned so? MHA_ERR_FLAG for unknown pairs, MHA_ERR_SHAPE for a width
 * that is odd or wider than the head, MHA_ERR_ALIGN for frequencies, MHA_ERR_SCALE for a base or
 * frequency that is not finite, or a base below 0. With MHA_ROPE_NONE nothing else counts.
 */
mha_status mhai_rope_check(const mha_rope *rope, ptrdiff_t D);

/* Elements of a head of width D that a checked rope turns. */
ptrdiff_t mhai_rope_width(const mha_rope *rope, ptrdiff_t D);

/* Cosines and sines, [width/2] each, of the angles at a position; width as mhai_rope_width() says.
 * Angles are double. */
void mhai_rope_table(const mha_rope *rope, ptrdiff_t width, double position, float *cosines,
                     float *sines);

/* Turn one head by a table. Elements from `width` on stay. */
void mhai_rope_rotate(float *head, mha_rope_pairs pairs, ptrdiff_t width, const float *cosines,
                      const float *sines);

/* Both together: turn one head of width D to, or by, a position. */
void mhai_rope_row(float *head, const mha_rope *rope, ptrdiff_t D, double position);

/* Normalise one head. weight NULL: 1, bias NULL: 0. */
void mhai_norm_row(float *head, ptrdiff_t D, mha_norm norm, float eps, const float *weight,
                   const float *bias);

/* The way back: d becomes the gradient of the head that was normalised, x; the sums [D] for the
 * gradients of weight and bias are added to. */
void mhai_norm_row_back(const float *x, ptrdiff_t D, mha_norm norm, float eps, const float *weight,
                        float *d, double *d_weight, double *d_bias);

#endif
