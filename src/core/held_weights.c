/* SPDX-License-Identifier: MIT */
/*
 * Weights of all heads and rows, in the pass that computes the output: scores are held until the
 * rows' sums are known, then become weights. The same bits as weights.c makes of its own scores,
 * without computing these twice. For few keys only: what is held must stay in the second cache.
 */
#include "internal.h"

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

void mhai_store_held(const mhai_worker *worker, int r, float m, float inverse)
{
    const mhai_call *const call = worker->call;
    const mha_options *const o = &call->options;
    const mhak_table *const kernels = worker->plan->kernels;
    const mhai_held *const held = &worker->scratch->held;
    const mhai_row *const row = &worker->scratch->rows[r];
    const ptrdiff_t at =
        worker->batch.b * o->weights.sb + row->h * o->weights.sh + row->i * o->weights.sl;
    for (ptrdiff_t n = 0; n < held->blocks; n++) {
        const ptrdiff_t slot = r * held->blocks + n, base = n * MHAK_BLOCK;
        const ptrdiff_t keys = mhai_min(MHAK_BLOCK, call->shape.S - base);
        float *const s = held->scores + slot * MHAK_BLOCK;
        const uint32_t *const keep = held->keep + slot * MHAK_WORDS;
        void *const to = mhai_out_at(o->weights.data, o->weights_type, at + base);
        if (!any_kept(keep)) {
            memset(to, 0, (size_t)keys * mha_dtype_size(o->weights_type));
        } else if (o->weights_type == MHA_F32 && keys % kernels->vector == 0) {
            kernels->weigh(s, (int)keys, keep, m, inverse, to);
        } else {
            kernels->weigh(s, MHAK_BLOCK, keep, m, inverse, s);
            kernels->store_row[o->weights_type](s, (int)keys, 1.0f, to);
        }
    }
}
