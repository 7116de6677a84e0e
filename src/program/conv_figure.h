/* SPDX-License-Identifier: MIT */
/* The picture of "mha conv --figure": one pixel, computed by heads, with the layer's own numbers.
 */
#ifndef PROGRAM_CONV_FIGURE_H
#define PROGRAM_CONV_FIGURE_H

#include <stdio.h>

#include "claims/picture_filter.h"

enum { CONV_FIGURE_SIZE_MAX = 5 }; /* rows of the largest kernel that is drawn */

typedef struct conv_figure {
    const filter_trace *trace;
    const picture_filter *filter;
    const char *kernel_name;
} conv_figure;

/*
 *      1 tokens     2 heads                3 A X      4 W_V W_O     5 products
 *      +------+     +---+ +---+ +---+      . . .       . . .         . . .
 *      | tile |     | \ | | | | | / |      . . .   x   . . .    =    . . .
 *      +------+     +---+ +---+ +---+      . . .       . . .         . . .
 *                   +---+ ...                          their sum, and the loop's
 *
 * Cells of matrices stand where the taps of their heads are. Every arrow, tap and sum has its exact
 * number in an attribute: data-head, data-row and data-column (of the key, relative to the query),
 * data-weight; data-tap; data-product; data-sum and data-loop. For output_file_write().
 */
void conv_figure_svg(FILE *file, const void *figure);

#endif
