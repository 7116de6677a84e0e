/* SPDX-License-Identifier: MIT */
/* Runs a plan: phases, one after another, each a list of tasks for the workers. */
#include "core/statistics.h"

/* One of the two functions is set. `fast` is a task of the fast path and gets the scratch of its
 * worker; `plain` gets the worker's memory as it is (the f64 path, and means over rows). */
typedef struct phase {
    const mhai_run *run;
    void (*fast)(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number);
    void (*plain)(const mhai_run *run, void *scratch, ptrdiff_t number);
} phase;

/* The worker's scratch is carved again for every task, which takes a handful of additions. */
static void phase_task(void *arg, int worker, ptrdiff_t number)
{
    const phase *const p = arg;
    char *const memory = p->run->scratches + (size_t)worker * p->run->scratch_size;
    if (p->plain) {
        p->plain(p->run, memory, number);
        return;
    }
    mhai_work work = {.base = memory};
    const mhai_scratch scratch = mhai_scratch_take(p->run->plan, &work);
    p->fast(p->run, &scratch, number);
}

static void run_fast(const mhai_run *run, mha_pool *pool, ptrdiff_t tasks,
                     void (*task)(const mhai_run *run, const mhai_scratch *scratch,
                                  ptrdiff_t number))
{
    phase p = {.run = run, .fast = task};
    mha_pool_run(pool, tasks, phase_task, &p);
}

static void run_plain(const mhai_run *run, mha_pool *pool, ptrdiff_t tasks,
                      void (*task)(const mhai_run *run, void *scratch, ptrdiff_t number))
{
    phase p = {.run = run, .plain = task};
    mha_pool_run(pool, tasks, phase_task, &p);
}

/* Some rows of all heads, one head after another: their weights are added up in that order. */
static void mean_weights_task(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number)
{
    const ptrdiff_t chunks = run->tiling.row_chunks;
    const ptrdiff_t tasks = run->tiling.row_tasks / run->plan->shape.B / chunks;
    for (ptrdiff_t n = 0; n < tasks; n++)
        mhai_attention_task(run, scratch, (number / chunks * tasks + n) * chunks + number % chunks);
}

/* Means over the rows of one head: for both paths. */
static void means_task(const mhai_run *run, void *scratch, ptrdiff_t number)
{
    (void)scratch;
    mhai_statistics_head(run, number);
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

size_t mhai_run_scratch_size(const mha_plan *plan)
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
    return work.used + (size_t)threads * plan->scratch_size + MHAI_ALIGN - 1;
}

size_t mhai_run_work_bound(const mha_plan *plan, int threads)
{
    mhai_work work = {0};
    if (plan->empty)
        return MHAI_ALIGN;
    mhai_tiling tiling = mhai_plan_tiling(plan, threads);
    tiling.splits = mhai_plan_most_splits(plan, threads);
    mhai_shared_take(plan, &tiling, &work);
    return work.used + (size_t)threads * plan->scratch_size + MHAI_ALIGN - 1;
}

static void run_reference(const mhai_run *run, mha_pool *pool)
{
    const mha_shape *const shape = &run->plan->shape;
    if (!run->plan->only_weights)
        run_plain(run, pool, shape->B * shape->H * shape->L, reference_row);
    if (run->plan->columns)
        run_plain(run, pool, shape->B * shape->H, reference_columns);
    if (!run->call->options.weights.data)
        return;
    const ptrdiff_t heads = mhai_averages(run->call) ? 1 : mhai_weights_heads(run->call);
    run_plain(run, pool, shape->B * heads * mhai_weights_rows(run->call), reference_weights);
}

static void run_kernels(const mhai_run *run, mha_pool *pool)
{
    if (run->plan->columns)
        run_fast(run, pool, run->tiling.row_tasks / run->tiling.row_chunks, mhai_attention_heads);
    else if (run->plan->one_pass_mean)
        run_fast(run, pool, run->plan->shape.B * run->tiling.row_chunks, mean_weights_task);
    else if (!run->plan->only_weights && mhai_one_block_possible(run))
        run_fast(run, pool, mhai_one_block_portions(run), mhai_one_block_portion);
    else if (!run->plan->only_weights)
        run_fast(run, pool, run->tiling.row_tasks * run->tiling.splits, mhai_attention_task);
    if (!run->plan->only_weights && run->tiling.splits > 1)
        run_fast(run, pool, run->tiling.row_tasks, mhai_merge_task);
    if (run->call->options.weights.data && !run->plan->one_pass)
        run_fast(run, pool, mhai_weights_tasks(run), mhai_weights_task);
}

static bool wants_means(const mhai_run *run)
{
    const mha_statistics *const s = run->call->options.statistics;
    return s && s->heads;
}

/* Are tasks with all heads so few that threads would wait for more than a quarter of the time? */
static bool few_means(const mhai_run *run)
{
    const ptrdiff_t tasks = run->call->shape.B * run->tiling.row_chunks;
    return 4 * tasks < 3 * mhai_round_up(tasks, run->tiling.threads);
}

/* The plan for a run that requests less than the plan has room for. */
static mha_plan without_unwanted(const mha_plan *plan, const mhai_run *run)
{
    const mhai_call *const call = run->call;
    const mha_statistics *const s = call->options.statistics;
    mha_plan wanted = *plan;
    wanted.one_pass = plan->one_pass && mhai_one_pass_possible(call) && run->tiling.splits == 1;
    wanted.one_pass_mean = wanted.one_pass && mhai_averages(call);
    if (wanted.one_pass_mean && (!plan->one_pass_mean || few_means(run)))
        wanted.one_pass = wanted.one_pass_mean = false;
    wanted.statistics = s != NULL;
    wanted.columns = s && s->columns;
    wanted.top = s ? s->top : 0;
    return wanted;
}

/* As mhai_pool_worth() counts. */
static double operations(const mha_plan *plan)
{
    const mha_shape *const s = &plan->shape;
    const double key = (double)s->S * (double)(s->D + s->Dv);
    return (double)s->B * key * (2 * (double)s->H * (double)s->L + 8 * (double)s->G);
}

void mhai_run_all(const mha_plan *plan, const mhai_call *call, void *work, mha_pool *pool)
{
    if (plan->empty)
        return;
    pool = mhai_pool_worth(pool, operations(plan));
    mhai_work carve = mhai_work_begin(work);
    mhai_run run = {.call = call,
                    .tiling = tiling_of(plan, mha_pool_threads(pool)),
                    .scratch_size = plan->scratch_size};
    const mha_plan wanted = without_unwanted(plan, &run);
    run.plan = &wanted;
    run.shared = mhai_shared_take(plan, &run.tiling, &carve);
    if (!call->options.weights.data || wanted.one_pass)
        run.shared.stats = NULL;
    if (call->options.statistics && call->options.statistics->rows)
        run.shared.rows = call->options.statistics->rows;
    run.scratches = carve.base + carve.used;
    if (plan->kernels)
        run_kernels(&run, pool);
    else
        run_reference(&run, pool);
    if (wants_means(&run))
        run_plain(&run, pool, plan->shape.B * plan->shape.H, means_task);
}
