/* SPDX-License-Identifier: MIT */
/* AdamW in two passes over pieces of the parameters: the norm of the gradient, then the update. */
#include "translator/optimizer.h"

#include <math.h>
#include <stdlib.h>

enum { PIECE = 4096 }; /* elements; fixed, since the order of summation depends on it */

/* ------------------------------------------------------------ creation ----- */

/* Returns the number of pieces; writes them unless `pieces` is NULL. Only matrices decay. */
static size_t list_pieces(const transformer_tensor *tensors, int count, optimizer_piece *pieces)
{
    size_t made = 0;
    for (int n = 0; n < count; n++) {
        const transformer_tensor *const tensor = &tensors[n];
        for (size_t done = 0; done < tensor->count; done += PIECE, made++) {
            const size_t left = tensor->count - done;
            if (pieces)
                pieces[made] = (optimizer_piece){tensor->at + done, left < PIECE ? left : PIECE,
                                                 tensor->kind == PARAMETER_MATRIX};
        }
    }
    return made;
}

static bool make_pieces(optimizer *o, const transformer_config *model)
{
    transformer_tensor *const tensors = malloc(TRANSFORMER_TENSORS_MAX * sizeof *tensors);
    if (!tensors)
        return false;
    const int count = transformer_tensors(model, tensors);
    o->piece_count = list_pieces(tensors, count, NULL);
    if (o->piece_count > 0) {
        o->pieces = calloc(o->piece_count, sizeof *o->pieces);
        o->sums = calloc(o->piece_count, sizeof *o->sums);
    }
    if (o->pieces)
        list_pieces(tensors, count, o->pieces);
    free(tensors);
    return o->pieces && o->sums;
}

bool optimizer_init(optimizer *o, const transformer_config *model)
{
    transformer_map map;
    transformer_map_fill(&map, model);
    *o = (optimizer){.count = map.count};
    o->mean = calloc(o->count, sizeof *o->mean);
    o->square = calloc(o->count, sizeof *o->square);
    if (o->mean && o->square && make_pieces(o, model))
        return true;
    optimizer_free(o);
    return false;
}

void optimizer_free(optimizer *o)
{
    free(o->mean);
    free(o->square);
    free(o->pieces);
    free(o->sums);
    *o = (optimizer){.count = 0};
}

/* ------------------------------------------------------------ schedule ----- */

double optimizer_rate(const training_config *config, int64_t step)
{
    static const double pi = 3.14159265358979323846, least = 0.01;
    const double highest = config->learning_rate;
    if (step < config->warm_up)
        return highest * (double)(step + 1) / (double)config->warm_up;
    if (config->schedule == SCHEDULE_INVERSE_SQRT) {
        const double rise = config->warm_up > 0 ? (double)config->warm_up : 1.0;
        return highest * sqrt(rise / (double)(step + 1));
    }
    if (step >= config->steps)
        return highest * least;
    const double way = (double)(step - config->warm_up) / (double)(config->steps - config->warm_up);
    return highest * (least + (1.0 - least) * 0.5 * (1.0 + cos(pi * way)));
}

/* ---------------------------------------------------------------- norm ----- */

typedef struct norm_job {
    optimizer *optimizer;
    const float *gradients;
} norm_job;

static void norm_task(void *arg, int worker, ptrdiff_t number)
{
    (void)worker;
    const norm_job *const job = arg;
    const optimizer_piece *const piece = &job->optimizer->pieces[number];
    const float *const g = job->gradients + piece->first;
    double sum = 0.0;
    for (size_t n = 0; n < piece->count; n++)
        sum += (double)g[n] * (double)g[n];
    job->optimizer->sums[number] = sum;
}

static double norm_of(optimizer *o, const float *gradients, mha_pool *pool)
{
    norm_job job = {o, gradients};
    double sum = 0.0;
    mha_pool_run(pool, (ptrdiff_t)o->piece_count, norm_task, &job);
    for (size_t n = 0; n < o->piece_count; n++)
        sum += o->sums[n];
    return sqrt(sum);
}

/* -------------------------------------------------------------- update ----- */

typedef struct update_job {
    const optimizer *optimizer;
    const float *gradients;
    float *values;
    float scale;                     /* of the gradient */
    float keep1, add1, keep2, add2;  /* beta, 1 - beta */
    float rate, square_scale, decay; /* rate / (1 - beta1^t), 1 / (1 - beta2^t), rate * decay */
    float epsilon;
} update_job;

static void update_task(void *arg, int worker, ptrdiff_t number)
{
    (void)worker;
    const update_job job = *(const update_job *)arg;
    const optimizer_piece *const piece = &job.optimizer->pieces[number];
    const float *restrict const gradients = job.gradients + piece->first;
    float *restrict const mean = job.optimizer->mean + piece->first;
    float *restrict const square = job.optimizer->square + piece->first;
    float *restrict const values = job.values + piece->first;
    const float keep = piece->decays ? 1.0f - job.decay : 1.0f;
    for (size_t n = 0; n < piece->count; n++) {
        const float g = gradients[n] * job.scale;
        mean[n] = job.keep1 * mean[n] + job.add1 * g;
        square[n] = job.keep2 * square[n] + job.add2 * g * g;
        values[n] = keep * values[n] -
                    job.rate * mean[n] / (sqrtf(square[n] * job.square_scale) + job.epsilon);
    }
}

typedef struct average_job {
    const optimizer *optimizer;
    const float *values;
    float share, *average;
} average_job;

static void average_task(void *arg, int worker, ptrdiff_t number)
{
    (void)worker;
    const average_job *const job = arg;
    const optimizer_piece *const piece = &job->optimizer->pieces[number];
    const float *restrict const values = job->values + piece->first;
    float *restrict const average = job->average + piece->first;
    const float share = job->share;
    for (size_t n = 0; n < piece->count; n++)
        average[n] += share * (values[n] - average[n]);
}

void optimizer_average(const optimizer *o, const float *values, float share, float *average,
                       mha_pool *pool)
{
    average_job job = {o, values, share, average};
    mha_pool_run(pool, (ptrdiff_t)o->piece_count, average_task, &job);
}

double optimizer_step(optimizer *o, const training_config *c, int64_t step, const float *gradients,
                      float *values, mha_pool *pool)
{
    const double norm = norm_of(o, gradients, pool);
    if (!isfinite(norm))
        return norm;
    const double rate = optimizer_rate(c, step), t = (double)(step + 1);
    update_job job = {
        .optimizer = o,
        .gradients = gradients,
        .values = values,
        .scale = (float)(c->clip > 0.0 && norm > c->clip ? c->clip / norm : 1.0),
        .keep1 = (float)c->beta1,
        .add1 = (float)(1.0 - c->beta1),
        .keep2 = (float)c->beta2,
        .add2 = (float)(1.0 - c->beta2),
        .rate = (float)(rate / (1.0 - pow(c->beta1, t))),
        .square_scale = (float)(1.0 / (1.0 - pow(c->beta2, t))),
        .decay = (float)(rate * c->weight_decay),
        .epsilon = (float)c->epsilon,
    };
    mha_pool_run(pool, (ptrdiff_t)o->piece_count, update_task, &job);
    return norm;
}
