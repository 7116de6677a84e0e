/* SPDX-License-Identifier: MIT */
/*
 * Weights of all heads and rows, or their mean over the heads, made in the pass that computes the
 * output: fold holds the scores until the sums of the rows are known, then they become weights. The
 * bits are those of weights_second_pass.c, which computes the scores a second time. For few keys
 * only: what is held must stay in a cache.
 *
 * Where all keys are in one block, nothing is held, since p = exp(score - m) is final already.
 *
 * For the mean, a worker has some rows of all heads, one head after another, and a row of sums for
 * each: the first head's weights initialise it, and after the last head it is divided.
 */
#include "core/tile.h"

#include <math.h>
#include <string.h>

enum { HELD_KEYS = 8192 };

bool mhai_one_pass_possible(const mhai_call *call)
{
    const mha_options *const o = &call->options;
    /* Columns are summed in another order: row after row of each head. */
    const bool columns = o->statistics && o->statistics->columns;
    return o->weights.data && o->weights_mode == MHA_WEIGHTS_SOFTMAX && !o->weights_heads &&
           !o->weights_rows && !(mhai_averages(call) && columns) && !call->cache &&
           mhai_extras(call) == 0 && call->shape.S <= HELD_KEYS;
}

mhai_one_pass mhai_one_pass_take(const mha_plan *plan, mhai_work *work)
{
    const size_t rows = plan->one_pass ? (size_t)plan->task_rows : 0;
    const size_t means = plan->one_pass_mean ? rows : 0;
    mhai_one_pass pass = {.blocks = mhai_ceil_div(plan->shape.S, MHAK_BLOCK)};
    const size_t row = (size_t)pass.blocks * MHAK_BLOCK;
    pass.scores = mhai_work_take(work, rows * row, sizeof(float));
    pass.keep = mhai_work_take(work, rows * (size_t)pass.blocks * MHAK_WORDS, sizeof(uint32_t));
    pass.sums = mhai_work_take(work, means * row, sizeof(float));
    return pass;
}

/* Are the p of a tile final? With a sink they are not, since it may still raise m. */
static bool one_block(const mhai_worker *worker)
{
    return worker->call->shape.S <= MHAK_BLOCK && !worker->call->options.sinks &&
           !worker->plan->one_pass_mean;
}

void mhai_one_pass_begin(const mhai_worker *worker)
{
    const mhai_one_pass *const pass = &worker->scratch->one_pass;
    if (worker->plan->one_pass && !one_block(worker))
        memset(pass->keep, 0,
               sizeof(uint32_t) * (size_t)(worker->count * pass->blocks * MHAK_WORDS));
}

/* The keep bits of row r of a tile; those of `range` if all rows see all of it. */
static const uint32_t *kept(const uint32_t *keep, int r, const uint32_t *range)
{
    return keep ? keep + r * MHAK_WORDS : range;
}

bool mhai_one_pass_hold(const mhai_worker *worker, ptrdiff_t base, int row, int count, int first,
                        int last, const uint32_t *keep, mhak_hold *hold)
{
    const mhai_one_pass *const pass = &worker->scratch->one_pass;
    const ptrdiff_t slot = row * pass->blocks + base / MHAK_BLOCK;
    uint32_t range[MHAK_WORDS];
    if (!worker->plan->one_pass || one_block(worker))
        return false;
    mhai_keep_range(range, first, last);
    for (int r = 0; r < count; r++)
        memcpy(pass->keep + (slot + r * pass->blocks) * MHAK_WORDS, kept(keep, r, range),
               sizeof range);
    *hold = (mhak_hold){pass->scores + slot * MHAK_BLOCK, pass->blocks * MHAK_BLOCK};
    return true;
}

/* -------------------------------------------------------- scores -> weights ----- */

/* Where the weights of row r begin, or their mean. */
static void *out_at(const mhai_worker *worker, int r)
{
    const mha_options *const o = &worker->call->options;
    const mhai_row *const row = &worker->scratch->rows[r];
    const ptrdiff_t head = worker->plan->one_pass_mean ? 0 : row->h * o->weights.sh;
    return mhai_out_at(o->weights.data, o->weights_type,
                       worker->batch.b * o->weights.sb + head + row->i * o->weights.sl);
}

static void store_row(const mhai_worker *worker, int r, const float *from, float factor)
{
    const mhai_call *const call = worker->call;
    worker->plan->kernels->store_row[call->options.weights_type](from, (int)call->shape.S, factor,
                                                                 out_at(worker, r));
}

/* Stores rows [r, r + count) of the tile, whose p are final. fold has set masked ones between
 * `first` and `last` to 0. */
static void store_final(const mhai_worker *worker, int row, int r, int count, int first, int last,
                        const float *l)
{
    const mhai_call *const call = worker->call;
    const mhai_scratch *const scratch = worker->scratch;
    float *const p = scratch->s + r * MHAK_BLOCK, *const inverse = scratch->sum;
    for (int n = 0; n < count; n++)
        inverse[n] = 1.0f / l[row + r + n];
    for (int n = 0; (first > 0 || last < MHAK_BLOCK) && n < count; n++) {
        memset(p + n * MHAK_BLOCK, 0, sizeof(float) * (size_t)first);
        memset(p + n * MHAK_BLOCK + last, 0, sizeof(float) * (size_t)(MHAK_BLOCK - last));
    }
    worker->plan->kernels->store_rows[call->options.weights_type](
        p, MHAK_BLOCK, count, (int)call->shape.S, inverse, out_at(worker, row + r),
        call->options.weights.sl);
}

/* How many rows of the tile, from r on, have l > 0 and are consecutive rows of one head. */
static int final_rows(const mhai_worker *worker, int row, int r, int count, const float *l)
{
    const int most = mhai_consecutive_rows(&worker->scratch->rows[row + r], count - r);
    int n = 0;
    while (n < most && l[row + r + n] > 0.0f)
        n++;
    return n;
}

/* A row that sees no key of the tile, or whose weights are not numbers. */
static void store_odd(const mhai_worker *worker, int r, const uint32_t *keep, float l)
{
    float weights[MHAK_BLOCK] = {0};
    worker->plan->kernels->exp_scale(weights, MHAK_BLOCK, keep, 0.0f, l != 0.0f ? 1.0f / l : NAN,
                                     weights);
    store_row(worker, r, weights, 1.0f);
}

void mhai_one_pass_store_tile(const mhai_worker *worker, int row, int count, int first, int last,
                              const uint32_t *keep, const float *l)
{
    uint32_t range[MHAK_WORDS];
    if (!worker->plan->one_pass || !one_block(worker))
        return;
    mhai_keep_range(range, first, last);
    for (int r = 0, n; r < count; r += n) {
        n = final_rows(worker, row, r, count, l);
        if (n > 0)
            store_final(worker, row, r, n, first, last, l);
        else
            store_odd(worker, row + r, kept(keep, r, range), l[row + r]);
        n = (int)mhai_max(n, 1);
    }
}

/* Can the weights of a row be written to the output directly? */
static bool direct(const mhai_worker *worker)
{
    return worker->call->options.weights_type == MHA_F32;
}

/* Turns the held scores of row r into weights in `to`, which has room for all keys; with `add` they
 * are added to it. */
static void exp_scale_row(const mhai_worker *worker, int r, float m, float inverse, bool add,
                          float *to)
{
    const mhai_one_pass *const pass = &worker->scratch->one_pass;
    const mhai_row *const row = &worker->scratch->rows[r];
    const mhak_table *const kernels = worker->plan->kernels;
    const ptrdiff_t all = worker->call->shape.S;
    const ptrdiff_t last = row->first < row->last ? row->last : 0;
    const ptrdiff_t from = last > 0 ? row->first / MHAK_BLOCK * MHAK_BLOCK : 0;
    const ptrdiff_t end = mhai_min(all, mhai_round_up(last, MHAK_BLOCK));
    if (!add) {
        memset(to, 0, sizeof(float) * (size_t)from);
        memset(to + end, 0, sizeof(float) * (size_t)(all - end));
    }
    (add ? kernels->exp_scale_add : kernels->exp_scale)(
        pass->scores + r * pass->blocks * MHAK_BLOCK + from, (int)(end - from),
        pass->keep + r * pass->blocks * MHAK_WORDS + from / 32, m, inverse, to + from);
}

/* Adds a row of the current head; after the last head, stores the mean. */
static void add_to_mean(const mhai_worker *worker, int r, float m, float inverse)
{
    const mhai_one_pass *const pass = &worker->scratch->one_pass;
    const mhai_row *const rows = worker->scratch->rows;
    const ptrdiff_t heads = worker->call->shape.H;
    float *const sum = pass->sums + (rows[r].i - rows[0].i) * pass->blocks * MHAK_BLOCK;
    exp_scale_row(worker, r, m, inverse, rows[r].h > 0, sum);
    if (rows[r].h == heads - 1)
        store_row(worker, r, sum, 1.0f / (float)heads);
}

void mhai_one_pass_store_row(const mhai_worker *worker, int r, float m, float inverse)
{
    const mhai_one_pass *const pass = &worker->scratch->one_pass;
    float *const scores = pass->scores + r * pass->blocks * MHAK_BLOCK;
    if (worker->plan->one_pass_mean) {
        add_to_mean(worker, r, m, inverse);
    } else if (one_block(worker)) {
        if (inverse == 0.0f) /* its tile was skipped, or its head returns a mean */
            memset(out_at(worker, r), 0,
                   (size_t)worker->call->shape.S *
                       mha_dtype_size(worker->call->options.weights_type));
    } else if (direct(worker)) {
        exp_scale_row(worker, r, m, inverse, false, out_at(worker, r));
    } else {
        exp_scale_row(worker, r, m, inverse, false, scores);
        store_row(worker, r, scores, 1.0f);
    }
}
