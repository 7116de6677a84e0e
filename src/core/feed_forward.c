/* SPDX-License-Identifier: MIT */
/*
 * The feed-forward of section 11 of mha.h: two linears, run by gemm.c a number of rows at a time,
 * so that what lies between them stays in a cache.
 *
 *      x --- up, or gate and up ---> inner --- down ---> + residual ---> y
 *
 * Gate and up are one linear whose panels alternate. gemm.c applies the activation, the product
 * with the gate and the residual to sums that are still in the L1 cache. Gate and up that are
 * stored in different types are two linears, and their outputs are multiplied afterwards, with the
 * same bits.
 */
#include "core/linear.h"

#include <stdlib.h>

struct mha_feed_forward {
    ptrdiff_t inputs, inner, outputs;
    mha_activation activation;
    bool gated;
    mha_linear *up, *down;
    mha_linear *gate; /* NULL: not gated, or part of `up` */
};

/* Rows of inner that are kept at the same time, per thread. */
enum { ROWS_PER_THREAD = 192 };

/* ---------------------------------------------------------------- create ----- */

/* Panels of gate and up together, times inputs, must be countable in bytes. */
static bool fits(ptrdiff_t inputs, ptrdiff_t outputs)
{
    ptrdiff_t bytes;
    return inputs <= MHAI_MAX_EXTENT && outputs <= MHAI_MAX_EXTENT &&
           !__builtin_mul_overflow(2 * outputs + 4 * MHAK_MAX_PANEL, inputs + 1, &bytes) &&
           !__builtin_mul_overflow(bytes, 16, &bytes);
}

static mha_status check_extents(const mha_options *message, const mha_feed_forward_config *c)
{
    if (c->inputs < 0 || c->inner < 0 || c->outputs < 0)
        return mhai_fail(message, MHA_ERR_SHAPE,
                         "config has %td inputs, inner = %td and %td outputs; extents must not be "
                         "negative",
                         c->inputs, c->inner, c->outputs);
    if (!fits(c->inputs, c->inner) || !fits(c->inner, c->outputs))
        return mhai_fail(message, MHA_ERR_OVERFLOW,
                         "%td inputs, inner = %td and %td outputs overflow the address space",
                         c->inputs, c->inner, c->outputs);
    return MHA_OK;
}

static mha_status check_kinds(const mha_options *message, const mha_feed_forward_config *c)
{
    if (!mhai_is_activation(c->activation))
        return mhai_fail(message, MHA_ERR_FLAG,
                         "config.activation is %d; use an MHA_ACTIVATION_ value",
                         (int)c->activation);
    if (!c->gated && (c->gate.data || c->gate_bias.data))
        return mhai_fail(message, MHA_ERR_FLAG,
                         "config.gate%s is given, but config.gated is 0; set it or omit the gate",
                         c->gate.data ? "" : "_bias");
    const mha_status status = mhai_check_arithmetic(message, "config", c->arithmetic);
    return status ? status : mhai_check_stored(message, c->stored);
}

static mha_status check_config(const mha_options *message, const mha_feed_forward_config *c)
{
    mha_status status;
    if ((status = check_extents(message, c)) || (status = check_kinds(message, c)) ||
        (status =
             mhai_check_matrix(message, "config.up", &c->up, c->inner, c->inputs, c->stored)) ||
        (status = mhai_check_vector(message, "config.up_bias", &c->up_bias)) ||
        (status = mhai_check_matrix(message, "config.down", &c->down, c->outputs, c->inner,
                                    c->stored)) ||
        (status = mhai_check_vector(message, "config.down_bias", &c->down_bias)) || !c->gated ||
        (status =
             mhai_check_matrix(message, "config.gate", &c->gate, c->inner, c->inputs, c->stored)))
        return status;
    return mhai_check_vector(message, "config.gate_bias", &c->gate_bias);
}

/* Outputs [first, first + count) of a matrix and its bias. */
static mhai_section section_from(mha_matrix weight, mha_vector bias, ptrdiff_t first,
                                 ptrdiff_t count)
{
    if (weight.data)
        weight = mha_matrix_from(weight, first);
    if (bias.data)
        bias.data = mhai_at(bias.data, bias.type, first);
    return (mhai_section){count, weight, bias};
}

/* One linear in which a panel of the gate is followed by the panel of the same outputs of up. */
static mha_status make_gated(mha_linear **linear, const mhai_packing *packing,
                             const mha_feed_forward_config *c)
{
    const mhak_table *const kernels = packing->native->base;
    const ptrdiff_t panels = mhai_section_panels(kernels, c->inner);
    mhai_section *const sections = malloc((size_t)mhai_max(1, 2 * panels) * sizeof *sections);
    if (!sections)
        return MHA_ERR_MEMORY;
    for (ptrdiff_t p = 0; p < panels; p++) {
        const ptrdiff_t first = p * kernels->nr, count = mhai_min(kernels->nr, c->inner - first);
        sections[2 * p] = section_from(c->gate, c->gate_bias, first, count);
        sections[2 * p + 1] = section_from(c->up, c->up_bias, first, count);
    }
    const mha_status status =
        mhai_linear_make(linear, packing, c->inputs, sections, (int)(2 * panels),
                         mhai_stored_type(c->stored, &c->up));
    free(sections);
    return status;
}

static mha_status make_one(mha_linear **linear, const mhai_packing *packing, mha_dtype stored,
                           ptrdiff_t inputs, mhai_section section)
{
    return mhai_linear_make(linear, packing, inputs, &section, 1,
                            mhai_stored_type(stored, &section.weight));
}

static mha_status make_linears(mha_feed_forward *made, const mhai_packing *packing,
                               const mha_feed_forward_config *c)
{
    const mhai_section gate = {c->inner, c->gate, c->gate_bias};
    const mhai_section up = {c->inner, c->up, c->up_bias};
    const mhai_section down = {c->outputs, c->down, c->down_bias};
    const bool same = mhai_stored_type(c->stored, &c->gate) == mhai_stored_type(c->stored, &c->up);
    mha_status status = MHA_OK;
    if (c->gated && same)
        status = make_gated(&made->up, packing, c);
    else
        status = make_one(&made->up, packing, c->stored, c->inputs, up);
    if (!status && c->gated && !same)
        status = make_one(&made->gate, packing, c->stored, c->inputs, gate);
    return status ? status : make_one(&made->down, packing, c->stored, c->inner, down);
}

mha_status mha_feed_forward_create(mha_feed_forward **feed_forward,
                                   const mha_feed_forward_config *config)
{
    mha_feed_forward_config c;
    if (feed_forward)
        *feed_forward = NULL;
    if (!config)
        return MHA_ERR_NULL;
    if (!mhai_struct_read(config, &c, offsetof(mha_feed_forward_config, arena), sizeof c))
        return MHA_ERR_STRUCT;
    const mha_options message = {.message = c.message, .message_size = c.message_size};
    if (!feed_forward)
        return mhai_fail(&message, MHA_ERR_NULL, "feed_forward is NULL");
    c.outputs = c.outputs ? c.outputs : c.inputs;
    mha_status status;
    mhai_packing packing = {.arithmetic = c.arithmetic, .arena = c.arena};
    if ((status = check_config(&message, &c)) ||
        (status = mhai_native_for(&message, &packing.native)))
        return status;
    mha_feed_forward *const made = calloc(1, sizeof *made);
    if (made)
        *made = (mha_feed_forward){.inputs = c.inputs,
                                   .inner = c.inner,
                                   .outputs = c.outputs,
                                   .activation = c.activation,
                                   .gated = c.gated != 0};
    if (!made || make_linears(made, &packing, &c)) {
        mha_feed_forward_free(made);
        return mhai_fail(&message, MHA_ERR_MEMORY,
                         "no memory for the packed weights of a feed-forward of %td x %td x %td",
                         c.inputs, c.inner, c.outputs);
    }
    *feed_forward = made;
    return MHA_OK;
}

void mha_feed_forward_free(mha_feed_forward *feed_forward)
{
    if (!feed_forward)
        return;
    mha_linear_free(feed_forward->gate);
    mha_linear_free(feed_forward->up);
    mha_linear_free(feed_forward->down);
    free(feed_forward);
}

size_t mha_feed_forward_bytes(const mha_feed_forward *feed_forward)
{
    if (!feed_forward)
        return 0;
    return mha_linear_bytes(feed_forward->gate) + mha_linear_bytes(feed_forward->up) +
           mha_linear_bytes(feed_forward->down);
}

/* ------------------------------------------------------------------- run ----- */

typedef struct ff_run {
    const mha_feed_forward *ff;
    ptrdiff_t rows, at_once; /* all rows, and those whose inner is kept at the same time */
    const float *x, *residual;
    float *y;
    ptrdiff_t x_stride, residual_stride, y_stride;
    float *inner;
    float *gated; /* outputs of a gate that is a linear of its own, as inner */
    ptrdiff_t inner_stride;
    void *work; /* of gemm.c */
} ff_run;

static ptrdiff_t rows_at_once(ptrdiff_t rows, int threads)
{
    return mhai_min(rows, (ptrdiff_t)ROWS_PER_THREAD * threads);
}

static size_t product_work_size(const mha_linear *linear, ptrdiff_t rows, int threads)
{
    return mhai_gemm_work_size(linear->kernels, linear->native, rows, linear->inputs,
                               linear->panels, threads);
}

/* Carves inner and gated; what follows is for the products. */
static size_t take_inner(ff_run *run, ptrdiff_t rows, mhai_work *work)
{
    const size_t count = (size_t)(rows * mhai_row_floats(run->ff->inner));
    run->inner = mhai_work_take(work, count, sizeof(float));
    run->gated = mhai_work_take(work, run->ff->gate ? count : 0, sizeof(float));
    return work->used;
}

size_t mha_feed_forward_work_size(const mha_feed_forward *feed_forward, ptrdiff_t rows, int threads)
{
    if (!feed_forward || rows < 0 || threads < 1 || threads > MHA_MAX_THREADS)
        return 0;
    const ptrdiff_t at_once = rows_at_once(rows, threads);
    mhai_work count = {0};
    ff_run run = {.ff = feed_forward};
    const size_t kept = take_inner(&run, at_once, &count);
    const size_t up = product_work_size(feed_forward->up, at_once, threads);
    const size_t down = product_work_size(feed_forward->down, at_once, threads);
    return kept + (up > down ? up : down) + MHAI_ALIGN - 1;
}

/* x and the residual may be y: the rows of x have been read when those of y are written, and each
 * element of the residual is read right before. */
static mha_status check_memory(const ff_run *run, const void *work, size_t work_size)
{
    const mha_options silent = {0};
    const mha_feed_forward *const ff = run->ff;
    const mha_view x = {run->x, 0, 0, run->x_stride}, y = {run->y, 0, 0, run->y_stride};
    const mha_view residual = {run->residual, 0, 0, run->residual_stride};
    mhai_regions list;
    mhai_regions_begin(&list, &silent, 1);
    mhai_regions_rows(&list, true, "y", y, MHA_F32, 1, run->rows, ff->outputs, NULL);
    if (!mhai_rows_in_place(run->x, run->x_stride, ff->inputs, run->y, run->y_stride, ff->outputs,
                            run->rows))
        mhai_regions_rows(&list, false, "x", x, MHA_F32, 1, run->rows, ff->inputs, NULL);
    if (run->residual && !mhai_rows_in_place(run->residual, run->residual_stride, ff->outputs,
                                             run->y, run->y_stride, ff->outputs, run->rows))
        mhai_regions_rows(&list, false, "residual", residual, MHA_F32, 1, run->rows, ff->outputs,
                          NULL);
    return mhai_regions_check(&list, work, work_size);
}

static void multiply_row(void *arg, int worker, ptrdiff_t row)
{
    const ff_run *const run = arg;
    float *const inner = run->inner + row * run->inner_stride;
    const float *const gated = run->gated + row * run->inner_stride;
    (void)worker;
    for (ptrdiff_t n = 0; n < run->ff->inner; n++)
        inner[n] *= gated[n];
}

/* inner of rows [first, first + rows). */
static void run_inner(ff_run *run, ptrdiff_t first, ptrdiff_t rows, mha_pool *pool)
{
    const mha_feed_forward *const ff = run->ff;
    mhai_product up = {.linear = ff->up,
                       .last_panel = ff->up->panels,
                       .rows = rows,
                       .columns = ff->inner,
                       .x = run->x + first * run->x_stride,
                       .y = run->inner,
                       .x_stride = run->x_stride,
                       .y_stride = run->inner_stride,
                       .finish = {.activation = ff->activation, .gated = ff->gated}};
    if (!ff->gate) {
        mhai_gemm(&up, run->work, pool);
        return;
    }
    mhai_product gate = up;
    gate.linear = ff->gate;
    gate.last_panel = ff->gate->panels;
    gate.y = run->gated;
    gate.finish.gated = false;
    up.finish = (mhai_finish){.activation = MHA_ACTIVATION_NONE};
    mhai_gemm(&gate, run->work, pool);
    mhai_gemm(&up, run->work, pool);
    mha_pool_run(pool, rows, multiply_row, run);
}

/* Rows [first, first + rows). */
static void run_some(ff_run *run, ptrdiff_t first, ptrdiff_t rows, mha_pool *pool)
{
    const mha_feed_forward *const ff = run->ff;
    const float *const residual = run->residual;
    const mhai_product down = {
        .linear = ff->down,
        .last_panel = ff->down->panels,
        .rows = rows,
        .columns = ff->outputs,
        .x = run->inner,
        .y = run->y + first * run->y_stride,
        .x_stride = run->inner_stride,
        .y_stride = run->y_stride,
        .finish = {.residual = residual ? residual + first * run->residual_stride : NULL,
                   .residual_stride = run->residual_stride}};
    run_inner(run, first, rows, pool);
    mhai_gemm(&down, run->work, pool);
}

mha_status mha_feed_forward_run(const mha_feed_forward *feed_forward, ptrdiff_t rows,
                                const float *x, ptrdiff_t x_stride, const float *residual,
                                ptrdiff_t residual_stride, float *y, ptrdiff_t y_stride, void *work,
                                size_t work_size, mha_pool *pool)
{
    ff_run run = {.ff = feed_forward,
                  .rows = rows,
                  .x = x,
                  .residual = residual,
                  .y = y,
                  .x_stride = x_stride,
                  .residual_stride = residual_stride,
                  .y_stride = y_stride};
    mha_status status;
    if (!feed_forward)
        return MHA_ERR_NULL;
    if (rows < 0)
        return MHA_ERR_SHAPE;
    if (rows > MHAI_MAX_EXTENT)
        return MHA_ERR_OVERFLOW;
    const int threads = mha_pool_threads(pool);
    const size_t needed = mha_feed_forward_work_size(feed_forward, rows, threads);
    if ((status = check_memory(&run, work, needed)))
        return status;
    if (work && work_size < needed)
        return MHA_ERR_WORKSPACE;
    const mhai_buffer buffer = mhai_buffer_get(work, needed);
    if (!buffer.data)
        return MHA_ERR_MEMORY;
    mhai_work carve = mhai_work_begin(buffer.data);
    run.at_once = mhai_max(1, rows_at_once(rows, threads));
    run.inner_stride = mhai_row_floats(feed_forward->inner);
    run.work = carve.base + take_inner(&run, run.at_once, &carve);
    for (ptrdiff_t first = 0; first < rows; first += run.at_once)
        run_some(&run, first, mhai_min(run.at_once, rows - first), pool);
    mhai_buffer_free(buffer);
    return MHA_OK;
}
