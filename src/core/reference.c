/* SPDX-License-Identifier: MIT */
/*
 * The f64 path, and the reference for every fast path: the formula row by row, in double precision,
 * without tiles, tricks or kernels. It is never optimised.
 */
#include "core/plan.h"

#include <float.h>
#include <math.h>

/* One row: its place, and scratch for S scores and their visibility. */
typedef struct row_job {
    const mhai_call *call;
    mhai_batch batch;
    mhai_row row;
    double *score; /* [S] */
    bool *visible; /* [S] */
} row_job;

size_t mhai_reference_scratch(const mha_shape *shape)
{
    return (size_t)shape->S * (2 * sizeof(double) + sizeof(bool)) +
           (size_t)shape->Dv * sizeof(double);
}

static row_job job_at(const mhai_call *call, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, void *scratch)
{
    row_job job = {.call = call, .batch = mhai_batch_of(call, b), .row = {.h = h, .i = i}};
    job.score = scratch;
    job.visible = (bool *)(job.score + 2 * call->shape.S + call->shape.Dv);
    mhai_row_range(call, &job.batch, &job.row);
    return job;
}

static ptrdiff_t kv_head(const row_job *job)
{
    return job->row.h / (job->call->shape.H / job->call->shape.G);
}

/* Element (b, h, i, j) of a tensor over scores. */
static ptrdiff_t pair_index(const row_job *job, const mha_view *x, ptrdiff_t j)
{
    return job->batch.b * x->sb + job->row.h * x->sh + job->row.i * x->sl + j;
}

static double number_at(const row_job *job, const mha_view *x, mha_dtype type, ptrdiff_t j)
{
    return x->data ? mhai_element_read(x->data, type, pair_index(job, x, j)) : 0.0;
}

static bool byte_at(const row_job *job, const mha_view *x, ptrdiff_t j)
{
    return ((const uint8_t *)x->data)[pair_index(job, x, j)] != 0;
}

static bool same_document(const row_job *job, ptrdiff_t j)
{
    const mha_options *const o = &job->call->options;
    const ptrdiff_t q = o->q_starts ? job->batch.q_first : job->batch.b * o->q_documents_sb;
    const ptrdiff_t k = o->k_starts ? job->batch.k_first : job->batch.b * o->k_documents_sb;
    return o->q_documents[q + job->row.i] == o->k_documents[k + j];
}

static bool sees(const row_job *job, ptrdiff_t j)
{
    const mha_options *const o = &job->call->options;
    return j >= job->row.first && j < job->row.last &&
           (!o->attend_mask.data || byte_at(job, &o->attend_mask, j)) &&
           (!o->ignore_mask.data || !byte_at(job, &o->ignore_mask, j)) &&
           number_at(job, &o->add_mask, o->add_mask_type, j) != (double)-INFINITY &&
           number_at(job, &o->bias, o->bias_type, j) != (double)-INFINITY &&
           (!o->q_documents || same_document(job, j));
}

static double raw_score(const row_job *job, ptrdiff_t j)
{
    const mhai_call *const call = job->call;
    const double *const q = (const double *)call->q.data +
                            mhai_q_index(call, &job->batch, &call->q, job->row.h, job->row.i);
    const double *const k =
        (const double *)call->k.data + mhai_k_index(call, &job->batch, &call->k, kv_head(job), j);
    double sum = 0;
    for (ptrdiff_t c = 0; c < call->shape.D; c++)
        sum += q[c] * k[c];
    return sum * call->scale;
}

static double capped(const row_job *job, double score)
{
    const double cap = job->call->softcap;
    return cap > 0 ? cap * tanh(score / cap) : score;
}

static double biased(const row_job *job, double score, ptrdiff_t j)
{
    const mha_options *const o = &job->call->options;
    score += number_at(job, &o->bias, o->bias_type, j);
    score += number_at(job, &o->add_mask, o->add_mask_type, j);
    if (o->alibi_slopes)
        score -= (double)o->alibi_slopes[job->row.h] *
                 fabs((double)(job->row.i + job->batch.offset - j));
    return score;
}

static mha_head_mode mode_of(const row_job *job)
{
    return mhai_mode(job->call, job->row.h);
}

/* Scores after bias; a masked key is not read and stays -inf. Returns whether any is visible. */
static bool final_scores(const row_job *job)
{
    bool any = false;
    for (ptrdiff_t j = 0; j < job->batch.keys; j++) {
        job->visible[j] = sees(job, j);
        any |= job->visible[j];
        if (!job->visible[j])
            job->score[j] = (double)-INFINITY;
        else if (mode_of(job) != MHA_HEAD_NORMAL)
            job->score[j] = 0.0;
        else
            job->score[j] = biased(job, capped(job, raw_score(job, j)), j);
    }
    return any;
}

/* Scores to weights, in place; returns the log-sum-exp. An empty row gives zeros; a row whose
 * visible scores are all -inf divides 0 by 0, which gives NaN. */
static double softmax(const row_job *job)
{
    const mha_options *const o = &job->call->options;
    const bool sinks = o->sinks && mode_of(job) == MHA_HEAD_NORMAL;
    const double sink = sinks ? (double)o->sinks[job->row.h] : (double)-INFINITY;
    double top = sink;
    for (ptrdiff_t j = 0; j < job->batch.keys; j++)
        top = job->score[j] > top ? job->score[j] : top;
    const double base = top == (double)-INFINITY ? 0 : top;
    double sum = exp(sink - base);
    for (ptrdiff_t j = 0; j < job->batch.keys; j++)
        sum += job->visible[j] ? exp(job->score[j] - base) : 0.0;
    for (ptrdiff_t j = 0; j < job->batch.keys; j++)
        job->score[j] = job->visible[j] ? exp(job->score[j] - base) / sum : 0.0;
    return base + log(sum);
}

/* The weight of key j after dropout. */
static double dropped(const row_job *job, ptrdiff_t j)
{
    const mhak_drop drop = mhai_drop_of(job->call, job->batch.b, job->row.h);
    if (drop.threshold == 0)
        return job->score[j];
    return mhai_call_keeps(job->call, &drop, job->row.i, j)
               ? job->score[j] * (65536.0 / (65536.0 - (double)drop.threshold))
               : 0.0;
}

static void add_values(const row_job *job, double *o)
{
    const mhai_call *const call = job->call;
    for (ptrdiff_t j = 0; j < job->batch.keys; j++) {
        if (!job->visible[j])
            continue;
        const double *const v = (const double *)call->v.data +
                                mhai_k_index(call, &job->batch, &call->v, kv_head(job), j);
        const double p = dropped(job, j);
        for (ptrdiff_t c = 0; c < call->shape.Dv; c++)
            o[c] += p * v[c];
    }
}

static void write_output(const row_job *job, bool any, double *o)
{
    const mhai_call *const call = job->call;
    const bool mean = mode_of(job) == MHA_HEAD_MEAN;
    const float *const means = mean ? call->options.head_means + job->row.h * call->shape.Dv : NULL;
    for (ptrdiff_t c = 0; c < call->shape.Dv; c++)
        o[c] = mean && any ? (double)means[c] : 0.0;
    if (!mean)
        add_values(job, o);
    const double gate = (double)mhai_gate(call, job->batch.b, job->row.h);
    const mha_view to = mhai_as_view(call->o);
    double *const row =
        (double *)call->o.data + mhai_q_index(call, &job->batch, &to, job->row.h, job->row.i);
    for (ptrdiff_t c = 0; c < call->shape.Dv; c++)
        row[c] = gate == 0.0 ? 0.0 : o[c] * gate;
}

/* ------------------------------------------------------------- statistics ----- */

static double weight_at(const row_job *job, ptrdiff_t j)
{
    return j >= 0 && j < job->batch.keys ? job->score[j] : 0.0;
}

/* A head that returns a mean has no weights. */
static bool has_weights(const row_job *job)
{
    return mhai_mode(job->call, job->row.h) != MHA_HEAD_MEAN;
}

static mha_row_statistics statistics_of(const row_job *job)
{
    const ptrdiff_t position = job->row.i + job->batch.offset;
    const ptrdiff_t first = job->call->options.statistics->first_keys;
    double entropy = 0, distance = 0, mass = 0, firsts = 0, largest = 0;
    mha_row_statistics row = {.key = -1};
    if (!has_weights(job))
        return row;
    for (ptrdiff_t j = 0; j < job->batch.keys; j++) {
        const double w = job->score[j];
        mass += w;
        entropy -= w > 0 ? w * log(w) : 0.0;
        distance += w * fabs((double)(position - j));
        firsts += j < (first ? first : 1) ? w : 0.0;
        if (w > largest) {
            largest = w;
            row.key = j;
        }
    }
    if ((float)largest == 0.0f)
        return (mha_row_statistics){.key = -1};
    row.entropy = (float)entropy;
    row.largest = (float)largest;
    row.distance = (float)distance;
    row.self = (float)weight_at(job, position);
    row.previous = (float)weight_at(job, position - 1);
    row.next = (float)weight_at(job, position + 1);
    row.first = (float)firsts;
    row.mass = (float)mass;
    return row;
}

/* The next largest weight after the one listed before; of equal ones the next key. */
static ptrdiff_t next_largest(const row_job *job, ptrdiff_t before)
{
    ptrdiff_t best = -1;
    for (ptrdiff_t j = 0; has_weights(job) && j < job->batch.keys; j++) {
        const bool listed = before >= 0 && (job->score[j] > job->score[before] ||
                                            (j <= before && job->score[j] == job->score[before]));
        if ((float)job->score[j] > 0.0f && !listed &&
            (best < 0 || job->score[j] > job->score[best]))
            best = j;
    }
    return best;
}

static void write_statistics(const row_job *job, ptrdiff_t task, mha_row_statistics *rows)
{
    const mha_statistics *const to = job->call->options.statistics;
    if (rows)
        rows[task] = statistics_of(job);
    for (ptrdiff_t n = 0, key = -1; n < to->top; n++) {
        key = n > 0 && key < 0 ? -1 : next_largest(job, key);
        if (to->top_keys)
            to->top_keys[task * to->top + n] = (int64_t)key;
        if (to->top_weights)
            to->top_weights[task * to->top + n] = (float)(key < 0 ? 0.0 : job->score[key]);
    }
}

void mhai_reference_columns(const mhai_call *call, ptrdiff_t task, void *scratch)
{
    const ptrdiff_t S = call->shape.S, H = call->shape.H, b = task / H;
    float *const to = call->options.statistics->columns + task * S;
    double *const sum = (double *)scratch + S;
    for (ptrdiff_t j = 0; j < S; j++)
        sum[j] = 0;
    for (ptrdiff_t i = 0; i < mhai_batch_of(call, b).queries; i++) {
        const row_job job = job_at(call, b, task % H, i, scratch);
        final_scores(&job);
        const bool weighs = softmax(&job) != (double)-INFINITY && has_weights(&job);
        for (ptrdiff_t j = 0; weighs && j < job.batch.keys; j++)
            sum[j] += job.score[j];
    }
    for (ptrdiff_t j = 0; j < S; j++)
        to[j] = (float)sum[j];
}

void mhai_reference_row(const mhai_call *call, ptrdiff_t task, void *scratch,
                        mha_row_statistics *rows)
{
    const ptrdiff_t L = call->shape.L, H = call->shape.H;
    const row_job job = job_at(call, task / L / H, task / L % H, task % L, scratch);
    if (job.row.i >= job.batch.queries)
        return;
    const bool any = final_scores(&job);
    const double sum = softmax(&job), lse = any ? sum : (double)-INFINITY;
    if (call->options.statistics)
        write_statistics(&job, task, rows);
    write_output(&job, any, job.score + call->shape.S);
    if (call->options.lse.data) {
        const mha_view to = mhai_as_view(call->options.lse);
        ((double *)
             call->options.lse.data)[mhai_q_index(call, &job.batch, &to, job.row.h, job.row.i)] =
            lse;
    }
}

/* -------------------------------------------------------- returned weights ----- */

/* Scores to weights, with the log-sum-exp that the caller gives. */
static void weigh(const row_job *job)
{
    const mhai_call *const call = job->call;
    const double lse =
        ((const double *)call->given_lse
             .data)[mhai_q_index(call, &job->batch, &call->given_lse, job->row.h, job->row.i)];
    for (ptrdiff_t j = 0; j < job->batch.keys; j++)
        job->score[j] = job->visible[j] ? exp(job->score[j] - lse) : 0.0;
}

static void shown_weights(const row_job *job)
{
    if (job->call->given_lse.data)
        weigh(job);
    else
        softmax(job);
    for (ptrdiff_t j = 0; mode_of(job) == MHA_HEAD_MEAN && j < job->batch.keys; j++)
        job->score[j] = 0.0;
}

/* Fills job->score with what the mode of the weights shows, for all S keys. */
static void shown(const row_job *job)
{
    const mha_weights_mode mode = job->call->options.weights_mode;
    const bool masked = mode == MHA_WEIGHTS_SOFTMAX || mode == MHA_WEIGHTS_BIAS;
    for (ptrdiff_t j = job->batch.keys; j < job->call->shape.S; j++)
        job->score[j] = mode == MHA_WEIGHTS_BIAS ? (double)-INFINITY : 0.0;
    if (masked) {
        final_scores(job);
        if (mode == MHA_WEIGHTS_SOFTMAX)
            shown_weights(job);
        return;
    }
    for (ptrdiff_t j = 0; j < job->batch.keys; j++) {
        const double raw = mode_of(job) == MHA_HEAD_NORMAL ? raw_score(job, j) : 0.0;
        job->score[j] = mode == MHA_WEIGHTS_SOFTCAP ? capped(job, raw) : raw;
    }
}

void mhai_reference_weights(const mhai_call *call, ptrdiff_t task, void *scratch)
{
    const mha_options *const o = &call->options;
    const bool average = (o->flags & MHA_AVERAGE_WEIGHTS) != 0;
    const ptrdiff_t all = mhai_weights_heads(call), S = call->shape.S;
    const ptrdiff_t rows = mhai_weights_rows(call), sets = average ? 1 : all;
    const ptrdiff_t slot = task % rows, set = task / rows % sets, b = task / rows / sets;
    const ptrdiff_t heads = average ? all : 1, i = mhai_weights_row(call, slot);
    const double scale = mhai_mean_scale(call, heads);
    double *const sum = (double *)scratch + S;
    if (i >= mhai_batch_of(call, b).queries || heads == 0)
        return;
    for (ptrdiff_t j = 0; j < S; j++)
        sum[j] = 0;
    for (ptrdiff_t n = 0; n < heads; n++) {
        const row_job job = job_at(call, b, mhai_weights_head(call, set + n), i, scratch);
        shown(&job);
        for (ptrdiff_t j = 0; j < S; j++)
            sum[j] += job.score[j] * scale;
    }
    const ptrdiff_t at =
        b * o->weights.sb + (average ? 0 : set * o->weights.sh) + slot * o->weights.sl;
    for (ptrdiff_t j = 0; j < S; j++)
        mhai_element_write(o->weights.data, o->weights_type, at + j,
                           mhai_mean(sum[j], 1 / ((double)heads * scale), DBL_MAX));
}
