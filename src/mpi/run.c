/* SPDX-License-Identifier: MIT */
/* The public functions of a plan: check, agree, carve, run. */
#include "mpi/mpi_parts.h"

#include <string.h>

static mha_status run_scheme(mhai_mpi_call *call, mhai_mpi_work *work, bool runs)
{
    call->lists = mhai_mpi_take(work, 3 * sizeof(int64_t) * (size_t)call->plan->shape.B);
    /* Weights follow the run and use the same memory. */
    mhai_mpi_work after = *work;
    mha_status status = call->plan->scheme == MHA_MPI_RING ? mhai_mpi_ring(call, work, runs)
                                                           : mhai_mpi_grid(call, work, runs);
    if (!status && mhai_mpi_weights_wanted(call))
        status = mhai_mpi_weights(call, &after, runs);
    work->used = after.used > work->used ? after.used : work->used;
    return status;
}

/* Bytes that the scheme and the operator need. The call is not changed. */
static size_t count_work(const mhai_mpi_call *call, int threads, size_t *own)
{
    mhai_mpi_call counted = *call;
    mhai_mpi_work work = {0};
    counted.threads = threads;
    run_scheme(&counted, &work, false);
    *own = work.used;
    return counted.status ? 0 : work.used + counted.work_size + 128;
}

/* Anything that is not NULL: memory is only counted. */
static mha_status read_wishes(mhai_mpi_call *call, const mha_mpi_plan *plan,
                              const mha_options *options, bool backward, bool shared)
{
    const mha_status status = mhai_mpi_call_read(call, plan, options, backward);
    if (!status)
        mhai_mpi_call_pretend(call, shared);
    return status;
}

size_t mha_mpi_plan_work_size(const mha_mpi_plan *plan, const mha_options *options, int threads,
                              int backward)
{
    mhai_mpi_call call;
    size_t own;
    if (!plan || threads < 1 || threads > MHA_MAX_THREADS ||
        read_wishes(&call, plan, options, backward != 0, false))
        return 0;
    const size_t rows = count_work(&call, threads, &own);
    if (!backward || plan->scheme == MHA_MPI_RING)
        return rows;
    read_wishes(&call, plan, options, true, true);
    const size_t heads = count_work(&call, threads, &own);
    return heads > rows ? heads : rows;
}

uint64_t mha_mpi_plan_sent(const mha_mpi_plan *plan, const mha_options *options, int backward)
{
    mhai_mpi_call call;
    if (!plan || plan->group->ranks == 1 || read_wishes(&call, plan, options, backward != 0, false))
        return 0;
    const uint64_t weights = mhai_mpi_weights_wanted(&call) ? mhai_mpi_weights_sent(&call) : 0;
    return weights + (call.plan->scheme == MHA_MPI_RING ? mhai_mpi_ring_sent(&call)
                                                        : mhai_mpi_grid_sent(&call));
}

/* The call was checked on this rank, with this result: what do all say? Then it is done. */
static mha_status agree_and_run(mhai_mpi_call *call, mha_status status, void *work,
                                size_t work_size, mha_pool *pool)
{
    mha_mpi_group *const group = call->plan->group;
    size_t own = 0;
    const size_t needed = status ? 0 : count_work(call, mha_pool_threads(pool), &own);
    char *const message = call->options.message;
    const size_t message_size = call->options.message_size;
    if (!status && !work)
        status = mhai_mpi_fail(message, message_size, MHA_ERR_NULL, "work is NULL; give %zu bytes",
                               needed);
    else if (!status && work_size < needed)
        status = mhai_mpi_fail(message, message_size, MHA_ERR_WORKSPACE,
                               "work has %zu bytes; %d threads need %zu (mha_mpi_plan_work_size)",
                               work_size, mha_pool_threads(pool), needed);
    const uint64_t hash = status ? 0 : mhai_mpi_call_hash(call);
    if ((status = mhai_mpi_agree(group, status, hash, message, message_size)))
        return status;
    mhai_mpi_work carve = mhai_mpi_work_begin(work);
    call->pool = pool;
    call->threads = mha_pool_threads(pool);
    call->work = carve.base + own;
    call->work_size = work_size - (size_t)((char *)call->work - (char *)work);
    status = run_scheme(call, &carve, true);
    /* A rank that fails alone has left the others waiting. */
    if (status && group->ranks > 1 && !group->broken)
        group->broken = status;
    return status;
}

mha_status mha_mpi_plan_run(const mha_mpi_plan *plan, mha_view q, mha_view k, mha_view v, mha_out o,
                            const mha_options *options, void *work, size_t work_size,
                            mha_pool *pool)
{
    mhai_mpi_call call;
    if (!plan)
        return MHA_ERR_NULL;
    mha_status status = mhai_mpi_call_read(&call, plan, options, false);
    if (!status)
        status = mhai_mpi_call_run(&call, q, k, v, o);
    return agree_and_run(&call, status, work, work_size, pool);
}

mha_status mha_mpi_plan_backward(const mha_mpi_plan *plan, mha_view q, mha_view k, mha_view v,
                                 mha_view o, const mha_options *options,
                                 const mha_gradients *gradients, void *work, size_t work_size,
                                 mha_pool *pool)
{
    mhai_mpi_call call;
    if (!plan)
        return MHA_ERR_NULL;
    mha_status status = mhai_mpi_call_read(&call, plan, options, true);
    if (!status)
        status = mhai_mpi_call_backward(&call, q, k, v, o, gradients);
    return agree_and_run(&call, status, work, work_size, pool);
}
