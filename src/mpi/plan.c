/* SPDX-License-Identifier: MIT */
/*
 * A plan: which scheme, who shares heads with whom, and how many heads travel at once.
 *
 * GATHER, ALL_TO_ALL and GRID are one scheme with 1, all, or some head ranks. Ranks form teams of
 * head_ranks consecutive ones. A rank computes its share of the heads for the rows of its team: the
 * keys of these heads come from all ranks, the queries from its team.
 */
#include "mpi/mpi_parts.h"

#include <stdlib.h>
#include <string.h>

mhai_mpi_heads mhai_mpi_step_heads(const mha_mpi_plan *plan, int rank, ptrdiff_t step)
{
    const ptrdiff_t G = plan->shape.G, share = rank % plan->head_ranks, of = plan->head_ranks;
    const ptrdiff_t first = G / of * share + mhai_mpi_min(share, G % of);
    const ptrdiff_t last = first + G / of + (share < G % of);
    return (mhai_mpi_heads){mhai_mpi_min(last, first + step * plan->heads),
                            mhai_mpi_min(last, first + (step + 1) * plan->heads)};
}

/* Elements that a rank receives in a run, times the number of ranks and per token: keys and values
 * of its heads from all other ranks; queries and outputs within its team. */
static double volume(const mha_shape *s, int ranks, int head_ranks)
{
    const double P = ranks, Ph = head_ranks;
    const double width = (double)(s->D + s->Dv), S = (double)s->S, L = (double)s->L;
    return S * (double)s->G / Ph * width * (P - 1) / P +
           L * (double)s->H * width * (Ph - 1) / (Ph * P);
}

/* The number of head ranks that moves least, of those that share the heads evenly. */
static int best_head_ranks(const mha_shape *s, int ranks)
{
    int best = 1;
    for (int n = 2; n <= ranks && n <= s->G; n++)
        if (ranks % n == 0 && s->G % n == 0 && volume(s, ranks, n) < volume(s, ranks, best))
            best = n;
    return best;
}

/* Heads at once: so many that a step takes a while, but few enough that the next ones travel
 * meanwhile. */
static ptrdiff_t heads_at_once(const mha_mpi_plan *plan)
{
    const ptrdiff_t most = (plan->shape.G + plan->head_ranks - 1) / plan->head_ranks;
    const ptrdiff_t tokens = mhai_mpi_max(1, plan->shape.B * plan->shape.S);
    const ptrdiff_t wanted = mhai_mpi_max(1, 4096 / tokens);
    return mhai_mpi_max(1, mhai_mpi_min(most, wanted));
}

static void choose(mha_mpi_plan *plan, const mha_mpi_plan_config *config)
{
    const int ranks = plan->group->ranks;
    plan->scheme = config->scheme;
    plan->head_ranks = 1;
    if (plan->scheme == MHA_MPI_AUTO) {
        plan->chosen = true;
        plan->head_ranks = best_head_ranks(&plan->shape, ranks);
        plan->scheme = plan->head_ranks == 1       ? MHA_MPI_GATHER
                       : plan->head_ranks == ranks ? MHA_MPI_ALL_TO_ALL
                                                   : MHA_MPI_GRID;
    } else if (plan->scheme == MHA_MPI_ALL_TO_ALL) {
        plan->head_ranks = ranks;
    } else if (plan->scheme == MHA_MPI_GRID) {
        plan->head_ranks =
            config->head_ranks ? config->head_ranks : best_head_ranks(&plan->shape, ranks);
    }
    plan->teams = ranks / plan->head_ranks;
    const ptrdiff_t most = (plan->shape.G + plan->head_ranks - 1) / plan->head_ranks;
    plan->heads =
        config->heads ? mhai_mpi_min(config->heads, mhai_mpi_max(1, most)) : heads_at_once(plan);
    if (ranks == 1)
        plan->heads = mhai_mpi_max(1, most);
    plan->steps = (most + plan->heads - 1) / plan->heads;
    plan->chunk = config->chunk ? config->chunk : MHA_MPI_CHUNK;
}

/* ---------------------------------------------------------------- checks ----- */

static mha_status check_config(const mha_mpi_plan_config *c, const mha_mpi_group *group)
{
    if ((unsigned)c->scheme > MHA_MPI_RING)
        return mhai_mpi_fail(c->message, c->message_size, MHA_ERR_FLAG,
                             "config.scheme is %d; use an MHA_MPI_ value", (int)c->scheme);
    if (c->head_ranks < 0 || (c->head_ranks > 0 && group->ranks % c->head_ranks != 0))
        return mhai_mpi_fail(c->message, c->message_size, MHA_ERR_SHAPE,
                             "config.head_ranks is %d; it must divide the %d ranks", c->head_ranks,
                             group->ranks);
    if (c->heads < 0 || c->chunk < 0)
        return mhai_mpi_fail(c->message, c->message_size, MHA_ERR_SHAPE,
                             "config.heads is %td and config.chunk %td; use 0 or more", c->heads,
                             c->chunk);
    return MHA_OK;
}

/* The shape by itself, without options: those come with the run. */
static mha_status check_shape(const mha_shape *shape, const mha_mpi_plan_config *c)
{
    const mha_options plain = {
        .size = sizeof plain, .message = c->message, .message_size = c->message_size};
    mha_plan *plan;
    const mha_status status = mha_plan_create(&plan, shape, &plain);
    mha_plan_free(plan);
    return status;
}

static mha_status check_layouts(const mha_mpi_plan_config *c, const mha_mpi_group *group,
                                const mha_mpi_layout *queries, const mha_mpi_layout *keys)
{
    mha_status status = mhai_mpi_layout_check(queries, group->ranks);
    if (status)
        return mhai_mpi_fail(c->message, c->message_size, status, "the layout of queries: %s",
                             mha_status_string(status));
    if ((status = mhai_mpi_layout_check(keys, group->ranks)))
        return mhai_mpi_fail(c->message, c->message_size, status, "the layout of keys: %s",
                             mha_status_string(status));
    return MHA_OK;
}

static mha_status check(const mha_mpi_plan_config *given, mha_mpi_plan_config *config,
                        const mha_mpi_group *group, const mha_shape *shape,
                        const mha_mpi_layout *queries, const mha_mpi_layout *keys)
{
    mha_status status;
    if (given && given->size != sizeof *given)
        return MHA_ERR_STRUCT;
    if (given)
        *config = *given;
    if (!shape)
        return MHA_ERR_NULL;
    if ((status = check_config(config, group)) || (status = check_shape(shape, config)))
        return status;
    return check_layouts(config, group, queries, keys);
}

static uint64_t hash_of(const mha_mpi_plan *plan, const mha_mpi_layout *queries,
                        const mha_mpi_layout *keys)
{
    const mha_shape *const s = &plan->shape;
    const int64_t numbers[] = {s->B,      s->H,         s->G,        s->L,        s->S,
                               s->D,      s->Dv,        s->q_type,   s->k_type,   s->v_type,
                               s->o_type, plan->scheme, plan->heads, plan->chunk, plan->head_ranks};
    uint64_t hash = mhai_mpi_hash(MHAI_MPI_HASH_START, numbers, sizeof numbers);
    hash = mhai_mpi_layout_hash(hash, queries);
    return mhai_mpi_layout_hash(hash, keys);
}

/* -------------------------------------------------------------- creation ----- */

static mha_status fill(mha_mpi_plan *plan, const mha_mpi_plan_config *config,
                       const mha_shape *shape, const mha_mpi_layout *queries,
                       const mha_mpi_layout *keys)
{
    plan->shape = *shape;
    if (plan->shape.G == 0)
        plan->shape.G = plan->shape.H;
    if (plan->shape.Dv == 0)
        plan->shape.Dv = plan->shape.D;
    choose(plan, config);
    plan->hash = hash_of(plan, queries, keys);
    const mha_status status =
        mhai_mpi_side_create(&plan->queries, queries, plan->group->ranks, plan->head_ranks);
    return status ? status
                  : mhai_mpi_side_create(&plan->keys, keys, plan->group->ranks, plan->head_ranks);
}

/* A plan of several teams has another of one, for what needs all rows of a head. */
static mha_status add_whole(mha_mpi_plan *plan, const mha_mpi_plan_config *config,
                            const mha_shape *shape, const mha_mpi_layout *queries,
                            const mha_mpi_layout *keys)
{
    mha_mpi_plan_config whole = *config;
    if (plan->teams == 1 || plan->scheme == MHA_MPI_RING)
        return MHA_OK;
    whole.scheme = MHA_MPI_ALL_TO_ALL;
    plan->whole = calloc(1, sizeof *plan->whole);
    if (!plan->whole)
        return MHA_ERR_MEMORY;
    plan->whole->group = plan->group;
    return fill(plan->whole, &whole, shape, queries, keys);
}

mha_status mha_mpi_plan_create(mha_mpi_plan **plan, mha_mpi_group *group,
                               const mha_mpi_plan_config *config, const mha_shape *shape,
                               const mha_mpi_layout *queries, const mha_mpi_layout *keys)
{
    mha_mpi_plan_config full = {.size = sizeof full};
    if (plan)
        *plan = NULL;
    if (!group)
        return MHA_ERR_NULL;
    mha_mpi_plan *made = calloc(1, sizeof *made);
    mha_status status = plan ? check(config, &full, group, shape, queries, keys) : MHA_ERR_NULL;
    if (!made)
        status = MHA_ERR_MEMORY;
    if (made)
        made->group = group;
    if (!status)
        status = fill(made, &full, shape, queries, keys);
    if (!status)
        status = add_whole(made, &full, shape, queries, keys);
    status = mhai_mpi_agree(group, status, status || !made ? 0 : made->hash, full.message,
                            full.message_size);
    if (status)
        mha_mpi_plan_free(made);
    else
        *plan = made;
    return status;
}

void mha_mpi_plan_free(mha_mpi_plan *plan)
{
    if (!plan)
        return;
    mhai_mpi_side_free(&plan->queries);
    mhai_mpi_side_free(&plan->keys);
    mha_mpi_plan_free(plan->whole);
    free(plan);
}
