/* SPDX-License-Identifier: MIT */
/*
 * Finishes a row when all its keys are added: sinks and extra keys are added too, o is divided by l
 * and written, together with everything else that is requested of the row.
 */
#include "core/statistics.h"

#include <math.h>
#include <string.h>

/* Adds the sink to the denominator: one more logit, with value 0. */
static void add_sink(float sink, float *m, float *l, float *factor)
{
    const float top = *m > sink ? *m : sink;
    const float shrink = *m == -INFINITY ? 0.0f : expf(*m - top);
    *l = *l * shrink + (sink == -INFINITY ? 0.0f : expf(sink - top));
    *factor = shrink;
    *m = top;
}

/* Adds the extra keys as a block of their own, after all others. */
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
        const bool keeps =
            mhai_call_keeps(call, &drop, worker->scratch->rows[r].i, call->shape.S + n);
        const float weight = keeps ? p * mhai_drop_factor(drop.threshold) : 0.0f;
        const bool learned = call->extra.k && n == 0;
        for (ptrdiff_t c = 0; c < dv; c++)
            o[c] = o[c] * shrink + (learned ? weight * call->extra.v[worker->g * dv + c] : 0.0f);
        state->l[r] = state->l[r] * shrink + p;
        state->m[r] = top;
        state->seen[r] = true;
    }
}

/* A finished row: the final m and l, 1/l, and the factor for its o. */
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
    /* l is 0 if every visible score was -inf, which gives NaN by IEEE. A row that sees no key is 0,
     * whatever the sink. */
    row.inverse = !state->seen[r] ? 0.0f : row.l != 0.0f ? 1.0f / row.l : NAN;
    row.by = factor * row.inverse;
    return row;
}

/* Row r of o as it is stored. */
static void *output_at(const mhai_worker *worker, int r)
{
    const mhai_call *const call = worker->call;
    const mhai_row *const row = &worker->scratch->rows[r];
    const mha_view o = mhai_as_view(call->o);
    return mhai_out_at(call->o.data, call->shape.o_type,
                       mhai_q_index(call, &worker->batch, &o, row->h, row->i));
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
        /* Not by a factor of 0: the row may hold infinities. */
        memset(from, 0, size);
        factor = 0.0f;
    } else if (mhai_mode(call, row->h) == MHA_HEAD_MEAN) {
        memcpy(from, call->options.head_means + row->h * shape->Dv, size);
        factor = gate;
    }
    worker->plan->kernels->store_row[shape->o_type](from, (int)shape->Dv, factor,
                                                    output_at(worker, r));
}

/* A head that returns a mean has no weights. */
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
static void store_one(const mhai_run *run, const mhai_worker *worker, const mhai_state *state,
                      int r)
{
    const mhai_call *const call = worker->call;
    const mhai_row *const row = &worker->scratch->rows[r];
    const mha_shape *const shape = &call->shape;
    const sums done = close_row(worker, state, r);
    store_output(worker, state, r, done.by);
    mhai_statistics_row(run, worker, r, done.m, done.l, state->seen[r]);
    if (call->options.lse.data) {
        const mha_view lse = mhai_as_view(call->options.lse);
        ((float *)
             call->options.lse.data)[mhai_q_index(call, &worker->batch, &lse, row->h, row->i)] =
            state->seen[r] ? (float)((double)done.m + log((double)done.l)) : -INFINITY;
    }
    if (worker->plan->one_pass)
        mhai_one_pass_store_row(worker, r, done.m, mean_head(worker, r) ? 0.0f : done.inverse);
    else if (run->shared.stats)
        store_stats(worker, &done, r,
                    run->shared.stats +
                        2 * ((worker->batch.b * shape->H + row->h) * shape->L + row->i));
}

void mhai_close_sums(const mhai_worker *worker, const mhai_state *state, int r, float *stats)
{
    const sums done = close_row(worker, state, r);
    store_stats(worker, &done, r, stats);
}

/* Is nothing requested but o divided by l? */
static bool only_divide(const mhai_run *run)
{
    const mha_options *const o = &run->call->options;
    return !o->sinks && !o->gates && !o->head_modes && !o->lse.data && !o->statistics &&
           !run->shared.stats && mhai_extras(run->call) == 0;
}

/* Computes 1/l; returns whether every row has one. */
static bool divisors(const mhai_state *state, int row, int count, float *inverse)
{
    bool all = true;
    for (int r = 0; r < count; r++) {
        all &= state->seen[row + r] && state->l[row + r] != 0.0f;
        inverse[r] = 1.0f / state->l[row + r];
    }
    return all;
}

/* Stores a tile whose rows are only divided. */
static void store_divided(const mhai_worker *worker, const mhai_state *state, int row, int count)
{
    const mha_shape *const shape = &worker->call->shape;
    const ptrdiff_t ldo = worker->plan->ldo;
    for (int r = row, n; r < row + count; r += n) {
        n = mhai_consecutive_rows(&worker->scratch->rows[r], row + count - r);
        worker->plan->kernels->store_rows[shape->o_type](state->o + r * ldo, ldo, n, (int)shape->Dv,
                                                         worker->scratch->alpha + r - row,
                                                         output_at(worker, r), worker->call->o.sl);
    }
    for (int r = row; worker->plan->one_pass && r < row + count; r++)
        mhai_one_pass_store_row(worker, r, state->m[r], worker->scratch->alpha[r - row]);
}

void mhai_store_rows(const mhai_run *run, const mhai_worker *worker, const mhai_state *state)
{
    const bool simple = only_divide(run);
    for (int row = 0, n; row < worker->count; row += n) {
        n = (int)mhai_min(worker->plan->row_tile, worker->count - row);
        if (simple && divisors(state, row, n, worker->scratch->alpha))
            store_divided(worker, state, row, n);
        else
            for (int r = row; r < row + n; r++)
                store_one(run, worker, state, r);
    }
}
