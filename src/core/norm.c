/* SPDX-License-Identifier: MIT */
/* mha_norm_run() of section 11 of mha.h: checks, and the kernel of norm.inc row by row. The norms
 * of heads inside a layer are in layer_qk.c. */
#include "core/linear.h"

#include <math.h>

enum { TASK_ELEMENTS = 8192 }; /* elements of a task, at least */

typedef struct norm_run {
    mha_norm_config config;
    mhak_norm norm;
    const mhak_table *kernels;
    ptrdiff_t rows, task_rows;
    const float *x;
    float *y;
    ptrdiff_t x_stride, y_stride;
} norm_run;

static void run_rows(void *arg, int worker, ptrdiff_t number)
{
    const norm_run *const run = arg;
    const mha_norm_config *const c = &run->config;
    const ptrdiff_t first = number * run->task_rows;
    const ptrdiff_t last = mhai_min(run->rows, first + run->task_rows);
    (void)worker;
    for (ptrdiff_t r = first; r < last; r++)
        run->kernels->norm_row(&run->norm, run->x + r * run->x_stride,
                               c->residual ? c->residual + r * c->residual_stride : NULL,
                               c->sum ? c->sum + r * c->sum_stride : NULL,
                               run->y + r * run->y_stride);
}

static mha_status check_config(mha_norm_config *c)
{
    if (c->kind != MHA_NORM_RMS && c->kind != MHA_NORM_LAYER)
        return MHA_ERR_FLAG;
    if (c->width < 0)
        return MHA_ERR_SHAPE;
    if (c->width > MHAI_MAX_EXTENT)
        return MHA_ERR_OVERFLOW;
    c->eps = c->eps != 0.0f ? c->eps : 1e-5f;
    return c->eps > 0.0f && !isinf(c->eps) ? MHA_OK : MHA_ERR_SCALE;
}

/* Adds an input, unless it is one of the outputs, which are in the list already. */
static void add_input(mhai_regions *list, const norm_run *run, const char *name, const float *data,
                      ptrdiff_t stride)
{
    const mha_norm_config *const c = &run->config;
    const ptrdiff_t n = c->width;
    const mha_view view = {data, 0, 0, stride};
    if (!mhai_rows_in_place(data, stride, n, run->y, run->y_stride, n, run->rows) &&
        !(c->sum && mhai_rows_in_place(data, stride, n, c->sum, c->sum_stride, n, run->rows)))
        mhai_regions_rows(list, false, name, view, MHA_F32, 1, run->rows, n, NULL);
}

static mha_status check_memory(const norm_run *run)
{
    const mha_options silent = {0};
    const mha_norm_config *const c = &run->config;
    const mha_view y = {run->y, 0, 0, run->y_stride}, sum = {c->sum, 0, 0, c->sum_stride};
    mhai_regions list;
    mhai_regions_begin(&list, &silent, 1);
    mhai_regions_rows(&list, true, "y", y, MHA_F32, 1, run->rows, c->width, NULL);
    if (c->sum)
        mhai_regions_rows(&list, true, "config.sum", sum, MHA_F32, 1, run->rows, c->width, NULL);
    add_input(&list, run, "x", run->x, run->x_stride);
    if (c->residual)
        add_input(&list, run, "config.residual", c->residual, c->residual_stride);
    mhai_regions_array(&list, "config.weight", c->weight, c->width, sizeof(float));
    mhai_regions_array(&list, "config.bias", c->bias, c->width, sizeof(float));
    return mhai_regions_check(&list, NULL, 0);
}

mha_status mha_norm_run(const mha_norm_config *config, ptrdiff_t rows, const float *x,
                        ptrdiff_t x_stride, float *y, ptrdiff_t y_stride, mha_pool *pool)
{
    norm_run run = {.rows = rows, .x = x, .x_stride = x_stride, .y = y, .y_stride = y_stride};
    mha_norm_config *const c = &run.config;
    mha_status status;
    if (!config)
        return MHA_ERR_NULL;
    if (!mhai_struct_read(config, c, sizeof *c, sizeof *c))
        return MHA_ERR_STRUCT;
    if (rows < 0)
        return MHA_ERR_SHAPE;
    if (rows > MHAI_MAX_EXTENT)
        return MHA_ERR_OVERFLOW;
    if ((status = check_config(c)) || (status = check_memory(&run)) ||
        (status = mhai_kernels(&run.kernels)))
        return status;
    run.norm = (mhak_norm){c->kind == MHA_NORM_LAYER, c->width, (double)c->eps, c->weight, c->bias};
    run.task_rows = mhai_max(1, TASK_ELEMENTS / mhai_max(1, c->width));
    if (c->width > 0)
        mha_pool_run(pool, mhai_ceil_div(rows, run.task_rows), run_rows, &run);
    return MHA_OK;
}
