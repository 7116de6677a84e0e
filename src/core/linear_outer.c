/* SPDX-License-Identifier: MIT */
/*
 * Sums over rows, for the gradients of weights: d_W = d_y^T . x, and the columns of d_y for d_bias.
 *
 * A task is a block of d_W. It sums over all rows, BLOCK_DEPTH of them at a time, which are copied
 * into the order that the kernels read; for native products they become pairs of rows of bf16
 * (kernels/native.h), two of which fill the same memory as one row of f32.
 */
#include "core/linear.h"

#include <string.h>

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
    void *a;     /* [BLOCK_DEPTH][lda] floats of the left factor, or [BLOCK_DEPTH / 2][lda] pairs */
    void *b;     /* panels [BLOCK_RIGHT / nc][BLOCK_DEPTH][nc] of the right one; those of pairs have
                  * nr columns */
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
        float *const panel = (float *)block->b + c * BLOCK_DEPTH;
        if (count < nc)
            memset(panel, 0, sizeof(float) * (size_t)(depth * nc));
        load_part(block, &block->outer->right, first, depth, block->right + c, count, panel, nc);
    }
}

/* How many rows from `first` on, up to `depth`, are equally far apart, and how far. */
static ptrdiff_t even_rows(const mhai_factor *f, ptrdiff_t first, ptrdiff_t depth,
                           ptrdiff_t *stride)
{
    *stride = f->stride;
    if (!f->rows || depth < 2)
        return depth;
    const ptrdiff_t *const rows = f->rows + first, step = rows[1] - rows[0];
    ptrdiff_t count = 2;
    while (count < depth && rows[count] - rows[count - 1] == step)
        count++;
    *stride = step * f->stride;
    return count;
}

/* Two rows, or one, of a factor that is not f32. */
static void pair_converted(const outer_block *block, const mhai_factor *f, ptrdiff_t first,
                           ptrdiff_t rows, ptrdiff_t column, int count, uint32_t *to, int width,
                           ptrdiff_t step)
{
    float wide[MHAK_PAIR][BLOCK_LEFT > BLOCK_RIGHT ? BLOCK_LEFT : BLOCK_RIGHT];
    const ptrdiff_t stride = wide[1] - wide[0];
    for (ptrdiff_t i = 0; i < rows; i++)
        block->kernels->load_row[f->type](factor_row(f, first + i, column), count, 1.0f, wide[i]);
    block->outer->native->pair_rows(wide[0], stride, (int)rows, count, to, 0, width, step);
}

/* Columns [column, column + count) of rows [first, first + depth) of a factor, as pairs of rows in
 * panels of `width` columns that are `step` words apart. */
static void load_pairs(const outer_block *block, const mhai_factor *f, ptrdiff_t first,
                       ptrdiff_t depth, ptrdiff_t column, int count, uint32_t *to, ptrdiff_t ld,
                       int width, ptrdiff_t step)
{
    for (ptrdiff_t i = 0, rows; i < depth; i += rows) {
        ptrdiff_t stride;
        rows = even_rows(f, first + i, depth - i, &stride);
        rows = i + rows < depth ? rows / MHAK_PAIR * MHAK_PAIR : rows; /* the last may be alone */
        uint32_t *const at = to + i / MHAK_PAIR * ld;
        if (f->type == MHA_F32) {
            block->outer->native->pair_rows(factor_row(f, first + i, column), stride, (int)rows,
                                            count, at, ld, width, step);
        } else {
            rows = mhai_min(rows, MHAK_PAIR);
            pair_converted(block, f, first + i, rows, column, count, at, width, step);
        }
    }
}

/* Both factors as pairs. Columns past the last of a panel are 0. */
static void load_both_pairs(const outer_block *block, ptrdiff_t first, ptrdiff_t depth)
{
    const ptrdiff_t nr = block->kernels->nr, step = nr * (BLOCK_DEPTH / MHAK_PAIR);
    uint32_t *const b = block->b;
    load_pairs(block, &block->outer->left, first, depth, block->left, (int)block->lefts, block->a,
               left_stride(), BLOCK_LEFT, 0);
    if (block->rights % nr != 0)
        memset(b + block->rights / nr * step, 0,
               sizeof *b * (size_t)(mhai_ceil_div(depth, MHAK_PAIR) * nr));
    load_pairs(block, &block->outer->right, first, depth, block->right, (int)block->rights, b, nr,
               (int)nr, step);
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

static void add_exact(const outer_block *block, ptrdiff_t first, ptrdiff_t depth)
{
    const ptrdiff_t nc = block->kernels->nc;
    load_left(block, first, depth);
    load_right(block, first, depth);
    for (ptrdiff_t c = 0; c < block->rights; c += nc)
        block->kernels->product_transposed(
            block->a, left_stride(), (const float *)block->b + c * BLOCK_DEPTH, nc, (int)depth,
            (int)block->lefts, (int)nc, block->sums + c, BLOCK_RIGHT);
}

static void add_native(const outer_block *block, ptrdiff_t first, ptrdiff_t depth)
{
    const ptrdiff_t nr = block->kernels->nr;
    load_both_pairs(block, first, depth);
    for (ptrdiff_t c = 0; c < block->rights; c += nr)
        block->outer->native->outer_bf16(
            block->a, left_stride(), (const uint32_t *)block->b + c * (BLOCK_DEPTH / MHAK_PAIR),
            (int)mhai_ceil_div(depth, MHAK_PAIR), (int)block->lefts, block->sums + c, BLOCK_RIGHT);
}

static void sum_block(const outer_block *block)
{
    begin_sums(block);
    for (ptrdiff_t first = 0; first < block->outer->count; first += BLOCK_DEPTH)
        (block->outer->native ? add_native : add_exact)(
            block, first, mhai_min(BLOCK_DEPTH, block->outer->count - first));
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

void mhai_outer_matrix(const mha_linear *linear, const mhai_factor *d_y, const mhai_factor *x,
                       ptrdiff_t rows, const mha_matrix_out *to, bool add, void *work,
                       mha_pool *pool)
{
    mhai_outer outer = {.kernels = linear->kernels,
                        .native = mhai_is_native_back(linear) ? linear->native : NULL,
                        .count = rows,
                        .add = add,
                        .y = to->data};
    const bool by_outputs = to->in_stride == 1; /* a row of d_W belongs to an output */
    outer.left = by_outputs ? *d_y : *x;
    outer.right = by_outputs ? *x : *d_y;
    outer.ldy = by_outputs ? to->out_stride : to->in_stride;
    if (to->data)
        run_outer(outer, work, pool);
}

/* ----------------------------------------------------------------- d_bias ----- */

enum {
    SUM_COLUMNS = 256, /* most columns of a task: long runs of every row */
    SUM_LEAST = 64,    /* fewer, if there are several threads, but not below this */
    SUM_ROWS = 8,      /* rows that are added to a column before its sum is stored */
    SUM_GROUP = 8      /* columns whose sums are in registers meanwhile */
};

typedef struct column_sum {
    const mhak_table *kernels;
    const mhai_factor *factor;
    ptrdiff_t rows, columns; /* columns of a task */
    float *sums;
    bool add;
} column_sum;

/* Adds some rows to the sums of their columns, in ascending order. */
static void add_rows(const float *const rows[SUM_ROWS], ptrdiff_t count, ptrdiff_t columns,
                     double *sums)
{
    ptrdiff_t c = 0;
    for (; c + SUM_GROUP <= columns; c += SUM_GROUP) {
        double group[SUM_GROUP];
        memcpy(group, sums + c, sizeof group);
        for (ptrdiff_t r = 0; r < count; r++)
            for (int t = 0; t < SUM_GROUP; t++)
                group[t] += (double)rows[r][c + t];
        memcpy(sums + c, group, sizeof group);
    }
    for (; c < columns; c++)
        for (ptrdiff_t r = 0; r < count; r++)
            sums[c] += (double)rows[r][c];
}

static void sum_columns(void *arg, int worker, ptrdiff_t number)
{
    const column_sum *const job = arg;
    const mhai_factor *const f = job->factor;
    const ptrdiff_t first = number * job->columns;
    const ptrdiff_t columns = mhai_min(job->columns, f->columns - first);
    double sums[SUM_COLUMNS] = {0};
    float wide[SUM_ROWS][SUM_COLUMNS];
    (void)worker;
    for (ptrdiff_t r = 0, count; r < job->rows; r += count) {
        const float *rows[SUM_ROWS];
        count = mhai_min(SUM_ROWS, job->rows - r);
        for (ptrdiff_t i = 0; i < count; i++) {
            const void *const row = factor_row(f, r + i, first);
            rows[i] = f->type == MHA_F32 ? row : wide[i];
            if (f->type != MHA_F32)
                job->kernels->load_row[f->type](row, (int)columns, 1.0f, wide[i]);
        }
        add_rows(rows, count, columns, sums);
    }
    for (ptrdiff_t c = 0; c < columns; c++)
        job->sums[first + c] = (float)(job->add ? (double)job->sums[first + c] + sums[c] : sums[c]);
}

void mhai_column_sums(const mhak_table *kernels, const mhai_factor *factor, ptrdiff_t rows,
                      float *sums, bool add, mha_pool *pool)
{
    const ptrdiff_t share = mhai_ceil_div(factor->columns, mha_pool_threads(pool));
    const ptrdiff_t columns =
        mhai_max(SUM_LEAST, mhai_min(SUM_COLUMNS, mhai_round_up(share, SUM_GROUP)));
    column_sum job = {kernels, factor, rows, columns, sums, add};
    if (sums)
        mha_pool_run(pool, mhai_ceil_div(factor->columns, columns), sum_columns, &job);
}
