/* SPDX-License-Identifier: MIT */
/*
 * GATHER, ALL_TO_ALL and GRID: every rank computes some heads of its team's rows, over the keys of
 * all. In each step some heads travel while those of the step before are computed:
 *
 *      post(0)
 *      wait, unpack(step)      rows of all ranks are now in the order of their tokens; long runs of
 *                              them were received there
 *      post(step + 1)          the next heads, on their way during
 *      compute(step)           pieces of the operator, in slices
 *      return(step)            outputs to those who have the rows, with more than one head rank
 *
 * Nothing is ever added up across ranks, so results have the bits of one call. A backward pass is
 * the same with more tensors: gradients of queries come from all keys, those of keys from all
 * queries, so with several teams scores are computed twice.
 */
#include "mpi/mpi_parts.h"

#include <string.h>

enum { TAG_IN = 1, TAG_OUT = 2, KEY_SLICE = 2048 };

static const mhai_mpi_tokens everything = {0, PTRDIFF_MAX};

typedef struct grid {
    mhai_mpi_call *call;
    const mha_mpi_plan *plan;
    int rank, ranks, team;
    int in[MHAI_MPI_OPERANDS], in_count; /* tensors that travel to where they are needed */
    int common;                          /* the first of these go to all ranks, others to a team */
    int out[MHAI_MPI_OPERANDS], out_count;         /* tensors that go back */
    mhai_mpi_tensor buffers[2][MHAI_MPI_OPERANDS]; /* tensors of heads that are computed and of the
                                                    * next, in turn */
    char *sends, *receives, *out_sends, *out_receives;
    mhai_mpi_sharing sharing;
} grid;

static bool same_team(const grid *g, int rank)
{
    return mhai_mpi_team(g->plan, rank) == g->team;
}

/* ---------------------------------------------------------------- parcels ----- */

/* How many of the tensors go from one rank to the other. */
static int count_to(const grid *g, int from, int to)
{
    return mhai_mpi_team(g->plan, from) == mhai_mpi_team(g->plan, to) ? g->in_count : g->common;
}

static const mhai_mpi_rows *rows_of(const grid *g, int operand, int rank)
{
    return &g->call->own[operand].side->ranks[rank];
}

/* Do the rows of a rank travel as they lie, and not in a parcel? */
static bool is_direct(const grid *g, int operand, int owner)
{
    return mhai_mpi_is_direct(g->plan->group, &g->call->own[operand], rows_of(g, operand, owner));
}

static size_t bytes_of(const grid *g, int operand, int owner, mhai_mpi_heads heads)
{
    return mhai_mpi_parcel_bytes(&g->call->own[operand], rows_of(g, operand, owner), heads,
                                 everything);
}

/* Bytes of these tensors, all or those of parcels. */
enum which { ALL, PARCELS };
static size_t list_bytes(const grid *g, const int *list, int count, int owner, mhai_mpi_heads heads,
                         enum which which)
{
    size_t bytes = 0;
    for (int n = 0; n < count; n++)
        if (which == ALL || !is_direct(g, list[n], owner))
            bytes += bytes_of(g, list[n], owner, heads);
    return bytes;
}

static size_t in_bytes(const grid *g, int from, int to, mhai_mpi_heads heads, enum which which)
{
    return list_bytes(g, g->in, count_to(g, from, to), from, heads, which);
}

/* Outputs of some heads for the rows of `to`. */
static size_t out_bytes(const grid *g, int to, mhai_mpi_heads heads, enum which which)
{
    return list_bytes(g, g->out, g->out_count, to, heads, which);
}

/* Messages of all these tensors, of so many ranks. */
static size_t count_messages(const grid *g, const int *list, int count, int owner,
                             mhai_mpi_heads heads)
{
    const mha_mpi_group *const group = g->plan->group;
    size_t messages = mhai_mpi_messages(group, list_bytes(g, list, count, owner, heads, PARCELS));
    for (int n = 0; n < count; n++)
        if (is_direct(g, list[n], owner))
            messages += mhai_mpi_row_messages(group, &g->call->own[list[n]],
                                              rows_of(g, list[n], owner), heads);
    return messages;
}

/* Copies between tensors and a parcel of their rows: `packing`, or unpacking. */
static void move_parcel(const grid *g, const int *list, int count, int owner, mhai_mpi_heads heads,
                        const mhai_mpi_tensor *tensors, char *parcel, bool packing)
{
    for (int n = 0; n < count; n++) {
        const mhai_mpi_tensor *const t = &tensors[list[n]];
        const mhai_mpi_rows *const rows = &t->side->ranks[owner];
        const mhai_mpi_tensor packed = mhai_mpi_packed(t, rows, heads, everything, parcel);
        if (is_direct(g, list[n], owner))
            continue;
        if (packing)
            mhai_mpi_copy(&packed, t, rows, heads, everything);
        else
            mhai_mpi_copy(t, &packed, rows, heads, everything);
        parcel += mhai_mpi_parcel_bytes(t, rows, heads, everything);
    }
}

/* ------------------------------------------------------------------- in ----- */

/* Copies this rank's own rows of a tensor. */
static void copy_own(const grid *g, int operand, const mhai_mpi_tensor *to, mhai_mpi_heads heads)
{
    mhai_mpi_copy(to, &g->call->own[operand], rows_of(g, operand, g->rank), heads, everything);
}

/* Expects the next heads of others. */
static void post_receives(grid *g, mhai_mpi_heads mine, const mhai_mpi_tensor *next)
{
    mhai_mpi_exchange *const x = &g->call->exchange;
    char *at = g->receives;
    for (int from = 0; from < g->ranks; from++) {
        if (from == g->rank)
            continue;
        const size_t bytes = in_bytes(g, from, g->rank, mine, PARCELS);
        mhai_mpi_receive(x, at, bytes, from, TAG_IN);
        at += bytes;
        for (int n = 0; n < count_to(g, from, g->rank); n++)
            if (is_direct(g, g->in[n], from))
                mhai_mpi_receive_rows(x, &next[g->in[n]], rows_of(g, g->in[n], from), mine, from,
                                      TAG_IN);
    }
}

/* Sends the next heads of this rank's rows to those who compute them. Parcels for ranks of the same
 * heads are one; rows that this rank needs too are sent from where it needs them. */
static void post_sends(grid *g, ptrdiff_t step, const mhai_mpi_tensor *next)
{
    const mha_mpi_plan *const plan = g->plan;
    mhai_mpi_exchange *const x = &g->call->exchange;
    char *at = g->sends;
    for (int share = 0; share < plan->head_ranks; share++) {
        const mhai_mpi_heads heads = mhai_mpi_step_heads(plan, share, step);
        const char *const parcel = at;
        mhai_mpi_tensor direct[MHAI_MPI_OPERANDS];
        move_parcel(g, g->in, g->in_count, g->rank, heads, g->call->own, at, true);
        at += in_bytes(g, g->rank, g->rank, heads, PARCELS);
        for (int n = 0; n < g->in_count; n++) {
            const int operand = g->in[n];
            direct[operand] = next[operand];
            if (share == g->rank % plan->head_ranks || !is_direct(g, operand, g->rank))
                continue;
            direct[operand] = mhai_mpi_packed(&g->call->own[operand], rows_of(g, operand, g->rank),
                                              heads, everything, at);
            copy_own(g, operand, &direct[operand], heads);
            at += bytes_of(g, operand, g->rank, heads);
        }
        for (int n = 1; n < g->ranks; n++) {
            const int to = (g->rank + n) % g->ranks;
            if (to % plan->head_ranks != share)
                continue;
            mhai_mpi_send(x, parcel, in_bytes(g, g->rank, to, heads, PARCELS), to, TAG_IN);
            for (int k = 0; k < count_to(g, g->rank, to); k++)
                if (is_direct(g, g->in[k], g->rank))
                    mhai_mpi_send_rows(x, &direct[g->in[k]], rows_of(g, g->in[k], g->rank), heads,
                                       to, TAG_IN);
        }
    }
}

static void post(grid *g, ptrdiff_t step)
{
    const mhai_mpi_heads mine = mhai_mpi_step_heads(g->plan, g->rank, step);
    mhai_mpi_tensor *const next = g->buffers[step % 2];
    for (int n = 0; n < g->in_count; n++) {
        next[g->in[n]].head_first = mine.first;
        if (is_direct(g, g->in[n], g->rank))
            copy_own(g, g->in[n], &next[g->in[n]], mine);
    }
    post_receives(g, mine, next);
    post_sends(g, step, next);
}

/* What has arrived, and this rank's own rows, in the order of tokens. */
static void unpack(const grid *g, ptrdiff_t step)
{
    const mhai_mpi_heads heads = mhai_mpi_step_heads(g->plan, g->rank, step);
    mhai_mpi_call *const call = g->call;
    const char *at = g->receives;
    for (int n = 0; n < g->in_count; n++)
        call->used[g->in[n]] = g->buffers[step % 2][g->in[n]];
    for (int from = 0; from < g->ranks; from++) {
        if (from == g->rank)
            continue;
        move_parcel(g, g->in, count_to(g, from, g->rank), from, heads, call->used,
                    (char *)(uintptr_t)at, false);
        at += in_bytes(g, from, g->rank, heads, PARCELS);
    }
    for (int n = 0; n < g->in_count; n++)
        if (!is_direct(g, g->in[n], g->rank))
            copy_own(g, g->in[n], &call->used[g->in[n]], heads);
}

/* ------------------------------------------------------------------ out ----- */

/* Copies a result of these heads to the rows of this rank: in a run not to those past a query
 * length, which nobody has computed and the caller keeps. */
static void deliver(const grid *g, int operand, const mhai_mpi_tensor *from, mhai_mpi_heads heads)
{
    const mhai_mpi_call *const call = g->call;
    const mha_options *const o = &call->options;
    const mhai_mpi_tensor *const to = &call->own[operand];
    const mhai_mpi_rows *const rows = &to->side->ranks[g->rank];
    if (call->backward || !o->q_lengths) {
        mhai_mpi_copy(to, from, rows, heads, everything);
        return;
    }
    for (ptrdiff_t b = 0; b < g->plan->shape.B; b++) {
        const ptrdiff_t first = call->packed ? (ptrdiff_t)o->q_starts[b] : 0;
        const ptrdiff_t batch = call->packed ? 0 : b;
        mhai_mpi_tensor to_batch = *to, from_batch = *from;
        to_batch.data += batch * to->sb;
        from_batch.data += batch * from->sb;
        to_batch.batches = from_batch.batches = 1;
        mhai_mpi_copy(&to_batch, &from_batch, rows, heads,
                      (mhai_mpi_tokens){first, first + (ptrdiff_t)o->q_lengths[b]});
    }
}

/* The ranks that share heads with this one. */
static int first_mate(const grid *g)
{
    return g->team * g->plan->head_ranks;
}

/* Sends the results of a step to those of the team who have the rows, and expects those of the
 * heads that others have computed: in the workspace, since the caller's memory is his own again
 * when a rank fails. */
static void give_back(grid *g, ptrdiff_t step)
{
    const mha_mpi_plan *const plan = g->plan;
    const mhai_mpi_heads mine = mhai_mpi_step_heads(plan, g->rank, step);
    mhai_mpi_call *const call = g->call;
    mhai_mpi_exchange *const x = &call->exchange;
    char *at = g->out_receives;
    for (int from = first_mate(g); from < first_mate(g) + plan->head_ranks; from++) {
        const mhai_mpi_heads heads = mhai_mpi_step_heads(plan, from, step);
        if (from == g->rank)
            continue;
        mhai_mpi_receive(x, at, out_bytes(g, g->rank, heads, PARCELS), from, TAG_OUT);
        at += out_bytes(g, g->rank, heads, PARCELS);
        for (int n = 0; n < g->out_count; n++) {
            const mhai_mpi_rows *const rows = rows_of(g, g->out[n], g->rank);
            if (!is_direct(g, g->out[n], g->rank))
                continue;
            const mhai_mpi_tensor packed =
                mhai_mpi_packed(&call->own[g->out[n]], rows, heads, everything, at);
            mhai_mpi_receive_rows(x, &packed, rows, heads, from, TAG_OUT);
            at += bytes_of(g, g->out[n], g->rank, heads);
        }
    }
    at = g->out_sends;
    for (int to = first_mate(g); to < first_mate(g) + plan->head_ranks; to++) {
        if (to == g->rank)
            continue;
        move_parcel(g, g->out, g->out_count, to, mine, call->used, at, true);
        mhai_mpi_send(x, at, out_bytes(g, to, mine, PARCELS), to, TAG_OUT);
        at += out_bytes(g, to, mine, PARCELS);
        for (int n = 0; n < g->out_count; n++)
            if (is_direct(g, g->out[n], to))
                mhai_mpi_send_rows(x, &call->used[g->out[n]], rows_of(g, g->out[n], to), mine, to,
                                   TAG_OUT);
    }
    for (int n = 0; n < g->out_count; n++)
        deliver(g, g->out[n], &call->used[g->out[n]], mine);
}

/* Parcels come first, then what travels as it lies. */
static void take_back(const grid *g, ptrdiff_t step)
{
    const mha_mpi_plan *const plan = g->plan;
    char *at = g->out_receives;
    for (int from = first_mate(g); from < first_mate(g) + plan->head_ranks; from++) {
        const mhai_mpi_heads heads = mhai_mpi_step_heads(plan, from, step);
        for (int n = 0; from != g->rank && n < 2 * g->out_count; n++) {
            const int operand = g->out[n % g->out_count];
            if (is_direct(g, operand, g->rank) != (n >= g->out_count))
                continue;
            const mhai_mpi_tensor packed = mhai_mpi_packed(
                &g->call->own[operand], rows_of(g, operand, g->rank), heads, everything, at);
            deliver(g, operand, &packed, heads);
            at += bytes_of(g, operand, g->rank, heads);
        }
    }
}

/* ------------------------------------------------------------- computing ----- */

static ptrdiff_t start_of(const int64_t *starts, ptrdiff_t b)
{
    return starts ? (ptrdiff_t)starts[b] : 0;
}

/* Gradients of keys [first, last), tokens of the layout, from all rows: of a packed sequence, or of
 * all batches. */
static void run_keys(mhai_mpi_call *call, mhai_mpi_piece piece, ptrdiff_t first, ptrdiff_t last)
{
    const mha_options *const o = &call->options;
    const ptrdiff_t origin = call->packed ? start_of(o->k_starts, piece.b) : 0;
    const ptrdiff_t rows = call->packed
                               ? start_of(o->q_starts, piece.b + 1) - start_of(o->q_starts, piece.b)
                               : call->plan->shape.L;
    piece.queries = (mhai_mpi_tokens){0, rows};
    piece.d_kv = true;
    for (ptrdiff_t t = first; t < last; t += KEY_SLICE) {
        piece.keys = (mhai_mpi_tokens){t - origin, mhai_mpi_min(last, t + KEY_SLICE) - origin};
        mhai_mpi_piece_run(call, &piece);
        if (call->work)
            mhai_mpi_progress(&call->exchange);
    }
}

static void run_all_keys(const grid *g, mhai_mpi_heads heads)
{
    mhai_mpi_call *const call = g->call;
    const mhai_mpi_rows *const rows = &g->plan->keys.teams[g->team];
    for (ptrdiff_t n = 0; n < rows->runs; n++) {
        mhai_mpi_piece piece = {.heads = heads, .b = -1};
        const ptrdiff_t first = rows->run[n].first, last = rows->run[n].last;
        if (!call->packed)
            run_keys(call, piece, first, last);
        for (piece.b = 0; call->packed && piece.b < g->plan->shape.B; piece.b++)
            run_keys(call, piece, mhai_mpi_max(first, start_of(call->options.k_starts, piece.b)),
                     mhai_mpi_min(last, start_of(call->options.k_starts, piece.b + 1)));
    }
}

/* Results go into buffers without gaps between batches, since statistics have no strides. */
static void open_buffers(const grid *g, mhai_mpi_heads heads)
{
    for (int n = 0; n < g->out_count; n++) {
        mhai_mpi_tensor *const t = &g->call->used[g->out[n]];
        t->head_first = heads.first;
        t->sb = t->sh * mhai_mpi_heads_of(t, heads);
    }
}

static void compute(const grid *g, ptrdiff_t step)
{
    mhai_mpi_call *const call = g->call;
    const mhai_mpi_heads heads = mhai_mpi_step_heads(g->plan, g->rank, step);
    open_buffers(g, heads);
    /* One team has all rows and keys of its heads: everything at once. */
    if ((call->backward && g->plan->teams == 1) || call->options.statistics) {
        mhai_mpi_heads_run(call, heads);
        if (call->work)
            mhai_mpi_share_statistics(call, heads);
        return;
    }
    const mhai_mpi_tensor *const gradients = &call->own[MHAI_MPI_D_Q];
    if (!call->backward || gradients->data || call->own[MHAI_MPI_D_ADD].data ||
        call->own[MHAI_MPI_D_BIAS].data)
        mhai_mpi_rows_run(call, heads, &g->plan->queries.teams[g->team]);
    if (call->own[MHAI_MPI_D_K].data || call->own[MHAI_MPI_D_V].data)
        run_all_keys(g, heads);
    /* Sinks need all rows, which every rank has, but no keys. */
    const mhai_mpi_piece sinks = {
        .heads = heads, .b = -1, .queries = {0, g->plan->shape.L}, .shared = true};
    if (call->shared[MHAI_MPI_D_SINKS].data)
        mhai_mpi_piece_run(call, &sinks);
}

/* --------------------------------------------------------------- carving ----- */

/* Which tensors travel. */
static void list_tensors(grid *g)
{
    const mhai_mpi_call *const call = g->call;
    const mha_mpi_plan *const plan = g->plan;
    for (int n = 0; g->ranks > 1 && n < MHAI_MPI_D_Q; n++) {
        const bool key = n == MHAI_MPI_K || n == MHAI_MPI_V;
        const bool read = key || (call->backward ? true : n != MHAI_MPI_O && n != MHAI_MPI_LSE);
        if (!call->own[n].data || !read || (call->own[n].sl == 0 && n >= MHAI_MPI_ATTEND))
            continue;
        if (key || call->backward || plan->head_ranks > 1)
            g->in[g->in_count++] = n;
        if (key || call->backward)
            g->common = g->in_count;
    }
    if (plan->head_ranks == 1)
        return;
    for (int n = MHAI_MPI_O; !call->backward && n <= MHAI_MPI_LSE; n++)
        if (call->own[n].data)
            g->out[g->out_count++] = n;
    for (int n = MHAI_MPI_D_Q; n < MHAI_MPI_OPERANDS; n++)
        if (call->own[n].data && n != MHAI_MPI_WEIGHTS)
            g->out[g->out_count++] = n;
}

/* A buffer for the rows of some heads at a time. */
static void carve_buffer(const grid *g, int which, const mhai_mpi_rows *rows, mhai_mpi_work *work)
{
    const mhai_mpi_heads heads = {0, g->plan->heads};
    const mhai_mpi_tensor *const t = &g->call->own[which];
    mhai_mpi_tensor *const buffer = &g->call->used[which];
    *buffer = mhai_mpi_packed(t, rows, heads, everything, t->data);
    size_t bytes = mhai_mpi_parcel_bytes(t, rows, heads, everything);
    if (t->starts) { /* as many rows for each sequence as the longest has */
        buffer->starts = t->starts;
        buffer->row_first = 0;
        buffer->sh = buffer->sl * g->plan->shape.L;
        buffer->sb = buffer->sh * mhai_mpi_heads_of(t, heads);
        bytes = (size_t)(buffer->sb * t->sequences);
    }
    char *const data = mhai_mpi_take(work, bytes);
    buffer->data = data ? data : t->data;
}

/* Rows that travel as they lie arrive while those of the heads before are in use. */
static bool needs_two(const grid *g, int operand)
{
    for (int rank = 0; g->plan->steps > 1 && rank < g->ranks; rank++)
        if (is_direct(g, operand, rank))
            return true;
    return false;
}

static void carve_buffers(grid *g, mhai_mpi_work *work)
{
    memcpy(g->call->used, g->call->own, sizeof g->call->used);
    for (int n = 0; n < g->in_count; n++) {
        const int operand = g->in[n];
        const mhai_mpi_side *const side = g->call->own[operand].side;
        const mhai_mpi_rows *const rows = n < g->common ? &side->all : &side->teams[g->team];
        for (int k = 0; k < 1 + needs_two(g, operand); k++) {
            carve_buffer(g, operand, rows, work);
            g->buffers[k][operand] = g->buffers[1][operand] = g->call->used[operand];
        }
    }
    for (int n = 0; n < g->out_count; n++)
        carve_buffer(g, g->out[n], &g->call->own[g->out[n]].side->teams[g->team], work);
}

/* Parcels under way, with as many heads as a step can have, and requests for their messages. */
static void carve_parcels(grid *g, mhai_mpi_work *work)
{
    const mha_mpi_plan *const plan = g->plan;
    const mhai_mpi_heads heads = {0, plan->heads};
    size_t in = 0, out = 0, returned = 0, messages = 0;
    for (int rank = 0; rank < g->ranks; rank++) {
        if (rank == g->rank)
            continue;
        in += in_bytes(g, rank, g->rank, heads, PARCELS);
        messages += count_messages(g, g->in, count_to(g, g->rank, rank), g->rank, heads) +
                    count_messages(g, g->in, count_to(g, rank, g->rank), rank, heads);
        if (!same_team(g, rank))
            continue;
        out += out_bytes(g, rank, heads, PARCELS);
        returned += out_bytes(g, g->rank, heads, ALL);
        messages += count_messages(g, g->out, g->out_count, rank, heads) +
                    count_messages(g, g->out, g->out_count, g->rank, heads);
    }
    /* What heads share is exchanged at the end, when nothing else is under way. */
    const size_t shared = mhai_mpi_share_messages(g->call);
    messages = messages > shared ? messages : shared;
    const size_t sent = (size_t)(plan->head_ranks - 1) * in_bytes(g, g->rank, g->rank, heads, ALL) +
                        in_bytes(g, g->rank, g->rank, heads, PARCELS);
    g->receives = mhai_mpi_take(work, in);
    g->sends = mhai_mpi_take(work, g->ranks > 1 ? sent : 0);
    g->out_sends = mhai_mpi_take(work, out);
    g->out_receives = mhai_mpi_take(work, returned);
    g->call->exchange.requests =
        mhai_mpi_take(work, (g->ranks > 1 ? messages : 0) * sizeof(MPI_Request));
}

static grid begin(mhai_mpi_call *call)
{
    const mha_mpi_plan *const plan = call->plan;
    grid g = {.call = call,
              .plan = plan,
              .rank = plan->group->rank,
              .ranks = plan->group->ranks,
              .team = mhai_mpi_team(plan, plan->group->rank)};
    list_tensors(&g);
    return g;
}

/* --------------------------------------------------------------- running ----- */

static mha_status run(grid *g)
{
    mhai_mpi_exchange *const x = &g->call->exchange;
    const ptrdiff_t steps = g->plan->steps;
    if (g->ranks > 1 && steps > 0)
        post(g, 0);
    for (ptrdiff_t step = 0; step < steps; step++) {
        if (mhai_mpi_finish(x))
            return x->status;
        if (g->ranks > 1)
            unpack(g, step);
        if (step > 0)
            take_back(g, step - 1);
        if (g->ranks > 1 && step + 1 < steps)
            post(g, step + 1);
        compute(g, step);
        give_back(g, step);
    }
    if (mhai_mpi_finish(x))
        return x->status;
    if (steps > 0)
        take_back(g, steps - 1);
    mhai_mpi_share(g->call, &g->sharing);
    return x->status ? x->status : g->call->status;
}

mha_status mhai_mpi_grid(mhai_mpi_call *call, mhai_mpi_work *work, bool runs)
{
    grid g = begin(call);
    carve_buffers(&g, work);
    carve_parcels(&g, work);
    mhai_mpi_share_carve(call, &g.sharing, work);
    if (runs)
        return run(&g);
    for (ptrdiff_t step = 0; step < g.plan->steps; step++)
        compute(&g, step);
    return call->status;
}

uint64_t mhai_mpi_grid_sent(const mhai_mpi_call *call)
{
    mhai_mpi_call copy = *call;
    const grid g = begin(&copy);
    const mha_mpi_plan *const plan = g.plan;
    uint64_t bytes =
        (uint64_t)mhai_mpi_share_bytes(call, g.rank) * (uint64_t)(plan->head_ranks - 1);
    for (ptrdiff_t step = 0; step < plan->steps; step++)
        for (int rank = 0; rank < g.ranks; rank++) {
            if (rank == g.rank)
                continue;
            bytes += in_bytes(&g, g.rank, rank, mhai_mpi_step_heads(plan, rank, step), ALL);
            if (same_team(&g, rank))
                bytes += out_bytes(&g, rank, mhai_mpi_step_heads(plan, g.rank, step), ALL);
        }
    return bytes;
}
