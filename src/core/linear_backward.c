/* SPDX-License-Identifier: MIT */
/*
 * Gradients of y = x W^T + bias (section 10 of mha.h).
 *
 *      d_x = d_y W             the product of gemm.c with W transposed, some panels at a time
 *      d_W = d_y^T . x         a task is a block of d_W and sums over all rows
 *      d_bias                  sums of the columns of d_y
 *
 * Each number is summed by one task over ascending rows or outputs, whatever the number of threads.
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

size_t mhai_gemm_back_work_size(const mha_linear *linear, ptrdiff_t rows, ptrdiff_t columns,
                                int threads)
{
    const ptrdiff_t nr = linear->kernels->nr;
    const ptrdiff_t panels = transposed_panels(linear->kernels, linear->inputs, columns);
    mhai_work work = {0};
    mhai_work_take(&work, (size_t)(panels * columns * nr), sizeof(float));
    mhai_work_take(&work, (size_t)(panels * nr), sizeof(float));
    return work.used + mhai_gemm_work_size(linear->kernels, NULL, rows, columns, panels, threads) +
           MHAI_ALIGN - 1;
}

void mhai_gemm_back(const mhai_product *product, void *memory, mha_pool *pool)
{
    const mha_linear *const linear = product->linear;
    const ptrdiff_t nr = linear->kernels->nr, all = mhai_ceil_div(linear->inputs, nr);
    const ptrdiff_t panels = transposed_panels(linear->kernels, linear->inputs, product->columns);
    mhai_work work = mhai_work_begin(memory);
    transposition pass = {.product = product};
    pass.transposed = (mha_linear){.kernels = linear->kernels,
                                   .inputs = product->columns,
                                   .depth = product->columns,
                                   .together = 1};
    pass.transposed.weights =
        mhai_work_take(&work, (size_t)(panels * product->columns * nr), sizeof(float));
    pass.transposed.bias = mhai_work_take(&work, (size_t)(panels * nr), sizeof(float));
    memset(pass.transposed.bias, 0, sizeof(float) * (size_t)(panels * nr));
    for (; product->rows > 0 && pass.first < all; pass.first += panels) {
        const ptrdiff_t count = mhai_min(panels, all - pass.first);
        mha_pool_run(pool, count, transpose_panel, &pass);
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

/* -------------------------------------------------------- d_W = d_y^T . x ----- */

enum {
    BLOCK_LEFT = 256,  /* most rows of a task's block of d_W: columns of its left factor */
    BLOCK_RIGHT = 256, /* most columns of the block */
    LEAST_LEFT = 32,   /* blocks shrink down to this size if there are too few */
    LEAST_RIGHT = 64,
    BLOCK_DEPTH = 128, /* rows of the factors summed at a time. The bits of results depend on it */
    BLOCKS_PER_THREAD = 4
};

typedef struct outer_block {
    const mhai_outer *outer;
    const mhak_table *kernels;
    ptrdiff_t left, right; /* the first columns of the two factors */
    ptrdiff_t lefts, rights;
    float *a;    /* [BLOCK_DEPTH][lda] of the left factor */
    float *b;    /* panels [BLOCK_RIGHT / nc][BLOCK_DEPTH][nc] of the right one */
    float *sums; /* [lefts][BLOCK_RIGHT] */
} outer_block;

static ptrdiff_t left_stride(void)
{
    return mhai_row_floats(BLOCK_LEFT);
}

static outer_block block_take(const mhai_outer *outer, mhai_work *work)
{
    outer_block block = {.outer = outer, .kernels = outer->kernels};
    block.a = mhai_work_take(work, (size_t)(BLOCK_DEPTH * left_stride()), sizeof(float));
    block.b = mhai_work_take(work, (size_t)BLOCK_DEPTH * BLOCK_RIGHT, sizeof(float));
    block.sums = mhai_work_take(work, (size_t)BLOCK_LEFT * BLOCK_RIGHT, sizeof(float));
    return block;
}

static const void *factor_row(const mhai_factor *factor, ptrdiff_t row, ptrdiff_t column)
{
    const ptrdiff_t at = (factor->rows ? factor->rows[row] : row) * factor->stride;
    return mhai_at(factor->data, factor->type, at + column);
}

/* Columns [column, column + count) of rows [first, first + depth) of a factor. */
static void load_part(const outer_block *block, const mhai_factor *f, ptrdiff_t first,
                      ptrdiff_t depth, ptrdiff_t column, int count, float *to, ptrdiff_t ld)
{
    const ptrdiff_t together = f->rows ? 1 : depth;
    for (ptrdiff_t i = 0; i < depth; i += together)
        block->kernels->load_rows[f->type](factor_row(f, first + i, column), f->stride,
                                           (int)together, count, 1.0f, to + i * ld, ld);
}

static void load_left(const outer_block *block, ptrdiff_t first, ptrdiff_t depth)
{
    load_part(block, &block->outer->left, first, depth, block->left, (int)block->lefts, block->a,
              left_stride());
}

/* Panels of nc columns, so that consecutive rows lie side by side. Columns past the last are 0. */
static void load_right(const outer_block *block, ptrdiff_t first, ptrdiff_t depth)
{
    const ptrdiff_t nc = block->kernels->nc;
    for (ptrdiff_t c = 0; c < block->rights; c += nc) {
        const int count = (int)mhai_min(nc, block->rights - c);
        float *const panel = block->b + c * BLOCK_DEPTH;
        if (count < nc)
            memset(panel, 0, sizeof(float) * (size_t)(depth * nc));
        load_part(block, &block->outer->right, first, depth, block->right + c, count, panel, nc);
    }
}

/* Where the block's row r is in y. */
static float *block_row(const outer_block *block, ptrdiff_t r)
{
    return block->outer->y + (block->left + r) * block->outer->ldy + block->right;
}

/* The sums begin with 0, or with what they are added to: then they continue the chain of the call
 * before, and the rows may have come in any number of calls. */
static void begin_sums(const outer_block *block)
{
    memset(block->sums, 0, sizeof(float) * (size_t)block->lefts * BLOCK_RIGHT);
    for (ptrdiff_t r = 0; block->outer->add && r < block->lefts; r++)
        memcpy(block->sums + r * BLOCK_RIGHT, block_row(block, r),
               sizeof(float) * (size_t)block->rights);
}

static void sum_block(const outer_block *block)
{
    const ptrdiff_t nc = block->kernels->nc;
    begin_sums(block);
    for (ptrdiff_t first = 0; first < block->outer->count; first += BLOCK_DEPTH) {
        const ptrdiff_t depth = mhai_min(BLOCK_DEPTH, block->outer->count - first);
        load_left(block, first, depth);
        load_right(block, first, depth);
        for (ptrdiff_t c = 0; c < block->rights; c += nc)
            block->kernels->product_transposed(block->a, left_stride(), block->b + c * BLOCK_DEPTH,
                                               nc, (int)depth, (int)block->lefts, (int)nc,
                                               block->sums + c, BLOCK_RIGHT);
    }
}

static void outer_task(void *arg, int worker, ptrdiff_t number)
{
    const mhai_outer *const outer = arg;
    const ptrdiff_t across = mhai_ceil_div(outer->right.columns, outer->rights);
    mhai_work work = {.base = outer->scratches + (size_t)worker * outer->scratch_size};
    outer_block block = block_take(outer, &work);
    block.left = number / across * outer->lefts;
    block.right = number % across * outer->rights;
    block.lefts = mhai_min(outer->lefts, outer->left.columns - block.left);
    block.rights = mhai_min(outer->rights, outer->right.columns - block.right);
    sum_block(&block);
    for (ptrdiff_t r = 0; r < block.lefts; r++)
        memcpy(block_row(&block, r), block.sums + r * BLOCK_RIGHT,
               sizeof(float) * (size_t)block.rights);
}

static size_t outer_scratch_size(const mhak_table *kernels)
{
    const mhai_outer none = {.kernels = kernels};
    mhai_work work = {0};
    block_take(&none, &work);
    return work.used;
}

size_t mhai_outer_work_size(const mhak_table *kernels, int threads)
{
    return (size_t)threads * outer_scratch_size(kernels) + MHAI_ALIGN - 1;
}

static ptrdiff_t count_blocks(const mhai_outer *outer)
{
    return mhai_ceil_div(outer->left.columns, outer->lefts) *
           mhai_ceil_div(outer->right.columns, outer->rights);
}

/* Chooses blocks as large as possible while every thread gets some. */
static void choose_blocks(mhai_outer *outer, int threads)
{
    const ptrdiff_t wanted = threads > 1 ? (ptrdiff_t)BLOCKS_PER_THREAD * threads : 1;
    outer->lefts = BLOCK_LEFT;
    outer->rights = BLOCK_RIGHT;
    while (count_blocks(outer) < wanted && outer->rights > LEAST_RIGHT)
        outer->rights /= 2;
    while (count_blocks(outer) < wanted && outer->lefts > LEAST_LEFT)
        outer->lefts /= 2;
}

static void run_outer(mhai_outer outer, void *work, mha_pool *pool)
{
    outer.scratches = mhai_work_begin(work).base;
    outer.scratch_size = outer_scratch_size(outer.kernels);
    choose_blocks(&outer, mha_pool_threads(pool));
    mha_pool_run(pool, count_blocks(&outer), outer_task, &outer);
}

void mhai_outer_matrix(const mhak_table *kernels, const mhai_factor *d_y, const mhai_factor *x,
                       ptrdiff_t rows, const mha_matrix_out *to, bool add, void *work,
                       mha_pool *pool)
{
    mhai_outer outer = {.kernels = kernels, .count = rows, .add = add, .y = to->data};
    const bool by_outputs = to->in_stride == 1; /* a row of d_W belongs to an output */
    outer.left = by_outputs ? *d_y : *x;
    outer.right = by_outputs ? *x : *d_y;
    outer.ldy = by_outputs ? to->out_stride : to->in_stride;
    if (to->data)
        run_outer(outer, work, pool);
}

/* ----------------------------------------------------------------- d_bias ----- */

enum { SUM_COLUMNS = 64 }; /* of a task */

typedef struct column_sum {
    const mhak_table *kernels;
    const mhai_factor *factor;
    ptrdiff_t rows;
    float *sums;
    bool add;
} column_sum;

static void sum_columns(void *arg, int worker, ptrdiff_t number)
{
    const column_sum *const job = arg;
    const ptrdiff_t first = number * SUM_COLUMNS;
    const ptrdiff_t count = mhai_min(SUM_COLUMNS, job->factor->columns - first);
    double sums[SUM_COLUMNS] = {0};
    float row[SUM_COLUMNS];
    (void)worker;
    for (ptrdiff_t r = 0; r < job->rows; r++) {
        job->kernels->load_row[job->factor->type](factor_row(job->factor, r, first), (int)count,
                                                  1.0f, row);
        for (ptrdiff_t c = 0; c < count; c++)
            sums[c] += (double)row[c];
    }
    for (ptrdiff_t c = 0; c < count; c++)
        job->sums[first + c] = (float)(job->add ? (double)job->sums[first + c] + sums[c] : sums[c]);
}

void mhai_column_sums(const mhak_table *kernels, const mhai_factor *factor, ptrdiff_t rows,
                      float *sums, bool add, mha_pool *pool)
{
    column_sum job = {kernels, factor, rows, sums, add};
    if (sums)
        mha_pool_run(pool, mhai_ceil_div(factor->columns, SUM_COLUMNS), sum_columns, &job);
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
    mhai_outer_matrix(linear->kernels, &d_y, x, rows, &g->d_weight, g->accumulate, work, pool);
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
