/* SPDX-License-Identifier: MIT */
/*
 * A picture filtered by a layer of multi-head attention, one head for each tap of the kernel.
 *
 *      +----+----+----+---        The picture is cut into tiles of 8 x 8 pixels. A tile and the
 *      |    |    |    |           pixels around it that the kernel reads are a sequence of tokens;
 *      +----+----+----+---        the pixels of the tile are the queries. All tiles have the same
 *      |    |    |    |           weights, so they form a batch: memory does not grow with the
 *                                 picture.
 */
#ifndef CLAIMS_PICTURE_FILTER_H
#define CLAIMS_PICTURE_FILTER_H

#include "claims/convolution.h"
#include "claims/filter_kernel.h"
#include "picture/picture.h"

typedef struct picture_filter {
    const conv_kernel *kernel;
    conv_code code; /* CONV_ABSOLUTE or CONV_HARD */
    double alpha;
    conv_padding padding;
} picture_filter;

typedef struct filter_result {
    ptrdiff_t heads, tokens; /* of a tile */
    double difference;       /* largest, of the layer's output from the loop's; white is 1 */
    double bound;            /* of the difference */
    int64_t bytes, changed;  /* of the picture; of these, those that differ from the loop */
    double seconds, loop_seconds;
    int threads;
} filter_result;

/* Colour channels are filtered separately, alpha is kept. `out` is the picture's size, smaller with
 * CONV_VALID, whose kernel must fit. On error nothing is left. */
mha_status picture_filter_run(const picture_filter *filter, const picture *in, picture *out,
                              filter_result *result, mha_pool *pool);

#endif
