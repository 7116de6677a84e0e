/* SPDX-License-Identifier: MIT */
/*
 * The operator: one task is a chunk of at most MHAI_TASK_ROWS query rows of one key/value head,
 * against all keys they see.
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
    mhai_task task = {.run = run, .split = -1};
    if (split) {
        task.split = number % t->splits;
        number /= t->splits;
    }
    const ptrdiff_t head_chunk = number % t->head_chunks;
    number /= t->head_chunks;
    const ptrdiff_t g = number % shape->G, b = number / shape->G;
    task.h = g * group + head_chunk * t->heads;
    task.heads = mhai_min(t->heads, group - head_chunk * t->heads);
    task.i = row_chunk * t->rows;
    task.worker = (mhai_worker){.plan = run->plan,
                                .call = run->call,
                                .scratch = scratch,
                                .batch = mhai_batch_of(run->call, b),
                                .g = g,
                                .lasting_panels = run->plan->columns};
    const ptrdiff_t end = mhai_min(task.i + t->rows, task.worker.batch.queries);
    task.i = mhai_max(task.i, run->call->row_first);
    task.rows =
        mhai_max(0, (run->call->row_last ? mhai_min(end, run->call->row_last) : end) - task.i);
    task.worker.count = (int)(task.heads * task.rows);
    return task;
}

/* Is nothing needed of a head, since its gate is 0? */
static bool closed(const mhai_task *task, ptrdiff_t h)
{
    const mhai_call *const call = task->worker.call;
    return !call->options.lse.data && !call->options.weights.data && !call->options.statistics &&
           mhai_gate(call, task->worker.batch.b, h) == 0.0f;
}

/* Finds the keys that any of the rows sees, and those that all of them see. */
static void bound_keys(mhai_task *task)
{
    task->first = task->worker.batch.keys;
    task->last = 0;
    task->all_first = 0;
    task->all_last = mhai_masks_look_up(&task->worker.call->options) ? 0 : task->worker.batch.keys;
    for (int r = 0; r < task->worker.count; r++) {
        const mhai_row *const row = &task->worker.scratch->rows[r];
        task->all_first = mhai_max(task->all_first, row->first);
        task->all_last = mhai_min(task->all_last, row->last);
        if (row->first < row->last) {
            task->first = mhai_min(task->first, row->first);
            task->last = mhai_max(task->last, row->last);
        }
    }
    task->same_keys = task->all_first == task->first && task->all_last == task->last;
}

static void list_rows(mhai_task *task)
{
    mhai_row *row = task->worker.scratch->rows;
    for (ptrdiff_t h = 0; h < task->heads; h++)
        for (ptrdiff_t i = 0; i < task->rows; i++, row++) {
            row->h = task->h + h;
            row->i = task->i + i;
            mhai_row_range(task->worker.call, &task->worker.batch, row);
            if (closed(task, row->h))
                row->first = row->last = 0;
        }
    bound_keys(task);
    if (task->split >= 0) {
        task->first = mhai_max(task->first, task->split * MHAI_SPLIT);
        task->last = mhai_min(task->last, (task->split + 1) * MHAI_SPLIT);
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

/* Which keys of the block do these rows see? Most blocks are decided without looking at single
 * rows. Statistics need keep bits for a part of a vector, and so do pairs, which read the value of
 * the next key. */
static mhai_cover cover_of(const mhai_task *task, const mhai_block *block, int row, int count,
                           int *first, int *last)
{
    const mhai_worker *const worker = &task->worker;
    const int width = worker->plan->kernels->vector;
    const ptrdiff_t from = mhai_max(task->all_first - block->base, 0);
    const ptrdiff_t to = mhai_min(task->all_last - block->base, MHAK_BLOCK);
    if ((task->same_keys || to - from == MHAK_BLOCK) && from % width == 0 &&
        (to % width == 0 || !(worker->plan->statistics || worker->plan->pairs))) {
        *first = (int)from;
        *last = (int)to;
        return MHAI_ALL;
    }
    return mhai_mask_block(worker->call, worker->plan->kernels, &worker->batch,
                           worker->scratch->rows + row, count, block->base, worker->scratch->keep,
                           first, last);
}

/* Do the heads of all these rows return a mean instead of weights times values? */
static bool only_means(const mhai_worker *worker, int row, int count)
{
    const bool modes = worker->call->options.head_modes != NULL;
    for (int r = 0; modes && r < count; r++)
        if (mhai_mode(worker->call, worker->scratch->rows[row + r].h) != MHA_HEAD_MEAN)
            return false;
    return modes;
}

static const uint32_t *keep_of(const mhai_task *task, const mhai_tile *t)
{
    return t->cover == MHAI_SOME ? task->worker.scratch->keep : NULL;
}

/* Is the additive mask all there is to look up and to add after the soft cap, in a run that needs
 * no keep bits? */
static bool adds_mask(const mhai_worker *worker, mhai_value_mode mode)
{
    const mha_options *const o = &worker->call->options;
    return o->add_mask.data && o->add_mask_type == MHA_F32 && !o->bias.data &&
           !o->attend_mask.data && !o->ignore_mask.data && !o->q_documents && !o->alibi_slopes &&
           !o->head_modes && !worker->plan->statistics && !worker->plan->one_pass &&
           !worker->plan->pairs && mode != MHAI_VALUES_PER_ROW;
}

/* The mask of row r of the tile, at its first key. */
static const float *mask_at(const mhai_worker *worker, const mhai_tile *t, int r)
{
    const mha_view *const mask = &worker->call->options.add_mask;
    const mhai_row *const row = &worker->scratch->rows[t->row + r];
    return (const float *)mask->data + mhai_index(mask, false, worker->batch.b, 0, row->h, row->i) +
           t->block->base + t->first;
}

/* Do all rows, consecutive ones of a head, see the same keys but for the additive mask, and does it
 * mask none of the four in the corners? Then fold adds it: other masks may leave so little that
 * scores should not be computed. */
static bool cover_added(const mhai_task *task, mhai_tile *t)
{
    const mhai_worker *const worker = &task->worker;
    const mhai_row *const rows = worker->scratch->rows + t->row;
    const ptrdiff_t first = mhai_max(rows[0].first - t->block->base, 0);
    const ptrdiff_t last = mhai_min(rows[0].last - t->block->base, MHAK_BLOCK);
    if (!task->adds_mask || first >= last || first % worker->plan->kernels->vector != 0 ||
        mhai_consecutive_rows(rows, t->count) < t->count)
        return false;
    for (int r = 1; r < t->count; r++)
        if (rows[r].first != rows[0].first || rows[r].last != rows[0].last)
            return false;
    t->first = (int)first;
    t->last = (int)last;
    const float *const top = mask_at(worker, t, 0), *const end = mask_at(worker, t, t->count - 1);
    const ptrdiff_t right = last - first - 1;
    return top[0] > -INFINITY && top[right] > -INFINITY && end[0] > -INFINITY &&
           end[right] > -INFINITY;
}

void mhai_tile_cover(const mhai_task *task, mhai_tile *t)
{
    const mhai_scratch *const scratch = task->worker.scratch;
    t->hidden = false;
    t->added = cover_added(task, t);
    if (t->added) {
        t->cover = MHAI_ALL;
        return;
    }
    t->cover = cover_of(task, t->block, t->row, t->count, &t->first, &t->last);
    if (t->cover != MHAI_NONE)
        mark_seen(scratch->keep, t->cover, t->count, scratch->total.seen + t->row);
}

void mhai_tile_scores(const mhai_task *task, const mhai_tile *t)
{
    const mhai_worker *const worker = &task->worker;
    if (t->added) {
        mhai_scores(worker, t->block, t->row, t->count, t->first, t->last);
        mhai_scores_cap(worker, t->count, t->first, t->last);
    } else if (t->cover != MHAI_NONE) {
        mhai_scores_final(worker, t->block, t->row, t->count, t->first, t->last);
    }
}

static void fold_added(const mhai_worker *worker, mhai_tile *t, const mhai_state *state)
{
    const mhai_scratch *const scratch = worker->scratch;
    t->hidden = worker->plan->kernels->fold_added(
        scratch->s, t->count, t->first, t->last, mask_at(worker, t, 0),
        worker->call->options.add_mask.sl, state->m + t->row, state->l + t->row, scratch->alpha,
        scratch->total.seen + t->row);
}

void mhai_tile_fold(const mhai_task *task, mhai_tile *t, const mhai_state *state)
{
    const mhai_worker *const worker = &task->worker;
    const mhak_table *const kernels = worker->plan->kernels;
    if (t->cover == MHAI_NONE)
        return;
    if (t->added) {
        fold_added(worker, t, state);
        return;
    }
    const int width = kernels->vector, row = t->row;
    const uint32_t *const keep = keep_of(task, t);
    /* Keep bits go to the end of a vector; without them the range is all there is. */
    const int from = t->first / width * width;
    const int to = keep ? (t->last + width - 1) / width * width : t->last;
    mhak_hold place;
    const mhak_hold *const hold =
        mhai_one_pass_hold(worker, t->block->base, row, t->count, from, to, keep, &place) ? &place
                                                                                          : NULL;
    if (worker->plan->statistics)
        mhai_statistics_fold(worker, t->block->base, row, t->count, from, to, keep, hold, state);
    else if (mhai_folds_to_pairs(worker))
        worker->plan->pairs->fold(worker->scratch->s, t->count, from, to, keep, state->m + row,
                                  state->l + row, worker->scratch->alpha);
    else
        kernels->fold(worker->scratch->s, t->count, from, to, keep, state->m + row, state->l + row,
                      worker->scratch->alpha, hold);
    mhai_one_pass_store_tile(worker, row, t->count, from, to, keep, state->l);
}

void mhai_tile_values(mhai_task *task, const mhai_tile *t, const mhai_state *state,
                      mhai_value_mode mode)
{
    if (t->cover == MHAI_NONE || mode == MHAI_VALUES_SKIPPED ||
        only_means(&task->worker, t->row, t->count))
        return;
    const uint32_t *const keep = keep_of(task, t);
    const mhai_pv product = {t->row,  t->count, t->first,
                             t->last, keep,     keep && mode == MHAI_VALUES_PER_ROW};
    mhai_add_values(&task->worker, t->block, &product, state->o);
    task->some_masked |= mhai_tile_masked(t);
}

/* Queries are loaded before the first split, and tile by tile, so that they are in the L1 cache
 * when they are used. */
void mhai_tile_begin(const mhai_task *task, int row, int count, const mhai_state *state,
                     mhai_value_mode mode)
{
    clear_state(&task->worker, state, row, count);
    if (mode == MHAI_VALUES_SHARED && state->m == task->worker.scratch->total.m)
        mhai_load_queries(&task->worker, row, count);
}

/* ------------------------------------------------------------------ splits ----- */

/* All blocks of one split. */
static void run_split(mhai_task *task, ptrdiff_t first, ptrdiff_t last, const mhai_state *state,
                      mhai_value_mode mode)
{
    const mhai_worker *const worker = &task->worker;
    const int most = worker->plan->row_tile;
    const ptrdiff_t start = first / MHAK_BLOCK * MHAK_BLOCK;
    for (ptrdiff_t base = start; base < last; base += MHAK_BLOCK) {
        mhai_block block = mhai_block_at(worker, base);
        for (int row = 0; row < worker->count; row += most) {
            mhai_tile t = {.block = &block, .row = row};
            t.count = (int)mhai_min(most, worker->count - row);
            if (base == start)
                mhai_tile_begin(task, row, t.count, state, mode);
            mhai_prefetch_masks(worker, row + most, base);
            mhai_tile_cover(task, &t);
            mhai_tile_scores(task, &t);
            mhai_tile_fold(task, &t, state);
            mhai_tile_values(task, &t, state, mode);
        }
        mhai_block_leave(worker, &block);
    }
}

/* Computes some splits, from key `at` on, into the total. The very first split is written
 * to the total directly, since merging it into an empty state would change no bit. Returns
 * the next key. */
static ptrdiff_t run_splits(mhai_task *task, ptrdiff_t at, mhai_value_mode mode)
{
    const mhai_worker *const worker = &task->worker;
    const mhai_state *const total = &worker->scratch->total;
    const ptrdiff_t together = mhai_few_splits(task, at), splits = mhai_max(1, together);
    const ptrdiff_t ldo = worker->plan->ldo;
    const ptrdiff_t end = mhai_min(task->last, (at / MHAI_SPLIT + splits) * MHAI_SPLIT);
    mhai_state states[MHAI_FEW_SPLITS];
    for (ptrdiff_t n = 0; n < splits; n++)
        states[n] = at == task->first && n == 0
                        ? *total
                        : state_at(&worker->scratch->part, n * worker->count, ldo);
    if (together > 0)
        mhai_run_few(task, at, end, states, mode);
    else
        run_split(task, at, end, &states[0], mode);
    for (ptrdiff_t n = at == task->first; n < splits; n++)
        worker->plan->kernels->merge(worker->count, ldo, total->m, total->l, total->o, states[n].m,
                                     states[n].l, states[n].o);
    return end;
}

/* All keys of the task, into scratch->total. */
static void run_keys(mhai_task *task, mhai_value_mode mode)
{
    const mhai_worker *const worker = &task->worker;
    const mhai_state *const total = &worker->scratch->total;
    memset(total->seen, 0, sizeof(bool) * (size_t)worker->count);
    task->adds_mask = adds_mask(worker, mode);
    mhai_statistics_begin(worker);
    mhai_one_pass_begin(worker);
    if (task->first >= task->last)
        mhai_tile_begin(task, 0, worker->count, total, mode);
    for (ptrdiff_t at = task->first; at < task->last;)
        at = run_splits(task, at, mode);
}

/* Partial results lie as [split][B][H][L]; a task has `rows` consecutive rows of each of
 * its heads. */
static ptrdiff_t part_row(const mhai_task *task, ptrdiff_t split, ptrdiff_t head)
{
    const mha_shape *const shape = &task->worker.call->shape;
    return ((split * shape->B + task->worker.batch.b) * shape->H + task->h + head) * shape->L +
           task->i;
}

static void copy_state(const mhai_state *to, const mhai_state *from, ptrdiff_t rows, ptrdiff_t ldo)
{
    memcpy(to->m, from->m, sizeof(float) * (size_t)rows);
    memcpy(to->l, from->l, sizeof(float) * (size_t)rows);
    memcpy(to->o, from->o, sizeof(float) * (size_t)(rows * ldo));
    memcpy(to->seen, from->seen, sizeof(bool) * (size_t)rows);
}

static void keep_part(const mhai_task *task)
{
    const ptrdiff_t ldo = task->worker.plan->ldo;
    for (ptrdiff_t h = 0; h < task->heads; h++) {
        const mhai_state to =
            state_at(&task->run->shared.part, part_row(task, task->split, h), ldo);
        const mhai_state from = state_at(&task->worker.scratch->total, h * task->rows, ldo);
        copy_state(&to, &from, task->rows, ldo);
    }
}

/* What is to be prefetched during this task: the rows of the task that this thread may get next,
 * `threads` tasks later. */
static mhai_prefetch prefetch_after(const mhai_task *task, ptrdiff_t number)
{
    const mhai_run *const run = task->run;
    mhai_prefetch prefetch = {.any = mhai_masks_look_up(&run->call->options)};
    number += run->tiling.threads;
    if (mhai_short_heads(run) && number < run->tiling.row_tasks) {
        const mhai_task next = task_of(run, task->worker.scratch, number, false);
        mhai_prefetch_head(&prefetch, &next.worker, next.h, next.i, next.rows, task->worker.count);
    }
    return prefetch;
}

void mhai_attention_task(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number)
{
    mhai_task task = task_of(run, scratch, number, run->tiling.splits > 1);
    if (task.worker.count == 0)
        return;
    list_rows(&task);
    mhai_prefetch prefetch = prefetch_after(&task, number);
    task.worker.prefetch = &prefetch;
    run_keys(&task, MHAI_VALUES_SHARED);
    if (task.some_masked &&
        !run->plan->kernels->all_finite(scratch->total.o, task.worker.count * run->plan->ldo))
        run_keys(&task, MHAI_VALUES_PER_ROW);
    if (task.split >= 0)
        keep_part(&task);
    else
        mhai_store_rows(run, &task.worker, &scratch->total);
}

void mhai_attention_sums(const mhai_worker *worker, float *stats)
{
    const mhai_state *const total = &worker->scratch->total;
    mhai_task task = {.worker = *worker, .split = -1};
    bound_keys(&task);
    run_keys(&task, MHAI_VALUES_SKIPPED);
    for (int r = 0; r < worker->count; r++)
        mhai_close_sums(worker, total, r, stats + 2 * r);
}

/* All rows of some heads in order, since the sums of columns have a fixed order. */
void mhai_attention_heads(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number)
{
    const ptrdiff_t chunks = run->tiling.row_chunks;
    const mhai_task all = task_of(run, scratch, number * chunks, false);
    mhai_statistics_clear_columns(run->call, all.worker.batch.b, all.h, all.heads);
    memset(scratch->k_packed, 0, sizeof(uint32_t) * (size_t)run->plan->column_blocks);
    for (ptrdiff_t n = chunks; n-- > 0;)
        mhai_attention_task(run, scratch, number * chunks + n);
}

void mhai_merge_task(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number)
{
    mhai_task task = task_of(run, scratch, number, false);
    if (task.worker.count == 0)
        return;
    list_rows(&task);
    if (mhai_extras(run->call) > 0)
        mhai_load_queries(&task.worker, 0, task.worker.count);
    const ptrdiff_t ldo = run->plan->ldo;
    for (ptrdiff_t h = 0; h < task.heads; h++) {
        const mhai_state total = state_at(&scratch->total, h * task.rows, ldo);
        for (ptrdiff_t split = 0; split < run->tiling.splits; split++) {
            const mhai_state part = state_at(&run->shared.part, part_row(&task, split, h), ldo);
            if (split == 0) {
                copy_state(&total, &part, task.rows, ldo);
                continue;
            }
            run->plan->kernels->merge((int)task.rows, ldo, total.m, total.l, total.o, part.m,
                                      part.l, part.o);
            for (ptrdiff_t r = 0; r < task.rows; r++)
                total.seen[r] |= part.seen[r];
        }
    }
    mhai_store_rows(run, &task.worker, &scratch->total);
}
