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
    /* Multiply-adds of products for one pixel of the output, without the exponentials. */
    double multiply_adds, loop_multiply_adds;
} filter_result;

/* Colour channels are filtered separately, alpha is kept. `out` is the picture's size, smaller with
 * CONV_VALID, whose kernel must fit. On error nothing is left. */
mha_status picture_filter_run(const picture_filter *filter, const picture *in, picture *out,
                              filter_result *result, mha_pool *pool);

/*
 * One output pixel taken apart, in one colour: what every head attends to and reads, by what
 * W_V W_O multiplies it, and the sums. All numbers are those of the layer that filters the tile of
 * the pixel; white is 1.
 */
typedef struct filter_trace {
    conv_point pixel;  /* of the output */
    conv_point corner; /* where the tile begins on the picture; may be outside */
    conv_point query;  /* the pixel on the tile */
    ptrdiff_t colour;  /* of the picture's channels */
    ptrdiff_t heads, kernels, colours;
    ptrdiff_t side;                                      /* keys are a tile of side x side pixels */
    double *tile;                                        /* [side][side][colours] */
    double *weights;                                     /* [heads][side][side], of this query */
    conv_point reads[KERNEL_SIZE_MAX * KERNEL_SIZE_MAX]; /* key with the largest weight */
    double values[KERNEL_SIZE_MAX * KERNEL_SIZE_MAX];    /* weights times pixels */
    double taps[KERNELS_AT_ONCE][KERNEL_SIZE_MAX * KERNEL_SIZE_MAX]; /* W_V W_O */
    double sums[KERNELS_AT_ONCE], loop[KERNELS_AT_ONCE];             /* of the layer; of the loop */
} filter_trace;

/* A pixel of the output worth showing: not at the border of its tile, and with the largest
 * difference between two pixels that its heads read. The first pixel if all are equal. */
conv_point filter_trace_choose(const picture_filter *filter, const picture *in);

/* Takes a pixel of the output apart, in the colour whose values differ most there. On error nothing
 * has to be freed. */
mha_status filter_trace_run(const picture_filter *filter, const picture *in, conv_point pixel,
                            filter_trace *trace);
void filter_trace_free(filter_trace *trace);

/* Rows and columns of the output for this picture. */
conv_point picture_filter_extent(const picture_filter *filter, const picture *in);

#endif
