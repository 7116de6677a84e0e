/* SPDX-License-Identifier: MIT */
/* The scores of one tile, before the softmax: rows of a task times a block of keys, which are
 * packed into panels, read in place, or read from a cache. */
#include "core/tile.h"
#include "core/cache.h"

#include <math.h>
#include <string.h>

int mhai_consecutive_rows(const mhai_row *rows, int count)
{
    int n = 1;
    while (n < count && rows[n].h == rows[0].h && rows[n].i == rows[0].i + n)
        n++;
    return n;
}

void mhai_load_queries(const mhai_worker *worker, int row, int count)
{
    const mhai_call *const call = worker->call;
    const mha_dtype type = call->shape.q_type;
    const ptrdiff_t ldq = worker->plan->ldq;
    if (worker->plan->pairs) {
        mhai_pairs_queries(worker, row, count);
        return;
    }
    for (int r = row, n; r < row + count; r += n) {
        const mhai_row *const rows = &worker->scratch->rows[r];
        const ptrdiff_t at = mhai_q_index(call, &worker->batch, &call->q, rows->h, rows->i);
        n = mhai_consecutive_rows(rows, row + count - r);
        worker->plan->kernels->load_rows[type](mhai_at(call->q.data, type, at), call->q.sl, n,
                                               (int)call->shape.D, (float)call->scale,
                                               worker->scratch->q + r * ldq, ldq);
    }
}

/* The place of panels that last longer than a task. */
static ptrdiff_t panel_slot(const mhai_worker *worker, ptrdiff_t base)
{
    return base / MHAK_BLOCK % worker->plan->column_blocks;
}

mhai_block mhai_block_at(const mhai_worker *worker, ptrdiff_t base)
{
    const mhai_call *const call = worker->call;
    const mhai_batch *const batch = &worker->batch;
    mhai_block block = {.base = base, .panels = worker->scratch->k_panels};
    block.keys = (int)mhai_min(batch->keys - base, MHAK_BLOCK);
    block.reuse_panel = worker->count <= worker->plan->row_tile && !worker->lasting_panels;
    if (worker->lasting_panels) {
        const ptrdiff_t slot = panel_slot(worker, base);
        block.panels += slot * MHAK_BLOCK * call->shape.D;
        block.packed_panels = worker->scratch->k_packed[slot];
    }
    if (call->cache)
        return block;
    block.k = mhai_at(call->k.data, call->shape.k_type,
                      mhai_k_index(call, batch, &call->k, worker->g, base));
    block.v = mhai_at(call->v.data, call->shape.v_type,
                      mhai_k_index(call, batch, &call->v, worker->g, base));
    return block;
}

void mhai_block_leave(const mhai_worker *worker, const mhai_block *block)
{
    if (worker->lasting_panels)
        worker->scratch->k_packed[panel_slot(worker, block->base)] = block->packed_panels;
}

/* The columns of panel p. The last keys may be so few that half a panel suffices. */
static int panel_width(const mhai_worker *worker, const mhai_block *block, int p)
{
    const int nr = worker->plan->kernels->nr;
    return block->keys - p * nr <= MHAK_GROUP && MHAK_GROUP < nr ? MHAK_GROUP : nr;
}

/* Panel p of K as f32; packed here unless an earlier tile has packed it. */
static const float *panel_of(const mhai_worker *worker, mhai_block *block, int p)
{
    const mhak_table *const kernels = worker->plan->kernels;
    const mhai_call *const call = worker->call;
    const int d = (int)call->shape.D, first = p * kernels->nr;
    if (block->reuse_panel)
        block->packed_panels = 0;
    float *const panel = block->panels + (block->reuse_panel ? 0 : (ptrdiff_t)first * d);
    if (!(block->packed_panels >> p & 1u)) {
        const int keys = (int)mhai_min(block->keys - first, kernels->nr);
        kernels->pack_k[call->shape.k_type](
            mhai_at(block->k, call->shape.k_type, first * call->k.sl), call->k.sl, keys, d,
            panel_width(worker, block, p), panel);
        block->packed_panels |= 1u << p;
    }
    return panel;
}

/* Computes the whole panels among panels [p, end) in place, if the rows are few. Returns the first
 * panel that is left. */
static int in_place_scores(const mhai_worker *worker, const mhai_block *block, int p, int end)
{
    const mhai_call *const call = worker->call;
    const mha_dtype type = call->shape.k_type;
    const mhak_table *const kernels = worker->plan->kernels;
    const int whole = (int)mhai_min(end, block->keys / kernels->nr), first = p * kernels->nr;
    if (p >= whole || !mhai_keys_in_place(worker->plan, worker->count))
        return p;
    kernels->qk_in_place[type](worker->scratch->q, worker->plan->ldq,
                               mhai_at(block->k, type, first * call->k.sl), call->k.sl,
                               (int)call->shape.D, whole * kernels->nr - first,
                               block->next_is_read && whole * kernels->nr == MHAK_BLOCK,
                               worker->count, worker->scratch->s + first);
    return whole;
}

static void panel_scores(const mhai_worker *worker, mhai_block *block, int row, int count, int p)
{
    const mhak_table *const kernels = worker->plan->kernels;
    const int d = (int)worker->call->shape.D, nr = kernels->nr;
    const ptrdiff_t ldq = worker->plan->ldq;
    const float *const q = worker->scratch->q + row * ldq;
    const float *const panel = panel_of(worker, block, p);
    mhai_prefetch_next(worker->prefetch);
    const int width = panel_width(worker, block, p);
    float *const s = worker->scratch->s + p * nr;
    for (int c = 0; c < d; c += MHAK_DEPTH) {
        const float *const part = panel + (ptrdiff_t)c * width;
        const int depth = (int)mhai_min(d - c, MHAK_DEPTH);
        if (width == nr)
            kernels->product[MHA_F32](q + c, ldq, part, depth, count, c > 0, s, MHAK_BLOCK);
        else
            kernels->product_groups[MHA_F32](q + c, ldq, part, 0, 1, NULL, depth, count, c > 0, s,
                                             MHAK_BLOCK);
    }
}

/* ----------------------------------------------------------------- cache ----- */

static mhai_piece piece_at(const mhai_worker *worker, const mhai_block *block, int j)
{
    return mhai_cache_piece(worker->call->cache, mhai_sequence(worker->call, worker->batch.b),
                            worker->g, block->base + j);
}

/* Consecutive groups of one type: in the cache, or converted to f32. */
typedef struct groups {
    const void *data;
    mha_dtype type;
    int first, count; /* of the block */
    const void *next; /* groups that are read next and should be brought in by loads; or NULL */
} groups;

/* Many rows: converts the group to f32 once, for all tiles of the task. */
static const float *group_as_f32(const mhai_worker *worker, mhai_block *block, const void *stored,
                                 int p)
{
    const ptrdiff_t elements = (ptrdiff_t)MHAI_GROUP * worker->call->shape.D;
    float *const panel = block->panels + p * elements;
    if (!(block->packed_panels >> p & 1u))
        worker->plan->kernels->load_row[worker->call->shape.k_type](stored, (int)elements, 1.0f,
                                                                    panel);
    block->packed_panels |= 1u << p;
    return panel;
}

static void group_scores(const mhai_worker *worker, const groups *g, int row, int count)
{
    const int d = (int)worker->call->shape.D;
    const ptrdiff_t ldq = worker->plan->ldq;
    for (int c = 0; c < d; c += MHAK_DEPTH)
        worker->plan->kernels->product_groups[g->type](
            worker->scratch->q + row * ldq + c, ldq,
            mhai_at(g->data, g->type, (ptrdiff_t)c * MHAI_GROUP), (ptrdiff_t)MHAI_GROUP * d,
            g->count, g->next, (int)mhai_min(d - c, MHAK_DEPTH), count, c > 0,
            worker->scratch->s + g->first * MHAI_GROUP, MHAK_BLOCK);
}

/* Are the keys of a piece brought in by loads while those of the piece before are used? */
static bool preloads_pieces(const mhai_worker *worker)
{
    const ptrdiff_t d = worker->call->shape.D;
    const ptrdiff_t bytes = MHAI_PIECE * d * mhai_size(worker->call->shape.k_type);
    return bytes >= MHAK_NEXT_LEAST && bytes <= MHAK_NEXT_MOST && d <= MHAK_DEPTH;
}

/* The keys of the piece that starts at `start`, if it is read after this one and is to be brought
 * in by loads; else NULL. */
static const void *next_piece(const mhai_worker *worker, const mhai_block *block, int start,
                              int last)
{
    const bool read = start < last || (start == MHAK_BLOCK && block->next_is_read);
    return read && preloads_pieces(worker) ? piece_at(worker, block, start).k : NULL;
}

/* Groups [first, last) of the block, all of one piece. */
static void piece_scores(const mhai_worker *worker, mhai_block *block, const mhai_piece *piece,
                         const void *next, int row, int count, int first, int last)
{
    const mha_dtype type = worker->call->shape.k_type;
    const ptrdiff_t elements = (ptrdiff_t)MHAI_GROUP * worker->call->shape.D;
    const int skipped = first % (MHAI_PIECE / MHAI_GROUP);
    const void *const stored = mhai_at(piece->k, type, skipped * elements);
    groups g = {stored, type, first, last - first, next};
    if (type != MHA_F32 && worker->count > worker->plan->kernels->mr_qk) {
        g.type = MHA_F32;
        g.data = group_as_f32(worker, block, stored, first);
        for (int n = 1; n < g.count; n++)
            group_as_f32(worker, block, mhai_at(stored, type, n * elements), first + n);
    }
    group_scores(worker, &g, row, count);
    for (int r = 0; piece->k_scales && r < count; r++)
        worker->plan->kernels->scale_row(worker->scratch->s + r * MHAK_BLOCK + first * MHAI_GROUP,
                                         piece->k_scales + skipped * MHAI_GROUP,
                                         g.count * MHAI_GROUP);
}

static void cache_scores(const mhai_worker *worker, mhai_block *block, int row, int count,
                         int first, int last)
{
    for (int start = first / MHAI_PIECE * MHAI_PIECE; start < last; start += MHAI_PIECE) {
        const mhai_piece piece = piece_at(worker, block, start);
        const int from = (int)mhai_max(first, start);
        const int to = (int)mhai_min(last, start + MHAI_PIECE);
        piece_scores(worker, block, &piece, next_piece(worker, block, start + MHAI_PIECE, last),
                     row, count, from / MHAI_GROUP, (to + MHAI_GROUP - 1) / MHAI_GROUP);
    }
}

/* Few rows and `count` whole pieces of f32 from the block's first key on, with scores as
 * [block][row]; with `more` another piece is read next. The places of all pieces are looked up
 * before the first is read: later lookups would miss the L1 cache between two calls. */
static void stream_pieces(const mhai_worker *worker, const mhai_block *block, int count, bool more)
{
    enum { PIECES = MHAK_BLOCK / MHAI_PIECE, MOST = MHAI_FEW_SPLITS * MHAI_SPLIT / MHAI_PIECE };
    const void *keys[MOST + 1] = {NULL};
    for (int n = 0; n < count + more; n++)
        keys[n] = piece_at(worker, block, n * MHAI_PIECE).k;
    const mhak_table *const kernels = worker->plan->kernels;
    const int d = (int)worker->call->shape.D, rows = worker->count;
    const int preloaded = preloads_pieces(worker) ? count + more : 0;
    const float *const q = worker->scratch->q;
    const ptrdiff_t ldq = worker->plan->ldq, stride = (ptrdiff_t)MHAI_GROUP * d;
    float *s = worker->scratch->s;
    for (int n = 0; n < count; n++) {
        kernels->product_groups[MHA_F32](q, ldq, keys[n], stride, MHAI_PIECE / MHAI_GROUP,
                                         n + 1 < preloaded ? keys[n + 1] : NULL, d, rows, false, s,
                                         MHAK_BLOCK);
        s += n % PIECES == PIECES - 1 ? (rows - 1) * MHAK_BLOCK + MHAI_PIECE : MHAI_PIECE;
    }
}

bool mhai_values_of(const mhai_worker *worker, const mhai_block *block, int n, mhai_values *run)
{
    const mhai_call *const call = worker->call;
    if (!call->cache) {
        *run = (mhai_values){.rows = block->v, .stride = call->v.sl, .count = MHAK_BLOCK};
        return n == 0;
    }
    const int at = n * MHAI_PIECE;
    if (at >= MHAK_BLOCK || at >= block->keys)
        return false;
    const mhai_piece piece = piece_at(worker, block, at);
    *run = (mhai_values){piece.v, call->shape.Dv, at, MHAI_PIECE, piece.v_scales};
    return true;
}

/* ---------------------------------------------------------------- scores ----- */

float mhai_extra_score(const mhai_worker *worker, int row, int n, bool capped)
{
    const mhai_call *const call = worker->call;
    const ptrdiff_t d = call->shape.D;
    if (!call->extra.k || n > 0 || mhai_mode(call, worker->scratch->rows[row].h) != MHA_HEAD_NORMAL)
        return 0.0f;
    const float *const q = worker->scratch->q + row * worker->plan->ldq;
    float sum = 0.0f;
    for (ptrdiff_t c = 0; c < d; c++)
        sum += q[c] * call->extra.k[worker->g * d + c];
    const float cap = call->options.softcap;
    return capped && cap > 0.0f ? cap * tanhf(sum / cap) : sum;
}

void mhai_scores(const mhai_worker *worker, mhai_block *block, int row, int count, int first,
                 int last)
{
    const int nr = worker->plan->kernels->nr;
    if (block->scored)
        return;
    if (worker->call->cache) {
        cache_scores(worker, block, row, count, first, last);
        return;
    }
    if (worker->plan->pairs) {
        mhai_pairs_scores(worker, block, row, count, first, last);
        return;
    }
    const int end = (last + nr - 1) / nr;
    for (int p = in_place_scores(worker, block, first / nr, end); p < end; p++)
        panel_scores(worker, block, row, count, p);
}

bool mhai_can_score_blocks(const mhai_worker *worker)
{
    const mhai_call *const call = worker->call;
    return !call->options.head_modes && (!call->cache || call->shape.k_type == MHA_F32);
}

void mhai_score_blocks(const mhai_worker *worker, mhai_block *blocks, int count)
{
    const mhai_call *const call = worker->call;
    const bool more = blocks[count - 1].next_is_read;
    const int keys = count * MHAK_BLOCK;
    if (call->cache)
        stream_pieces(worker, blocks, keys / MHAI_PIECE, more);
    else if (worker->plan->pairs)
        mhai_pairs_score_blocks(worker, blocks, count);
    else
        worker->plan->kernels->qk_in_place[call->shape.k_type](
            worker->scratch->q, worker->plan->ldq, blocks->k, call->k.sl, (int)call->shape.D, keys,
            more, worker->count, worker->scratch->s);
    for (int n = 0; n < count; n++)
        blocks[n].scored = true;
}

void mhai_scores_cap(const mhai_worker *worker, int count, int first, int last)
{
    const float cap = worker->call->options.softcap;
    const int from = first / worker->plan->kernels->vector * worker->plan->kernels->vector;
    if (cap > 0.0f)
        for (int r = 0; r < count; r++)
            worker->plan->kernels->softcap(worker->scratch->s + r * MHAK_BLOCK + from, last - from,
                                           cap);
}

static void add_numbers(const mhai_worker *worker, const mha_view *x, mha_dtype type,
                        const mhai_row *row, ptrdiff_t key, int keys, float *s)
{
    if (!x->data)
        return;
    const ptrdiff_t at = mhai_index(x, false, worker->batch.b, 0, row->h, row->i) + key;
    worker->plan->kernels->add_row[type](s, mhai_at(x->data, type, at), keys);
}

void mhai_scores_bias(const mhai_worker *worker, const mhai_block *block, int row, int count,
                      int first, int last)
{
    const mha_options *const o = &worker->call->options;
    const mhak_table *const kernels = worker->plan->kernels;
    if (!o->bias.data && !o->add_mask.data && !o->alibi_slopes)
        return;
    for (int r = 0; r < count; r++) {
        const mhai_row *const at = &worker->scratch->rows[row + r];
        float *const s = worker->scratch->s + r * MHAK_BLOCK;
        const ptrdiff_t key = block->base + first;
        add_numbers(worker, &o->bias, o->bias_type, at, key, last - first, s + first);
        add_numbers(worker, &o->add_mask, o->add_mask_type, at, key, last - first, s + first);
        /* From the start of the block, whatever the tile sees of it: distant positions are rounded,
         * and must always be rounded in the same way. */
        if (o->alibi_slopes)
            kernels->alibi(s, last, o->alibi_slopes[at->h],
                           (float)(at->i + worker->batch.offset - block->base));
    }
}

/* Does any of the rows belong to a normal head? */
static bool any_normal(const mhai_worker *worker, int row, int count)
{
    for (int r = 0; r < count; r++)
        if (mhai_mode(worker->call, worker->scratch->rows[row + r].h) == MHA_HEAD_NORMAL)
            return true;
    return false;
}

void mhai_scores_final(const mhai_worker *worker, mhai_block *block, int row, int count, int first,
                       int last)
{
    const mhai_scratch *const scratch = worker->scratch;
    const bool modes = worker->call->options.head_modes != NULL;
    if (!modes || any_normal(worker, row, count)) {
        mhai_scores(worker, block, row, count, first, last);
        mhai_scores_cap(worker, count, first, last);
        mhai_scores_bias(worker, block, row, count, first, last);
    }
    for (int r = 0; modes && r < count; r++)
        if (mhai_mode(worker->call, scratch->rows[row + r].h) != MHA_HEAD_NORMAL)
            memset(scratch->s + r * MHAK_BLOCK, 0, sizeof(float) * MHAK_BLOCK);
}
