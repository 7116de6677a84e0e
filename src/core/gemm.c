/* SPDX-License-Identifier: MIT */
/*
 * Rows x panels. A task is a block of rows and a range of panels; its result collects in the
 * worker's scratch and is finished (scale, bias, type) when all inputs are summed.
 *
 *      few rows    for each panel, for each slice of inputs       weights are one stream, read once
 *      many rows   for each slice: copy the rows' slice, as f32;
 *                      for each panel                             the panel's slice stays in L1
 *
 * Both add the same chains of MHAK_SLICE inputs in the same order: a row's bits do not depend on
 * how many others there are, on the tasks or on the threads.
 */
#include "linear.h"

enum {
    FEW_ROWS = 12,       /* up to here weights are read in place, whatever their type */
    BLOCK_ROWS = 96,     /* rows of a task: with a slice of inputs 96 KiB */
    TASK_COLUMNS = 1024, /* columns of a task: with BLOCK_ROWS 384 KiB of sums */
    TASKS_A_THREAD = 4
};

/* How a product is cut. Never changes a bit. */
typedef struct cut {
    ptrdiff_t rows, panels;             /* of one task, at most */
    ptrdiff_t row_blocks, panel_ranges; /* how many */
} cut;

static cut cut_of(const mhak_table *kernels, ptrdiff_t rows, ptrdiff_t panels, int threads)
{
    cut c = {.rows = BLOCK_ROWS, .panels = TASK_COLUMNS / kernels->nr};
    c.row_blocks = mhai_max(1, mhai_ceil_div(rows, c.rows));
    c.rows = mhai_round_up(mhai_ceil_div(rows, c.row_blocks), kernels->mr_qk);
    c.row_blocks = mhai_ceil_div(rows, c.rows);
    const ptrdiff_t wanted = threads > 1 ? (ptrdiff_t)TASKS_A_THREAD * threads : 1;
    const ptrdiff_t ranges =
        mhai_max(mhai_ceil_div(panels, c.panels), mhai_ceil_div(wanted, mhai_max(1, c.row_blocks)));
    c.panels = mhai_max(1, mhai_ceil_div(panels, ranges));
    c.panel_ranges = mhai_ceil_div(panels, c.panels);
    return c;
}

/* ------------------------------------------------------------- workspace ----- */

typedef struct rooms {
    float *x;     /* few rows: [rows][ldx] all inputs; many: [rows][ldx] a slice */
    float *sums;  /* [rows][panels * nr] */
    float *panel; /* a slice of a panel as f32 */
} rooms;

/* One vector more than the inputs: rows a power of two apart would share the cache's sets. */
static ptrdiff_t row_length(ptrdiff_t rows, ptrdiff_t inputs)
{
    const ptrdiff_t length = rows <= FEW_ROWS ? inputs : mhai_min(inputs, MHAK_SLICE);
    return mhai_round_up(length, MHAK_MAX_VECTOR) + MHAK_MAX_VECTOR;
}

static rooms take_scratch(const mhak_table *kernels, ptrdiff_t rows, ptrdiff_t inputs,
                          ptrdiff_t panels, mhai_work *work)
{
    rooms s;
    s.x = mhai_work_take(work, (size_t)(rows * row_length(rows, inputs)), sizeof(float));
    s.sums = mhai_work_take(work, (size_t)(rows * panels * kernels->nr), sizeof(float));
    s.panel = mhai_work_take(work, (size_t)(MHAK_SLICE * kernels->nr), sizeof(float));
    return s;
}

/* For the most rows a task may have, few or many. */
static size_t scratch_size(const mhak_table *kernels, ptrdiff_t rows, ptrdiff_t inputs,
                           ptrdiff_t panels)
{
    mhai_work few = {0}, many = {0};
    take_scratch(kernels, mhai_min(rows, FEW_ROWS), inputs, panels, &few);
    take_scratch(kernels, rows, inputs, panels, &many);
    return few.used > many.used ? few.used : many.used;
}

size_t mhai_gemm_work_size(const mhak_table *kernels, ptrdiff_t rows, ptrdiff_t inputs,
                           ptrdiff_t panels, int threads)
{
    const ptrdiff_t most_rows = mhai_min(rows, BLOCK_ROWS + kernels->mr_qk);
    const ptrdiff_t most_panels = mhai_min(panels, TASK_COLUMNS / kernels->nr);
    return (size_t)threads * scratch_size(kernels, most_rows, inputs, most_panels) + MHAI_ALIGN - 1;
}

/* --------------------------------------------------------------- one task ----- */

typedef struct run {
    const mhai_product *product;
    cut cut;
    char *scratches;
    size_t scratch_size;
} run;

typedef struct task {
    const mhai_product *product;
    const mha_linear *linear;
    const mhak_table *kernels;
    ptrdiff_t row, panel; /* the first ones */
    int rows, panels, nr;
    ptrdiff_t ldx, ldy; /* of scratch.x and scratch.sums */
    rooms scratch;
} task;

static const void *x_row(const mhai_product *p, ptrdiff_t row)
{
    return mhai_at(p->x, p->x_type, (p->x_rows ? p->x_rows[row] : row) * p->x_stride);
}

static void load_inputs(const task *now, ptrdiff_t first, ptrdiff_t count)
{
    const mha_dtype type = now->product->x_type;
    for (int r = 0; r < now->rows; r++)
        now->kernels->load_row[type](mhai_at(x_row(now->product, now->row + r), type, first),
                                     (int)count, 1.0f, now->scratch.x + r * now->ldx);
}

/* Inputs [first, ...) of panel p, in storage. */
static const void *slice_at(const task *now, ptrdiff_t p, ptrdiff_t first)
{
    const mha_linear *const linear = now->linear;
    return mhai_at(linear->weights, linear->stored,
                   ((now->panel + p) * linear->inputs + first) * now->nr);
}

/* Panel p is summed: scale, bias, and to y while the sums are near. */
static void finish(const task *now, int panel)
{
    const mhai_product *const p = now->product;
    const mha_linear *const linear = now->linear;
    const ptrdiff_t column = (now->panel + panel) * now->nr;   /* of the linear */
    const ptrdiff_t first = column - p->first_panel * now->nr; /* of y */
    const int columns = (int)mhai_min(now->nr, p->columns - first);
    const float *const scales = linear->scales ? linear->scales + column : NULL;
    for (int r = 0; r < now->rows; r++) {
        const ptrdiff_t row = now->row + r;
        const ptrdiff_t at = (p->y_rows ? p->y_rows[row] : row) * p->y_stride;
        now->kernels->finish_row[p->y_type](now->scratch.sums + r * now->ldy + panel * now->nr,
                                            columns, scales, linear->bias + column,
                                            mhai_out_at(p->y, p->y_type, at + first));
    }
}

static void few_rows(const task *now)
{
    const ptrdiff_t inputs = now->linear->inputs;
    load_inputs(now, 0, inputs);
    for (int p = 0; p < now->panels; p++) {
        for (ptrdiff_t c = 0; c < inputs; c += MHAK_SLICE)
            now->kernels->product[now->linear->stored](
                now->scratch.x + c, now->ldx, slice_at(now, p, c),
                (int)mhai_min(MHAK_SLICE, inputs - c), now->rows, c > 0,
                now->scratch.sums + p * now->nr, now->ldy);
        finish(now, p);
    }
}

/* A slice of a panel as f32, where it lies or converted. */
static const float *f32_slice(const task *now, ptrdiff_t p, ptrdiff_t first, int count)
{
    const void *const slice = slice_at(now, p, first);
    if (now->linear->stored == MHA_F32)
        return slice;
    now->kernels->load_row[now->linear->stored](slice, count * now->nr, 1.0f, now->scratch.panel);
    return now->scratch.panel;
}

static void many_rows(const task *now)
{
    const ptrdiff_t inputs = now->linear->inputs;
    for (ptrdiff_t c = 0; c < inputs; c += MHAK_SLICE) {
        const int depth = (int)mhai_min(MHAK_SLICE, inputs - c);
        load_inputs(now, c, depth);
        for (int p = 0; p < now->panels; p++) {
            now->kernels->product[MHA_F32](now->scratch.x, now->ldx, f32_slice(now, p, c, depth),
                                           depth, now->rows, c > 0, now->scratch.sums + p * now->nr,
                                           now->ldy);
            if (c + depth == inputs)
                finish(now, p);
        }
    }
}

/* Nothing to sum: y is the bias. */
static void no_inputs(const task *now)
{
    for (ptrdiff_t n = 0; n < now->rows * now->ldy; n++)
        now->scratch.sums[n] = 0.0f;
    for (int p = 0; p < now->panels; p++)
        finish(now, p);
}

/* Task number -> rows and panels. Panels vary slowest: their weights are used by all rows. */
static task task_of(const run *all, char *scratch, ptrdiff_t number)
{
    const mhai_product *const p = all->product;
    const cut *const c = &all->cut;
    task now = {.product = p, .linear = p->linear, .kernels = p->linear->kernels};
    now.nr = now.kernels->nr;
    now.row = number % c->row_blocks * c->rows;
    now.panel = p->first_panel + number / c->row_blocks * c->panels;
    now.rows = (int)mhai_min(c->rows, p->rows - now.row);
    now.panels = (int)mhai_min(c->panels, p->last_panel - now.panel);
    now.ldx = row_length(now.rows, p->linear->inputs);
    now.ldy = (ptrdiff_t)now.panels * now.nr;
    mhai_work work = {.base = scratch};
    now.scratch = take_scratch(now.kernels, now.rows, p->linear->inputs, now.panels, &work);
    return now;
}

static void run_task(void *arg, int worker, ptrdiff_t number)
{
    const run *const all = arg;
    const task now = task_of(all, all->scratches + (size_t)worker * all->scratch_size, number);
    if (now.linear->inputs == 0)
        no_inputs(&now);
    else if (now.rows <= FEW_ROWS)
        few_rows(&now);
    else
        many_rows(&now);
}

void mhai_gemm(const mhai_product *product, void *work, mha_pool *pool)
{
    const mha_linear *const linear = product->linear;
    const ptrdiff_t panels = product->last_panel - product->first_panel;
    if (product->rows == 0 || panels == 0)
        return;
    const int threads = mha_pool_threads(pool);
    const uintptr_t misfit = (uintptr_t)work % MHAI_ALIGN;
    run all = {.product = product,
               .cut = cut_of(linear->kernels, product->rows, panels, threads),
               .scratches = (char *)work + (misfit ? MHAI_ALIGN - misfit : 0)};
    all.scratch_size = scratch_size(linear->kernels, mhai_min(product->rows, all.cut.rows),
                                    linear->inputs, all.cut.panels);
    mhai_share(pool, all.cut.row_blocks * all.cut.panel_ranges, run_task, &all);
}
