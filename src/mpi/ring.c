/* SPDX-License-Identifier: MIT */
/*
 * RING: chunks of tokens go round, and every rank computes its own rows with each of them. In step
 * n a rank has the chunk n after its first one, so that all links are busy; those who have its
 * tokens send them. Results of chunks are joined along a fixed tree (tree.c), so they do not depend
 * on the number of ranks or the layout:
 *
 *      run        keys go round; outputs are merged by their log-sum-exps
 *      backward   keys go round for d_q; then queries, with outputs and their gradients, for d_k
 * and d_v; both are sums
 */
#include "mpi/mpi_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_ROUND = 4, MOST_OUTPUTS = 2 };

static const mhai_mpi_tokens everything = {0, PTRDIFF_MAX};

/* One side goes round. */
typedef struct ring {
    mhai_mpi_call *call;
    mha_mpi_plan plan; /* the caller's, with outputs in f32 */
    int rank, ranks;
    bool queries; /* which side: queries, or keys */
    const mhai_mpi_side *side;
    ptrdiff_t chunks;
    int in[MHAI_MPI_OPERANDS], in_count;
    int out[MOST_OUTPUTS], out_count; /* what a chunk adds to, f32 */
    mhai_mpi_tensor node[MOST_OUTPUTS][MHAI_MPI_SLOTS];
    mhai_mpi_tree tree;
    char *sends, *receives;
    char *buffers[MHAI_MPI_OPERANDS];
    bool wants_sinks;
    float *sinks[MHAI_MPI_SLOTS], *piece_sinks; /* gradients, [H] */
} ring;

static mhai_mpi_heads all_heads(const ring *r)
{
    return (mhai_mpi_heads){0, r->plan.shape.G};
}

/* ------------------------------------------------------------- the order ----- */

static ptrdiff_t chunk_of(const ring *r, int rank, ptrdiff_t step)
{
    return ((ptrdiff_t)rank * r->chunks / r->ranks + step) % r->chunks;
}

static mhai_mpi_tokens window_of(const ring *r, int rank, ptrdiff_t step)
{
    const ptrdiff_t first = chunk_of(r, rank, step) * r->plan.chunk;
    return (mhai_mpi_tokens){first, mhai_mpi_min(r->side->tokens, first + r->plan.chunk)};
}

/* What `from` sends to `to` in a step. */
static size_t bytes_between(const ring *r, int from, int to, ptrdiff_t step)
{
    size_t bytes = 0;
    for (int n = 0; from != to && n < r->in_count; n++)
        bytes += mhai_mpi_parcel_bytes(&r->call->own[r->in[n]], &r->side->ranks[from], all_heads(r),
                                       window_of(r, to, step));
    return bytes;
}

/* -------------------------------------------------------------- exchange ----- */

static char *move_window(const ring *r, int owner, mhai_mpi_tokens window,
                         const mhai_mpi_tensor *tensors, char *at, bool packing)
{
    const mhai_mpi_rows *const rows = &r->side->ranks[owner];
    for (int n = 0; n < r->in_count; n++) {
        const mhai_mpi_tensor *const t = &tensors[r->in[n]];
        const mhai_mpi_tensor packed = mhai_mpi_packed(t, rows, all_heads(r), window, at);
        if (packing)
            mhai_mpi_copy(&packed, t, rows, all_heads(r), window);
        else
            mhai_mpi_copy(t, &packed, rows, all_heads(r), window);
        at += mhai_mpi_parcel_bytes(t, rows, all_heads(r), window);
    }
    return at;
}

static void post(ring *r, ptrdiff_t step)
{
    char *at = r->receives;
    for (int n = 1; n < r->ranks; n++) {
        const int from = (r->rank + n) % r->ranks;
        const size_t bytes = bytes_between(r, from, r->rank, step);
        mhai_mpi_receive(&r->call->exchange, at, bytes, from, TAG_ROUND);
        at += bytes;
    }
    at = r->sends;
    for (int n = 1; n < r->ranks; n++) {
        const int to = (r->rank + r->ranks - n) % r->ranks;
        const size_t bytes = bytes_between(r, r->rank, to, step);
        move_window(r, r->rank, window_of(r, to, step), r->call->own, at, true);
        mhai_mpi_send(&r->call->exchange, at, bytes, to, TAG_ROUND);
        at += bytes;
    }
}

/* The tensors of the round become this chunk. */
static void open_window(ring *r, ptrdiff_t step)
{
    const mhai_mpi_tokens window = window_of(r, r->rank, step);
    for (int n = 0; r->ranks > 1 && n < r->in_count; n++)
        r->call->used[r->in[n]] = mhai_mpi_packed(&r->call->own[r->in[n]], &r->side->all,
                                                  all_heads(r), window, r->buffers[r->in[n]]);
}

static void unpack(const ring *r, ptrdiff_t step)
{
    const mhai_mpi_tokens window = window_of(r, r->rank, step);
    char *at = r->receives;
    for (int n = 1; n < r->ranks; n++)
        at = move_window(r, (r->rank + n) % r->ranks, window, r->call->used, at, false);
    for (int n = 0; n < r->in_count; n++) {
        const mhai_mpi_tensor *const t = &r->call->own[r->in[n]];
        mhai_mpi_copy(&r->call->used[r->in[n]], t, &r->side->ranks[r->rank], all_heads(r), window);
    }
}

/* --------------------------------------------------------------- joining ----- */

static size_t floats_of(const ring *r, int n)
{
    const mhai_mpi_tensor *const t = &r->node[n][0];
    return mhai_mpi_parcel_bytes(t, t->rows, all_heads(r), everything) / sizeof(float);
}

/* Outputs with log-sum-exps. */
static void merge(void *context, int left, int right)
{
    ring *const r = context;
    const mha_shape *const s = &r->plan.shape;
    const mhai_mpi_tensor *const o = &r->node[0][left], *const lse = &r->node[1][left];
    const ptrdiff_t rows = o->rows->rows;
    const mha_shape shape = {.B = o->batches, .H = s->H, .L = rows, .D = s->Dv, .Dv = s->Dv};
    const mha_status status = mha_merge_pooled(
        &shape, mha_out_bhld(o->data, s->H, rows, s->Dv), mha_out_bhld(lse->data, s->H, rows, 1),
        mha_view_bhld(r->node[0][right].data, s->H, rows, s->Dv),
        mha_view_bhld(r->node[1][right].data, s->H, rows, 1), r->call->pool);
    if (status && !r->call->status)
        r->call->status = status;
}

static void add(void *context, int left, int right)
{
    const ring *const r = context;
    for (int n = 0; n < r->out_count; n++) {
        float *const to = (float *)(void *)r->node[n][left].data;
        const float *const from = (const float *)(const void *)r->node[n][right].data;
        for (size_t c = 0; c < floats_of(r, n); c++)
            to[c] += from[c];
    }
    for (ptrdiff_t h = 0; r->sinks[left] && h < r->plan.shape.H; h++)
        r->sinks[left][h] += r->sinks[right][h];
}

/* -------------------------------------------------------------- computing ----- */

/* Rows that the operator does not write: in a run those past a query length, of which nothing is
 * known; of packed sequences those that see nothing of the chunk. */
static void clear_node(const ring *r, int slot)
{
    for (int n = 0; r->call->backward && r->call->packed && n < r->out_count; n++)
        memset(r->node[n][slot].data, 0, sizeof(float) * floats_of(r, n));
    if (r->call->backward)
        return;
    float *const o = (float *)(void *)r->node[0][slot].data;
    float *const lse = (float *)(void *)r->node[1][slot].data;
    for (size_t n = 0; n < floats_of(r, 0); n++)
        o[n] = 0.0f;
    for (size_t n = 0; n < floats_of(r, 1); n++)
        lse[n] = -INFINITY;
}

/* Tokens of a sequence among these, counted from its first. */
static mhai_mpi_tokens within(mhai_mpi_tokens tokens, const int64_t *starts, ptrdiff_t b)
{
    const ptrdiff_t first = mhai_mpi_max(tokens.first, (ptrdiff_t)starts[b]);
    const ptrdiff_t last = mhai_mpi_min(tokens.last, (ptrdiff_t)starts[b + 1]);
    return (mhai_mpi_tokens){first - (ptrdiff_t)starts[b], last - (ptrdiff_t)starts[b]};
}

/* Gradients of sinks need the rows of the chunk, which every rank has, but no keys: batches, or
 * sequences, in ascending order. */
static void compute_sinks(ring *r, mhai_mpi_tokens window, int slot)
{
    mhai_mpi_call *const call = r->call;
    const mhai_mpi_result_of_heads wanted = call->shared[MHAI_MPI_D_SINKS];
    const ptrdiff_t H = r->plan.shape.H;
    mhai_mpi_piece piece = {.heads = all_heads(r), .b = -1, .queries = window, .shared = true};
    if (!r->wants_sinks)
        return;
    if (call->work)
        memset(r->sinks[slot], 0, sizeof(float) * (size_t)H);
    call->shared[MHAI_MPI_D_SINKS].data = (char *)r->piece_sinks;
    for (ptrdiff_t b = 0; b < (call->packed ? r->plan.shape.B : 1); b++) {
        if (call->packed) {
            piece.b = b;
            piece.queries = within(window, call->options.q_starts, b);
        }
        if (piece.queries.first >= piece.queries.last)
            continue;
        mhai_mpi_piece_run(call, &piece);
        for (ptrdiff_t h = 0; call->work && h < H; h++)
            r->sinks[slot][h] += r->piece_sinks[h];
    }
    call->shared[MHAI_MPI_D_SINKS] = wanted;
}

/* A piece of all batches, or of each packed sequence that has both rows and keys in it. */
static void run_piece(mhai_mpi_call *call, mhai_mpi_piece piece)
{
    const mha_options *const o = &call->options;
    const mhai_mpi_tokens queries = piece.queries, keys = piece.keys;
    if (!call->packed)
        mhai_mpi_piece_run(call, &piece);
    for (piece.b = 0; call->packed && piece.b < call->plan->shape.B; piece.b++) {
        piece.queries = within(queries, o->q_starts, piece.b);
        piece.keys = within(keys, o->k_starts, piece.b);
        if (piece.queries.first < piece.queries.last && piece.keys.first < piece.keys.last)
            mhai_mpi_piece_run(call, &piece);
    }
}

/* This rank's rows, or keys, with the chunk. */
static void compute(ring *r, mhai_mpi_tokens window, int slot)
{
    mhai_mpi_call *const call = r->call;
    const bool keys_stay = r->queries;
    const mhai_mpi_side *const own = keys_stay ? &r->plan.keys : &r->plan.queries;
    const mhai_mpi_rows *const rows = &own->ranks[r->rank];
    enum { SLICE = 1024 };
    for (int n = 0; n < r->out_count; n++)
        call->used[r->out[n]] = r->node[n][slot];
    for (ptrdiff_t k = 0; k < rows->runs; k++)
        for (ptrdiff_t t = rows->run[k].first; t < rows->run[k].last; t += SLICE) {
            const mhai_mpi_tokens mine = {t, mhai_mpi_min(rows->run[k].last, t + SLICE)};
            const mhai_mpi_piece piece = {.heads = all_heads(r),
                                          .b = -1,
                                          .queries = keys_stay ? window : mine,
                                          .keys = keys_stay ? mine : window,
                                          .d_q = !keys_stay,
                                          .d_kv = keys_stay};
            run_piece(call, piece);
            if (call->work)
                mhai_mpi_progress(&call->exchange);
        }
    compute_sinks(r, window, slot);
}

/* ---------------------------------------------------------------- carving ----- */

/* How many nodes are held at once. */
static int count_slots(const ring *r)
{
    mhai_mpi_tree tree = {.leaves = r->chunks};
    for (ptrdiff_t step = 0; step < r->chunks; step++)
        mhai_mpi_tree_close(&tree, mhai_mpi_tree_open(&tree), chunk_of(r, r->rank, step), NULL,
                            NULL);
    return tree.most;
}

static void carve_nodes(ring *r, mhai_mpi_work *work)
{
    const int slots = count_slots(r);
    for (int slot = 0; slot < slots; slot++)
        for (int n = 0; n < r->out_count; n++) {
            const mhai_mpi_tensor *const like = &r->call->own[r->out[n]];
            const mhai_mpi_rows *const rows = &like->side->ranks[r->rank];
            char *const data =
                mhai_mpi_take(work, mhai_mpi_parcel_bytes(like, rows, all_heads(r), everything));
            r->node[n][slot] = mhai_mpi_packed(like, rows, all_heads(r), everything,
                                               data ? data : (char *)r->call);
        }
}

/* Where only workspace is counted, gradients are anywhere. */
static void carve_sinks(ring *r, mhai_mpi_work *work)
{
    const int slots = r->wants_sinks ? count_slots(r) : 0;
    const size_t bytes = sizeof(float) * (size_t)r->plan.shape.H;
    for (int slot = 0; slot < slots; slot++)
        r->sinks[slot] = mhai_mpi_take(work, bytes);
    float *const piece = r->wants_sinks ? mhai_mpi_take(work, bytes) : NULL;
    r->piece_sinks = piece ? piece : (float *)(void *)r->call->shared[MHAI_MPI_D_SINKS].data;
}

static void carve_parcels(ring *r, mhai_mpi_work *work)
{
    size_t sent = 0, received = 0, messages = 0;
    for (ptrdiff_t step = 0; r->ranks > 1 && step < r->chunks; step++) {
        size_t out = 0, in = 0, count = 0;
        for (int rank = 0; rank < r->ranks; rank++) {
            const size_t to = bytes_between(r, r->rank, rank, step);
            const size_t from = bytes_between(r, rank, r->rank, step);
            out += to;
            in += from;
            count += mhai_mpi_messages(r->plan.group, to) + mhai_mpi_messages(r->plan.group, from);
        }
        sent = out > sent ? out : sent;
        received = in > received ? in : received;
        messages = count > messages ? count : messages;
    }
    r->sends = mhai_mpi_take(work, sent);
    r->receives = mhai_mpi_take(work, received);
    r->call->exchange.requests = mhai_mpi_take(work, messages * sizeof(MPI_Request));
    for (int n = 0; r->ranks > 1 && n < r->in_count; n++) {
        const mhai_mpi_tokens most = {0, mhai_mpi_min(r->plan.chunk, r->side->tokens)};
        const mhai_mpi_tensor *const t = &r->call->own[r->in[n]];
        char *const data =
            mhai_mpi_take(work, mhai_mpi_parcel_bytes(t, &r->side->all, all_heads(r), most));
        r->buffers[r->in[n]] = data ? data : t->data;
    }
}

/* --------------------------------------------------------------- rounds ----- */

/* One round, or only its workspace. The result is in the slot that is returned. */
static int go_round(ring *r, mhai_mpi_work *work, bool runs)
{
    mhai_mpi_call *const call = r->call;
    int slot = 0;
    carve_parcels(r, work);
    carve_nodes(r, work);
    carve_sinks(r, work);
    r->tree = (mhai_mpi_tree){.leaves = r->chunks};
    if (runs && r->ranks > 1)
        post(r, 0);
    for (ptrdiff_t step = 0; step < r->chunks; step++) {
        open_window(r, step);
        slot = mhai_mpi_tree_open(&r->tree);
        if (runs && mhai_mpi_finish(&call->exchange))
            return slot;
        if (runs && r->ranks > 1)
            unpack(r, step);
        if (runs && r->ranks > 1 && step + 1 < r->chunks)
            post(r, step + 1);
        if (runs)
            clear_node(r, slot);
        compute(r, window_of(r, r->rank, step), slot);
        slot = mhai_mpi_tree_close(&r->tree, slot, chunk_of(r, r->rank, step),
                                   !runs            ? NULL
                                   : call->backward ? add
                                                    : merge,
                                   r);
    }
    return slot;
}

static ring begin(mhai_mpi_call *call, bool queries)
{
    const mha_mpi_plan *const plan = call->plan;
    ring r = {.call = call,
              .plan = *plan,
              .rank = plan->group->rank,
              .ranks = plan->group->ranks,
              .queries = queries,
              .side = queries ? &plan->queries : &plan->keys};
    r.plan.shape.o_type = call->backward ? plan->shape.o_type : MHA_F32;
    /* Without tokens there is still one chunk, so that outputs are written. */
    r.chunks = mhai_mpi_max(1, (r.side->tokens + plan->chunk - 1) / plan->chunk);
    for (int n = 0; n < MHAI_MPI_D_Q; n++) {
        const bool of_keys = n == MHAI_MPI_K || n == MHAI_MPI_V;
        const bool output = !call->backward && (n == MHAI_MPI_O || n == MHAI_MPI_LSE);
        if (call->own[n].data && of_keys != queries && !output &&
            (call->own[n].sl != 0 || n < MHAI_MPI_ATTEND))
            r.in[r.in_count++] = n;
    }
    memcpy(call->used, call->own, sizeof call->used);
    return r;
}

/* ------------------------------------------------------------------- run ----- */

void mhai_mpi_add_sink(const float *sink, float *o, ptrdiff_t width, float *lse)
{
    if (!sink || *lse == -INFINITY)
        return;
    const double old = (double)*lse, m = (double)*sink > old ? (double)*sink : old;
    const double sum = exp(old - m) + exp((double)*sink - m);
    const float share = (float)(exp(old - m) / sum);
    *lse = (float)(m + log(sum));
    for (ptrdiff_t c = 0; c < width; c++)
        o[c] *= share;
}

/* Heads that are not normal have no sink. */
static void add_sinks(const ring *r, int slot)
{
    const mha_shape *const s = &r->plan.shape;
    const float *const sinks = r->call->options.sinks;
    const uint8_t *const modes = r->call->options.head_modes;
    const ptrdiff_t rows = r->node[0][slot].rows->rows;
    float *const o = (float *)(void *)r->node[0][slot].data;
    float *const lse = (float *)(void *)r->node[1][slot].data;
    for (ptrdiff_t n = 0; sinks && n < r->node[0][slot].batches * s->H * rows; n++) {
        const ptrdiff_t h = n / rows % s->H;
        if (!modes || modes[h] == MHA_HEAD_NORMAL)
            mhai_mpi_add_sink(&sinks[h], o + n * s->Dv, s->Dv, &lse[n]);
    }
}

/* Is this token within the query length of its batch or sequence? */
static bool is_computed(const mhai_mpi_call *call, ptrdiff_t b, ptrdiff_t token)
{
    const mha_options *const o = &call->options;
    if (!o->q_lengths)
        return true;
    while (call->packed && token >= o->q_starts[b + 1])
        b++;
    return token - (call->packed ? o->q_starts[b] : 0) < o->q_lengths[b];
}

/* To the caller's type, rows that are computed only. */
static void store_output(const ring *r, int slot, mha_dtype type)
{
    const mha_shape *const s = &r->plan.shape;
    const mhai_mpi_call *const call = r->call;
    const mhai_mpi_tensor *const to = &call->own[MHAI_MPI_O], *const sum = &call->own[MHAI_MPI_LSE];
    const mhai_mpi_rows *const rows = r->node[0][slot].rows;
    for (ptrdiff_t n = 0; n < r->node[0][slot].batches * s->H * rows->rows; n++) {
        const ptrdiff_t i = n % rows->rows, h = n / rows->rows % s->H, b = n / rows->rows / s->H;
        ptrdiff_t run = 0;
        while (run + 1 < rows->runs && rows->run[run + 1].row <= i)
            run++;
        const ptrdiff_t token = rows->run[run].first + i - rows->run[run].row;
        if (!is_computed(call, b, token))
            continue;
        mhai_mpi_narrow(type, (const float *)(const void *)r->node[0][slot].data + n * s->Dv, s->Dv,
                        to->data + b * to->sb + h * to->sh + i * to->sl);
        if (call->wants_lse)
            memcpy(sum->data + b * sum->sb + h * sum->sh + i * sum->sl,
                   r->node[1][slot].data + n * (ptrdiff_t)sizeof(float), sizeof(float));
    }
}

/* Partial outputs are f32, whatever the caller's are, and have a log-sum-exp. */
static void run_forward(mhai_mpi_call *call, mhai_mpi_work *work, bool runs)
{
    const mha_mpi_plan *const plan = call->plan;
    const mhai_mpi_tensor wanted[] = {call->own[MHAI_MPI_O], call->own[MHAI_MPI_LSE]};
    const float *const sinks = call->options.sinks;
    mhai_mpi_tensor *const o = &call->own[MHAI_MPI_O], *const lse = &call->own[MHAI_MPI_LSE];
    o->element = sizeof(float);
    o->bytes = sizeof(float) * (size_t)plan->shape.Dv;
    call->wants_lse = lse->data != NULL;
    *lse = *o;
    lse->bytes = sizeof(float);
    ring r = begin(call, false);
    r.out[0] = MHAI_MPI_O;
    r.out[1] = MHAI_MPI_LSE;
    r.out_count = 2;
    call->plan = &r.plan;
    call->options.sinks = NULL;
    const int slot = go_round(&r, work, runs);
    call->options.sinks = sinks;
    call->plan = plan;
    call->own[MHAI_MPI_O] = wanted[0];
    call->own[MHAI_MPI_LSE] = wanted[1];
    if (!runs || call->status || call->exchange.status || r.node[0][0].rows->rows == 0)
        return;
    add_sinks(&r, slot);
    store_output(&r, slot, plan->shape.o_type);
}

/* -------------------------------------------------------------- backward ----- */

/* Gradients of biases and masks of packed sequences: chunks do not reach the columns past the keys
 * of a sequence. */
static void clear_biases(const mhai_mpi_call *call)
{
    for (int n = MHAI_MPI_D_ADD; call->packed && n <= MHAI_MPI_D_BIAS; n++) {
        const mhai_mpi_tensor *const t = &call->own[n];
        for (ptrdiff_t b = 0; t->data && b < t->sequences; b++) {
            const int64_t *const s = call->options.q_starts + b;
            const mhai_mpi_tokens tokens = {(ptrdiff_t)s[0], (ptrdiff_t)s[1]};
            const ptrdiff_t rows = mhai_mpi_count_rows(t->rows, tokens);
            char *const at = mhai_mpi_at(t, b, 0, tokens.first);
            for (ptrdiff_t k = 0; k < call->plan->shape.H * rows; k++)
                memset(at + k / rows * t->sh + k % rows * t->sl, 0, t->bytes);
        }
    }
}

static void run_gradients(mhai_mpi_call *call, bool queries, mhai_mpi_work *work, bool runs)
{
    static const int outputs[][2] = {{MHAI_MPI_D_Q, MHAI_MPI_D_Q}, {MHAI_MPI_D_K, MHAI_MPI_D_V}};
    ring r = begin(call, queries);
    for (int n = 0; n < (queries ? 2 : 1); n++)
        if (call->own[outputs[queries][n]].data)
            r.out[r.out_count++] = outputs[queries][n];
    /* Gradients of biases have rows and columns of their own, and are no sums. */
    const bool biases =
        !queries && (call->own[MHAI_MPI_D_ADD].data || call->own[MHAI_MPI_D_BIAS].data);
    r.wants_sinks = queries && call->shared[MHAI_MPI_D_SINKS].data;
    if (r.out_count == 0 && !biases && !r.wants_sinks)
        return;
    if (runs && biases)
        clear_biases(call);
    const int slot = go_round(&r, work, runs);
    if (runs && r.wants_sinks && !call->status && !call->exchange.status)
        memcpy(call->shared[MHAI_MPI_D_SINKS].data, r.sinks[slot],
               sizeof(float) * (size_t)r.plan.shape.H);
    for (int n = 0; runs && !call->status && !call->exchange.status && n < r.out_count; n++) {
        const mhai_mpi_tensor *const to = &call->own[r.out[n]];
        mhai_mpi_copy(to, &r.node[n][slot], &to->side->ranks[r.rank], all_heads(&r), everything);
    }
}

mha_status mhai_mpi_ring(mhai_mpi_call *call, mhai_mpi_work *work, bool runs)
{
    const mha_shape *const s = &call->plan->shape;
    if (s->B == 0 || s->H == 0 || s->D == 0 || s->Dv == 0)
        return MHA_OK;
    if (!call->backward) {
        run_forward(call, work, runs);
    } else {
        /* The rounds follow each other and use the same memory. */
        mhai_mpi_work first = *work, second = *work;
        run_gradients(call, false, &first, runs);
        if (!call->status && !call->exchange.status)
            run_gradients(call, true, &second, runs);
        work->used = first.used > second.used ? first.used : second.used;
    }
    return call->exchange.status ? call->exchange.status : call->status;
}

static uint64_t sent_in(const ring *r)
{
    uint64_t bytes = 0;
    for (ptrdiff_t step = 0; step < r->chunks; step++)
        for (int to = 0; to < r->ranks; to++)
            bytes += bytes_between(r, r->rank, to, step);
    return bytes;
}

uint64_t mhai_mpi_ring_sent(const mhai_mpi_call *call)
{
    mhai_mpi_call copy = *call;
    const mhai_mpi_tensor *const own = call->own;
    ring r = begin(&copy, false);
    const bool rows =
        own[MHAI_MPI_D_Q].data || own[MHAI_MPI_D_ADD].data || own[MHAI_MPI_D_BIAS].data;
    uint64_t bytes = !call->backward || rows ? sent_in(&r) : 0;
    r = begin(&copy, true);
    if (call->backward &&
        (own[MHAI_MPI_D_K].data || own[MHAI_MPI_D_V].data || call->shared[MHAI_MPI_D_SINKS].data))
        bytes += sent_in(&r);
    return bytes;
}
