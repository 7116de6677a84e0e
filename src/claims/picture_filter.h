/* SPDX-License-Identifier: MIT */
/*
 * A picture filtered by a layer of multi-head attention, one head for each tap of the kernel.
 *
 *      +----+----+----+---        The picture is cut into tiles of 8 x 8 pixels. A tile with the
 *      |    |    |    |           pixels around it that its kernel reads is a sequence of tokens;
 *      +----+----+----+---        those of the tile ask. All tiles look the same to the heads, so
 *      |    |    |    |           that they are a batch: memory does not grow with the picture.
 */
#ifndef CLAIMS_PICTURE_FILTER_H
#define CLAIMS_PICTURE_FILTER_H

#include "claims/convolution.h"
#include "claims/filter_kernel.h"
#include "claims/picture.h"

typedef struct picture_filter {
    const conv_kernel *kernel;
    conv_code code; /* CONV_ABSOLUTE or CONV_HARD */
    double alpha;
    conv_padding padding;
} picture_filter;

typedef struct filter_result {
    ptrdiff_t heads, tokens; /* of a tile */
    double difference;       /* largest, of the layer's output from the loop's; white is 1 */
    double bound;            /* what it may be */
    int64_t bytes, changed;  /* of the picture; of them, not what the loop gives */
    double seconds, loop_seconds;
    int threads;
} filter_result;

/* Colours are filtered each by itself, alpha stays. `out` is the picture's size, smaller with
 * CONV_VALID, whose kernel must fit. On error nothing is left. */
mha_status picture_filter_run(const picture_filter *filter, const picture *in, picture *out,
                              filter_result *result, mha_pool *pool);

#endif
