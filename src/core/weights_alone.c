/* SPDX-License-Identifier: MIT */
/* mha_attention_weights(): weights without values and output, a run with only the phase of the
 * weights (weights_second_pass.c). */
#include "core/plan.h"
#include "core/region.h"

#include <string.h>

/* Reads and checks everything but the data. Keys stand in for the values, which are not read. */
static mha_status prepare(const mha_shape *shape, const mha_options *options, mhai_call *call,
                          mha_plan *plan)
{
    mha_options *const o = &call->options;
    const mhak_table *kernels;
    mha_status status = mhai_options_read(options, o);
    if (status)
        return status;
    if (!shape || !o->weights.data)
        return mhai_fail(o, MHA_ERR_NULL, "%s is NULL", shape ? "options.weights" : "shape");
    mha_shape full = *shape;
    full.Dv = 0;
    full.v_type = full.k_type;
    full.o_type = full.q_type;
    call->given_lse = mhai_as_view(o->lse);
    memset(&o->lse, 0, sizeof o->lse);
    o->statistics = NULL;
    if ((status = mhai_check_problem(&full, call)) || (status = mhai_kernels_for(o, &kernels)))
        return status;
    mhai_plan_fill(plan, call, call->shape.q_type == MHA_F64 ? NULL : kernels);
    plan->only_weights = true;
    plan->one_pass = plan->one_pass_mean = false;
    plan->task_rows = plan->row_tile;
    plan->ldo = 0;
    if (!plan->empty)
        plan->scratch_size = mhai_run_scratch_size(plan); /* of the plan as it is now */
    return MHA_OK;
}

static mha_status check_memory(const mhai_call *call, const void *work, size_t work_size)
{
    const mha_shape *const s = &call->shape;
    const mha_options *const o = &call->options;
    mhai_regions list;
    mhai_regions_begin(&list, o, s->B);
    mhai_regions_rows(&list, false, "q", call->q, s->q_type, s->H, s->L, s->D, o->q_starts);
    mhai_regions_rows(&list, false, "k", call->k, s->k_type, s->G, s->S, s->D, o->k_starts);
    if (call->given_lse.data)
        mhai_regions_rows(&list, false, "options.lse", call->given_lse,
                          s->q_type == MHA_F64 ? MHA_F64 : MHA_F32, s->H, s->L, 1, o->q_starts);
    mhai_regions_options(&list, call, s->S);
    return mhai_regions_check(&list, work, work_size);
}

size_t mha_attention_weights_work_size(const mha_shape *shape, const mha_options *options,
                                       int threads)
{
    mhai_call call = {0};
    mha_plan plan;
    if (threads < 1 || threads > MHA_MAX_THREADS || prepare(shape, options, &call, &plan))
        return 0;
    return mhai_run_work_size(&plan, threads);
}

mha_status mha_attention_weights(const mha_shape *shape, mha_view q, mha_view k,
                                 const mha_options *options, void *work, size_t work_size,
                                 mha_pool *pool)
{
    mhai_call call = {0};
    mha_plan plan = {0};
    mha_status status = prepare(shape, options, &call, &plan);
    if (status || plan.empty)
        return status;
    const mha_options *const message = &call.options;
    const size_t needed = mhai_run_work_size(&plan, mha_pool_threads(pool));
    if (work && work_size < needed)
        return mhai_fail(message, MHA_ERR_WORKSPACE,
                         "work has %zu bytes; %d threads need %zu "
                         "(mha_attention_weights_work_size)",
                         work_size, mha_pool_threads(pool), needed);
    mhai_set_views(&call, q, k, k, (mha_out){0});
    if ((status = mhai_check_lists(&call)) || (status = check_memory(&call, work, needed)))
        return status;
    const mhai_buffer buffer = mhai_buffer_get(work, needed);
    if (!buffer.data)
        return mhai_fail(message, MHA_ERR_MEMORY, "no memory for %zu bytes of workspace", needed);
    mhai_run_all(&plan, &call, buffer.data, pool);
    mhai_buffer_free(buffer);
    return MHA_OK;
}
