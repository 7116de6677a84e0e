/* SPDX-License-Identifier: MIT */
/*
 * The operator: one task is a few query rows of one key/value head against all keys they see.
 *
 *      for each split of MHAI_SPLIT keys            partial softmax, merged in ascending order
 *          for each block of MHAK_BLOCK keys        K packed once for all rows of the task
 *              for each tile of row_tile rows
 *                  mask -> scores -> fold -> pv     skipped where no row sees a key
 *              few rows: each of these for all blocks of some splits, then the next (few_rows.c)
 *      divide by l, store
 *
 * Splits and blocks count from key 0, whatever a row sees, so a row's sums have one order.
 */
#include "core/statistics.h"
#include "core/task.h"

#include <math.h>
#include <string.h>

/* Task number -> batch, heads, rows, split. Rows vary fastest, then splits, heads, batches. */
static mhai_task task_of(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number,
                         bool split)
{
    const mhai_tiling *const t = &run->tiling;
    const mha_shape *const shape = &run->plan->shape;
    const ptrdiff_t group = shape->H / shape->G;
    /* Late rows of a causal task see the most keys: begin with them. */
    const ptrdiff_t row_chunk = t->row_chunks - 1 - number % t->row_chunks;
    number /= t->row_chunks;
    mhai_task now = {.run = run, .split = -1};
    if (split) {
        now.split = number % t->splits;
        number /= t->splits;
    }
    const ptrdiff_t head_chunk = number % t->head_chunks;
    number /= t->head_chunks;
    const ptrdiff_t g = number % shape->G, b = number / shape->G;
    now.h = g * group + head_chunk * t->heads;
    now.heads = mhai_min(t->heads, group - head_chunk * t->heads);
    now.i = row_chunk * t->rows;
    now.worker = (mhai_worker){.plan = run->plan,
                               .call = run->call,
                               .scratch = scratch,
                               .batch = mhai_batch_of(run->call, b),
                               .g = g,
                               .lasting_panels = run->plan->columns};
    const ptrdiff_t end = mhai_min(now.i + t->rows, now.worker.batch.queries);
    now.i = mhai_max(now.i, run->call->row_first);
    now.rows =
        mhai_max(0, (run->call->row_last ? mhai_min(end, run->call->row_last) : end) - now.i);
    now.worker.count = (int)(now.heads * now.rows);
    return now;
}

/* Nobody wants anything of a head whose gate is 0. */
static bool closed(const mhai_task *now, ptrdiff_t h)
{
    const mhai_call *const call = now->worker.call;
    return !call->options.lse.data && !call->options.weights.data && !call->options.statistics &&
           mhai_gate(call, now->worker.batch.b, h) == 0.0f;
}

/* Which keys do any, and which do all of the rows see? */
static void bound_keys(mhai_task *now)
{
    now->first = now->worker.batch.keys;
    now->last = 0;
    now->all_first = 0;
    now->all_last = mhai_masks_look_up(&now->worker.call->options) ? 0 : now->worker.batch.keys;
    for (int r = 0; r < now->worker.count; r++) {
        const mhai_row *const row = &now->worker.scratch->rows[r];
        now->all_first = mhai_max(now->all_first, row->first);
        now->all_last = mhai_min(now->all_last, row->last);
        if (row->first < row->last) {
            now->first = mhai_min(now->first, row->first);
            now->last = mhai_max(now->last, row->last);
        }
    }
    now->alike = now->all_first == now->first && now->all_last == now->last;
}

static void list_rows(mhai_task *now)
{
    mhai_row *row = now->worker.scratch->rows;
    for (ptrdiff_t h = 0; h < now->heads; h++)
        for (ptrdiff_t i = 0; i < now->rows; i++, row++) {
            row->h = now->h + h;
            row->i = now->i + i;
            mhai_row_range(now->worker.call, &now->worker.batch, row);
            if (closed(now, row->h))
                row->first = row->last = 0;
        }
    bound_keys(now);
    if (now->split >= 0) {
        now->first = mhai_max(now->first, now->split * MHAI_SPLIT);
        now->last = mhai_min(now->last, (now->split + 1) * MHAI_SPLIT);
    }
}

static mhai_state state_at(const mhai_state *state, ptrdiff_t row, ptrdiff_t ldo)
{
    return (mhai_state){state->m + row, state->l + row, state->o + row * ldo, state->seen + row};
}

static void clear_state(const mhai_worker *worker, const mhai_state *state, int row, int count)
{
    const ptrdiff_t ldo = worker->plan->ldo;
    for (int r = row; r < row + count; r++) {
        state->m[r] = -INFINITY;
        state->l[r] = 0.0f;
    }
    memset(state->o + row * ldo, 0, sizeof(float) * (size_t)(count * ldo));
}

static void mark_seen(const uint32_t *keep, mhai_cover cover, int count, bool *seen)
{
    if (cover == MHAI_ALL) {
        memset(seen, true, (size_t)count);
        return;
    }
    for (int r = 0; r < count; r++) {
        uint32_t any = 0;
        for (int w = 0; w < MHAK_WORDS; w++)
            any |= keep[r * MHAK_WORDS + w];
        seen[r] |= any != 0;
    }
}

/* Which keys of the block do these rows see? Most blocks need no look at the single rows. */
static mhai_cover cover_of(const mhai_task *now, const mhai_block *block, int row, int count,
                           int *first, int *last)
{
    const mhai_worker *const worker = &now->worker;
    const int width = worker->plan->kernels->vector;
    const ptrdiff_t from = mhai_max(now->all_first - block->base, 0);
    const ptrdiff_t to = mhai_min(now->all_last - block->base, MHAK_BLOCK);
    if ((now->alike || to - from == MHAK_BLOCK) && from % width == 0 && to % width == 0) {
        *first = (int)from;
        *last = (int)to;
        return MHAI_ALL;
    }
    return mhai_mask_block(worker->call, worker->plan->kernels, &worker->batch,
                           worker->scratch->rows + row, count, block->base, worker->scratch->keep,
                           first, last);
}

/* Do all of these rows give means instead of values? */
static bool only_means(const mhai_worker *worker, int row, int count)
{
    const bool modes = worker->call->options.head_modes != NULL;
    for (int r = 0; modes && r < count; r++)
        if (mhai_mode(worker->call, worker->scratch->rows[row + r].h) != MHA_HEAD_MEAN)
            return false;
    return modes;
}

static const uint32_t *keep_of(const mhai_task *now, const mhai_tile *t)
{
    return t->cover == MHAI_SOME ? now->worker.scratch->keep : NULL;
}

void mhai_tile_cover(const mhai_task *now, mhai_tile *t)
{
    const mhai_scratch *const scratch = now->worker.scratch;
    t->cover = cover_of(now, t->block, t->row, t->count, &t->first, &t->last);
    if (t->cover != MHAI_NONE)
        mark_seen(scratch->keep, t->cover, t->count, scratch->total.seen + t->row);
}

void mhai_tile_scores(const mhai_task *now, const mhai_tile *t)
{
    if (t->cover != MHAI_NONE)
        mhai_scores_final(&now->worker, t->block, t->row, t->count, t->first, t->last);
}

void mhai_tile_fold(const mhai_task *now, const mhai_tile *t, const mhai_state *state)
{
    const mhai_worker *const worker = &now->worker;
    const mhak_table *const kernels = worker->plan->kernels;
    if (t->cover == MHAI_NONE)
        return;
    const int width = kernels->vector, row = t->row;
    const uint32_t *const keep = keep_of(now, t);
    const int from = t->first / width * width, to = (t->last + width - 1) / width * width;
    mhak_hold place;
    const mhak_hold *const hold =
        mhai_hold_tile(worker, t->block->base, row, t->count, from, to, keep, &place) ? &place
                                                                                      : NULL;
    if (worker->plan->statistics)
        mhai_watch_fold(worker, t->block->base, row, t->count, from, to, keep, hold, state);
    else
        kernels->fold(worker->scratch->s, t->count, from, to, keep, state->m + row, state->l + row,
                      worker->scratch->alpha, hold);
    mhai_store_tile(worker, row, t->count, from, to, keep, state->l);
}

void mhai_tile_values(mhai_task *now, const mhai_tile *t, const mhai_state *state, mhai_how how)
{
    if (t->cover == MHAI_NONE || how == MHAI_NOT_AT_ALL ||
        only_means(&now->worker, t->row, t->count))
        return;
    const uint32_t *const keep = keep_of(now, t);
    const mhai_pv product = {t->row,  t->count, t->first,
                             t->last, keep,     keep && how == MHAI_PER_ROW};
    mhai_add_values(&now->worker, t->block, &product, state->o);
    now->some_masked |= t->cover == MHAI_SOME;
}

/* Queries are loaded before the first split, and not all at once, so that they are in the first
 * cache when they are used. */
void mhai_tile_begin(const mhai_task *now, int row, int count, const mhai_state *state,
                     mhai_how how)
{
    clear_state(&now->worker, state, row, count);
    if (how == MHAI_TOGETHER && state->m == now->worker.scratch->total.m)
        mhai_load_queries(&now->worker, row, count);
}

/* ------------------------------------------------------------------ splits ----- */

/* All blocks of one split. */
static void run_split(mhai_task *now, ptrdiff_t first, ptrdiff_t last, const mhai_state *state,
                      mhai_how how)
{
    const mhai_worker *const worker = &now->worker;
    const int most = worker->plan->row_tile;
    const ptrdiff_t start = first / MHAK_BLOCK * MHAK_BLOCK;
    for (ptrdiff_t base = start; base < last; base += MHAK_BLOCK) {
        mhai_block block = mhai_block_at(worker, base);
        for (int row = 0; row < worker->count; row += most) {
            mhai_tile t = {.block = &block, .row = row};
            t.count = (int)mhai_min(most, worker->count - row);
            if (base == start)
                mhai_tile_begin(now, row, t.count, state, how);
            mhai_masks_come(worker, row + most, base);
            mhai_tile_cover(now, &t);
            mhai_tile_scores(now, &t);
            mhai_tile_fold(now, &t, state);
            mhai_tile_values(now, &t, state, how);
        }
        mhai_block_leave(worker, &block);
    }
}

/* Some splits, from key `at` on, into the total; the first of all is the total, since merging into
 * nothing changes no bit. Returns the key to go on at. */
static ptrdiff_t run_splits(mhai_task *now, ptrdiff_t at, mhai_how how)
{
    const mhai_worker *const worker = &now->worker;
    const mhai_state *const total = &worker->scratch->total;
    const ptrdiff_t together = mhai_few_splits(now, at), splits = mhai_max(1, together);
    const ptrdiff_t ldo = worker->plan->ldo;
    const ptrdiff_t end = mhai_min(now->last, (at / MHAI_SPLIT + splits) * MHAI_SPLIT);
    mhai_state states[MHAI_FEW_SPLITS];
    for (ptrdiff_t n = 0; n < splits; n++)
        states[n] = at == now->first && n == 0
                        ? *total
                        : state_at(&worker->scratch->part, n * worker->count, ldo);
    if (together > 0)
        mhai_run_few(now, at, end, states, how);
    else
        run_split(now, at, end, &states[0], how);
    for (ptrdiff_t n = at == now->first; n < splits; n++)
        worker->plan->kernels->merge(worker->count, ldo, total->m, total->l, total->o, states[n].m,
                                     states[n].l, states[n].o);
    return end;
}

/* All keys of the task, into scratch->total. */
static void run_keys(mhai_task *now, mhai_how how)
{
    const mhai_worker *const worker = &now->worker;
    const mhai_state *const total = &worker->scratch->total;
    memset(total->seen, 0, sizeof(bool) * (size_t)worker->count);
    mhai_watch_begin(worker);
    mhai_held_begin(worker);
    if (now->first >= now->last)
        mhai_tile_begin(now, 0, worker->count, total, how);
    for (ptrdiff_t at = now->first; at < now->last;)
        at = run_splits(now, at, how);
}

/* Partial results lie [split][B][H][L]; the rows of a task are runs of `rows` for each head. */
static ptrdiff_t part_row(const mhai_task *now, ptrdiff_t split, ptrdiff_t head)
{
    const mha_shape *const shape = &now->worker.call->shape;
    return ((split * shape->B + now->worker.batch.b) * shape->H + now->h + head) * shape->L +
           now->i;
}

static void copy_state(const mhai_state *to, const mhai_state *from, ptrdiff_t rows, ptrdiff_t ldo)
{
    memcpy(to->m, from->m, sizeof(float) * (size_t)rows);
    memcpy(to->l, from->l, sizeof(float) * (size_t)rows);
    memcpy(to->o, from->o, sizeof(float) * (size_t)(rows * ldo));
    memcpy(to->seen, from->seen, sizeof(bool) * (size_t)rows);
}

static void keep_part(const mhai_task *now)
{
    const ptrdiff_t ldo = now->worker.plan->ldo;
    for (ptrdiff_t h = 0; h < now->heads; h++) {
        const mhai_state to = state_at(&now->run->shared.part, part_row(now, now->split, h), ldo);
        const mhai_state from = state_at(&now->worker.scratch->total, h * now->rows, ldo);
        copy_state(&to, &from, now->rows, ldo);
    }
}

/* What the task reads that comes `threads` after this one. */
static mhai_coming coming_after(const mhai_task *now, ptrdiff_t number)
{
    const mhai_run *const run = now->run;
    mhai_coming coming = {.any = mhai_masks_look_up(&run->call->options)};
    number += run->tiling.threads;
    if (mhai_short_heads(run) && number < run->tiling.row_tasks) {
        const mhai_task then = task_of(run, now->worker.scratch, number, false);
        mhai_head_comes(&coming, &then.worker, then.h, then.i, then.rows, now->worker.count);
    }
    return coming;
}

void mhai_attention_task(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number)
{
    mhai_task now = task_of(run, scratch, number, run->tiling.splits > 1);
    if (now.worker.count == 0)
        return;
    list_rows(&now);
    mhai_coming coming = coming_after(&now, number);
    now.worker.coming = &coming;
    run_keys(&now, MHAI_TOGETHER);
    if (now.some_masked &&
        !run->plan->kernels->all_finite(scratch->total.o, now.worker.count * run->plan->ldo))
        run_keys(&now, MHAI_PER_ROW);
    if (now.split >= 0)
        keep_part(&now);
    else
        mhai_store_rows(run, &now.worker, &scratch->total);
}

void mhai_attention_sums(const mhai_worker *worker, float *stats)
{
    const mhai_state *const total = &worker->scratch->total;
    mhai_task now = {.worker = *worker, .split = -1};
    bound_keys(&now);
    run_keys(&now, MHAI_NOT_AT_ALL);
    for (int r = 0; r < worker->count; r++)
        mhai_close_sums(worker, total, r, stats + 2 * r);
}

/* All rows of some heads one after another: what keys receive has one order. */
void mhai_attention_heads(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number)
{
    const ptrdiff_t chunks = run->tiling.row_chunks;
    const mhai_task all = task_of(run, scratch, number * chunks, false);
    mhai_watch_clear_columns(run->call, all.worker.batch.b, all.h, all.heads);
    memset(scratch->k_packed, 0, sizeof(uint32_t) * (size_t)run->plan->held_blocks);
    for (ptrdiff_t n = chunks; n-- > 0;)
        mhai_attention_task(run, scratch, number * chunks + n);
}

void mhai_merge_task(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number)
{
    mhai_task now = task_of(run, scratch, number, false);
    if (now.worker.count == 0)
        return;
    list_rows(&now);
    if (mhai_extras(run->call) > 0)
        mhai_load_queries(&now.worker, 0, now.worker.count);
    const ptrdiff_t ldo = run->plan->ldo;
    for (ptrdiff_t h = 0; h < now.heads; h++) {
        const mhai_state total = state_at(&scratch->total, h * now.rows, ldo);
        for (ptrdiff_t split = 0; split < run->tiling.splits; split++) {
            const mhai_state part = state_at(&run->shared.part, part_row(&now, split, h), ldo);
            if (split == 0) {
                copy_state(&total, &part, now.rows, ldo);
                continue;
            }
            run->plan->kernels->merge((int)now.rows, ldo, total.m, total.l, total.o, part.m, part.l,
                                      part.o);
            for (ptrdiff_t r = 0; r < now.rows; r++)
                total.seen[r] |= part.seen[r];
        }
    }
    mhai_store_rows(run, &now.worker, &scratch->total);
}
