/* SPDX-License-Identifier: MIT */
/*
 * The memory of a call as regions: a run of `width` bytes repeated along up to three strided axes.
 * A check lists every tensor and array of a call; mhai_regions_check() then checks that pointers
 * are given and aligned, that everything is addressable, and that outputs do not overlap with
 * themselves, with each other, with inputs or with the workspace.
 */
#ifndef MHAI_REGION_H
#define MHAI_REGION_H

#include "core/internal.h"

enum { MHAI_AXES = 3, MHAI_MAX_REGIONS = 32 };

typedef struct mhai_region {
    const char *name;
    const char *data;
    ptrdiff_t extent[MHAI_AXES], stride[MHAI_AXES]; /* stride in bytes */
    ptrdiff_t width;                                /* bytes of one contiguous run */
    ptrdiff_t low, high; /* bytes touched, relative to data: [low, high) */
} mhai_region;

/* A list: mhai_regions_begin(), then add regions. */
typedef struct mhai_regions {
    const mha_options *options;
    ptrdiff_t B;
    mhai_region inputs[MHAI_MAX_REGIONS], outputs[MHAI_MAX_REGIONS];
    int input_count, output_count;
    mha_status status; /* the first error */
} mhai_regions;

/* An empty list for B batches; messages go to options. Much of it is not initialised, since it is
 * large and short calls need little of it. */
static inline void mhai_regions_begin(mhai_regions *list, const mha_options *options, ptrdiff_t B)
{
    list->options = options;
    list->B = B;
    list->input_count = list->output_count = 0;
    list->status = MHA_OK;
}

/* A tensor of rows: [B][heads][rows][width], or packed with the rows of all batches. */
void mhai_regions_rows(mhai_regions *list, bool output, const char *name, mha_view x,
                       mha_dtype type, ptrdiff_t heads, ptrdiff_t rows, ptrdiff_t width,
                       const int64_t *starts);

/* A contiguous input; NULL adds nothing. */
void mhai_regions_array(mhai_regions *list, const char *name, const void *data, ptrdiff_t count,
                        ptrdiff_t size);

/* Everything the options of a call point to; returned weights have `columns` columns. */
void mhai_regions_options(mhai_regions *list, const mhai_call *call, ptrdiff_t columns);

/* Runs the check. work may be NULL. */
mha_status mhai_regions_check(mhai_regions *list, const void *work, size_t work_size);

/* All of this for a call of the operator. */
mha_status mhai_check_memory(const mhai_call *call, const void *work, size_t work_size);

#endif
