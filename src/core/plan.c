/* SPDX-License-Identifier: MIT */
/* Makes a plan before the data is there: tile sizes, the cut into tasks, the map of the
 * workspace. */
#include "core/plan.h"

enum {
    WIDE_TILE = 48,   /* rows of a tile of scores: 24 KiB, beside a panel of K in L1 */
    NARROW_TILE = 32, /* with a causal edge: wastes half as much at the edge */
    WIDE_PAIRS = 48,  /* both in native arithmetic: whole tiles of its kernels */
    NARROW_PAIRS = 24,
    LOW_TILE = 16,         /* with a window: an edge at both ends of every row */
    HELD_ROWS = 96,        /* rows of a task with columns: their weights are held in L2 */
    MEAN_ROWS = 192,       /* rows of a task with all heads, which reads K and V of every head */
    HELD_SCORES = 1 << 18, /* most scores held to become weights: L2 and a part of L3 */
    FEW_TASKS = 3,         /* with fewer tasks per thread, tasks are made smaller */
    PART_BYTES = 4 << 20   /* most bytes of partial results per thread */
};

/* ---------------------------------------------------------------- tiling ----- */

static ptrdiff_t part_bytes(const mha_plan *plan, ptrdiff_t splits)
{
    const mha_shape *const shape = &plan->shape;
    return splits * shape->B * shape->H * shape->L *
           (ptrdiff_t)((size_t)(plan->ldo + 2) * sizeof(float) + sizeof(bool));
}

static void count_tasks(const mha_plan *plan, mhai_tiling *tiling)
{
    const mha_shape *const shape = &plan->shape;
    tiling->row_chunks = mhai_ceil_div(shape->L, tiling->rows);
    tiling->head_chunks = mhai_ceil_div(shape->H / shape->G, tiling->heads);
    tiling->row_tasks = shape->B * shape->G * tiling->head_chunks * tiling->row_chunks;
}

/* How many tasks can run at the same time: all, unless heads are processed one after another. */
static ptrdiff_t tasks_at_once(const mha_plan *plan, const mhai_tiling *tiling)
{
    return plan->one_pass_mean ? plan->shape.B * tiling->row_chunks : tiling->row_tasks;
}

/* Rows in even chunks of at most `most`; a multiple of the rows the kernels take at once. */
static ptrdiff_t even_rows(const mha_plan *plan, ptrdiff_t most)
{
    const ptrdiff_t chunks = mhai_ceil_div(plan->shape.L, most);
    return mhai_min(most, mhai_round_up(mhai_ceil_div(plan->shape.L, chunks), LOW_TILE));
}

mhai_tiling mhai_plan_tiling(const mha_plan *plan, int threads)
{
    const mha_shape *const shape = &plan->shape;
    const ptrdiff_t group = shape->H / shape->G, enough = (ptrdiff_t)FEW_TASKS * threads;
    mhai_tiling tiling = {.splits = 1, .threads = threads};
    tiling.rows = even_rows(plan, plan->task_rows);
    /* Few rows: query heads that share keys and values form one task, so that these are
     * read once. */
    tiling.heads = mhai_min(group, mhai_max(1, plan->task_rows / mhai_min(shape->L, tiling.rows)));
    count_tasks(plan, &tiling);
    while (threads > 1 && tasks_at_once(plan, &tiling) < enough && tiling.rows > WIDE_TILE) {
        tiling.rows = even_rows(plan, mhai_round_up(tiling.rows / 2, NARROW_TILE));
        count_tasks(plan, &tiling);
    }
    const ptrdiff_t splits = plan->statistics ? 1 : mhai_ceil_div(shape->S, MHAI_SPLIT);
    if (threads > 1 && tiling.row_tasks < enough && splits > 1 &&
        splits < PART_BYTES / (ptrdiff_t)sizeof(float) &&
        part_bytes(plan, splits) <= (ptrdiff_t)PART_BYTES * threads)
        tiling.splits = splits;
    while (threads > 1 && tiling.row_tasks * tiling.splits < threads && tiling.heads > 1) {
        tiling.heads = mhai_ceil_div(tiling.heads, 2);
        count_tasks(plan, &tiling);
    }
    return tiling;
}

ptrdiff_t mhai_plan_most_splits(const mha_plan *plan, int threads)
{
    const ptrdiff_t splits = mhai_ceil_div(plan->shape.S, MHAI_SPLIT);
    const ptrdiff_t room = (ptrdiff_t)PART_BYTES * threads / part_bytes(plan, 1);
    return threads > 1 && !plan->statistics ? mhai_max(1, mhai_min(splits, room)) : 1;
}

/* ------------------------------------------------------------- workspace ----- */

static mhai_state take_state(mhai_work *work, ptrdiff_t rows, ptrdiff_t ldo)
{
    mhai_state state;
    state.m = mhai_work_take(work, (size_t)rows, sizeof(float));
    state.l = mhai_work_take(work, (size_t)rows, sizeof(float));
    state.o = mhai_work_take(work, (size_t)(rows * ldo), sizeof(float));
    state.seen = mhai_work_take(work, (size_t)rows, sizeof(bool));
    return state;
}

mhai_scratch mhai_scratch_take(const mha_plan *plan, mhai_work *work)
{
    const size_t rows = (size_t)plan->task_rows, tile = (size_t)plan->row_tile;
    const mha_shape *const shape = &plan->shape;
    mhai_scratch scratch;
    scratch.rows = mhai_work_take(work, rows, sizeof(mhai_row));
    scratch.q = mhai_work_take(work, rows * (size_t)plan->ldq, sizeof(float));
    scratch.total = take_state(work, plan->task_rows, plan->ldo);
    scratch.part = take_state(work, shape->S > MHAI_SPLIT ? plan->task_rows : 0, plan->ldo);
    const size_t scores = (size_t)plan->score_rows;
    scratch.alpha = mhai_work_take(work, scores, sizeof(float));
    scratch.s = mhai_work_take(work, scores * MHAK_BLOCK, sizeof(float));
    scratch.keep = mhai_work_take(work, scores * MHAK_WORDS, sizeof(uint32_t));
    const size_t blocks = plan->columns ? (size_t)plan->column_blocks : 1;
    scratch.k_panels = mhai_work_take(work, blocks * (size_t)shape->D * MHAK_BLOCK, sizeof(float));
    scratch.k_packed = mhai_work_take(work, plan->columns ? blocks : 0, sizeof(uint32_t));
    const size_t columns = (size_t)mhai_round_up(plan->ldo, plan->kernels->nc);
    scratch.v_panels = mhai_work_take(work, columns * MHAK_BLOCK, sizeof(float));
    scratch.sum = mhai_work_take(work, plan->weights ? tile * MHAK_BLOCK : 0, sizeof(float));
    const size_t sums = plan->only_weights ? 2 * (size_t)shape->H * tile : 0;
    scratch.stats = mhai_work_take(work, sums, sizeof(float));
    scratch.statistics = mhai_statistics_take(plan, work);
    scratch.one_pass = mhai_one_pass_take(plan, work);
    return scratch;
}

mhai_shared mhai_shared_take(const mha_plan *plan, const mhai_tiling *tiling, mhai_work *work)
{
    const mha_shape *const shape = &plan->shape;
    const ptrdiff_t rows = shape->B * shape->H * shape->L;
    mhai_shared shared = {0};
    if (plan->only_weights)
        return shared;
    if (plan->softmax_weights && plan->kernels)
        shared.stats = mhai_work_take(work, 2 * (size_t)rows, sizeof(float));
    if (plan->row_statistics)
        shared.rows = mhai_work_take(work, (size_t)rows, sizeof *shared.rows);
    if (tiling->splits > 1)
        shared.part = take_state(work, tiling->splits * rows, plan->ldo);
    return shared;
}

/* ------------------------------------------------------------------ plan ----- */

bool mhai_keys_in_place(const mha_plan *plan, ptrdiff_t rows)
{
    const int most = plan->pairs ? plan->pairs->mr_in_place : plan->kernels->mr_in_place;
    return rows <= most && plan->shape.D <= MHAK_DEPTH;
}

bool mhai_values_in_place(const mha_plan *plan, ptrdiff_t rows)
{
    const int most = plan->pairs ? plan->pairs->mr_in_place : plan->kernels->mr_pv;
    return rows <= 2 * most && plan->shape.Dv % plan->kernels->vector == 0;
}

static bool empty(const mha_shape *shape)
{
    return shape->B == 0 || shape->H == 0 || shape->L == 0 || shape->D == 0;
}

/* Most rows of a task. What is held for them should stay in the L2 cache. */
static ptrdiff_t most_rows(const mha_plan *plan)
{
    if (plan->columns)
        return HELD_ROWS;
    if (!plan->one_pass)
        return MHAI_TASK_ROWS;
    const ptrdiff_t rows = HELD_SCORES / mhai_max(1, plan->shape.S) / WIDE_TILE * WIDE_TILE;
    return mhai_max(plan->one_pass_mean ? MEAN_ROWS : HELD_ROWS, mhai_min(MHAI_TASK_ROWS, rows));
}

/* Rows of a task and of its tiles. */
static void size_tiles(mha_plan *plan, const mha_options *options)
{
    const mha_shape *const shape = &plan->shape;
    plan->edge = (options->flags & (MHA_CAUSAL | MHA_WINDOW)) != 0;
    const ptrdiff_t group = shape->H / shape->G;
    const ptrdiff_t most = most_rows(plan);
    const ptrdiff_t rows = shape->L < most ? shape->L * group : most;
    plan->task_rows = (int)mhai_min(most, mhai_round_up(rows, LOW_TILE));
    const int wide = plan->pairs ? WIDE_PAIRS : WIDE_TILE;
    const int narrow = plan->pairs ? NARROW_PAIRS : NARROW_TILE;
    const int tile = options->flags & MHA_WINDOW ? LOW_TILE : plan->edge ? narrow : wide;
    plan->row_tile = (int)mhai_min(tile, plan->task_rows);
    plan->score_rows = plan->row_tile;
    if (mhai_keys_in_place(plan, rows)) {
        const ptrdiff_t keys =
            mhai_min(mhai_round_up(shape->S, MHAI_SPLIT), (ptrdiff_t)MHAI_FEW_SPLITS * MHAI_SPLIT);
        plan->score_rows = (int)mhai_max(plan->row_tile, rows * keys / MHAK_BLOCK);
    }
    plan->ldq = mhai_row_floats(shape->D);
    plan->ldo = mhai_round_up(shape->Dv, plan->kernels->vector);
}

void mhai_plan_fill(mha_plan *plan, const mhai_call *call, const mhak_table *kernels)
{
    const mha_shape *const shape = &call->shape;
    const mha_options *const options = &call->options;
    *plan = (mha_plan){.shape = *shape, .kernels = kernels};
    plan->empty = empty(shape);
    plan->lse = options->lse.data != NULL;
    plan->arithmetic = options->arithmetic;
    plan->weights = options->weights.data != NULL;
    plan->statistics = options->statistics != NULL;
    plan->columns = plan->statistics && options->statistics->columns;
    plan->row_statistics =
        plan->statistics && options->statistics->heads && !options->statistics->rows;
    plan->top = plan->statistics ? options->statistics->top : 0;
    plan->column_blocks = plan->columns ? mhai_statistics_blocks(call) : 0;
    plan->softmax_weights = plan->weights && options->weights_mode == MHA_WEIGHTS_SOFTMAX;
    plan->one_pass = kernels && mhai_one_pass_possible(call);
    plan->one_pass_mean = plan->one_pass && mhai_averages(call);
    if (kernels && !plan->empty) {
        plan->pairs = mhai_pairs_of(call, &plan->arithmetic_words);
        size_tiles(plan, options);
    }
    if (!plan->empty)
        plan->scratch_size = mhai_run_scratch_size(plan);
}
