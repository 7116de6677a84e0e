/* SPDX-License-Identifier: MIT */
/* The phases of a run, one after another, each a list of tasks for the workers. */
#include "core/statistics.h"

typedef struct phase {
    const mhai_run *run;
    void (*task)(const mhai_run *run, void *scratch, ptrdiff_t number);
} phase;

static void phase_task(void *arg, int worker, ptrdiff_t number)
{
    const phase *const now = arg;
    now->task(now->run, now->run->scratches + (size_t)worker * now->run->scratch_size, number);
}

static void run_phase(const mhai_run *run, mha_pool *pool, ptrdiff_t tasks,
                      void (*task)(const mhai_run *run, void *scratch, ptrdiff_t number))
{
    phase now = {run, task};
    mha_pool_run(pool, tasks, phase_task, &now);
}

/* The fast path's tasks, with the worker's scratch carved anew: a handful of additions. */
static mhai_scratch scratch_at(const mhai_run *run, void *scratch)
{
    mhai_work work = {.base = scratch};
    return mhai_scratch_take(run->plan, &work);
}

static void attention_task(const mhai_run *run, void *scratch, ptrdiff_t number)
{
    const mhai_scratch mine = scratch_at(run, scratch);
    mhai_attention_task(run, &mine, number);
}

static void heads_task(const mhai_run *run, void *scratch, ptrdiff_t number)
{
    const mhai_scratch mine = scratch_at(run, scratch);
    mhai_attention_heads(run, &mine, number);
}

/* Some rows of all heads one after another: their weights are added up in that order. */
static void mean_weights_task(const mhai_run *run, void *scratch, ptrdiff_t number)
{
    const mhai_scratch mine = scratch_at(run, scratch);
    const ptrdiff_t chunks = run->tiling.row_chunks;
    const ptrdiff_t tasks = run->tiling.row_tasks / run->plan->shape.B / chunks;
    for (ptrdiff_t n = 0; n < tasks; n++)
        mhai_attention_task(run, &mine, (number / chunks * tasks + n) * chunks + number % chunks);
}

static void means_task(const mhai_run *run, void *scratch, ptrdiff_t number)
{
    (void)scratch;
    mhai_watch_head(run, number);
}

static void merge_task(const mhai_run *run, void *scratch, ptrdiff_t number)
{
    const mhai_scratch mine = scratch_at(run, scratch);
    mhai_merge_task(run, &mine, number);
}

static void weights_task(const mhai_run *run, void *scratch, ptrdiff_t number)
{
    const mhai_scratch mine = scratch_at(run, scratch);
    mhai_weights_task(run, &mine, number);
}

static void reference_row(const mhai_run *run, void *scratch, ptrdiff_t number)
{
    mhai_reference_row(run->call, number, scratch, run->shared.rows);
}

static void reference_columns(const mhai_run *run, void *scratch, ptrdiff_t number)
{
    mhai_reference_columns(run->call, number, scratch);
}

static void reference_weights(const mhai_run *run, void *scratch, ptrdiff_t number)
{
    mhai_reference_weights(run->call, number, scratch);
}

static size_t scratch_size(const mha_plan *plan)
{
    mhai_work work = {0};
    if (plan->kernels)
        mhai_scratch_take(plan, &work);
    else
        mhai_work_take(&work, mhai_reference_scratch(&plan->shape), 1);
    return work.used;
}

/* The f64 path is not tiled. */
static mhai_tiling tiling_of(const mha_plan *plan, int threads)
{
    return plan->kernels ? mhai_plan_tiling(plan, threads)
                         : (mhai_tiling){.threads = threads, .splits = 1};
}

size_t mhai_run_work_size(const mha_plan *plan, int threads)
{
    mhai_work work = {0};
    if (plan->empty)
        return MHAI_ALIGN;
    const mhai_tiling tiling = tiling_of(plan, threads);
    mhai_shared_take(plan, &tiling, &work);
    return work.used + (size_t)threads * scratch_size(plan) + MHAI_ALIGN - 1;
}

size_t mhai_run_work_bound(const mha_plan *plan, int threads)
{
    mhai_work work = {0};
    if (plan->empty)
        return MHAI_ALIGN;
    mhai_tiling tiling = mhai_plan_tiling(plan, threads);
    tiling.splits = mhai_plan_most_splits(plan, threads);
    mhai_shared_take(plan, &tiling, &work);
    return work.used + (size_t)threads * scratch_size(plan) + MHAI_ALIGN - 1;
}

static void run_reference(const mhai_run *run, mha_pool *pool)
{
    const mha_shape *const shape = &run->plan->shape;
    if (!run->plan->only_weights)
        run_phase(run, pool, shape->B * shape->H * shape->L, reference_row);
    if (run->plan->columns)
        run_phase(run, pool, shape->B * shape->H, reference_columns);
    if (!run->call->options.weights.data)
        return;
    const ptrdiff_t heads = mhai_averages(run->call) ? 1 : mhai_weights_heads(run->call);
    run_phase(run, pool, shape->B * heads * mhai_weights_rows(run->call), reference_weights);
}

static void run_kernels(const mhai_run *run, mha_pool *pool)
{
    if (run->plan->columns)
        run_phase(run, pool, run->tiling.row_tasks / run->tiling.row_chunks, heads_task);
    else if (run->plan->hold_mean)
        run_phase(run, pool, run->plan->shape.B * run->tiling.row_chunks, mean_weights_task);
    else if (!run->plan->only_weights)
        run_phase(run, pool, run->tiling.row_tasks * run->tiling.splits, attention_task);
    if (!run->plan->only_weights && run->tiling.splits > 1)
        run_phase(run, pool, run->tiling.row_tasks, merge_task);
    if (run->call->options.weights.data && !run->plan->hold_scores)
        run_phase(run, pool, mhai_weights_tasks(run), weights_task);
}

static bool wants_means(const mhai_run *run)
{
    const mha_statistics *const s = run->call->options.statistics;
    return s && s->heads;
}

/* Tasks of all heads may be so few that threads would wait for more than a quarter of the time. */
static bool few_means(const mhai_run *run)
{
    const ptrdiff_t tasks = run->call->shape.B * run->tiling.row_chunks;
    return 4 * tasks < 3 * mhai_round_up(tasks, run->tiling.threads);
}

/* The plan for a run that asks for less than was foreseen. */
static mha_plan without_unwanted(const mha_plan *plan, const mhai_run *run)
{
    const mhai_call *const call = run->call;
    const mha_statistics *const s = call->options.statistics;
    mha_plan now = *plan;
    now.hold_scores = plan->hold_scores && mhai_scores_may_be_held(call) && run->tiling.splits == 1;
    now.hold_mean = now.hold_scores && mhai_averages(call);
    if (now.hold_mean && (!plan->hold_mean || few_means(run)))
        now.hold_scores = now.hold_mean = false;
    now.statistics = s != NULL;
    now.columns = s && s->columns;
    now.top = s ? s->top : 0;
    return now;
}

void mhai_run_all(const mha_plan *plan, const mhai_call *call, void *work, mha_pool *pool)
{
    if (plan->empty)
        return;
    const uintptr_t misfit = (uintptr_t)work % MHAI_ALIGN;
    mhai_work carve = {.base = (char *)work + (misfit ? MHAI_ALIGN - misfit : 0)};
    mhai_run run = {.call = call,
                    .tiling = tiling_of(plan, mha_pool_threads(pool)),
                    .scratch_size = scratch_size(plan)};
    const mha_plan now = without_unwanted(plan, &run);
    run.plan = &now;
    run.shared = mhai_shared_take(plan, &run.tiling, &carve);
    if (!call->options.weights.data || now.hold_scores)
        run.shared.stats = NULL;
    if (call->options.statistics && call->options.statistics->rows)
        run.shared.rows = call->options.statistics->rows;
    run.scratches = carve.base + carve.used;
    if (plan->kernels)
        run_kernels(&run, pool);
    else
        run_reference(&run, pool);
    if (wants_means(&run))
        run_phase(&run, pool, plan->shape.B * plan->shape.H, means_task);
}
