/* SPDX-License-Identifier: MIT */
/*
 * The operator: one task is a few query rows of one key/value head against all keys they see.
 *
 *      for each split of MHAI_SPLIT keys            partial softmax, merged in ascending order
 *          for each block of MHAK_BLOCK keys        K packed once for all rows of the task
 *              for each tile of row_tile rows
 *                  mask -> scores -> fold -> pv     skipped where no row sees a key
 *      divide by l, store
 *
 * Splits and blocks count from key 0, whatever a row sees, so a row's sums have one order.
 */
#include "statistics.h"

#include <math.h>
#include <string.h>

/* How values are read. A masked value must not be looked at, yet p = 0 times NaN is NaN: where a
 * row comes out not finite, its task is done again PER_ROW, each row with its masked values
 * replaced by 0. For finite values both give the same bits, since acc + 0 * v = acc. NOT_AT_ALL is
 * for those who want m and l alone. */
typedef enum { TOGETHER, PER_ROW, NOT_AT_ALL } values;

typedef struct task {
    mhai_worker worker;
    const mhai_run *run;
    ptrdiff_t h, heads;            /* query heads [h, h + heads) */
    ptrdiff_t i, rows;             /* query rows [i, i + rows) of each */
    ptrdiff_t split;               /* the only split to work on, or -1 for all */
    ptrdiff_t first, last;         /* keys that any row may see */
    ptrdiff_t all_first, all_last; /* keys that every row sees */
    bool some_masked;              /* did a tile have both visible and masked keys? */
} task;

/* Task number -> batch, heads, rows, split. Rows vary fastest, then splits, heads, batches. */
static task task_of(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number, bool split)
{
    const mhai_tiling *const t = &run->tiling;
    const mha_shape *const shape = &run->plan->shape;
    const ptrdiff_t group = shape->H / shape->G;
    /* Late rows of a causal task see the most keys: begin with them. */
    const ptrdiff_t row_chunk = t->row_chunks - 1 - number % t->row_chunks;
    number /= t->row_chunks;
    task now = {.run = run, .split = -1};
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
static bool closed(const task *now, ptrdiff_t h)
{
    const mhai_call *const call = now->worker.call;
    return !call->options.lse.data && !call->options.weights.data && !call->options.statistics &&
           mhai_gate(call, now->worker.batch.b, h) == 0.0f;
}

/* Which keys do any, and which do all of the rows see? */
static void bound_keys(task *now)
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
}

static void list_rows(task *now)
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

static void clear_state(const mhai_worker *worker, const mhai_state *state)
{
    for (int r = 0; r < worker->count; r++) {
        state->m[r] = -INFINITY;
        state->l[r] = 0.0f;
    }
    memset(state->o, 0, sizeof(float) * (size_t)(worker->count * worker->plan->ldo));
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
static mhai_cover cover_of(const task *now, const mhai_block *block, int row, int count, int *first,
                           int *last)
{
    const mhai_worker *const worker = &now->worker;
    if (now->all_first <= block->base && block->base + MHAK_BLOCK <= now->all_last) {
        *first = 0;
        *last = MHAK_BLOCK;
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

/* One tile of rows against one block of keys. */
static void run_tile(task *now, mhai_block *block, int row, int count, const mhai_state *state,
                     values how)
{
    const mhai_worker *const worker = &now->worker;
    const mhai_scratch *const scratch = worker->scratch;
    const mhak_table *const kernels = worker->plan->kernels;
    int first, last;
    const mhai_cover cover = cover_of(now, block, row, count, &first, &last);
    if (cover == MHAI_NONE)
        return;
    mark_seen(scratch->keep, cover, count, scratch->total.seen + row);
    mhai_scores_final(worker, block, row, count, first, last);
    const int width = kernels->vector;
    const uint32_t *const keep = cover == MHAI_SOME ? scratch->keep : NULL;
    const int from = first / width * width, to = (last + width - 1) / width * width;
    if (worker->plan->hold_scores)
        mhai_hold_scores(worker, block->base, row, count, first, last, keep);
    if (worker->plan->statistics)
        mhai_watch_fold(worker, block->base, row, count, from, to, keep, state);
    else
        kernels->fold(scratch->s, count, from, to, keep, state->m + row, state->l + row,
                      scratch->alpha);
    if (worker->plan->hold_scores)
        mhai_store_tile(worker, row, count, from, to, state->l);
    if (how == NOT_AT_ALL || only_means(worker, row, count))
        return;
    const mhai_pv product = {row, count, first, last, keep, keep && how == PER_ROW};
    mhai_add_values(worker, block, &product, state->o);
    now->some_masked |= cover == MHAI_SOME;
}

/* All blocks of one split, into a cleared state. */
static void run_split(task *now, ptrdiff_t first, ptrdiff_t last, const mhai_state *state,
                      values how)
{
    const mhai_worker *const worker = &now->worker;
    const int tile = worker->plan->row_tile;
    clear_state(worker, state);
    for (ptrdiff_t base = first / MHAK_BLOCK * MHAK_BLOCK; base < last; base += MHAK_BLOCK) {
        mhai_block block = mhai_block_at(worker, base);
        for (int row = 0; row < worker->count; row += tile) {
            mhai_masks_come(worker, row + tile, base);
            run_tile(now, &block, row, (int)mhai_min(tile, worker->count - row), state, how);
        }
        mhai_block_leave(worker, &block);
    }
}

/* All keys of the task, into scratch->total. */
static void run_keys(task *now, values how)
{
    const mhai_worker *const worker = &now->worker;
    const mhai_scratch *const scratch = worker->scratch;
    const mhai_state *const total = &scratch->total, *const part = &scratch->part;
    memset(total->seen, 0, sizeof(bool) * (size_t)worker->count);
    mhai_watch_begin(worker);
    if (worker->plan->hold_scores)
        mhai_held_begin(worker);
    if (now->first >= now->last)
        clear_state(worker, total);
    bool first_split = true;
    for (ptrdiff_t at = now->first; at < now->last;) {
        const ptrdiff_t end = mhai_min(now->last, (at / MHAI_SPLIT + 1) * MHAI_SPLIT);
        /* Merging into nothing changes no bit, so the first split needs no merge. */
        run_split(now, at, end, first_split ? total : part, how);
        if (!first_split)
            worker->plan->kernels->merge(worker->count, worker->plan->ldo, total->m, total->l,
                                         total->o, part->m, part->l, part->o);
        first_split = false;
        at = end;
    }
}

/* The sink joins the denominator: one more logit, with value 0. */
static void add_sink(float sink, float *m, float *l, float *factor)
{
    const float top = *m > sink ? *m : sink;
    const float shrink = *m == -INFINITY ? 0.0f : expf(*m - top);
    *l = *l * shrink + (sink == -INFINITY ? 0.0f : expf(sink - top));
    *factor = shrink;
    *m = top;
}

/* The extra keys join as a block of their own, behind all others. */
static void add_extras(const mhai_worker *worker, const mhai_state *state, int r)
{
    const mhai_call *const call = worker->call;
    const ptrdiff_t dv = call->shape.Dv;
    float *const o = state->o + r * worker->plan->ldo;
    for (int n = 0; n < mhai_extras(call); n++) {
        const float score = mhai_extra_score(worker, r, n, true);
        const float top = state->m[r] > score ? state->m[r] : score;
        const float shrink = state->m[r] == -INFINITY ? 0.0f : expf(state->m[r] - top);
        const float p = expf(score - top);
        const mhak_drop drop = mhai_drop_of(call, worker->batch.b, worker->scratch->rows[r].h);
        const bool keeps = mhai_drop_keeps(&drop, worker->scratch->rows[r].i, call->shape.S + n);
        const float weight = keeps ? p * mhai_drop_factor(drop.threshold) : 0.0f;
        const bool learned = call->extra.k && n == 0;
        for (ptrdiff_t c = 0; c < dv; c++)
            o[c] = o[c] * shrink + (learned ? weight * call->extra.v[worker->g * dv + c] : 0.0f);
        state->l[r] = state->l[r] * shrink + p;
        state->m[r] = top;
        state->seen[r] = true;
    }
}

/* A row when all its keys are in: the final m and l, 1/l, and what its o must be multiplied by. */
typedef struct sums {
    float m, l, inverse, by;
} sums;

static sums close_row(const mhai_worker *worker, const mhai_state *state, int r)
{
    const mhai_call *const call = worker->call;
    const ptrdiff_t h = worker->scratch->rows[r].h;
    add_extras(worker, state, r);
    sums row = {.m = state->m[r], .l = state->l[r]};
    float factor = 1.0f;
    if (call->options.sinks && mhai_mode(call, h) == MHA_HEAD_NORMAL)
        add_sink(call->options.sinks[h], &row.m, &row.l, &factor);
    /* l is 0 if every score given was -inf, which is NaN by IEEE. A row that was given no key is 0,
     * whatever the sink. */
    row.inverse = !state->seen[r] ? 0.0f : row.l != 0.0f ? 1.0f / row.l : NAN;
    row.by = factor * row.inverse;
    return row;
}

/* A row of o, times a factor, to where it belongs. */
static void store_scaled(const mhai_worker *worker, const mhai_state *state, int r, float factor)
{
    const mhai_call *const call = worker->call;
    const mha_shape *const shape = &call->shape;
    const mhai_row *const row = &worker->scratch->rows[r];
    const mha_view o = mhai_as_view(call->o);
    worker->plan->kernels->store_row[shape->o_type](
        state->o + r * worker->plan->ldo, (int)shape->Dv, factor,
        mhai_out_at(call->o.data, shape->o_type,
                    mhai_q_index(call, &worker->batch, &o, row->h, row->i)));
}

static void store_output(const mhai_worker *worker, const mhai_state *state, int r, float by)
{
    const mhai_call *const call = worker->call;
    const mha_shape *const shape = &call->shape;
    const mhai_row *const row = &worker->scratch->rows[r];
    const size_t size = sizeof(float) * (size_t)shape->Dv;
    float *const from = state->o + r * worker->plan->ldo;
    const float gate = mhai_gate(call, worker->batch.b, row->h);
    float factor = by * gate;
    if (!state->seen[r] || gate == 0.0f) {
        /* Not 0 times what it has: that may be infinite. */
        memset(from, 0, size);
        factor = 0.0f;
    } else if (mhai_mode(call, row->h) == MHA_HEAD_MEAN) {
        memcpy(from, call->options.head_means + row->h * shape->Dv, size);
        factor = gate;
    }
    store_scaled(worker, state, r, factor);
}

/* A head that gives a mean has no weights. */
static bool mean_head(const mhai_worker *worker, int r)
{
    return mhai_mode(worker->call, worker->scratch->rows[r].h) == MHA_HEAD_MEAN;
}

static void store_stats(const mhai_worker *worker, const sums *row, int r, float *stats)
{
    stats[0] = row->m;
    stats[1] = mean_head(worker, r) ? 0.0f : row->inverse;
}

/* Divide by l and write one row's output, log-sum-exp and sums. */
static void store_one(const task *now, const mhai_state *state, int r)
{
    const mhai_worker *const worker = &now->worker;
    const mhai_call *const call = worker->call;
    const mhai_row *const row = &worker->scratch->rows[r];
    const mha_shape *const shape = &call->shape;
    const sums done = close_row(worker, state, r);
    store_output(worker, state, r, done.by);
    mhai_watch_row(now->run, worker, r, done.m, done.l, state->seen[r]);
    if (call->options.lse.data) {
        const mha_view lse = mhai_as_view(call->options.lse);
        ((float *)
             call->options.lse.data)[mhai_q_index(call, &worker->batch, &lse, row->h, row->i)] =
            state->seen[r] ? (float)((double)done.m + log((double)done.l)) : -INFINITY;
    }
    if (worker->plan->hold_scores)
        mhai_store_held(worker, r, done.m, mean_head(worker, r) ? 0.0f : done.inverse);
    else if (now->run->shared.stats)
        store_stats(worker, &done, r,
                    now->run->shared.stats +
                        2 * ((worker->batch.b * shape->H + row->h) * shape->L + row->i));
}

/* Is nothing wanted but o divided by l? */
static bool only_divide(const task *now)
{
    const mhai_call *const call = now->worker.call;
    const mha_options *const o = &call->options;
    return !o->sinks && !o->gates && !o->head_modes && !o->lse.data && !o->statistics &&
           !now->run->shared.stats && mhai_extras(call) == 0;
}

static void store_rows(const task *now, const mhai_state *state)
{
    const bool simple = only_divide(now);
    for (int r = 0; r < now->worker.count; r++)
        if (simple && state->seen[r] && state->l[r] != 0.0f)
            store_scaled(&now->worker, state, r, 1.0f / state->l[r]);
        else
            store_one(now, state, r);
}

/* Partial results lie [split][B][H][L]; the rows of a task are runs of `rows` for each head. */
static ptrdiff_t part_row(const task *now, ptrdiff_t split, ptrdiff_t head)
{
    const mha_shape *const shape = &now->worker.call->shape;
    return ((split * shape->B + now->worker.batch.b) * shape->H + now->h + head) * shape->L +
           now->i;
}

static mhai_state state_at(const mhai_state *state, ptrdiff_t row, ptrdiff_t ldo)
{
    return (mhai_state){state->m + row, state->l + row, state->o + row * ldo, state->seen + row};
}

static void copy_state(const mhai_state *to, const mhai_state *from, ptrdiff_t rows, ptrdiff_t ldo)
{
    memcpy(to->m, from->m, sizeof(float) * (size_t)rows);
    memcpy(to->l, from->l, sizeof(float) * (size_t)rows);
    memcpy(to->o, from->o, sizeof(float) * (size_t)(rows * ldo));
    memcpy(to->seen, from->seen, sizeof(bool) * (size_t)rows);
}

static void keep_part(const task *now)
{
    const ptrdiff_t ldo = now->worker.plan->ldo;
    for (ptrdiff_t h = 0; h < now->heads; h++) {
        const mhai_state to = state_at(&now->run->shared.part, part_row(now, now->split, h), ldo);
        const mhai_state from = state_at(&now->worker.scratch->total, h * now->rows, ldo);
        copy_state(&to, &from, now->rows, ldo);
    }
}

/* What the task reads that comes `threads` after this one. */
static mhai_coming coming_after(const task *now, ptrdiff_t number)
{
    const mhai_run *const run = now->run;
    mhai_coming coming = {.any = mhai_masks_look_up(&run->call->options)};
    number += run->tiling.threads;
    if (mhai_short_heads(run) && number < run->tiling.row_tasks) {
        const task then = task_of(run, now->worker.scratch, number, false);
        mhai_head_comes(&coming, &then.worker, then.h, then.i, then.rows, now->worker.count);
    }
    return coming;
}

void mhai_attention_task(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number)
{
    task now = task_of(run, scratch, number, run->tiling.splits > 1);
    if (now.worker.count == 0)
        return;
    list_rows(&now);
    mhai_coming coming = coming_after(&now, number);
    now.worker.coming = &coming;
    mhai_load_queries(&now.worker);
    run_keys(&now, TOGETHER);
    if (now.some_masked &&
        !run->plan->kernels->all_finite(scratch->total.o, now.worker.count * run->plan->ldo))
        run_keys(&now, PER_ROW);
    if (now.split >= 0)
        keep_part(&now);
    else
        store_rows(&now, &scratch->total);
}

void mhai_attention_sums(const mhai_worker *worker, float *stats)
{
    const mhai_state *const total = &worker->scratch->total;
    task now = {.worker = *worker, .split = -1};
    bound_keys(&now);
    run_keys(&now, NOT_AT_ALL);
    for (int r = 0; r < worker->count; r++) {
        const sums done = close_row(worker, total, r);
        store_stats(worker, &done, r, stats + 2 * r);
    }
}

/* All rows of some heads one after another: what keys receive has one order. */
void mhai_attention_heads(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number)
{
    const ptrdiff_t chunks = run->tiling.row_chunks;
    const task all = task_of(run, scratch, number * chunks, false);
    mhai_watch_clear_columns(run->call, all.worker.batch.b, all.h, all.heads);
    memset(scratch->k_packed, 0, sizeof(uint32_t) * (size_t)run->plan->held_blocks);
    for (ptrdiff_t n = chunks; n-- > 0;)
        mhai_attention_task(run, scratch, number * chunks + n);
}

void mhai_merge_task(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number)
{
    task now = task_of(run, scratch, number, false);
    if (now.worker.count == 0)
        return;
    list_rows(&now);
    if (mhai_extras(run->call) > 0)
        mhai_load_queries(&now.worker);
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
    store_rows(&now, &scratch->total);
}
