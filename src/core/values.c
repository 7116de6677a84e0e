/* SPDX-License-Identifier: MIT */
/* o = alpha * o + p . v for one tile. V is read in place, from panels, from a cache, or row by row
 * with masked values replaced by 0. */
#include "core/tile.h"

/* Packs rows [first, last) of V into panels; rows that `keep` masks become 0 (NULL: none). */
static void pack_rows(const mhai_worker *worker, const mhai_block *block, int first, int last,
                      const uint32_t *keep)
{
    const mhai_call *const call = worker->call;
    const mhak_table *const kernels = worker->plan->kernels;
    mhai_values run;
    for (int n = 0; mhai_values_of(worker, block, n, &run); n++) {
        const int from = (int)mhai_max(0, first - run.at);
        const int to = (int)mhai_min(run.count, last - run.at);
        if (from < to)
            kernels->pack_v[call->shape.v_type](run.rows, run.stride, from, to, (int)call->shape.Dv,
                                                keep ? keep + run.at / 32 : NULL,
                                                worker->scratch->v_panels +
                                                    (ptrdiff_t)run.at * kernels->nc);
    }
}

/* The same for all rows of a task, except those that are packed already. */
static void pack_values(const mhai_worker *worker, mhai_block *block, int first, int last)
{
    if (block->v_last == 0)
        block->v_first = block->v_last = first;
    const int from = (int)mhai_min(first, block->v_first);
    const int to = (int)mhai_max(last, block->v_last);
    const int gaps[2][2] = {{from, block->v_first}, {block->v_last, to}};
    for (int n = 0; n < 2; n++)
        pack_rows(worker, block, gaps[n][0], gaps[n][1], NULL);
    block->v_first = from;
    block->v_last = to;
}

enum { LEAD_ROWS = 16, CACHE_LEAD = 32 }; /* how far ahead of its use V is prefetched, in rows */

static const mhak_prefetch nothing_ahead = {.lines = 0};

/* Rows of f32 that lie close together are as good as panels. */
static bool like_panels(const mhai_worker *worker)
{
    const mhai_call *const call = worker->call;
    const mhak_table *const kernels = worker->plan->kernels;
    const ptrdiff_t stride = call->cache ? call->shape.Dv : call->v.sl;
    return call->shape.v_type == MHA_F32 && call->shape.Dv % kernels->vector == 0 && stride >= 0 &&
           stride <= 2 * kernels->nc;
}

/* Values of a cache, in place: piece after piece. The sums are those of a single call. */
static void add_cached_values(const mhai_worker *worker, const mhai_block *block, int count,
                              int first, int last, float *to)
{
    const mhai_call *const call = worker->call;
    const mhak_table *const kernels = worker->plan->kernels;
    mhai_values run;
    for (int n = 0; mhai_values_of(worker, block, n, &run); n++) {
        const int from = (int)mhai_min(run.count, mhai_max(0, first - run.at));
        const int end = (int)mhai_max(from, mhai_min(run.count, last - run.at));
        /* The first call applies alpha, even if it has no key to add. */
        if (n > 0 && from == end)
            continue;
        mhak_prefetch ahead = nothing_ahead;
        if (mhai_values_in_place(worker->plan, worker->count))
            ahead = mhai_prefetch_rows(
                mhai_at(run.rows, call->shape.v_type, (from + CACHE_LEAD) * run.stride),
                call->shape.v_type, run.stride, run.stride, end - from);
        kernels->pv[call->shape.v_type](worker->scratch->s + run.at, run.rows, run.stride,
                                        kernels->nc, from, end, count, (int)call->shape.Dv, &ahead,
                                        n == 0 ? worker->scratch->alpha : NULL, to,
                                        worker->plan->ldo);
    }
}

static void clear_masked(float *p, const uint32_t *keep)
{
    for (int j = 0; j < MHAK_BLOCK; j++)
        if (!(keep[j / 32] >> (j % 32) & 1u))
            p[j] = 0.0f;
}

/* Dropout: some weights become 0, the others grow. l remains the sum of all weights. */
static void drop_weights(const mhai_worker *worker, const mhai_block *block, int row, int count)
{
    if (mhai_drop_threshold(&worker->call->options) == 0)
        return;
    for (int r = 0; r < count; r++) {
        const mhai_row *const at = &worker->scratch->rows[row + r];
        const mhak_drop drop = mhai_drop_of(worker->call, worker->batch.b, at->h);
        uint32_t keep[MHAK_WORDS];
        mhai_drop_bits(worker->plan->kernels, worker->call, &drop, at->i, block->base / MHAK_BLOCK,
                       keep);
        worker->plan->kernels->drop_apply(worker->scratch->s + r * MHAK_BLOCK, MHAK_BLOCK, keep,
                                          mhai_drop_factor(drop.threshold));
    }
}

/* i8: the kernels read integers, so the scales are multiplied into the weights. The scale of a
 * masked value may be NaN: where keep is given, its weight becomes 0 again. */
static void scale_weights(const mhai_worker *worker, const mhai_block *block, int count,
                          const uint32_t *keep)
{
    mhai_values run;
    if (worker->call->shape.v_type != MHA_I8)
        return;
    for (int n = 0; mhai_values_of(worker, block, n, &run); n++)
        for (int r = 0; r < count; r++)
            worker->plan->kernels->scale_row(worker->scratch->s + r * MHAK_BLOCK + run.at,
                                             run.scales, run.count);
    for (int r = 0; keep && r < count; r++)
        clear_masked(worker->scratch->s + r * MHAK_BLOCK, keep + r * MHAK_WORDS);
}

/* o = alpha * o + p . v for the rows of one tile, with V in place. */
static void add_values_in_place(const mhai_worker *worker, const mhai_block *block, int count,
                                int first, int last, float *to)
{
    const mhai_call *const call = worker->call;
    const mhak_table *const kernels = worker->plan->kernels;
    const mha_dtype type = call->shape.v_type;
    const int dv = (int)call->shape.Dv;
    mhak_prefetch ahead = nothing_ahead;
    if (mhai_values_in_place(worker->plan, worker->count) && block->keys > LEAD_ROWS)
        ahead = mhai_prefetch_rows(mhai_at(block->v, type, (first + LEAD_ROWS) * call->v.sl), type,
                                   call->v.sl, dv, last - first);
    kernels->pv[type](worker->scratch->s, block->v, call->v.sl, kernels->nc, first, last, count, dv,
                      &ahead, worker->scratch->alpha, to, worker->plan->ldo);
}

/* The same with V in panels, or in place where possible. */
static void add_together(const mhai_worker *worker, mhai_block *block, int row, int count,
                         int first, int last, float *o)
{
    const mhak_table *const kernels = worker->plan->kernels;
    const mhai_scratch *const scratch = worker->scratch;
    const ptrdiff_t ldo = worker->plan->ldo;
    if (mhai_values_in_place(worker->plan, worker->count) || like_panels(worker)) {
        if (worker->call->cache)
            add_cached_values(worker, block, count, first, last, o + row * ldo);
        else
            add_values_in_place(worker, block, count, first, last, o + row * ldo);
        return;
    }
    pack_values(worker, block, first, last);
    kernels->pv[MHA_F32](scratch->s, scratch->v_panels, kernels->nc,
                         (ptrdiff_t)MHAK_BLOCK * kernels->nc, first, last, count, (int)ldo,
                         &nothing_ahead, scratch->alpha, o + row * ldo, ldo);
}

static void add_values_per_row(const mhai_worker *worker, const mhai_block *block, int row,
                               int count, int first, int last, float *o)
{
    const mhak_table *const kernels = worker->plan->kernels;
    const ptrdiff_t ldo = worker->plan->ldo;
    for (int r = 0; r < count; r++) {
        pack_rows(worker, block, first, last, worker->scratch->keep + r * MHAK_WORDS);
        kernels->pv[MHA_F32](worker->scratch->s + r * MHAK_BLOCK, worker->scratch->v_panels,
                             kernels->nc, (ptrdiff_t)MHAK_BLOCK * kernels->nc, first, last, 1,
                             (int)ldo, &nothing_ahead, worker->scratch->alpha + r,
                             o + (row + r) * ldo, ldo);
    }
}

void mhai_add_values(const mhai_worker *worker, mhai_block *block, const mhai_pv *x, float *o)
{
    drop_weights(worker, block, x->row, x->count);
    scale_weights(worker, block, x->count, x->keep);
    if (worker->plan->pairs) {
        mhai_pairs_add_values(worker, block, x, o);
    } else if (x->per_row) {
        add_values_per_row(worker, block, x->row, x->count, x->first, x->last, o);
        block->v_first = block->v_last = 0;
    } else {
        add_together(worker, block, x->row, x->count, x->first, x->last, o);
    }
}

bool mhai_can_add_blocks(const mhai_worker *worker)
{
    const mhai_call *const call = worker->call;
    return !call->options.head_modes && (!call->cache || call->shape.v_type == MHA_F32) &&
           mhai_values_in_place(worker->plan, worker->count) &&
           mhai_drop_threshold(&call->options) == 0;
}

/* Blocks of f32 in a cache. The places of all their pieces are looked up before the first is read:
 * later lookups would miss the L1 cache between two calls. */
static void add_cached_blocks(const mhai_worker *worker, const mhai_block *blocks, int count,
                              float *o)
{
    enum { PIECES = MHAK_BLOCK / MHAK_CHAIN };
    const mhak_table *const kernels = worker->plan->kernels;
    const int rows = worker->count, dv = (int)worker->call->shape.Dv;
    const float *p = worker->scratch->s, *alpha = worker->scratch->alpha;
    const ptrdiff_t ldo = worker->plan->ldo;
    mhai_values known[MHAI_SPLIT / MHAK_CHAIN];
    for (int n = 0; n < count * PIECES; n++)
        mhai_values_of(worker, &blocks[n / PIECES], n % PIECES, &known[n]);
    mhak_prefetch ahead = mhai_prefetch_rows(NULL, MHA_F32, dv, dv, MHAK_CHAIN);
    for (int n = 0; n < count * PIECES; n++) {
        const bool begins = n % PIECES == 0, ends = n % PIECES == PIECES - 1;
        ahead.rows = mhai_at(known[n].rows, MHA_F32, (ptrdiff_t)CACHE_LEAD * dv);
        kernels->pv[MHA_F32](p, known[n].rows, dv, kernels->nc, 0, MHAK_CHAIN, rows, dv, &ahead,
                             begins ? alpha : NULL, o, ldo);
        alpha += begins ? rows : 0;
        p += ends ? (rows - 1) * MHAK_BLOCK + MHAK_CHAIN : MHAK_CHAIN;
    }
}

void mhai_add_blocks(const mhai_worker *worker, const mhai_block *blocks, int count, float *o)
{
    if (worker->call->cache)
        add_cached_blocks(worker, blocks, count, o);
    else if (worker->plan->pairs)
        mhai_pairs_add_blocks(worker, blocks, count, o);
    else
        add_values_in_place(worker, blocks, worker->count, 0, count * MHAK_BLOCK, o);
}
