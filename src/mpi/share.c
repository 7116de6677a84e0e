/* SPDX-License-Identifier: MIT */
/*
 * Results of heads without rows of tokens: gradients of sinks, slopes, gates and biases of keys,
 * statistics of heads and of keys. A rank that computes a head has them, and sends them to the
 * others of its team at the end.
 */
#include "mpi/mpi_parts.h"

#include <string.h>

enum { TAG_SHARE = 3 };

/* Query heads that a rank computes. */
static mhai_mpi_heads heads_of(const mha_mpi_plan *plan, int rank)
{
    const ptrdiff_t R = plan->shape.G ? plan->shape.H / plan->shape.G : 0;
    return (mhai_mpi_heads){R * mhai_mpi_step_heads(plan, rank, 0).first,
                            R * mhai_mpi_step_heads(plan, rank, plan->steps).last};
}

size_t mhai_mpi_share_bytes(const mhai_mpi_call *call, int rank)
{
    const mhai_mpi_heads heads = heads_of(call->plan, rank);
    size_t bytes = 0;
    for (int n = 0; n < MHAI_MPI_SHARED; n++)
        if (call->shared[n].data)
            bytes += call->shared[n].bytes *
                     (size_t)(call->shared[n].batches * (heads.last - heads.first));
    return bytes;
}

/* The ranks of this rank's team. */
static mhai_mpi_tokens team_of(const mha_mpi_plan *plan)
{
    const int team = mhai_mpi_team(plan, plan->group->rank);
    return (mhai_mpi_tokens){(ptrdiff_t)team * plan->head_ranks,
                             (ptrdiff_t)(team + 1) * plan->head_ranks};
}

size_t mhai_mpi_share_messages(const mhai_mpi_call *call)
{
    const mha_mpi_plan *const plan = call->plan;
    const mhai_mpi_tokens team = team_of(plan);
    const size_t sent =
        mhai_mpi_messages(plan->group, mhai_mpi_share_bytes(call, plan->group->rank));
    size_t messages = 0;
    for (ptrdiff_t rank = team.first; rank < team.last; rank++)
        if (rank != plan->group->rank)
            messages +=
                sent + mhai_mpi_messages(plan->group, mhai_mpi_share_bytes(call, (int)rank));
    return messages;
}

void mhai_mpi_share_carve(mhai_mpi_call *call, mhai_mpi_sharing *sharing, mhai_mpi_work *work)
{
    const mha_mpi_plan *const plan = call->plan;
    const mhai_mpi_tokens team = team_of(plan);
    const size_t heads =
        plan->shape.G ? (size_t)(plan->shape.B * plan->heads * (plan->shape.H / plan->shape.G)) : 0;
    const mhai_mpi_result_of_heads *const means = &call->shared[MHAI_MPI_HEAD_STATISTICS];
    const mhai_mpi_result_of_heads *const columns = &call->shared[MHAI_MPI_COLUMNS];
    size_t bytes = 0;
    for (ptrdiff_t rank = team.first; plan->head_ranks > 1 && rank < team.last; rank++)
        bytes += mhai_mpi_share_bytes(call, (int)rank);
    sharing->blocks = mhai_mpi_take(work, bytes);
    if (!call->options.statistics)
        return;
    /* Where only workspace is counted, it matters what is wanted, not where it is. */
    call->statistics = *call->options.statistics;
    void *const all = means->data ? mhai_mpi_take(work, heads * means->bytes) : NULL;
    void *const keys = columns->data ? mhai_mpi_take(work, heads * columns->bytes) : NULL;
    call->statistics.heads = all ? all : call->options.statistics->heads;
    call->statistics.columns = keys ? keys : call->options.statistics->columns;
}

void mhai_mpi_share_statistics(const mhai_mpi_call *call, mhai_mpi_heads heads)
{
    const mha_shape *const s = &call->plan->shape;
    const ptrdiff_t R = s->H / s->G, count = R * (heads.last - heads.first);
    const struct {
        const void *from;
        const mhai_mpi_result_of_heads *to;
    } results[] = {{call->statistics.heads, &call->shared[MHAI_MPI_HEAD_STATISTICS]},
                   {call->statistics.columns, &call->shared[MHAI_MPI_COLUMNS]}};
    for (int n = 0; n < 2; n++)
        for (ptrdiff_t b = 0; results[n].to->data && count > 0 && b < s->B; b++)
            memcpy(results[n].to->data + b * results[n].to->sb +
                       heads.first * R * results[n].to->sh,
                   (const char *)results[n].from + b * count * results[n].to->sh,
                   results[n].to->bytes * (size_t)count);
}

/* Copies between the results of these heads and a block of them. */
static void move_block(const mhai_mpi_call *call, mhai_mpi_heads heads, char *block, bool packing)
{
    for (int n = 0; n < MHAI_MPI_SHARED; n++) {
        const mhai_mpi_result_of_heads *const r = &call->shared[n];
        for (ptrdiff_t b = 0; r->data && b < r->batches; b++)
            for (ptrdiff_t h = heads.first; h < heads.last; h++) {
                char *const at = r->data + b * r->sb + h * r->sh;
                memcpy(packing ? block : at, packing ? at : block, r->bytes);
                block += r->bytes;
            }
    }
}

void mhai_mpi_share(mhai_mpi_call *call, const mhai_mpi_sharing *sharing)
{
    const mha_mpi_plan *const plan = call->plan;
    const mhai_mpi_tokens team = team_of(plan);
    const int me = plan->group->rank;
    const char *mine = sharing->blocks;
    char *at = sharing->blocks;
    if (plan->head_ranks == 1 || call->exchange.status)
        return;
    for (ptrdiff_t rank = team.first; rank < team.last; rank++) {
        const size_t bytes = mhai_mpi_share_bytes(call, (int)rank);
        if (rank == me) {
            move_block(call, heads_of(plan, me), at, true);
            mine = at;
        } else {
            mhai_mpi_receive(&call->exchange, at, bytes, (int)rank, TAG_SHARE);
        }
        at += bytes;
    }
    for (ptrdiff_t rank = team.first; rank < team.last; rank++)
        if (rank != me)
            mhai_mpi_send(&call->exchange, mine, mhai_mpi_share_bytes(call, me), (int)rank,
                          TAG_SHARE);
    if (mhai_mpi_finish(&call->exchange))
        return;
    at = sharing->blocks;
    for (ptrdiff_t rank = team.first; rank < team.last; rank++) {
        if (rank != me)
            move_block(call, heads_of(plan, (int)rank), at, false);
        at += mhai_mpi_share_bytes(call, (int)rank);
    }
}
