/* SPDX-License-Identifier: MIT */
/*
 * Numbers of the page as text that stands in JSON as it is.
 *
 * Floats are base64 of their little-endian bytes: the very bits that were computed. Weights of
 * pages that would be too large are compact: row by row the largest weight m of the row as such a
 * float in six letters, then two letters of the base64 alphabet for each weight that the row sees,
 * the high one first: q = round(4095 sqrt(w / m)), so that w is m (q / 4095)^2 to within
 *
 *      sqrt(w m) / 4095 + m / 67,000,000
 *
 * which is 0.025 % of the largest weight of a row, and 0.25 % of one that is a hundredth of it.
 */
#ifndef PAGE_WEIGHTS_H
#define PAGE_WEIGHTS_H

#include <stddef.h>

#include "heads/head_metrics.h"

enum { PAGE_PICTURE_SIDE = 64 };

/* All of these are for free(); NULL: no memory. */
char *page_floats_text(const float *values, size_t count);
char *page_compact_text(const head_matrix *m);

/* A head in small, at most PAGE_PICTURE_SIDE rows and columns: one letter for the largest weight w
 * of each spot, round(63 sqrt(w)). */
char *page_picture_text(const head_matrix *m);

#endif
