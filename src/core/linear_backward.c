/* SPDX-License-Identifier: MIT */
/*
 * Gradients of y = x W^T + bias (section 10 of mha.h).
 *
 *      d_x = d_y W             the product of gemm.c with W transposed, some panels at a time
 *      d_W = d_y^T . x         linear_outer.c
 *      d_bias                  sums of the columns of d_y; there too
 *
 * Each number is summed by one task over ascending rows or outputs, whatever the number of threads.
 * If products of the linear are native and its weights bf16, these are native too.
 */
#include "core/linear.h"

#include <string.h>

/* ------------------------------------------------------------ d_x = d_y W ----- */

enum { TRANSPOSED_BYTES = 1 << 25 }; /* of panels transposed at a time, about */

/* Panels of inputs that are transposed at a time. */
static ptrdiff_t transposed_panels(const mhak_table *kernels, ptrdiff_t inputs, ptrdiff_t outputs)
{
    const ptrdiff_t bytes = (outputs + 1) * kernels->nr * (ptrdiff_t)sizeof(float);
    return mhai_min(mhai_ceil_div(inputs, kernels->nr), mhai_max(1, TRANSPOSED_BYTES / bytes));
}

typedef struct transposition {
    const mhai_product *product; /* x: d_y, y: d_x */
    mha_linear
        transposed;  /* its inputs are columns of d_y, its outputs some inputs of the linear */
    ptrdiff_t first; /* first panel of inputs */
} transposition;

/* The same from panels of native products, which have inputs side by side already. */
static void read_tile(const mha_linear *linear, ptrdiff_t column, ptrdiff_t input, int inputs,
                      int outputs, float *to)
{
    const int nr = linear->kernels->nr;
    uint16_t row[MHAK_MAX_PANEL];
    memset(to, 0, sizeof(float) * (size_t)(outputs * nr));
    for (int r = 0; r < outputs; r++) {
        mhai_linear_get_inputs(linear, column + r, input, row, inputs);
        linear->kernels->load_row[linear->stored](row, inputs, 1.0f, to + (ptrdiff_t)r * nr);
    }
}

/* A tile of weights from [input][nr outputs], as stored, to [output][nr inputs], scaled. */
static void transpose_tile(const mha_linear *linear, ptrdiff_t p, ptrdiff_t input, int outputs,
                           float *to)
{
    float wide[MHAK_MAX_PANEL * MHAK_MAX_PANEL];
    const int nr = linear->kernels->nr, inputs = (int)mhai_min(nr, linear->inputs - input);
    const void *const tile = mhai_linear_slice(linear, p, input);
    if (linear->native) {
        read_tile(linear, p * nr, input, inputs, outputs, to);
    } else {
        if (linear->stored != MHA_F32)
            linear->kernels->load_row[linear->stored](tile, inputs * nr, 1.0f, wide);
        linear->kernels->pack_k[MHA_F32](linear->stored == MHA_F32 ? tile : wide, nr, inputs,
                                         outputs, nr, to);
    }
    for (int r = 0; linear->scales && r < outputs; r++)
        for (int c = 0; c < nr; c++)
            to[r * nr + c] *= linear->scales[p * nr + r];
}

/* A tile of pairs of inputs, [input pair][nr outputs], to one of pairs of outputs, [output
 * pair][nr inputs]. Both have zeros where there are no weights. */
static void transpose_pairs(const mha_linear *linear, ptrdiff_t p, ptrdiff_t input, int outputs,
                            uint16_t *to)
{
    const int nr = linear->kernels->nr, inputs = (int)mhai_min(nr, linear->depth - input);
    const uint16_t *const tile = mhai_linear_slice(linear, p, input);
    for (int n = 0; n < outputs; n += MHAK_PAIR, to += MHAK_PAIR * nr) {
        for (int c = 0; c < inputs; c += MHAK_PAIR) {
            const uint16_t *const from = tile + c * nr + MHAK_PAIR * n;
            const uint16_t block[4] = {from[0], from[2], from[1], from[3]};
            memcpy(to + MHAK_PAIR * c, block, sizeof block);
        }
        memset(to + MHAK_PAIR * inputs, 0, sizeof *to * (size_t)(MHAK_PAIR * (nr - inputs)));
    }
}

/* One panel of the transposed weights, for native products. */
static void transpose_native(void *arg, int worker, ptrdiff_t number)
{
    const transposition *const pass = arg;
    const mha_linear *const linear = pass->product->linear;
    const ptrdiff_t nr = linear->kernels->nr, outputs = pass->transposed.depth;
    uint16_t *const panel = (uint16_t *)pass->transposed.weights + number * outputs * nr;
    (void)worker;
    for (ptrdiff_t n = 0; n < outputs; n += nr)
        transpose_pairs(linear, pass->product->first_panel + n / nr, (pass->first + number) * nr,
                        (int)mhai_min(nr, outputs - n), panel + n * nr);
}

/* One panel of the transposed weights. */
static void transpose_panel(void *arg, int worker, ptrdiff_t number)
{
    const transposition *const pass = arg;
    const mha_linear *const linear = pass->product->linear;
    const ptrdiff_t nr = linear->kernels->nr, outputs = pass->transposed.inputs;
    const ptrdiff_t input = (pass->first + number) * nr;
    float *const panel = (float *)pass->transposed.weights + number * outputs * nr;
    (void)worker;
    for (ptrdiff_t n = 0; n < outputs; n += nr)
        transpose_tile(linear, pass->product->first_panel + n / nr, input,
                       (int)mhai_min(nr, outputs - n), panel + n * nr);
}

/* The linear of the transposed weights, without memory: its inputs are `columns` of d_y. */
static mha_linear transposed_of(const mha_linear *linear, ptrdiff_t columns)
{
    const bool native = mhai_is_native_back(linear);
    return (mha_linear){.kernels = linear->kernels,
                        .native = native ? linear->native : NULL,
                        .inputs = columns,
                        .depth = mhai_round_up(columns, native ? MHAK_PAIR : 1),
                        .stored = native ? MHA_BF16 : MHA_F32,
                        .together = native ? MHAK_PAIR : 1};
}

/* Takes its memory, for that many panels of inputs. */
static void take_transposed(mha_linear *transposed, ptrdiff_t panels, mhai_work *work)
{
    const size_t outputs = (size_t)(panels * transposed->kernels->nr);
    transposed->weights = mhai_work_take(work, outputs * (size_t)transposed->depth,
                                         mha_dtype_size(transposed->stored));
    transposed->bias = mhai_work_take(work, outputs, sizeof(float));
}

size_t mhai_gemm_back_work_size(const mha_linear *linear, ptrdiff_t rows, ptrdiff_t columns,
                                int threads)
{
    const ptrdiff_t panels = transposed_panels(linear->kernels, linear->inputs, columns);
    mha_linear transposed = transposed_of(linear, columns);
    mhai_work work = {0};
    take_transposed(&transposed, panels, &work);
    return work.used +
           mhai_gemm_work_size(linear->kernels, transposed.native, rows, columns, panels, threads) +
           MHAI_ALIGN - 1;
}

void mhai_gemm_back(const mhai_product *product, void *memory, mha_pool *pool)
{
    const mha_linear *const linear = product->linear;
    const ptrdiff_t nr = linear->kernels->nr, all = mhai_ceil_div(linear->inputs, nr);
    const ptrdiff_t panels = transposed_panels(linear->kernels, linear->inputs, product->columns);
    transposition pass = {.product = product,
                          .transposed = transposed_of(linear, product->columns)};
    mhai_work work = mhai_work_begin(memory);
    take_transposed(&pass.transposed, panels, &work);
    memset(pass.transposed.bias, 0, sizeof(float) * (size_t)(panels * nr));
    for (; product->rows > 0 && pass.first < all; pass.first += panels) {
        const ptrdiff_t count = mhai_min(panels, all - pass.first);
        mha_pool_run(pool, count, pass.transposed.native ? transpose_native : transpose_panel,
                     &pass);
        pass.transposed.panels = count;
        mhai_product part = *product;
        part.linear = &pass.transposed;
        part.first_panel = 0;
        part.last_panel = count;
        part.columns = mhai_min(count * nr, linear->inputs - pass.first * nr);
        part.y = mhai_out_at(product->y, product->y_type, pass.first * nr);
        mhai_gemm(&part, work.base + work.used, pool);
    }
}

/* ----------------------------------------------------------------- checks ----- */

mha_status mhai_matrix_out_check(const mha_options *message, const char *name,
                                 const mha_matrix_out *matrix)
{
    if (matrix->data && matrix->in_stride != 1 && matrix->out_stride != 1)
        return mhai_fail(message, MHA_ERR_STRIDE,
                         "%s has out_stride %td and in_stride %td; one of them is 1", name,
                         matrix->out_stride, matrix->in_stride);
    return MHA_OK;
}

void mhai_matrix_out_region(mhai_regions *list, const char *name, const mha_matrix_out *matrix,
                            ptrdiff_t outputs, ptrdiff_t inputs)
{
    const bool by_outputs = matrix->in_stride == 1;
    const mha_view view = {matrix->data, 0, 0, by_outputs ? matrix->out_stride : matrix->in_stride};
    list->B = 1;
    if (matrix->data)
        mhai_regions_rows(list, true, name, view, MHA_F32, 1, by_outputs ? outputs : inputs,
                          by_outputs ? inputs : outputs, NULL);
}

void mhai_vector_out_region(mhai_regions *list, const char *name, float *data, ptrdiff_t count)
{
    const mha_view view = {data, 0, 0, 0};
    list->B = 1;
    if (data)
        mhai_regions_rows(list, true, name, view, MHA_F32, 1, 1, count, NULL);
}

static mha_status check_memory(const mha_linear *linear, ptrdiff_t rows, const mhai_factor *x,
                               const mha_linear_gradients *g, const void *work, size_t work_size)
{
    const mha_options silent = {0};
    const mha_view inputs = {x->data, 0, 0, x->stride}, d_y = {g->d_y, 0, 0, g->d_y_stride};
    const mha_view d_x = {g->d_x, 0, 0, g->d_x_stride};
    mhai_regions list;
    mhai_regions_begin(&list, &silent, 1);
    if (g->d_weight.data)
        mhai_regions_rows(&list, false, "x", inputs, x->type, 1, rows, linear->inputs, NULL);
    mhai_regions_rows(&list, false, "d_y", d_y, g->d_y_type, 1, rows, linear->outputs, NULL);
    if (g->d_x)
        mhai_regions_rows(&list, true, "d_x", d_x, MHA_F32, 1, rows, linear->inputs, NULL);
    mhai_matrix_out_region(&list, "d_weight", &g->d_weight, linear->outputs, linear->inputs);
    mhai_vector_out_region(&list, "d_bias", g->d_bias, linear->outputs);
    return mhai_regions_check(&list, work, work_size);
}

/* ----------------------------------------------------------------- public ----- */

static size_t work_size_of(const mha_linear *linear, ptrdiff_t rows, int threads)
{
    return mhai_larger(mhai_gemm_back_work_size(linear, rows, linear->outputs, threads),
                       mhai_outer_work_size(linear->kernels, threads));
}

size_t mha_linear_backward_work_size(const mha_linear *linear, ptrdiff_t rows, int threads)
{
    if (!linear || rows < 0 || threads < 1 || threads > MHA_MAX_THREADS ||
        mhai_is_block(linear->stored))
        return 0;
    return work_size_of(linear, rows, threads);
}

static void run_backward(const mha_linear *linear, ptrdiff_t rows, const mhai_factor *x,
                         const mha_linear_gradients *g, void *work, mha_pool *pool)
{
    const mhai_factor d_y = {g->d_y, g->d_y_type, linear->outputs, NULL, g->d_y_stride};
    const mhai_product product = {.linear = linear,
                                  .last_panel = linear->panels,
                                  .rows = rows,
                                  .columns = linear->outputs,
                                  .x = g->d_y,
                                  .x_type = g->d_y_type,
                                  .x_stride = g->d_y_stride,
                                  .y = g->d_x,
                                  .y_type = MHA_F32,
                                  .y_stride = g->d_x_stride};
    if (g->d_x)
        mhai_gemm_back(&product, work, pool);
    mhai_outer_matrix(linear, &d_y, x, rows, &g->d_weight, g->accumulate, work, pool);
    mhai_column_sums(linear->kernels, &d_y, rows, g->d_bias, g->accumulate, pool);
}

mha_status mha_linear_backward(const mha_linear *linear, ptrdiff_t rows, const void *x,
                               mha_dtype x_type, ptrdiff_t x_stride,
                               const mha_linear_gradients *gradients, void *work, size_t work_size,
                               mha_pool *pool)
{
    const mha_options silent = {0};
    mha_linear_gradients g;
    if (!linear || !gradients)
        return MHA_ERR_NULL;
    if (!mhai_struct_read(gradients, &g, offsetof(mha_linear_gradients, accumulate), sizeof g))
        return MHA_ERR_STRUCT;
    if (g.accumulate != 0 && g.accumulate != 1)
        return MHA_ERR_FLAG;
    if (mhai_is_block(linear->stored))
        return MHA_ERR_DTYPE;
    const mhai_factor inputs = {x, x_type, linear->inputs, NULL, x_stride};
    mha_status status = mhai_linear_check_rows(linear, rows, x_type, g.d_y_type);
    if (status || (status = mhai_matrix_out_check(&silent, "d_weight", &g.d_weight)))
        return status;
    const size_t needed = work_size_of(linear, rows, mha_pool_threads(pool));
    if ((status = check_memory(linear, rows, &inputs, &g, work, needed)))
        return status;
    if (work && work_size < needed)
        return MHA_ERR_WORKSPACE;
    const mhai_buffer buffer = mhai_buffer_get(work, needed);
    if (!buffer.data)
        return MHA_ERR_MEMORY;
    run_backward(linear, rows, &inputs, &g, buffer.data, pool);
    mhai_buffer_free(buffer);
    return MHA_OK;
}
