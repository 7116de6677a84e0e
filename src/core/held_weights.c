/* SPDX-License-Identifier: MIT */
/*
 * Weights of all heads and rows, in the pass that computes the output: scores are held until the
 * rows' sums are known, then become weights. The same bits as weights.c makes of its own scores,
 * without computing these twice. For few keys only: what is held must stay in the second cache.
 *
 * Where all keys are in one block, nothing need be held: p = exp(score - m) is final already.
 */
#include "internal.h"

#include <math.h>
#include <string.h>

enum { HELD_KEYS = 8192 };

bool mhai_scores_may_be_held(const mhai_call *call)
{
    const mha_options *const o = &call->options;
    return o->weights.data && o->weights_mode == MHA_WEIGHTS_SOFTMAX && !o->weights_heads &&
           !o->weights_rows && !(o->flags & MHA_AVERAGE_WEIGHTS) && !call->cache &&
           mhai_extras(call) == 0 && call->shape.S <= HELD_KEYS;
}

mhai_held mhai_held_take(const mha_plan *plan, mhai_work *work)
{
    const size_t rows = plan->hold_scores ? (size_t)plan->task_rows : 0;
    mhai_held held = {.blocks = mhai_ceil_div(plan->shape.S, MHAK_BLOCK)};
    held.scores = mhai_work_take(work, rows * (size_t)held.blocks * MHAK_BLOCK, sizeof(float));
    held.keep = mhai_work_take(work, rows * (size_t)held.blocks * MHAK_WORDS, sizeof(uint32_t));
    return held;
}

/* A sink would still raise m. */
static bool one_block(const mhai_worker *worker)
{
    return worker->call->shape.S <= MHAK_BLOCK && !worker->call->options.sinks;
}

/* Where the weights of row r begin. */
static ptrdiff_t out_at(const mhai_worker *worker, int r)
{
    const mha_out *const out = &worker->call->options.weights;
    const mhai_row *const row = &worker->scratch->rows[r];
    return worker->batch.b * out->sb + row->h * out->sh + row->i * out->sl;
}

/* No weight for `keys` keys from element `at` on. */
static void store_nothing(const mhai_worker *worker, ptrdiff_t at, ptrdiff_t keys)
{
    const mha_options *const o = &worker->call->options;
    memset(mhai_out_at(o->weights.data, o->weights_type, at), 0,
           (size_t)keys * mha_dtype_size(o->weights_type));
}

void mhai_held_begin(const mhai_worker *worker)
{
    const mhai_held *const held = &worker->scratch->held;
    memset(held->keep, 0, sizeof(uint32_t) * (size_t)(worker->count * held->blocks * MHAK_WORDS));
}

void mhai_hold_scores(const mhai_worker *worker, ptrdiff_t base, int row, int count, int first,
                      int last, const uint32_t *keep)
{
    const mhai_held *const held = &worker->scratch->held;
    for (int r = 0; r < count; r++) {
        const ptrdiff_t slot = (row + r) * held->blocks + base / MHAK_BLOCK;
        uint32_t *const kept = held->keep + slot * MHAK_WORDS;
        if (!one_block(worker))
            memcpy(held->scores + slot * MHAK_BLOCK, worker->scratch->s + r * MHAK_BLOCK,
                   sizeof(float) * MHAK_BLOCK);
        if (keep)
            memcpy(kept, keep + r * MHAK_WORDS, sizeof(uint32_t) * MHAK_WORDS);
        else
            mhai_keep_range(kept, first, last);
    }
}

static bool any_kept(const uint32_t *keep)
{
    uint32_t any = 0;
    for (int w = 0; w < MHAK_WORDS; w++)
        any |= keep[w];
    return any != 0;
}

/* Rows that turn out to have no weights, or none that is a number, are left to the end. */
void mhai_store_tile(const mhai_worker *worker, int row, int count, int first, int last,
                     const float *l)
{
    const mhai_call *const call = worker->call;
    const mha_options *const o = &call->options;
    const int end = (int)mhai_min(last, call->shape.S);
    for (int r = 0; one_block(worker) && r < count; r++) {
        const float *const p = worker->scratch->s + r * MHAK_BLOCK;
        const ptrdiff_t at = out_at(worker, row + r);
        store_nothing(worker, at, first);
        worker->plan->kernels->store_row[o->weights_type](
            p + first, end - first, 1.0f / l[row + r],
            mhai_out_at(o->weights.data, o->weights_type, at + first));
        store_nothing(worker, at + end, call->shape.S - end);
    }
}

static void store_block(const mhai_worker *worker, int r, ptrdiff_t n, float m, float inverse)
{
    const mhai_call *const call = worker->call;
    const mha_options *const o = &call->options;
    const mhak_table *const kernels = worker->plan->kernels;
    const mhai_held *const held = &worker->scratch->held;
    const ptrdiff_t slot = r * held->blocks + n, base = n * MHAK_BLOCK;
    const int keys = (int)mhai_min(MHAK_BLOCK, call->shape.S - base);
    float *const s = held->scores + slot * MHAK_BLOCK;
    const uint32_t *const keep = held->keep + slot * MHAK_WORDS;
    void *const to = mhai_out_at(o->weights.data, o->weights_type, out_at(worker, r) + base);
    if (!any_kept(keep)) {
        store_nothing(worker, out_at(worker, r) + base, keys);
    } else if (o->weights_type == MHA_F32 && keys % kernels->vector == 0) {
        kernels->weigh(s, keys, keep, m, inverse, to);
    } else {
        kernels->weigh(s, MHAK_BLOCK, keep, m, inverse, s);
        kernels->store_row[o->weights_type](s, keys, 1.0f, to);
    }
}

void mhai_store_held(const mhai_worker *worker, int r, float m, float inverse)
{
    const mhai_held *const held = &worker->scratch->held;
    if (!one_block(worker)) {
        for (ptrdiff_t n = 0; n < held->blocks; n++)
            store_block(worker, r, n, m, inverse);
    } else if (inverse == 0.0f) {
        store_nothing(worker, out_at(worker, r), worker->call->shape.S);
    } else if (isnan(inverse)) {
        memset(held->scores + r * MHAK_BLOCK, 0, sizeof(float) * MHAK_BLOCK);
        store_block(worker, r, 0, 0.0f, inverse);
    }
}
