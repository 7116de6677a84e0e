/* SPDX-License-Identifier: MIT */
/*
 * The steps of a tile in native arithmetic, in the places of those of tile.c and values.c: q.k and
 * p.v in pairs of bf16. Queries stay as they are stored and p is rounded after the softmax, which
 * is that of exact arithmetic. Memory of the scratch that has room for f32 holds bf16: queries at
 * the beginning of their rows, p at the beginning of a row of scores, panels of pairs.
 */
#include "core/tile.h"

#include <string.h>

const mhak_pairs *mhai_pairs_of(const mhai_call *call, const char **words)
{
    const mha_shape *const s = &call->shape;
    const mhak_native *native;
    *words = "exact: products and sums in f32";
    if (call->options.arithmetic != MHA_NATIVE || mhai_native(&native) != MHA_OK)
        return NULL;
    if (s->q_type != MHA_BF16 || s->k_type != MHA_BF16 || s->v_type != MHA_BF16)
        *words = "exact, in f32: attention is native where q, k and v are bf16";
    else if (call->cache || mhai_extras(call) > 0)
        *words = "exact, in f32: attention is not native with a cache or with extra keys";
    else if (!native->pairs)
        *words = "exact, in f32: this instruction set has no products of bf16";
    else {
        *words = "native: products of bf16, p rounded to bf16; softmax and sums in f32";
        return native->pairs;
    }
    return NULL;
}

/* Are queries read where they are? Whole pairs in rows that lie close together are as good as a
 * copy of them; few rows are of several heads. */
static bool queries_in_place(const mhai_worker *worker)
{
    const ptrdiff_t d = worker->call->shape.D, stride = worker->call->q.sl;
    return d % 2 == 0 && stride >= d && stride <= 2 * d &&
           !mhai_keys_in_place(worker->plan, worker->count);
}

static const uint16_t *query_in_place(const mhai_worker *worker, int row)
{
    const mhai_call *const call = worker->call;
    const mhai_row *const at = &worker->scratch->rows[row];
    return mhai_at(call->q.data, MHA_BF16,
                   mhai_q_index(call, &worker->batch, &call->q, at->h, at->i));
}

static uint16_t *query_copy(const mhai_worker *worker, int row)
{
    return (uint16_t *)(worker->scratch->q + row * worker->plan->ldq);
}

void mhai_pairs_queries(const mhai_worker *worker, int row, int count)
{
    const ptrdiff_t d = worker->call->shape.D;
    for (int r = row; r < row + count && !queries_in_place(worker); r++) {
        uint16_t *const to = query_copy(worker, r);
        memcpy(to, query_in_place(worker, r), sizeof *to * (size_t)d);
        if (d % 2 != 0)
            to[d] = 0;
    }
}

/* Queries [row, row + count), or as many of them as are equally far apart. */
typedef struct queries {
    const uint16_t *rows;
    ptrdiff_t stride;
    int count;
} queries;

static queries queries_at(const mhai_worker *worker, int row, int count)
{
    if (!queries_in_place(worker))
        return (queries){query_copy(worker, row), 2 * worker->plan->ldq, count};
    return (queries){query_in_place(worker, row), worker->call->q.sl,
                     mhai_consecutive_rows(&worker->scratch->rows[row], count)};
}

/* ---------------------------------------------------------------- scores ----- */

static int pairs_of(const mhai_worker *worker)
{
    return (int)mhai_ceil_div(worker->call->shape.D, 2);
}

/* Keys of panel p, rounded up to whole vectors. */
static int panel_width(const mhai_worker *worker, const mhai_block *block, int p)
{
    const mhak_pairs *const pairs = worker->plan->pairs;
    return (int)mhai_round_up(mhai_min(block->keys - p * pairs->nr, pairs->nr), pairs->vector);
}

/* Panel p of K; packed here unless an earlier tile has packed it. */
static const uint32_t *panel_of(const mhai_worker *worker, mhai_block *block, int p)
{
    const mhak_pairs *const pairs = worker->plan->pairs;
    const mhai_call *const call = worker->call;
    const int first = p * pairs->nr;
    if (block->reuse_panel)
        block->packed_panels = 0;
    uint32_t *const panel =
        (uint32_t *)block->panels + (block->reuse_panel ? 0 : (ptrdiff_t)first * pairs_of(worker));
    if (!(block->packed_panels >> p & 1u)) {
        pairs->pack_keys(mhai_at(block->k, MHA_BF16, first * call->k.sl), call->k.sl,
                         (int)mhai_min(block->keys - first, pairs->nr), (int)call->shape.D,
                         panel_width(worker, block, p), panel);
        block->packed_panels |= 1u << p;
    }
    return panel;
}

/* Scores of the vectors of panel p that have keys of [first, last). */
static void panel_scores(const mhai_worker *worker, mhai_block *block, int row, int count, int p,
                         int first, int last)
{
    const mhak_pairs *const pairs = worker->plan->pairs;
    const int base = p * pairs->nr, width = panel_width(worker, block, p);
    const int from = (int)mhai_max(first - base, 0) / pairs->vector * pairs->vector;
    const int to = (int)mhai_round_up(mhai_min(last - base, width), pairs->vector);
    const uint32_t *const panel = panel_of(worker, block, p);
    mhai_prefetch_next(worker->prefetch);
    for (int r = 0; r < count;) {
        const queries q = queries_at(worker, row + r, count - r);
        pairs->score(q.rows, q.stride, panel + from, width, (to - from) / pairs->vector,
                     pairs_of(worker), q.count, (float)worker->call->scale,
                     worker->scratch->s + r * MHAK_BLOCK + base + from);
        r += q.count;
    }
}

/* `keys` keys in place, from key `first` of the block on, for few rows. */
static void scores_in_place(const mhai_worker *worker, const mhai_block *block, int first, int keys)
{
    const mhai_call *const call = worker->call;
    worker->plan->pairs->score_in_place(query_copy(worker, 0), 2 * worker->plan->ldq,
                                        mhai_at(block->k, MHA_BF16, first * call->k.sl), call->k.sl,
                                        (int)call->shape.D, keys, worker->count, (float)call->scale,
                                        worker->scratch->s + first);
}

void mhai_pairs_scores(const mhai_worker *worker, mhai_block *block, int row, int count, int first,
                       int last)
{
    const mhak_pairs *const pairs = worker->plan->pairs;
    const int from = first / pairs->vector * pairs->vector;
    const int end = (int)mhai_min(mhai_round_up(last, pairs->vector),
                                  block->keys / pairs->vector * pairs->vector);
    if (from < end && mhai_keys_in_place(worker->plan, worker->count)) {
        scores_in_place(worker, block, from, end - from);
        first = end;
    }
    for (int p = first / pairs->nr; first < last && p * pairs->nr < last; p++)
        panel_scores(worker, block, row, count, p, first, last);
}

void mhai_pairs_score_blocks(const mhai_worker *worker, const mhai_block *blocks, int count)
{
    scores_in_place(worker, blocks, 0, count * MHAK_BLOCK);
}

/* ---------------------------------------------------------------- values ----- */

bool mhai_folds_to_pairs(const mhai_worker *worker)
{
    const mha_plan *const plan = worker->plan;
    return plan->pairs && !plan->statistics && !plan->one_pass &&
           mhai_drop_threshold(&worker->call->options) == 0;
}

/* Packs rows [first, last) of V, both even; those that `keep` masks become 0 (NULL: none). */
static void pack_rows(const mhai_worker *worker, const mhai_block *block, int first, int last,
                      const uint32_t *keep)
{
    const mhai_call *const call = worker->call;
    if (first < last)
        worker->plan->pairs->pack_values(block->v, call->v.sl, first, last, block->keys,
                                         (int)call->shape.Dv, keep,
                                         (uint32_t *)worker->scratch->v_panels);
}

/* The same for all rows of a task, except those that are packed already. */
static void pack_values(const mhai_worker *worker, mhai_block *block, int first, int last)
{
    if (block->v_last == 0)
        block->v_first = block->v_last = first;
    const int from = (int)mhai_min(first, block->v_first);
    const int to = (int)mhai_max(last, block->v_last);
    pack_rows(worker, block, from, block->v_first, NULL);
    pack_rows(worker, block, block->v_last, to, NULL);
    block->v_first = from;
    block->v_last = to;
}

/* `count` rows of the tile from its row r on, with values in panels. */
static void add_panels(const mhai_worker *worker, const mhai_pv *x, int first, int last, int r,
                       int count, float *o)
{
    const mhak_pairs *const pairs = worker->plan->pairs;
    const mhai_scratch *const scratch = worker->scratch;
    const ptrdiff_t ldo = worker->plan->ldo;
    pairs->add(scratch->s + r * MHAK_BLOCK, (const uint32_t *)scratch->v_panels, first, last, count,
               (int)ldo / pairs->vector, scratch->alpha + r, o + (x->row + r) * ldo, ldo);
}

enum { LEAD_ROWS = 16 }; /* how far ahead of its use V is prefetched, in rows */

/* All rows of a task, which are few, with values in place. More rows than the kernel takes have one
 * block only. */
static void add_in_place(const mhai_worker *worker, const mhai_block *block, int first, int last,
                         int keys, float *o)
{
    const mhai_call *const call = worker->call;
    const mhak_pairs *const pairs = worker->plan->pairs;
    const int dv = (int)call->shape.Dv;
    const ptrdiff_t ldo = worker->plan->ldo;
    mhak_prefetch ahead = {.lines = 0};
    if (keys > LEAD_ROWS)
        ahead = mhai_prefetch_rows(mhai_at(block->v, MHA_BF16, (first + LEAD_ROWS) * call->v.sl),
                                   MHA_BF16, call->v.sl, dv, last - first);
    for (int r = 0; r < worker->count; r += pairs->mr_in_place, ahead.lines = 0)
        pairs->add_in_place(worker->scratch->s + r * MHAK_BLOCK, block->v, call->v.sl, first, last,
                            keys, (int)mhai_min(pairs->mr_in_place, worker->count - r), dv, &ahead,
                            worker->scratch->alpha + r, o + r * ldo, ldo);
}

void mhai_pairs_add_values(const mhai_worker *worker, mhai_block *block, const mhai_pv *x, float *o)
{
    const mhak_pairs *const pairs = worker->plan->pairs;
    const int first = x->first / 2 * 2, last = (x->last + 1) / 2 * 2, vector = pairs->vector;
    if (!mhai_folds_to_pairs(worker))
        pairs->round(worker->scratch->s, x->count, first / vector * vector,
                     (int)mhai_round_up(last, vector));
    if (x->per_row) {
        for (int r = 0; r < x->count; r++) {
            pack_rows(worker, block, first, last, worker->scratch->keep + r * MHAK_WORDS);
            add_panels(worker, x, first, last, r, 1, o);
        }
        block->v_first = block->v_last = 0;
    } else if (mhai_values_in_place(worker->plan, worker->count)) {
        add_in_place(worker, block, first, last, block->keys, o);
    } else {
        pack_values(worker, block, first, last);
        add_panels(worker, x, first, last, 0, x->count, o);
    }
}

void mhai_pairs_add_blocks(const mhai_worker *worker, const mhai_block *blocks, int count, float *o)
{
    if (!mhai_folds_to_pairs(worker))
        worker->plan->pairs->round(worker->scratch->s, count * worker->count, 0, MHAK_BLOCK);
    add_in_place(worker, blocks, 0, count * MHAK_BLOCK, count * MHAK_BLOCK, o);
}
