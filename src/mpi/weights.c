/* SPDX-License-Identifier: MIT */
/*
 * Weights that the pieces of a run do not return: of chosen heads or rows, a mean of heads, of
 * packed sequences, and where other ranks compute the heads of this rank's rows. They are computed
 * after the run, as mha_attention_weights() does it: the keys of some heads come to every rank,
 * which has the queries and masks of its rows. A row of weights is longer than all queries and keys
 * that it takes, so these travel rather than weights.
 */
#include "mpi/mpi_parts.h"

#include <string.h>

enum { TAG_WEIGHTS = 8 };

static const mhai_mpi_tokens everything = {0, PTRDIFF_MAX};

typedef struct phase {
    mhai_mpi_call *call;
    const mha_mpi_plan *plan;
    int rank, ranks;
    ptrdiff_t R;          /* query heads of a key/value head */
    mhai_mpi_heads heads; /* key/value heads whose keys are there */
    int64_t *rows, *list; /* chosen rows and heads, counted from a piece and from `heads` */
    char *buffer, *sends, *receives;
} phase;

bool mhai_mpi_weights_wanted(const mhai_mpi_call *call)
{
    const mha_shape *const s = &call->plan->shape;
    return !call->backward && call->own[MHAI_MPI_WEIGHTS].data && !call->weights_inside &&
           s->B > 0 && s->D > 0 && s->S > 0;
}

/* ----------------------------------------------------------------- heads ----- */

static ptrdiff_t chosen_heads(const phase *p)
{
    const mha_options *const o = &p->call->options;
    return o->weights_heads ? o->weights_head_count : p->plan->shape.H;
}

/* Query head n of those that are chosen. */
static ptrdiff_t head_at(const phase *p, ptrdiff_t n)
{
    const int64_t *const list = p->call->options.weights_heads;
    return list ? (ptrdiff_t)list[n] : n;
}

static bool has_head(const phase *p, ptrdiff_t n)
{
    const ptrdiff_t g = head_at(p, n) / p->R;
    return g >= p->heads.first && g < p->heads.last;
}

static bool averages(const phase *p)
{
    return (p->call->options.flags & MHA_AVERAGE_WEIGHTS) != 0;
}

/* Key/value heads from the first to the last that is chosen. */
static mhai_mpi_heads range_of(const phase *p)
{
    mhai_mpi_heads range = {p->plan->shape.G, 0};
    for (ptrdiff_t n = 0; n < chosen_heads(p); n++) {
        range.first = mhai_mpi_min(range.first, head_at(p, n) / p->R);
        range.last = mhai_mpi_max(range.last, head_at(p, n) / p->R + 1);
    }
    return range;
}

/* The next heads of which some are chosen: a few, but all of them for a mean. */
static bool next_heads(phase *p)
{
    const mhai_mpi_heads range = range_of(p);
    do {
        p->heads.first = mhai_mpi_max(range.first, p->heads.last);
        p->heads.last =
            averages(p) ? range.last : mhai_mpi_min(range.last, p->heads.first + p->plan->heads);
        for (ptrdiff_t n = 0; n < chosen_heads(p); n++)
            if (has_head(p, n))
                return true;
    } while (p->heads.first < range.last);
    return false;
}

/* The most heads at once. */
static ptrdiff_t most_heads(const phase *p)
{
    const mhai_mpi_heads range = range_of(p);
    const ptrdiff_t all = mhai_mpi_max(0, range.last - range.first);
    return averages(p) ? all : mhai_mpi_min(all, p->plan->heads);
}

/* ------------------------------------------------------------------ keys ----- */

static const mhai_mpi_tensor *own_keys(const phase *p)
{
    return &p->call->own[MHAI_MPI_K];
}

static size_t bytes_of(const phase *p, int rank, mhai_mpi_heads heads)
{
    return mhai_mpi_parcel_bytes(own_keys(p), &p->plan->keys.ranks[rank], heads, everything);
}

static void open_keys(const phase *p)
{
    if (p->ranks > 1)
        p->call->used[MHAI_MPI_K] =
            mhai_mpi_packed(own_keys(p), &p->plan->keys.all, p->heads, everything, p->buffer);
}

/* All ranks get the keys of these heads. */
static mha_status gather_keys(const phase *p)
{
    mhai_mpi_exchange *const x = &p->call->exchange;
    const mhai_mpi_tensor *const own = own_keys(p), *const all = &p->call->used[MHAI_MPI_K];
    const mhai_mpi_rows *const rows = p->plan->keys.ranks;
    char *at = p->receives;
    for (int n = 0; n < p->ranks; n++) {
        const size_t bytes = n == p->rank ? 0 : bytes_of(p, n, p->heads);
        mhai_mpi_receive(x, at, bytes, n, TAG_WEIGHTS);
        at += bytes;
    }
    const mhai_mpi_tensor packed =
        mhai_mpi_packed(own, &rows[p->rank], p->heads, everything, p->sends);
    mhai_mpi_copy(&packed, own, &rows[p->rank], p->heads, everything);
    mhai_mpi_copy(all, own, &rows[p->rank], p->heads, everything);
    for (int n = 1; n < p->ranks; n++)
        mhai_mpi_send(x, p->sends, bytes_of(p, p->rank, p->heads), (p->rank + n) % p->ranks,
                      TAG_WEIGHTS);
    if (mhai_mpi_finish(x))
        return x->status;
    at = p->receives;
    for (int n = 0; n < p->ranks; n++) {
        if (n == p->rank)
            continue;
        const mhai_mpi_tensor parcel = mhai_mpi_packed(own, &rows[n], p->heads, everything, at);
        mhai_mpi_copy(all, &parcel, &rows[n], p->heads, everything);
        at += bytes_of(p, n, p->heads);
    }
    return MHA_OK;
}

/* ------------------------------------------------------------------ rows ----- */

/* Rows of this rank that lie in one run of it: where their weights are. */
typedef struct segment {
    mhai_mpi_piece piece;
    const int64_t *rows; /* counted from the piece; NULL: all */
    ptrdiff_t count, to;
} segment;

static ptrdiff_t sequence_rows(const mhai_mpi_call *call, ptrdiff_t b)
{
    const mha_options *const o = &call->options;
    return call->packed ? (ptrdiff_t)(o->q_starts[b + 1] - o->q_starts[b]) : call->plan->shape.L;
}

ptrdiff_t mhai_mpi_chosen_run(const mhai_mpi_call *call, const mhai_mpi_rows *own, ptrdiff_t b,
                              int64_t row)
{
    const int64_t token = row + (call->packed ? call->options.q_starts[b] : 0);
    if (row >= sequence_rows(call, b))
        return -1;
    for (ptrdiff_t n = 0; n < own->runs; n++)
        if (token >= own->run[n].first && token < own->run[n].last)
            return n;
    return -1;
}

/* Keys past those of a packed sequence: the columns are those of the longest. */
static void fill_rest(const phase *p, const segment *part, mha_out to, ptrdiff_t heads)
{
    const mha_options *const o = &p->call->options;
    const mhai_mpi_tensor *const t = &p->call->own[MHAI_MPI_WEIGHTS];
    const size_t keys = (size_t)(part->piece.keys.last - part->piece.keys.first);
    const uint64_t minus_infinity = o->weights_type == MHA_F32    ? UINT64_C(0xff800000)
                                    : o->weights_type == MHA_F16  ? UINT64_C(0xfc00)
                                    : o->weights_type == MHA_BF16 ? UINT64_C(0xff80)
                                                                  : UINT64_C(0xfff0000000000000);
    const uint64_t bits = o->weights_mode == MHA_WEIGHTS_BIAS ? minus_infinity : 0;
    const uint32_t word = (uint32_t)bits;
    const uint16_t half = (uint16_t)bits;
    const void *const element = t->element == 8   ? (const void *)&bits
                                : t->element == 4 ? (const void *)&word
                                                  : (const void *)&half;
    for (ptrdiff_t n = 0; n < heads * part->count; n++) {
        const ptrdiff_t i = part->rows ? (ptrdiff_t)part->rows[n % part->count] : n % part->count;
        char *const row = (char *)to.data + n / part->count * t->sh + n % part->count * t->sl;
        if (o->q_lengths && part->piece.queries.first + i >= o->q_lengths[part->piece.b])
            continue;
        for (size_t c = keys; c < (size_t)p->plan->shape.S; c++)
            memcpy(row + c * t->element, element, t->element);
    }
}

/* Weights of chosen heads [first, first + count), which have a place each, or one for their mean.
 */
static void run_heads(const phase *p, const segment *part, ptrdiff_t first, ptrdiff_t count)
{
    mhai_mpi_call *const call = p->call;
    const mhai_mpi_tensor *const t = &call->own[MHAI_MPI_WEIGHTS];
    const ptrdiff_t b = part->piece.b, e = (ptrdiff_t)t->element;
    const mha_shape s = mhai_mpi_piece_shape(call, &part->piece);
    mha_options o = mhai_mpi_piece_options(call, &part->piece);
    o.lse = (mha_out){0};
    o.weights = (mha_out){t->data + (b >= 0 ? b * t->sb : 0) + (averages(p) ? 0 : first * t->sh) +
                              part->to * t->sl,
                          t->sb / e, t->sh / e, t->sl / e};
    for (ptrdiff_t n = 0; p->list && n < count; n++)
        p->list[n] = head_at(p, first + n) - p->heads.first * p->R;
    o.weights_heads = call->work ? p->list : NULL;
    o.weights_head_count = count;
    o.weights_rows = part->rows;
    o.weights_row_count = part->count;
    if (!call->work) {
        const size_t size = mha_attention_weights_work_size(&s, &o, call->threads);
        call->work_size = size > call->work_size ? size : call->work_size;
        return;
    }
    const mha_status status =
        mha_attention_weights(&s, mhai_mpi_piece_view(call, &part->piece, MHAI_MPI_Q),
                              mhai_mpi_piece_view(call, &part->piece, MHAI_MPI_K), &o, call->work,
                              call->work_size, call->pool);
    if (status && !call->status)
        call->status = status;
    if (!status && b >= 0)
        fill_rest(p, part, o.weights, averages(p) ? 1 : count);
}

/* Chosen heads that follow each other in the list and have their keys here are one call. */
static void run_segment(const phase *p, const segment *part)
{
    const ptrdiff_t all = chosen_heads(p);
    if (part->count == 0)
        return;
    if (averages(p)) {
        run_heads(p, part, 0, all);
        return;
    }
    for (ptrdiff_t first = 0, n = 0; n < all; first = ++n) {
        while (n < all && has_head(p, n))
            n++;
        if (n > first)
            run_heads(p, part, first, n - first);
    }
}

static segment segment_of(const phase *p, const mhai_mpi_run *run, ptrdiff_t b)
{
    const mha_options *const o = &p->call->options;
    segment part = {.piece = {.heads = p->heads, .b = p->call->packed ? b : -1}};
    const ptrdiff_t origin = p->call->packed ? (ptrdiff_t)o->q_starts[b] : 0;
    const ptrdiff_t keys =
        p->call->packed ? (ptrdiff_t)(o->k_starts[b + 1] - o->k_starts[b]) : p->plan->shape.S;
    part.piece.queries =
        (mhai_mpi_tokens){mhai_mpi_max(run->first - origin, 0),
                          mhai_mpi_min(run->last - origin, sequence_rows(p->call, b))};
    part.piece.keys = (mhai_mpi_tokens){0, keys};
    return part;
}

/* All rows of this rank, of a sequence or of all batches. */
static void run_rows(const phase *p, const mhai_mpi_rows *own, ptrdiff_t b)
{
    ptrdiff_t to = 0;
    for (ptrdiff_t n = 0; n < own->runs; n++) {
        segment part = segment_of(p, &own->run[n], b);
        part.count = mhai_mpi_max(0, part.piece.queries.last - part.piece.queries.first);
        part.to = to;
        run_segment(p, &part);
        to += part.count;
    }
}

/* The chosen ones of them; those that follow each other and lie in one run are one call. */
static void run_chosen(const phase *p, const mhai_mpi_rows *own, ptrdiff_t b)
{
    const mha_options *const o = &p->call->options;
    segment part = {0};
    ptrdiff_t run = -1, to = 0;
    for (ptrdiff_t n = 0; n < o->weights_row_count; n++) {
        const ptrdiff_t next = mhai_mpi_chosen_run(p->call, own, b, o->weights_rows[n]);
        if (next < 0)
            continue;
        if (next != run) {
            run_segment(p, &part);
            run = next;
            part = segment_of(p, &own->run[run], b);
            part.rows = p->rows;
            part.to = to;
        }
        if (p->rows)
            p->rows[part.count] = o->weights_rows[n] - part.piece.queries.first;
        part.count++;
        to++;
    }
    run_segment(p, &part);
}

static void compute(const phase *p)
{
    const mhai_mpi_rows *const own = &p->plan->queries.ranks[p->rank];
    for (ptrdiff_t b = 0; b < (p->call->packed ? p->plan->shape.B : 1); b++)
        if (p->call->options.weights_rows)
            run_chosen(p, own, b);
        else
            run_rows(p, own, b);
}

/* --------------------------------------------------------------- running ----- */

static phase begin(mhai_mpi_call *call)
{
    const mha_mpi_plan *const plan = call->plan;
    return (phase){.call = call,
                   .plan = plan,
                   .rank = plan->group->rank,
                   .ranks = plan->group->ranks,
                   .R = plan->shape.H / plan->shape.G};
}

static void carve(phase *p, mhai_mpi_work *work)
{
    const mhai_mpi_heads most = {0, most_heads(p)};
    const size_t sent = bytes_of(p, p->rank, most);
    const size_t all = mhai_mpi_parcel_bytes(own_keys(p), &p->plan->keys.all, most, everything);
    size_t messages = (size_t)(p->ranks - 1) * mhai_mpi_messages(p->plan->group, sent);
    for (int n = 0; n < p->ranks; n++)
        messages += mhai_mpi_messages(p->plan->group, bytes_of(p, n, most));
    const mha_options *const o = &p->call->options;
    p->list = mhai_mpi_take(work, sizeof(int64_t) * (size_t)chosen_heads(p));
    p->rows =
        mhai_mpi_take(work, o->weights_rows ? sizeof(int64_t) * (size_t)o->weights_row_count : 0);
    if (p->ranks == 1)
        return;
    p->buffer = mhai_mpi_take(work, all);
    p->sends = mhai_mpi_take(work, sent);
    p->receives = mhai_mpi_take(work, all - sent);
    p->call->exchange.requests = mhai_mpi_take(work, messages * sizeof(MPI_Request));
    p->buffer = p->buffer ? p->buffer : own_keys(p)->data;
}

mha_status mhai_mpi_weights(mhai_mpi_call *call, mhai_mpi_work *work, bool runs)
{
    phase p = begin(call);
    memcpy(call->used, call->own, sizeof call->used);
    carve(&p, work);
    while (next_heads(&p)) {
        open_keys(&p);
        if (runs && p.ranks > 1 && gather_keys(&p))
            return call->exchange.status;
        compute(&p);
    }
    return call->status;
}

uint64_t mhai_mpi_weights_sent(const mhai_mpi_call *call)
{
    mhai_mpi_call copy = *call;
    phase p = begin(&copy);
    uint64_t bytes = 0;
    while (next_heads(&p))
        bytes += (uint64_t)bytes_of(&p, p.rank, p.heads) * (uint64_t)(p.ranks - 1);
    return bytes;
}
