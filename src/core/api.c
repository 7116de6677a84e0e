/* SPDX-License-Identifier: MIT */
/* The public entry points of the operator: they check everything, then make a plan and run it. */
#include "core/plan.h"

#include <stdlib.h>

mha_status mhai_native_for(const mha_options *message, const mhak_native **native)
{
    const mha_status status = mhai_native(native);
    if (status)
        return mhai_fail(message, status,
                         "MHA_ISA=%s cannot run here; unset it, or use one "
                         "of c, avx2, avx512 (x86-64), neon (AArch64), wasm that this CPU has",
                         getenv("MHA_ISA"));
    return MHA_OK;
}

mha_status mhai_kernels_for(const mha_options *message, const mhak_table **kernels)
{
    const mhak_native *native;
    const mha_status status = mhai_native_for(message, &native);
    *kernels = native ? native->base : NULL;
    return status;
}

/* Read options, check the problem and choose kernels (NULL for the f64 path). */
static mha_status prepare(const mha_shape *shape, const mha_options *options, mhai_call *call,
                          const mhak_table **kernels)
{
    mha_status status = mhai_options_read(options, &call->options);
    if (status)
        return status;
    if ((status = mhai_check_problem(shape, call)))
        return status;
    if ((status = mhai_kernels_for(&call->options, kernels)))
        return status;
    if (call->shape.q_type == MHA_F64)
        *kernels = NULL;
    return MHA_OK;
}

/* With one key its stride is not used and may be any number: it must not get into addresses. */
void mhai_set_views(mhai_call *call, mha_view q, mha_view k, mha_view v, mha_out o)
{
    if (call->shape.S <= 1 && !call->options.k_starts)
        k.sl = v.sl = 0;
    call->q = q;
    call->k = k;
    call->v = v;
    call->o = o;
}

mha_status mha_attention(const mha_shape *shape, mha_view q, mha_view k, mha_view v, mha_out o,
                         const mha_options *options, mha_pool *pool)
{
    mhai_call call = {0};
    const mhak_table *kernels;
    mha_status status = prepare(shape, options, &call, &kernels);
    if (status)
        return status;
    mhai_set_views(&call, q, k, v, o);
    if ((status = mhai_check_data(&call, NULL, 0)))
        return status;
    mha_plan plan;
    mhai_plan_fill(&plan, &call, kernels);
    if (plan.empty)
        return MHA_OK;
    const size_t size = mhai_run_work_size(&plan, mha_pool_threads(pool));
    void *const work = malloc(size);
    if (!work)
        return mhai_fail(&call.options, MHA_ERR_MEMORY, "no memory for %zu bytes of workspace",
                         size);
    mhai_run_all(&plan, &call, work, pool);
    free(work);
    return MHA_OK;
}

mha_status mha_attention_check(const mha_shape *shape, mha_view q, mha_view k, mha_view v,
                               mha_out o, const mha_options *options)
{
    mhai_call call = {0};
    const mhak_table *kernels;
    const mha_status status = prepare(shape, options, &call, &kernels);
    if (status)
        return status;
    mhai_set_views(&call, q, k, v, o);
    return mhai_check_data(&call, NULL, 0);
}

mha_status mha_plan_create(mha_plan **plan, const mha_shape *shape, const mha_options *options)
{
    mhai_call call = {0};
    const mhak_table *kernels;
    if (plan)
        *plan = NULL;
    const mha_status status = prepare(shape, options, &call, &kernels);
    if (status)
        return status;
    if (!plan)
        return mhai_fail(&call.options, MHA_ERR_NULL, "plan is NULL");
    mha_plan *const made = malloc(sizeof *made);
    if (!made)
        return mhai_fail(&call.options, MHA_ERR_MEMORY, "no memory for a plan");
    mhai_plan_fill(made, &call, kernels);
    *plan = made;
    return MHA_OK;
}

size_t mha_plan_work_size(const mha_plan *plan, int threads)
{
    if (!plan || threads < 1 || threads > MHA_MAX_THREADS)
        return 0;
    return mhai_run_work_size(plan, threads);
}

/* Does the run request an output that the plan has no room for? */
static mha_status check_plan(const mha_plan *plan, const mha_options *o)
{
    if (o->arithmetic != plan->arithmetic)
        return mhai_fail(o, MHA_ERR_PLAN, "the plan was made with another options.arithmetic");
    if (o->lse.data && !plan->lse)
        return mhai_fail(o, MHA_ERR_PLAN,
                         "the plan was made without options.lse; make it with one");
    const bool softmax = o->weights_mode == MHA_WEIGHTS_SOFTMAX;
    if (o->weights.data && (!plan->weights || (softmax && !plan->softmax_weights)))
        return mhai_fail(o, MHA_ERR_PLAN,
                         "the plan was made without options.weights of this mode; "
                         "make it with them");
    const mha_statistics *const s = o->statistics;
    if (s && (!plan->statistics || (s->columns && !plan->columns) || s->top > plan->top ||
              (s->heads && !s->rows && !plan->row_statistics)))
        return mhai_fail(o, MHA_ERR_PLAN,
                         "the plan was made without these options.statistics; make it with them");
    return MHA_OK;
}

mha_status mha_plan_run(const mha_plan *plan, mha_view q, mha_view k, mha_view v, mha_out o,
                        const mha_options *options, void *work, size_t work_size, mha_pool *pool)
{
    mhai_call call = {0};
    mha_status status = mhai_options_read(options, &call.options);
    if (status)
        return status;
    if (!plan)
        return mhai_fail(&call.options, MHA_ERR_NULL, "plan is NULL");
    if ((status = mhai_check_problem(&plan->shape, &call)) ||
        (status = check_plan(plan, &call.options)))
        return status;
    const size_t needed = mhai_run_work_size(plan, mha_pool_threads(pool));
    if (!work)
        return mhai_fail(&call.options, MHA_ERR_NULL, "work is NULL; give %zu bytes", needed);
    if (work_size < needed)
        return mhai_fail(&call.options, MHA_ERR_WORKSPACE,
                         "work has %zu bytes; %d threads need "
                         "%zu (mha_plan_work_size)",
                         work_size, mha_pool_threads(pool), needed);
    mhai_set_views(&call, q, k, v, o);
    if ((status = mhai_check_data(&call, work, needed)))
        return status;
    mhai_run_all(plan, &call, work, pool);
    return MHA_OK;
}

void mha_plan_free(mha_plan *plan)
{
    free(plan);
}
