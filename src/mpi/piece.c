/* SPDX-License-Identifier: MIT */
/*
 * A piece of the whole call: some heads, rows and keys. Its options are those of the whole, moved
 * to where the piece begins; by libmha's promise its rows then have the bits that they have in the
 * whole.
 */
#include "mpi/mpi_parts.h"

#include <string.h>

/* A tensor as the operator wants it, from a head and token on. */
static mha_view view_at(const mhai_mpi_tensor *t, const mhai_mpi_piece *piece, ptrdiff_t token,
                        ptrdiff_t column)
{
    if (!t->data)
        return (mha_view){0};
    const ptrdiff_t e = (ptrdiff_t)t->element;
    const ptrdiff_t b = t->starts && piece->b >= 0 ? piece->b : 0;
    return (mha_view){mhai_mpi_at(t, b, piece->heads.first, token) + column * e,
                      t->starts || t->batches > 1 ? t->sb / e : 0, t->per_group ? t->sh / e : 0,
                      t->sl / e};
}

static mha_out out_at(const mhai_mpi_tensor *t, const mhai_mpi_piece *piece, ptrdiff_t token,
                      ptrdiff_t column)
{
    const mha_view view = view_at(t, piece, token, column);
    return (mha_out){(void *)(uintptr_t)view.data, view.sb, view.sh, view.sl};
}

/* Where the piece begins, as tokens of the layouts. */
static ptrdiff_t first_query(const mhai_mpi_call *call, const mhai_mpi_piece *p)
{
    return p->queries.first + (p->b >= 0 ? (ptrdiff_t)call->options.q_starts[p->b] : 0);
}

static ptrdiff_t first_key(const mhai_mpi_call *call, const mhai_mpi_piece *p)
{
    return p->keys.first + (p->b >= 0 ? (ptrdiff_t)call->options.k_starts[p->b] : 0);
}

/* --------------------------------------------------------------- options ----- */

static mha_view mask_at(const mhai_mpi_call *call, const mhai_mpi_piece *p, int which)
{
    return view_at(&call->used[which], p, first_query(call, p), p->keys.first);
}

static void move_heads(mha_options *o, const mhai_mpi_call *call, const mhai_mpi_piece *p)
{
    const mha_shape *const s = &call->plan->shape;
    const ptrdiff_t h = p->heads.first * (s->H / s->G);
    o->alibi_slopes += o->alibi_slopes ? h : 0;
    o->sinks += o->sinks ? h : 0;
    o->head_modes += o->head_modes ? h : 0;
    o->head_means += o->head_means ? h * s->Dv : 0;
    if (o->gates)
        o->gates += h + (p->b >= 0 ? p->b * o->gates_sb : 0);
    o->dropout_first[0] += p->b >= 0 ? p->b : 0;
    o->dropout_first[1] += h;
    o->dropout_first[2] += p->queries.first;
    o->dropout_first[3] += p->keys.first;
}

static int64_t clamp(int64_t x, int64_t most)
{
    return x < 0 ? 0 : x > most ? most : x;
}

/* Offsets and lengths, counted from the piece. */
static void move_lists(mha_options *o, const mhai_mpi_call *call, const mhai_mpi_piece *p,
                       ptrdiff_t batches)
{
    const ptrdiff_t B = call->plan->shape.B;
    const ptrdiff_t rows = p->queries.last - p->queries.first, keys = p->keys.last - p->keys.first;
    int64_t *const offsets = call->lists, *const q = offsets + B, *const k = q + B;
    for (ptrdiff_t n = 0; call->lists && n < batches; n++) {
        const ptrdiff_t b = p->b >= 0 ? p->b : n;
        offsets[n] = mhai_mpi_offset(call, b) + p->queries.first - p->keys.first;
        if (o->q_lengths)
            q[n] = clamp(o->q_lengths[b] - p->queries.first, rows);
        if (o->k_lengths)
            k[n] = clamp(o->k_lengths[b] - p->keys.first, keys);
    }
    o->position = MHA_POSITION_OFFSET;
    o->offset = 0;
    o->offsets = call->lists ? offsets : NULL;
    o->q_lengths = o->q_lengths ? q : NULL;
    o->k_lengths = o->k_lengths ? k : NULL;
    if (p->b >= 0)
        o->q_starts = o->k_starts = NULL;
}

/* Arrays of a piece have no strides: these are of all its rows. */
static mha_statistics statistics_of(const mhai_mpi_call *call, const mhai_mpi_piece *p)
{
    mha_statistics s = call->statistics;
    const ptrdiff_t q = first_query(call, p);
    s.rows = out_at(&call->used[MHAI_MPI_ROW_STATISTICS], p, q, 0).data;
    s.top_keys = out_at(&call->used[MHAI_MPI_TOP_KEYS], p, q, 0).data;
    s.top_weights = out_at(&call->used[MHAI_MPI_TOP_WEIGHTS], p, q, 0).data;
    return s;
}

mha_options mhai_mpi_piece_options(const mhai_mpi_call *call, const mhai_mpi_piece *p)
{
    mha_options o = call->options;
    const mhai_mpi_tensor *const documents = &call->used[MHAI_MPI_DOCUMENTS];
    o.message = NULL;
    o.attend_mask = mask_at(call, p, MHAI_MPI_ATTEND);
    o.ignore_mask = mask_at(call, p, MHAI_MPI_IGNORE);
    o.add_mask = mask_at(call, p, MHAI_MPI_ADD);
    o.bias = mask_at(call, p, MHAI_MPI_BIAS);
    o.lse = out_at(&call->used[MHAI_MPI_LSE], p, first_query(call, p), 0);
    o.statistics = NULL;
    o.weights = (mha_out){0};
    if (call->weights_inside)
        o.weights = out_at(&call->used[MHAI_MPI_WEIGHTS], p, first_query(call, p), 0);
    if (documents->data) {
        const mha_view view = view_at(documents, p, first_query(call, p), 0);
        o.q_documents = view.data;
        o.q_documents_sb = view.sb;
    }
    if (o.k_documents)
        o.k_documents += first_key(call, p);
    move_heads(&o, call, p);
    move_lists(&o, call, p, p->b >= 0 ? 1 : call->plan->shape.B);
    return o;
}

/* --------------------------------------------------------------- running ----- */

mha_view mhai_mpi_piece_view(const mhai_mpi_call *call, const mhai_mpi_piece *p, int which)
{
    const bool key = which == MHAI_MPI_K || which == MHAI_MPI_V;
    return view_at(&call->used[which], p, key ? first_key(call, p) : first_query(call, p), 0);
}

mha_shape mhai_mpi_piece_shape(const mhai_mpi_call *call, const mhai_mpi_piece *p)
{
    mha_shape s = call->plan->shape;
    const ptrdiff_t nh = p->heads.last - p->heads.first, R = s.H / s.G;
    s.B = p->b >= 0 ? 1 : s.B;
    s.H = nh * R;
    s.G = nh;
    s.L = p->queries.last - p->queries.first;
    s.S = p->keys.last - p->keys.first;
    return s;
}

static void run_forward(mhai_mpi_call *call, const mhai_mpi_piece *p, const mha_shape *s,
                        const mha_options *o)
{
    mha_plan *plan;
    mha_status status = mha_plan_create(&plan, s, o);
    const size_t size = mha_plan_work_size(plan, call->threads);
    if (!call->work)
        call->work_size = size > call->work_size ? size : call->work_size;
    else if (!status)
        status = mha_plan_run(plan, mhai_mpi_piece_view(call, p, MHAI_MPI_Q),
                              mhai_mpi_piece_view(call, p, MHAI_MPI_K),
                              mhai_mpi_piece_view(call, p, MHAI_MPI_V),
                              out_at(&call->used[MHAI_MPI_O], p, first_query(call, p), 0), o,
                              call->work, call->work_size, call->pool);
    mha_plan_free(plan);
    if (status && !call->status)
        call->status = status;
}

/* A result of the heads of a piece. */
static mha_out shared_at(const mhai_mpi_call *call, const mhai_mpi_piece *p, int n)
{
    const mha_shape *const s = &call->plan->shape;
    const mhai_mpi_result_of_heads *const r = &call->shared[n];
    const ptrdiff_t e = (ptrdiff_t)sizeof(float);
    if (!p->shared || !r->data)
        return (mha_out){0};
    return (mha_out){r->data + p->heads.first * (s->H / s->G) * r->sh, r->sb / e, r->sh / e, 0};
}

static mha_out bias_at(const mhai_mpi_call *call, const mhai_mpi_piece *p, int rows, int keys)
{
    if (p->d_q && call->used[rows].data)
        return out_at(&call->used[rows], p, first_query(call, p), p->keys.first);
    return shared_at(call, p, keys);
}

static mha_gradients gradients_of(const mhai_mpi_call *call, const mhai_mpi_piece *p)
{
    const ptrdiff_t q = first_query(call, p), k = first_key(call, p);
    mha_gradients g = {.size = sizeof g,
                       .d_o = view_at(&call->used[MHAI_MPI_D_O], p, q, 0),
                       .d_o_type = call->gradients.d_o_type,
                       .d_lse = view_at(&call->used[MHAI_MPI_D_LSE], p, q, 0),
                       .d_bias = bias_at(call, p, MHAI_MPI_D_BIAS, MHAI_MPI_D_BIAS_KEYS),
                       .d_add_mask = bias_at(call, p, MHAI_MPI_D_ADD, MHAI_MPI_D_ADD_KEYS),
                       .d_sinks = shared_at(call, p, MHAI_MPI_D_SINKS).data,
                       .d_alibi_slopes = shared_at(call, p, MHAI_MPI_D_SLOPES).data,
                       .d_gates = shared_at(call, p, MHAI_MPI_D_GATES).data};
    if (p->d_q)
        g.d_q = out_at(&call->used[MHAI_MPI_D_Q], p, q, 0);
    if (p->d_kv) {
        g.d_k = out_at(&call->used[MHAI_MPI_D_K], p, k, 0);
        g.d_v = out_at(&call->used[MHAI_MPI_D_V], p, k, 0);
    }
    return g;
}

static void run_backward(mhai_mpi_call *call, const mhai_mpi_piece *p, const mha_shape *s,
                         const mha_options *o)
{
    const size_t size = mha_backward_work_size(s, o, call->threads);
    if (!call->work) {
        call->work_size = size > call->work_size ? size : call->work_size;
        return;
    }
    const mha_gradients g = gradients_of(call, p);
    const mha_status status = mha_attention_backward(
        s, mhai_mpi_piece_view(call, p, MHAI_MPI_Q), mhai_mpi_piece_view(call, p, MHAI_MPI_K),
        mhai_mpi_piece_view(call, p, MHAI_MPI_V), mhai_mpi_piece_view(call, p, MHAI_MPI_O), o, &g,
        call->work, call->work_size, call->pool);
    if (status && !call->status)
        call->status = status;
}

void mhai_mpi_piece_run(mhai_mpi_call *call, const mhai_mpi_piece *piece)
{
    if (piece->heads.first == piece->heads.last || call->status)
        return;
    const mha_shape s = mhai_mpi_piece_shape(call, piece);
    mha_options o = mhai_mpi_piece_options(call, piece);
    const mha_statistics statistics = statistics_of(call, piece);
    o.statistics = call->options.statistics ? &statistics : NULL;
    if (call->backward)
        run_backward(call, piece, &s, &o);
    else
        run_forward(call, piece, &s, &o);
}

void mhai_mpi_heads_run(mhai_mpi_call *call, mhai_mpi_heads heads)
{
    const mha_shape *const s = &call->plan->shape;
    const mhai_mpi_piece piece = {.heads = heads,
                                  .b = -1,
                                  .queries = {0, s->L},
                                  .keys = {0, s->S},
                                  .d_q = true,
                                  .d_kv = true,
                                  .shared = true};
    mhai_mpi_piece_run(call, &piece);
}

/* ---------------------------------------------------------------- slices ----- */

/* Rows that take about 20 ms: MPI is looked at after each slice. A slice packs its keys again, as
 * the operator does for every 1040 rows or so: shorter ones would cost more than one call. */
static ptrdiff_t slice_rows(const mhai_mpi_call *call, mhai_mpi_heads heads, ptrdiff_t rows_to_run)
{
    enum { TASK = 1040, UNIT = 16 };
    const mha_shape *const s = &call->plan->shape;
    const double each = 2.0 * (double)((call->packed ? 1 : s->B) * mhai_mpi_max(s->S, 1)) *
                        (double)(s->D + s->Dv + 1) * (double)(heads.last - heads.first + 1) *
                        (double)s->H / (double)s->G;
    const double wanted = 2e9 * (double)call->threads / each;
    const ptrdiff_t most = wanted > 1e9 ? (ptrdiff_t)1 << 30 : (ptrdiff_t)wanted;
    /* As even as possible, in units that fill the tiles of the operator, and in no more tasks of it
     * than without slices. */
    const ptrdiff_t longest = mhai_mpi_max(1, most / TASK) * TASK;
    const ptrdiff_t slices = mhai_mpi_max(1, (rows_to_run + longest - 1) / longest);
    return ((rows_to_run + slices - 1) / slices + UNIT - 1) / UNIT * UNIT;
}

/* One batch of packed sequences, or all batches: tokens [first, last) of the layout. */
static void run_batch(mhai_mpi_call *call, mhai_mpi_piece piece, ptrdiff_t first, ptrdiff_t last)
{
    const mha_options *const o = &call->options;
    const ptrdiff_t b = piece.b, slice = slice_rows(call, piece.heads, last - first);
    const ptrdiff_t origin = call->packed ? (ptrdiff_t)o->q_starts[b] : 0;
    const ptrdiff_t keys =
        call->packed ? (ptrdiff_t)(o->k_starts[b + 1] - o->k_starts[b]) : call->plan->shape.S;
    piece.keys = (mhai_mpi_tokens){0, keys};
    piece.d_q = true;
    for (ptrdiff_t t = first; t < last; t += slice) {
        piece.queries = (mhai_mpi_tokens){t - origin, mhai_mpi_min(last, t + slice) - origin};
        mhai_mpi_piece_run(call, &piece);
        if (call->work)
            mhai_mpi_progress(&call->exchange);
    }
}

void mhai_mpi_rows_run(mhai_mpi_call *call, mhai_mpi_heads heads, const mhai_mpi_rows *rows)
{
    const mha_options *const o = &call->options;
    for (ptrdiff_t n = 0; n < rows->runs; n++) {
        mhai_mpi_piece piece = {.heads = heads, .b = -1};
        const ptrdiff_t first = rows->run[n].first, last = rows->run[n].last;
        if (!call->packed)
            run_batch(call, piece, first, last);
        for (piece.b = 0; call->packed && piece.b < call->plan->shape.B; piece.b++)
            run_batch(call, piece, mhai_mpi_max(first, (ptrdiff_t)o->q_starts[piece.b]),
                      mhai_mpi_min(last, (ptrdiff_t)o->q_starts[piece.b + 1]));
    }
}
