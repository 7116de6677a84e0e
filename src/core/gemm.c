/* SPDX-License-Identifier: MIT */
/*
 * Rows x panels. A task is a block of rows and a range of panels:
 *
 *      for each part of the inputs
 *          copy the rows' part, as f32                     stays in the L2 cache
 *          for each panel
 *              for each slice of the part: product         sums stay in the L1 cache
 *              all inputs summed: scale, bias, activation, residual, type -> y
 *
 * Products of native arithmetic have one part, of rows in the type of the weights; these are used
 * as they are stored (kernels/native.h).
 *
 * Few rows have one part only, so that weights are one stream, read once; up to FEW_ROWS in their
 * storage type, while for many rows a slice of weights is converted to f32 first. Weights of block
 * types are converted for few rows too, or multiplied as they are, if the kernels can
 * (kernels/digits.inc). Chains of MHAK_SLICE inputs are added in the same order everywhere: the
 * bits of a row do not depend on the number of rows, on parts, tasks or threads.
 *
 * The copy of the rows stays for the next task of the same thread, if that has the same rows and
 * all inputs are one part: several threads share few rows in many tasks.
 */
#include "core/linear.h"

enum {
    FEW_ROWS = 12,                /* up to here weights are read in place, whatever their type */
    BLOCK_ROWS = 96,              /* rows of a task */
    FLAT_ROWS = 256,              /* the same, of at most MHAK_SLICE inputs */
    PART_INPUTS = 5 * MHAK_SLICE, /* inputs of a part: with BLOCK_ROWS 480 KiB */
    WHOLE_INPUTS = BLOCK_ROWS / 2 * PART_INPUTS, /* of all rows together: one part */
    TASK_COLUMNS = 1024,       /* columns of a task whose sums wait for another part */
    NATIVE_BYTES = 128 * 1024, /* of the rows of a task with native products, */
    NATIVE_ROWS = 256,         /* which has at most so many, */
    NATIVE_LEAST = 16,         /* and at least so many, if there are */
    FINISH_COLUMNS = 128,      /* columns finished together: long runs of y in every row */
    TASKS_PER_THREAD = 4
};

/* What the workspace depends on. */
typedef struct gemm_kind {
    const mhak_table *kernels;
    ptrdiff_t inputs;
    int native_bytes; /* of an input of native products, as their rows hold it; 0: exact */
} gemm_kind;

static gemm_kind kind_of(const mha_linear *linear)
{
    const mhak_native *const native = linear->native;
    return (gemm_kind){linear->kernels, linear->inputs,
                       !native                    ? 0
                       : linear->stored == MHA_I8 ? native->i8_bytes
                                                  : native->bf16_bytes};
}

/* Bytes from one row of native products to the next: whole lines, and not a power of two. */
static ptrdiff_t native_stride(const gemm_kind *kind)
{
    return mhai_round_up(kind->inputs * kind->native_bytes, MHAI_ALIGN) + MHAI_ALIGN;
}

/* Rows of a task: with few inputs more of them fit, and weights are read less often. */
static ptrdiff_t block_rows(const gemm_kind *kind)
{
    if (kind->native_bytes > 0)
        return mhai_max(NATIVE_LEAST, mhai_min(NATIVE_ROWS, NATIVE_BYTES / native_stride(kind)));
    return kind->inputs <= MHAK_SLICE ? FLAT_ROWS : BLOCK_ROWS;
}

/* Rows up to which all inputs are one part. */
static ptrdiff_t whole_rows(const gemm_kind *kind)
{
    return mhai_max(FEW_ROWS, WHOLE_INPUTS / mhai_max(1, kind->inputs));
}

/* Inputs of a part. */
static ptrdiff_t part_of(const gemm_kind *kind, ptrdiff_t rows)
{
    return rows <= whole_rows(kind) || kind->native_bytes > 0 ? kind->inputs
                                                              : mhai_min(kind->inputs, PART_INPUTS);
}

/* Panels whose sums are kept at the same time: a few that are finished together, or all of a task
 * if they wait for another part. */
static ptrdiff_t kept_panels(const gemm_kind *kind, ptrdiff_t rows, ptrdiff_t panels)
{
    const ptrdiff_t together = mhai_max(1, FINISH_COLUMNS / kind->kernels->nr);
    return part_of(kind, rows) < kind->inputs ? panels : mhai_min(together, panels);
}

/* Panels that must be finished together. */
static ptrdiff_t panel_group(const mhai_product *product)
{
    return product->finish.gated ? 2 : 1;
}

/* How a product is cut into tasks. This never changes a bit of the result. */
typedef struct cut {
    ptrdiff_t rows, panels;             /* of one task, at most */
    ptrdiff_t row_blocks, panel_ranges; /* how many */
} cut;

static cut cut_of(const mhai_product *product, int threads)
{
    const mhak_table *const kernels = product->linear->kernels;
    const gemm_kind kind = kind_of(product->linear);
    const ptrdiff_t rows = product->rows;
    const ptrdiff_t panels = product->last_panel - product->first_panel;
    const bool waits = part_of(&kind, rows) < kind.inputs;
    cut c = {.rows = block_rows(&kind), .panels = waits ? TASK_COLUMNS / kernels->nr : panels};
    c.row_blocks = mhai_max(1, mhai_ceil_div(rows, c.rows));
    c.rows = mhai_round_up(mhai_ceil_div(rows, c.row_blocks), kernels->mr_qk);
    c.row_blocks = mhai_ceil_div(rows, c.rows);
    const ptrdiff_t wanted = threads > 1 ? (ptrdiff_t)TASKS_PER_THREAD * threads : 1;
    const ptrdiff_t ranges =
        mhai_max(mhai_ceil_div(panels, c.panels), mhai_ceil_div(wanted, mhai_max(1, c.row_blocks)));
    c.panels = mhai_round_up(mhai_ceil_div(panels, ranges), panel_group(product));
    c.panel_ranges = mhai_ceil_div(panels, c.panels);
    return c;
}

/* ------------------------------------------------------------- workspace ----- */

/* What a task leaves for the next one comes first: it is at the same place in every task. */
typedef struct gemm_scratch {
    ptrdiff_t *loaded; /* the row whose block x and native hold, all inputs of it; or NOTHING */
    float *x;          /* [rows][row_length()]: a part of the inputs; native: one row of them */
    void *native;      /* [rows][native_stride()]: rows of native products */
    mhak_i8_row *i8_rows;
    float *sums;  /* [rows][kept_panels() * nr] */
    float *panel; /* a slice of a panel as f32; not for native products */
} gemm_scratch;

enum { NOTHING = -1 };

static ptrdiff_t row_length(const gemm_kind *kind, ptrdiff_t rows)
{
    return mhai_row_floats(part_of(kind, rows));
}

static gemm_scratch take_scratch(const gemm_kind *kind, ptrdiff_t rows, ptrdiff_t panels,
                                 mhai_work *work)
{
    const bool native = kind->native_bytes > 0;
    const size_t nr = (size_t)kind->kernels->nr;
    gemm_scratch s;
    s.loaded = mhai_work_take(work, 1, sizeof *s.loaded);
    s.x =
        mhai_work_take(work, (size_t)((native ? 1 : rows) * row_length(kind, rows)), sizeof(float));
    s.native = mhai_work_take(work, native ? (size_t)(rows * native_stride(kind)) : 0, 1);
    s.i8_rows = mhai_work_take(work, native ? (size_t)rows : 0, sizeof(mhak_i8_row));
    s.sums =
        mhai_work_take(work, (size_t)(rows * kept_panels(kind, rows, panels)) * nr, sizeof(float));
    s.panel = mhai_work_take(work, native ? 0 : MHAK_SLICE * nr, sizeof(float));
    return s;
}

/* Bytes for the most rows a task may have, few or many. */
static size_t scratch_size(const gemm_kind *kind, ptrdiff_t rows, ptrdiff_t panels)
{
    mhai_work few = {0}, many = {0};
    take_scratch(kind, mhai_min(rows, whole_rows(kind)), panels, &few);
    take_scratch(kind, rows, panels, &many);
    return few.used > many.used ? few.used : many.used;
}

size_t mhai_gemm_work_size(const mhak_table *kernels, const mhak_native *native, ptrdiff_t rows,
                           ptrdiff_t inputs, ptrdiff_t panels, int threads)
{
    const int bytes[] = {0, native ? native->i8_bytes : 0, native ? native->bf16_bytes : 0};
    const ptrdiff_t most_panels = mhai_min(panels, TASK_COLUMNS / kernels->nr);
    size_t size = 0;
    for (int n = 0; n < 3; n++) {
        const gemm_kind kind = {kernels, inputs, bytes[n]};
        const ptrdiff_t most_rows = mhai_min(rows, block_rows(&kind) + kernels->mr_qk);
        size = mhai_larger(size, scratch_size(&kind, most_rows, most_panels));
    }
    return (size_t)threads * size + MHAI_ALIGN - 1;
}

/* --------------------------------------------------------------- one task ----- */

typedef struct run {
    const mhai_product *product;
    cut cut;
    char *scratches;
    size_t scratch_size;
} run;

typedef struct gemm_task {
    const mhai_product *product;
    const mha_linear *linear;
    const mhak_table *kernels;
    ptrdiff_t row, panel; /* the first row and panel */
    int rows, panels, nr;
    ptrdiff_t ldx, ldy; /* floats per row of scratch.x and scratch.sums */
    gemm_scratch scratch;
} gemm_task;

/* Has the last task of this thread left all inputs of the rows of this one? If this task has them
 * in one part, the next one may find them. */
static bool has_rows(const gemm_task *task, bool one_part)
{
    const bool same = one_part && *task->scratch.loaded == task->row;
    *task->scratch.loaded = one_part ? task->row : NOTHING;
    return same;
}

static const void *x_row(const mhai_product *p, ptrdiff_t row)
{
    return mhai_at(p->x, p->x_type, (p->x_rows ? p->x_rows[row] : row) * p->x_stride);
}

static void load_inputs(const gemm_task *task, ptrdiff_t first, ptrdiff_t count)
{
    const mhai_product *const p = task->product;
    const int together = p->x_rows ? 1 : task->rows;
    for (int r = 0; r < task->rows; r += together)
        task->kernels->load_rows[p->x_type](mhai_at(x_row(p, task->row + r), p->x_type, first),
                                            p->x_stride, together, (int)count, 1.0f,
                                            task->scratch.x + r * task->ldx, task->ldx);
    if (task->linear->digits) {
        const int block = mhai_block_number(task->linear->stored);
        (task->linear->digits == 1 ? task->kernels->digit_rows : task->kernels->digits_rows)(
            task->scratch.x, task->ldx, task->rows, (int)count, mhak_scale_inputs(block),
            mhak_bias(block));
    }
}

/* The place of the sums of panel p. */
static float *sums_of(const gemm_task *task, int p)
{
    return task->scratch.sums + (ptrdiff_t)p * task->nr % task->ldy;
}

/* Finishes the rows of a task with an activation, a gate or a residual. */
static void finish_fused(const gemm_task *task, mhak_finish finish, ptrdiff_t to)
{
    const mhai_product *const p = task->product;
    const ptrdiff_t residual = task->row * p->finish.residual_stride + to;
    finish.activation = (int)p->finish.activation;
    finish.y_type = (int)p->y_type;
    finish.rows = task->rows;
    finish.ld_sums = task->ldy;
    finish.residual = p->finish.residual ? p->finish.residual + residual : NULL;
    finish.residual_stride = p->finish.residual_stride;
    finish.y = mhai_out_at(p->y, p->y_type, task->row * p->y_stride + to);
    finish.y_stride = p->y_stride;
    (p->finish.gated ? task->kernels->finish_gated : task->kernels->finish_fused)(&finish);
}

/* Panels [first, last) are summed: applies scale, bias and the rest, and writes y while the sums
 * are in cache. */
static void finish(const gemm_task *task, int first, int last)
{
    const mhai_product *const p = task->product;
    const mha_linear *const linear = task->linear;
    const ptrdiff_t column = (task->panel + first) * task->nr;                  /* of the linear */
    const ptrdiff_t to = (column - p->first_panel * task->nr) / panel_group(p); /* of y */
    const int columns = (int)mhai_min((last - first) / panel_group(p) * task->nr, p->columns - to);
    const float *const scales = linear->scales ? linear->scales + column : NULL;
    const mhak_finish all = {.columns = columns,
                             .sums = sums_of(task, first),
                             .scales = scales,
                             .bias = linear->bias + column};
    if (mhai_is_fused(&p->finish)) {
        finish_fused(task, all, to);
        return;
    }
    for (int r = 0; r < task->rows; r++) {
        const ptrdiff_t row = task->row + r;
        const ptrdiff_t at = (p->y_rows ? p->y_rows[row] : row) * p->y_stride;
        task->kernels->finish_row[p->y_type](all.sums + r * task->ldy, columns, scales, all.bias,
                                             mhai_out_at(p->y, p->y_type, at + to));
    }
}

/* `depth` inputs of panel p from `input` on: as stored for few rows, else as f32. */
static const void *slice_of(const gemm_task *task, int p, ptrdiff_t input, int depth,
                            mha_dtype *type)
{
    const mha_linear *const linear = task->linear;
    const void *const stored = mhai_linear_slice(linear, task->panel + p, input);
    *type = linear->stored;
    if (mhai_is_block(linear->stored)) {
        *type = MHA_F32;
        task->kernels->load_blocks[mhai_block_number(linear->stored)](stored, depth,
                                                                      task->scratch.panel);
        return task->scratch.panel;
    }
    if (linear->stored == MHA_F32 || task->rows <= FEW_ROWS)
        return stored;
    *type = MHA_F32;
    task->kernels->load_row[linear->stored](stored, depth * task->nr, 1.0f, task->scratch.panel);
    return task->scratch.panel;
}

/* Adds inputs [first, last), which are in scratch.x, to the sums of panel p. */
static void add_part(const gemm_task *task, int p, ptrdiff_t first, ptrdiff_t last)
{
    for (ptrdiff_t c = first; c < last; c += MHAK_SLICE) {
        const int depth = (int)mhai_min(MHAK_SLICE, last - c);
        mha_dtype type;
        const void *const slice = slice_of(task, p, c, depth, &type);
        task->kernels->product[type](task->scratch.x + (c - first), task->ldx, slice, depth,
                                     task->rows, c > 0, sums_of(task, p), task->ldy);
    }
}

/* The same for block types and whole numbers, which are summed group by group: slices are only for
 * the L1 cache, which few rows do not need. */
static void add_digits(const gemm_task *task, int p, ptrdiff_t first, ptrdiff_t last)
{
    const int block = mhai_block_number(task->linear->stored);
    const ptrdiff_t slice = task->rows <= FEW_ROWS ? last - first : MHAK_SLICE;
    const mhak_table *const k = task->kernels;
    for (ptrdiff_t c = first; c < last; c += slice)
        (task->linear->digits == 1 ? k->product_digit : k->product_digits)[block](
            task->scratch.x + (c - first), task->ldx,
            mhai_linear_slice(task->linear, task->panel + p, c), (int)mhai_min(slice, last - c),
            task->rows, c > 0, sums_of(task, p), task->ldy);
}

static void sum_inputs(const gemm_task *task)
{
    const gemm_kind kind = kind_of(task->linear);
    const ptrdiff_t inputs = kind.inputs, part = part_of(&kind, task->rows);
    for (ptrdiff_t first = 0; first < inputs; first += part) {
        const ptrdiff_t last = mhai_min(inputs, first + part);
        if (!has_rows(task, part == inputs))
            load_inputs(task, first, last - first);
        for (int p = 0, next; p < task->panels; p = next) {
            next = (int)mhai_min(task->panels, p + task->ldy / task->nr);
            for (int n = p; n < next; n++)
                (task->linear->digits ? add_digits : add_part)(task, n, first, last);
            if (last == inputs)
                finish(task, p, next);
        }
    }
}

/* ----------------------------------------------------------- native task ----- */

/* Row r of the task as f32: the caller's own, or a copy. */
static const float *wide_row(const gemm_task *task, int r)
{
    const mhai_product *const p = task->product;
    const void *const row = x_row(p, task->row + r);
    if (p->x_type == MHA_F32)
        return row;
    task->kernels->load_row[p->x_type](row, (int)task->linear->inputs, 1.0f, task->scratch.x);
    return task->scratch.x;
}

static void load_native(const gemm_task *task, ptrdiff_t stride)
{
    const mhak_native *const native = task->linear->native;
    const int inputs = (int)task->linear->inputs;
    for (int r = 0; r < task->rows; r++) {
        void *const to = (char *)task->scratch.native + r * stride;
        if (task->linear->stored == MHA_I8)
            task->scratch.i8_rows[r] = native->row_i8(wide_row(task, r), inputs, to);
        else
            native->row_bf16(wide_row(task, r), inputs, to);
    }
}

static void multiply_native(const gemm_task *task, int p, ptrdiff_t stride)
{
    const mha_linear *const linear = task->linear;
    const void *const panel = mhai_linear_slice(linear, task->panel + p, 0);
    if (linear->stored == MHA_I8) {
        linear->native->product_i8(
            &(mhak_i8_product){.x = task->scratch.native,
                               .ldx = stride,
                               .rows = task->scratch.i8_rows,
                               .count = task->rows,
                               .panel = panel,
                               .sums = linear->sums + (task->panel + p) * task->nr,
                               .depth = (int)linear->inputs,
                               .y = sums_of(task, p),
                               .ldy = task->ldy});
    } else {
        linear->native->product_bf16(task->scratch.native, stride, panel, (int)linear->inputs,
                                     task->rows, false, sums_of(task, p), task->ldy);
    }
}

static void sum_native(const gemm_task *task)
{
    const gemm_kind kind = kind_of(task->linear);
    const ptrdiff_t stride = native_stride(&kind);
    if (!has_rows(task, true))
        load_native(task, stride);
    for (int p = 0, next; p < task->panels; p = next) {
        next = (int)mhai_min(task->panels, p + task->ldy / task->nr);
        for (int n = p; n < next; n++)
            multiply_native(task, n, stride);
        finish(task, p, next);
    }
}

/* ----------------------------------------------------------------- tasks ----- */

/* Without inputs y is the bias. */
static void no_inputs(const gemm_task *task)
{
    for (ptrdiff_t n = 0; n < task->rows * task->ldy; n++)
        task->scratch.sums[n] = 0.0f;
    const int group = (int)panel_group(task->product);
    for (int p = 0; p < task->panels; p += group)
        finish(task, p, p + group);
}

/* Task number -> rows and panels. Panels vary slowest, since all rows use their weights. */
static gemm_task task_of(const run *all, char *scratch, ptrdiff_t number)
{
    const mhai_product *const p = all->product;
    const cut *const c = &all->cut;
    gemm_task task = {.product = p, .linear = p->linear, .kernels = p->linear->kernels};
    task.nr = task.kernels->nr;
    task.row = number % c->row_blocks * c->rows;
    task.panel = p->first_panel + number / c->row_blocks * c->panels;
    task.rows = (int)mhai_min(c->rows, p->rows - task.row);
    task.panels = (int)mhai_min(c->panels, p->last_panel - task.panel);
    const gemm_kind kind = kind_of(p->linear);
    task.ldx = row_length(&kind, task.rows);
    task.ldy = kept_panels(&kind, task.rows, task.panels) * task.nr;
    mhai_work work = {.base = scratch};
    task.scratch = take_scratch(&kind, task.rows, task.panels, &work);
    return task;
}

static void run_task(void *arg, int worker, ptrdiff_t number)
{
    const run *const all = arg;
    const gemm_task task =
        task_of(all, all->scratches + (size_t)worker * all->scratch_size, number);
    if (task.linear->inputs == 0)
        no_inputs(&task);
    else if (task.linear->native)
        sum_native(&task);
    else
        sum_inputs(&task);
}

/* As mhai_pool_worth() counts. */
static double operations(const mhai_product *product)
{
    const double panels = (double)(product->last_panel - product->first_panel);
    const double weights = panels * product->linear->kernels->nr * (double)product->linear->inputs;
    return weights * (2 * (double)product->rows + 8);
}

void mhai_gemm(const mhai_product *product, void *work, mha_pool *pool)
{
    const gemm_kind kind = kind_of(product->linear);
    const ptrdiff_t panels = product->last_panel - product->first_panel;
    if (product->rows == 0 || panels == 0)
        return;
    const int threads = mha_pool_threads(pool);
    run all = {.product = product,
               .cut = cut_of(product, threads),
               .scratches = mhai_work_begin(work).base};
    all.scratch_size = scratch_size(&kind, mhai_min(product->rows, all.cut.rows), all.cut.panels);
    for (int t = 0; t < threads; t++)
        *(ptrdiff_t *)(all.scratches + (size_t)t * all.scratch_size) = NOTHING;
    mha_pool_run(mhai_pool_worth(pool, operations(product)),
                 all.cut.row_blocks * all.cut.panel_ranges, run_task, &all);
}
