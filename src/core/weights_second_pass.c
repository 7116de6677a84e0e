/* SPDX-License-Identifier: MIT */
/*
 * Returned weights, computed after the rows are done from their final m and 1/l, for the chosen
 * heads and rows only, so that calls without weights pay nothing. (Where all weights or their mean
 * are requested, weights_one_pass.c makes the same ones with less work.) One task is one tile of
 * chosen rows of one head, or of all chosen heads if their mean is requested. Without an output, a
 * task begins with m and 1/l of its own rows.
 */
#include "core/cache.h"
#include "core/tile.h"

#include <float.h>
#include <math.h>

ptrdiff_t mhai_weights_heads(const mhai_call *call)
{
    return call->options.weights_heads ? call->options.weights_head_count : call->shape.H;
}

ptrdiff_t mhai_weights_rows(const mhai_call *call)
{
    return call->options.weights_rows ? call->options.weights_row_count : call->shape.L;
}

/* Heads [first, first + heads) of the chosen ones, rows in scratch->rows. */
typedef struct weights_job {
    mhai_worker worker;
    const mhai_run *run;
    ptrdiff_t first, heads;
    int rows;
} weights_job;

static ptrdiff_t row_chunks(const mhai_run *run)
{
    return mhai_ceil_div(mhai_weights_rows(run->call), run->plan->row_tile);
}

ptrdiff_t mhai_weights_tasks(const mhai_run *run)
{
    const ptrdiff_t heads = mhai_averages(run->call) ? 1 : mhai_weights_heads(run->call);
    return run->plan->shape.B * heads * row_chunks(run);
}

static weights_job job_of(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number)
{
    const mhai_call *const call = run->call;
    const ptrdiff_t chunks = row_chunks(run), tile = run->plan->row_tile;
    const ptrdiff_t chunk = number % chunks;
    const ptrdiff_t all = mhai_weights_heads(call), heads = mhai_averages(call) ? all : 1;
    const ptrdiff_t sets = mhai_averages(call) ? 1 : all;
    number /= chunks;
    weights_job job = {.run = run, .first = number % sets, .heads = heads};
    job.worker = (mhai_worker){.plan = run->plan,
                               .call = call,
                               .scratch = scratch,
                               .batch = mhai_batch_of(call, number / sets)};
    const ptrdiff_t end = mhai_min(mhai_weights_rows(call), (chunk + 1) * tile);
    for (ptrdiff_t slot = chunk * tile; slot < end; slot++) {
        const ptrdiff_t i = mhai_weights_row(call, slot);
        if (i < job.worker.batch.queries && mhai_row_wanted(call, i))
            scratch->rows[job.rows++] = (mhai_row){.i = i, .slot = slot};
    }
    job.worker.count = job.rows;
    return job;
}

/* Sets the job's worker to another head. */
static void take_head(weights_job *job, ptrdiff_t h)
{
    const mha_shape *const shape = &job->worker.call->shape;
    job->worker.g = h / (shape->H / shape->G);
    for (int r = 0; r < job->rows; r++) {
        job->worker.scratch->rows[r].h = h;
        mhai_row_range(job->worker.call, &job->worker.batch, &job->worker.scratch->rows[r]);
    }
    mhai_load_queries(&job->worker, 0, job->rows);
}

static void fill(const weights_job *job, float x)
{
    for (int n = 0; n < job->rows * MHAK_BLOCK; n++)
        job->worker.scratch->s[n] = x;
}

/* How many keys of the block a ring has dropped: their weights are shown as 0. */
static int dropped_keys(const weights_job *job, const mhai_block *block)
{
    const mhai_call *const call = job->worker.call;
    if (!call->cache)
        return 0;
    const int64_t first = call->cache->firsts[mhai_sequence(call, job->worker.batch.b)];
    return (int)mhai_max(0, mhai_min(MHAK_BLOCK, (ptrdiff_t)first - block->base));
}

/* Scores before masking, of every stored key; 0 past the last one. */
static void unmasked_scores(const weights_job *job, mhai_block *block)
{
    const mha_head_mode mode = mhai_mode(job->worker.call, job->worker.scratch->rows[0].h);
    fill(job, 0.0f);
    if (block->keys <= 0 || mode != MHA_HEAD_NORMAL)
        return;
    mhai_scores(&job->worker, block, 0, job->rows, 0, block->keys);
    if (job->worker.call->options.weights_mode == MHA_WEIGHTS_SOFTCAP)
        mhai_scores_cap(&job->worker, job->rows, 0, block->keys);
    const int dropped = dropped_keys(job, block);
    for (int r = 0; r < job->rows; r++)
        for (int j = 0; j < MHAK_BLOCK; j++)
            if (j < dropped || j >= block->keys)
                job->worker.scratch->s[r * MHAK_BLOCK + j] = 0.0f;
}

/* m and 1/l of a row. */
static const float *stats_of(const weights_job *job, int r)
{
    const mha_shape *const shape = &job->worker.call->shape;
    const mhai_row *const row = &job->worker.scratch->rows[r];
    if (job->run->plan->only_weights)
        return job->worker.scratch->stats + 2 * (row->h * job->run->plan->row_tile + r);
    return job->run->shared.stats +
           2 * ((job->worker.batch.b * shape->H + row->h) * shape->L + row->i);
}

/* The given log-sum-exps take the place of m, with 1/l = 1. A row that has keys but a log-sum-exp
 * of -inf is NaN, as always; a head that returns a mean has no weights. */
static void read_sums(const weights_job *job, float *stats)
{
    const mhai_call *const call = job->worker.call;
    const float *const given = call->given_lse.data;
    for (int r = 0; r < job->rows; r++) {
        const mhai_row *const row = &job->worker.scratch->rows[r];
        const float lse =
            given[mhai_q_index(call, &job->worker.batch, &call->given_lse, row->h, row->i)];
        const bool mean = mhai_mode(call, row->h) == MHA_HEAD_MEAN;
        stats[2 * r] = lse;
        stats[2 * r + 1] = mean ? 0.0f : lse == -INFINITY ? NAN : 1.0f;
    }
}

/* The sums of the job's rows, where no output was computed. */
static void find_sums(weights_job *job)
{
    const mhai_call *const call = job->worker.call;
    if (!job->run->plan->only_weights || call->options.weights_mode != MHA_WEIGHTS_SOFTMAX)
        return;
    for (ptrdiff_t n = 0; n < job->heads; n++) {
        const ptrdiff_t h = mhai_weights_head(call, job->first + n);
        float *const stats = job->worker.scratch->stats + 2 * h * job->run->plan->row_tile;
        take_head(job, h);
        if (call->given_lse.data)
            read_sums(job, stats);
        else
            mhai_attention_sums(&job->worker, stats);
    }
}

static void hide_masked(float *s, const uint32_t *keep)
{
    for (int j = 0; j < MHAK_BLOCK; j++)
        if (!(keep[j / 32] >> (j % 32) & 1u))
            s[j] = -INFINITY;
}

/* Scores after masking, or the weights themselves. */
static void masked_scores(const weights_job *job, mhai_block *block)
{
    const mhai_worker *const worker = &job->worker;
    const mhai_scratch *const scratch = worker->scratch;
    const bool softmax = worker->call->options.weights_mode == MHA_WEIGHTS_SOFTMAX;
    int first, last;
    const mhai_cover cover =
        mhai_mask_block(worker->call, worker->plan->kernels, &worker->batch, scratch->rows,
                        job->rows, block->base, scratch->keep, &first, &last);
    fill(job, softmax ? 0.0f : -INFINITY);
    if (cover == MHAI_NONE)
        return;
    mhai_scores_final(worker, block, 0, job->rows, first, last);
    for (int r = 0; r < job->rows; r++) {
        uint32_t *const keep = scratch->keep + r * MHAK_WORDS;
        float *const s = scratch->s + r * MHAK_BLOCK;
        if (cover == MHAI_ALL)
            mhai_keep_range(keep, first, last);
        if (softmax) {
            const float *const stats = stats_of(job, r);
            worker->plan->kernels->exp_scale(s, MHAK_BLOCK, keep, stats[0], stats[1], s);
        } else {
            hide_masked(s, keep);
        }
    }
}

static void one_head(weights_job *job, ptrdiff_t base, ptrdiff_t n)
{
    const mha_weights_mode mode = job->worker.call->options.weights_mode;
    take_head(job, mhai_weights_head(job->worker.call, n));
    mhai_block block = mhai_block_at(&job->worker, base);
    if (mode == MHA_WEIGHTS_RAW || mode == MHA_WEIGHTS_SOFTCAP)
        unmasked_scores(job, &block);
    else
        masked_scores(job, &block);
}

/* Where a row of the job goes. */
static ptrdiff_t out_row(const weights_job *job, int r)
{
    const mha_out *const out = &job->worker.call->options.weights;
    const ptrdiff_t head = mhai_averages(job->worker.call) ? 0 : job->first * out->sh;
    return job->worker.batch.b * out->sb + head + job->worker.scratch->rows[r].slot * out->sl;
}

static void store_block(const weights_job *job, const float *s, float factor, ptrdiff_t base)
{
    const mhai_call *const call = job->worker.call;
    const mha_options *const o = &call->options;
    const int keys = (int)mhai_min(MHAK_BLOCK, call->shape.S - base);
    for (int r = 0; r < job->rows; r++)
        job->worker.plan->kernels->store_row[o->weights_type](
            s + r * MHAK_BLOCK, keys, factor,
            mhai_out_at(o->weights.data, o->weights_type, out_row(job, r) + base));
}

/* The mean over the heads in one block of keys. Scores may be as large as a float can be. */
static void store_mean(weights_job *job, ptrdiff_t base)
{
    float *const sum = job->worker.scratch->sum, *const s = job->worker.scratch->s;
    const size_t floats = (size_t)job->rows * MHAK_BLOCK;
    const bool softmax = job->worker.call->options.weights_mode == MHA_WEIGHTS_SOFTMAX;
    const float scale = (float)mhai_mean_scale(job->worker.call, job->heads);
    const float factor = 1.0f / (float)job->heads / scale;
    for (ptrdiff_t n = 0; n < job->heads; n++) {
        one_head(job, base, n);
        for (size_t x = 0; x < floats; x++)
            sum[x] = n > 0 ? sum[x] + s[x] * scale : s[x] * scale;
    }
    for (size_t x = 0; !softmax && x < floats; x++)
        sum[x] = (float)mhai_mean((double)sum[x], (double)factor, (double)FLT_MAX);
    store_block(job, sum, softmax ? factor : 1.0f, base);
}

/* What is shown of extra key n: its weight, or its score. */
static float extra_value(const weights_job *job, int r, int n)
{
    const mha_weights_mode mode = job->worker.call->options.weights_mode;
    const float score = mhai_extra_score(&job->worker, r, n, mode != MHA_WEIGHTS_RAW);
    if (mode != MHA_WEIGHTS_SOFTMAX)
        return score;
    const float *const stats = stats_of(job, r);
    return expf(score - stats[0]) * stats[1];
}

/* The columns of the extra keys, after those of the others. */
static void store_extras(weights_job *job)
{
    const mhai_call *const call = job->worker.call;
    const mha_options *const o = &call->options;
    const float scale = (float)mhai_mean_scale(call, job->heads);
    for (int n = 0; n < mhai_extras(call); n++) {
        for (ptrdiff_t h = 0; h < job->heads; h++) {
            take_head(job, mhai_weights_head(call, job->first + h));
            for (int r = 0; r < job->rows; r++) {
                float *const sum = job->worker.scratch->sum + r;
                *sum = (h > 0 ? *sum : 0.0f) + extra_value(job, r, n) * scale;
            }
        }
        for (int r = 0; r < job->rows; r++)
            mhai_element_write(
                o->weights.data, o->weights_type, out_row(job, r) + call->shape.S + n,
                mhai_mean((double)job->worker.scratch->sum[r],
                          1 / ((double)job->heads * (double)scale), (double)FLT_MAX));
    }
}

void mhai_weights_task(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number)
{
    weights_job job = job_of(run, scratch, number);
    if (job.rows == 0 || job.heads == 0)
        return;
    find_sums(&job);
    for (ptrdiff_t base = 0; base < run->plan->shape.S; base += MHAK_BLOCK) {
        if (job.heads > 1) {
            store_mean(&job, base);
        } else {
            one_head(&job, base, job.first);
            store_block(&job, scratch->s, 1.0f, base);
        }
    }
    store_extras(&job);
}
