/* SPDX-License-Identifier: MIT */
/* mha_activation_run() of section 11 of mha.h: checks, and the kernels of activation.inc in pieces
 * for the threads. */
#include "core/linear.h"

enum { PIECE = 16384 }; /* elements of a task */

typedef struct activation_run {
    const mhak_table *kernels;
    mha_activation activation;
    ptrdiff_t count;
    const float *x;
    float *y;
} activation_run;

static void run_piece(void *arg, int worker, ptrdiff_t number)
{
    const activation_run *const run = arg;
    const ptrdiff_t first = number * PIECE;
    (void)worker;
    run->kernels->activate((int)run->activation, run->x + first,
                           mhai_min(PIECE, run->count - first), run->y + first);
}

static mha_status check_memory(const activation_run *run)
{
    const mha_options silent = {0};
    const mha_view x = {run->x, 0, 0, 0}, y = {run->y, 0, 0, 0};
    mhai_regions list;
    mhai_regions_begin(&list, &silent, 1);
    mhai_regions_rows(&list, true, "y", y, MHA_F32, 1, 1, run->count, NULL);
    if (run->x != run->y)
        mhai_regions_rows(&list, false, "x", x, MHA_F32, 1, 1, run->count, NULL);
    return mhai_regions_check(&list, NULL, 0);
}

mha_status mha_activation_run(mha_activation activation, ptrdiff_t count, const float *x, float *y,
                              mha_pool *pool)
{
    activation_run run = {.activation = activation, .count = count, .x = x, .y = y};
    mha_status status;
    if (!mhai_is_activation(activation))
        return MHA_ERR_FLAG;
    if (count < 0)
        return MHA_ERR_SHAPE;
    if (count > MHAI_MAX_EXTENT)
        return MHA_ERR_OVERFLOW;
    if ((status = check_memory(&run)) || (status = mhai_kernels(&run.kernels)))
        return status;
    mha_pool_run(pool, mhai_ceil_div(count, PIECE), run_piece, &run);
    return MHA_OK;
}
