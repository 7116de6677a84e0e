/* SPDX-License-Identifier: MIT */
/* Makes the pictures of the tasks, trains both learners on them and keeps their errors
 * (data_study.h). Everything follows from the seed of the plan. */
#include "claims/data_study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum { T = LEARN_PIXELS, C = LEARN_INPUTS, TAPS = LEARN_TAPS, BATCH = 16, STATES = 8 };
enum { FILTER_OUTPUTS = 4, TEXTURE_OUTPUTS = 8, TEXTURES = 4, VALID = 64, FRESH = 512 };
enum { PICTURE = T * C, OUTPUTS = T * FILTER_OUTPUTS };

const char *const study_task_names[STUDY_TASKS] = {"near", "far", "classes"};

/* Rows and columns of the taps; those of 3 x 3 that are moved lie outside of it. */
static const int near_taps[TAPS][2] = {{-1, -1}, {-1, 0}, {-1, 1}, {0, -1}, {0, 0},
                                       {0, 1},   {1, -1}, {1, 0},  {1, 1}};
static const int far_taps[TAPS][2] = {{3, 0}, {-1, 0}, {0, 3}, {0, -1}, {0, 0},
                                      {0, 1}, {2, -2}, {1, 0}, {1, 1}};

study_plan study_plan_short(uint64_t seed)
{
    return (study_plan){.seed = seed,
                        .sizes = {16, 256},
                        .size_count = 2,
                        .seeds = 6,
                        .steps = 200,
                        .fresh = FRESH,
                        .rates = {0.06},
                        .rate_count = 1,
                        .tasks = {true, true, true}};
}

study_plan study_plan_full(uint64_t seed)
{
    return (study_plan){.seed = seed,
                        .sizes = {16, 64, 256, 1024, 4096},
                        .size_count = 5,
                        .seeds = 8,
                        .steps = 1200,
                        .fresh = FRESH,
                        .rates = {0.01, 0.03, 0.1},
                        .rate_count = 3,
                        .tasks = {true, true, true}};
}

/* ------------------------------------------------------------ pictures ----- */

/* A set of pictures with what they should give. */
typedef struct pictures {
    int count;
    float *x;      /* [count][T][C] */
    float *wanted; /* [count][T][FILTER_OUTPUTS], but of textures */
    int *classes;
} pictures;

/* What is unknown to the learners. */
typedef struct secret {
    study_task task;
    double filter[TAPS][C][FILTER_OUTPUTS];
    double textures[TEXTURES][TAPS]; /* of norm 1 */
} secret;

static secret secret_of(study_task task, rng r)
{
    secret s = {.task = task};
    for (int t = 0; t < TAPS; t++)
        for (int n = 0; n < C * FILTER_OUTPUTS; n++)
            s.filter[t][n / FILTER_OUTPUTS][n % FILTER_OUTPUTS] = rng_normal(&r) / sqrt(TAPS * C);
    for (int k = 0; k < TEXTURES; k++) {
        double norm = 0.0;
        for (int t = 0; t < TAPS; t++) {
            s.textures[k][t] = rng_normal(&r);
            norm += s.textures[k][t] * s.textures[k][t];
        }
        for (int t = 0; t < TAPS; t++)
            s.textures[k][t] /= sqrt(norm);
    }
    return s;
}

/* Random pictures through the filter; `noise` is that of the outputs. */
static void draw_filtered(const secret *s, float *x, float *wanted, double noise, rng *r)
{
    for (int n = 0; n < PICTURE; n++)
        x[n] = (float)rng_normal(r);
    for (int i = 0; i < T; i++)
        for (int f = 0; f < FILTER_OUTPUTS; f++) {
            double sum = noise * rng_normal(r);
            for (int t = 0; t < TAPS; t++) {
                const int *const tap = s->task == STUDY_FAR ? far_taps[t] : near_taps[t];
                const float *const pixel = x + learner_pixel(i, tap[0], tap[1]) * C;
                for (int c = 0; c < C; c++)
                    sum += s->filter[t][c][f] * (double)pixel[c];
            }
            wanted[i * FILTER_OUTPUTS + f] = (float)sum;
        }
}

/* Noise through the filter of a texture, in each channel. */
static void draw_texture(const secret *s, float *x, int texture, rng *r)
{
    double noise[PICTURE];
    for (int n = 0; n < PICTURE; n++)
        noise[n] = rng_normal(r);
    for (int n = 0; n < PICTURE; n++) {
        double sum = 0.0;
        for (int t = 0; t < TAPS; t++)
            sum += s->textures[texture][t] *
                   noise[learner_pixel(n / C, near_taps[t][0], near_taps[t][1]) * C + n % C];
        x[n] = (float)sum;
    }
}

static void pictures_free(pictures *p)
{
    free(p->x);
    free(p->wanted);
    free(p->classes);
}

/* False if out of memory; to be freed in any case. */
static bool pictures_make(pictures *p, const secret *s, int count, double noise, rng r)
{
    *p = (pictures){.count = count};
    p->x = malloc((size_t)count * PICTURE * sizeof *p->x);
    p->wanted = malloc((size_t)count * OUTPUTS * sizeof *p->wanted);
    p->classes = calloc((size_t)count, sizeof *p->classes);
    if (p->x == NULL || p->wanted == NULL || p->classes == NULL)
        return false;
    for (int n = 0; n < count; n++) {
        p->classes[n] = n % TEXTURES;
        if (s->task == STUDY_CLASSES)
            draw_texture(s, p->x + (ptrdiff_t)n * PICTURE, n % TEXTURES, &r);
        else
            draw_filtered(s, p->x + (ptrdiff_t)n * PICTURE, p->wanted + (ptrdiff_t)n * OUTPUTS,
                          noise, &r);
    }
    return true;
}

/* ------------------------------------------------------------ training ----- */

/* The pictures of one seed. */
typedef struct data_set {
    secret secret;
    pictures train, valid, test;
    float x[BATCH * PICTURE], wanted[BATCH * OUTPUTS]; /* a batch */
    int classes[BATCH];
} data_set;

static learner_batch part_of(const data_set *d, const pictures *p, int first)
{
    const int left = p->count - first;
    const bool filter = d->secret.task != STUDY_CLASSES;
    return (learner_batch){.count = left < LEARN_BATCH_MAX ? left : LEARN_BATCH_MAX,
                           .x = p->x + (ptrdiff_t)first * PICTURE,
                           .wanted = filter ? p->wanted + (ptrdiff_t)first * OUTPUTS : NULL,
                           .classes = p->classes + first};
}

/* Pictures at random, as often as they come. */
static learner_batch random_batch(data_set *d, rng *r)
{
    const pictures *const p = &d->train;
    for (int n = 0; n < BATCH; n++) {
        const ptrdiff_t at = (ptrdiff_t)rng_below(r, p->count);
        memcpy(d->x + n * PICTURE, p->x + at * PICTURE, PICTURE * sizeof *d->x);
        memcpy(d->wanted + n * OUTPUTS, p->wanted + at * OUTPUTS, OUTPUTS * sizeof *d->wanted);
        d->classes[n] = p->classes[at];
    }
    return (learner_batch){.count = BATCH,
                           .x = d->x,
                           .wanted = d->secret.task != STUDY_CLASSES ? d->wanted : NULL,
                           .classes = d->classes};
}

/* The error on a set: the share of squares, or of wrong answers. */
static mha_status error_on(const data_set *d, const pictures *p, filter_learner *learner,
                           double *error)
{
    mha_status status = MHA_OK;
    double whole = 0.0;
    *error = 0.0;
    for (int first = 0; first < p->count && status == MHA_OK; first += LEARN_BATCH_MAX) {
        const learner_batch part = part_of(d, p, first);
        status = filter_learner_error(learner, &part, error);
    }
    for (ptrdiff_t n = 0; n < (ptrdiff_t)p->count * OUTPUTS && d->secret.task != STUDY_CLASSES; n++)
        whole += (double)(p->wanted[n] * p->wanted[n]);
    *error /= d->secret.task != STUDY_CLASSES ? whole : (double)p->count;
    return status;
}

/* The best state so far, by the pictures for choosing. */
typedef struct best_state {
    double valid;
    float *weights;
} best_state;

static mha_status keep_best(const data_set *d, filter_learner *learner, best_state *best)
{
    double valid;
    ptrdiff_t count;
    const float *const weights = filter_learner_values(learner, &count);
    const mha_status status = error_on(d, &d->valid, learner, &valid);
    if (status == MHA_OK && valid < best->valid) {
        best->valid = valid;
        memcpy(best->weights, weights, (size_t)count * sizeof *weights);
    }
    return status;
}

/* One training, with a rate that falls to 0. Batches and first weights do not depend on the rate.
 */
static mha_status train(data_set *d, filter_learner *learner, int steps, double rate, rng r,
                        best_state *best)
{
    const int between = steps / STATES > 0 ? steps / STATES : 1;
    mha_status status = MHA_OK;
    for (int step = 1; step <= steps && status == MHA_OK; step++) {
        const learner_batch batch = random_batch(d, &r);
        status = filter_learner_step(learner, &batch, rate * (steps - step + 1) / steps);
        if (status == MHA_OK && step % between == 0)
            status = keep_best(d, learner, best);
    }
    return status;
}

/* ----------------------------------------------------------------- plan ---- */

/* Where a training stands in the plan. */
typedef struct place {
    study_task task;
    int size, seed;
} place;

static mha_status make_learner(filter_learner **made, const study_plan *plan, const place *at,
                               learner_kind kind)
{
    const bool classes = at->task == STUDY_CLASSES;
    return filter_learner_create(made, kind, classes ? TEXTURE_OUTPUTS : FILTER_OUTPUTS,
                                 classes ? TEXTURES : 0, plan->seed + 100 * (uint64_t)at->seed);
}

static mha_status train_from_start(data_set *d, const study_plan *plan, const place *at,
                                   learner_kind kind, double rate, best_state *best)
{
    filter_learner *learner;
    mha_status status = make_learner(&learner, plan, at, kind);
    if (status == MHA_OK)
        status = train(d, learner, plan->steps, rate,
                       rng_for(plan->seed, 100 * (uint64_t)at->seed + 5), best);
    filter_learner_free(learner);
    return status;
}

/* All rates of one learner, and the error of the best state on new pictures. */
static mha_status run_kind(data_set *d, const study_plan *plan, const place *at, learner_kind kind,
                           double *error)
{
    filter_learner *learner;
    ptrdiff_t count;
    mha_status status = make_learner(&learner, plan, at, kind);
    if (status != MHA_OK)
        return status;
    float *const weights = filter_learner_values(learner, &count);
    best_state best = {INFINITY, malloc((size_t)count * sizeof *weights)};
    if (best.weights == NULL)
        status = MHA_ERR_MEMORY;
    for (int n = 0; n < plan->rate_count && status == MHA_OK; n++)
        status = train_from_start(d, plan, at, kind, plan->rates[n], &best);
    if (status == MHA_OK && best.valid < INFINITY)
        memcpy(weights, best.weights, (size_t)count * sizeof *weights);
    if (status == MHA_OK)
        status = error_on(d, &d->test, learner, error);
    free(best.weights);
    filter_learner_free(learner);
    return status;
}

/* A larger set of the same seed begins with the pictures of the smaller one. */
static bool make_data(data_set *d, const study_plan *plan, const place *at)
{
    const uint64_t series = 100 * (uint64_t)at->seed;
    d->secret = secret_of(at->task, rng_for(plan->seed, series + 1));
    const secret *const s = &d->secret;
    return pictures_make(&d->train, s, plan->sizes[at->size], 1.0,
                         rng_for(plan->seed, series + 2)) &&
           pictures_make(&d->valid, s, VALID, 1.0, rng_for(plan->seed, series + 3)) &&
           pictures_make(&d->test, s, plan->fresh, 0.0, rng_for(plan->seed, series + 4));
}

/* One size of one task; a task of the pool is one seed. */
typedef struct slice {
    study_result *result;
    study_task task;
    int size;
    mha_status status[STUDY_SEEDS_MAX];
} slice;

static mha_status run_place(study_result *result, const place *at)
{
    data_set *const d = calloc(1, sizeof *d);
    if (d == NULL)
        return MHA_ERR_MEMORY;
    mha_status status = make_data(d, &result->plan, at) ? MHA_OK : MHA_ERR_MEMORY;
    for (int kind = 0; kind < LEARNER_KINDS && status == MHA_OK; kind++)
        status = run_kind(d, &result->plan, at, (learner_kind)kind,
                          &result->errors[at->task][at->size][kind][at->seed]);
    pictures_free(&d->train);
    pictures_free(&d->valid);
    pictures_free(&d->test);
    free(d);
    return status;
}

static void run_seed(void *arg, int worker, ptrdiff_t seed)
{
    slice *const s = arg;
    const place at = {s->task, s->size, (int)seed};
    (void)worker;
    s->status[seed] = run_place(s->result, &at);
}

static mha_status run_slice(study_result *result, study_task task, int size, mha_pool *pool)
{
    slice s = {.result = result, .task = task, .size = size};
    mha_pool_run(pool, result->plan.seeds, run_seed, &s);
    for (int n = 0; n < result->plan.seeds; n++)
        if (s.status[n] != MHA_OK)
            return s.status[n];
    return MHA_OK;
}

/* What the learners of a task have and need. */
static mha_status count_costs(study_result *result, study_task task)
{
    const place at = {.task = task};
    for (int kind = 0; kind < LEARNER_KINDS; kind++) {
        filter_learner *learner;
        const mha_status status = make_learner(&learner, &result->plan, &at, (learner_kind)kind);
        if (status != MHA_OK)
            return status;
        result->weights[task][kind] = filter_learner_weights(learner);
        result->products[task][kind] = filter_learner_products(learner);
        filter_learner_free(learner);
    }
    return MHA_OK;
}

mha_status study_run(study_result *result, const study_plan *plan, mha_pool *pool,
                     void (*progress)(study_task task, int size))
{
    mha_status status = MHA_OK;
    *result = (study_result){.plan = *plan};
    for (int task = 0; task < STUDY_TASKS && status == MHA_OK; task++) {
        if (!plan->tasks[task])
            continue;
        status = count_costs(result, (study_task)task);
        for (int size = 0; size < plan->size_count && status == MHA_OK; size++) {
            if (progress != NULL)
                progress((study_task)task, plan->sizes[size]);
            status = run_slice(result, (study_task)task, size, pool);
        }
    }
    return status;
}

mean_interval study_mean(const study_result *r, study_task task, int size, learner_kind kind)
{
    return mean_interval_of(r->errors[task][size][kind], r->plan.seeds);
}

mean_interval study_difference(const study_result *r, study_task task, int size)
{
    double d[STUDY_SEEDS_MAX];
    for (int n = 0; n < r->plan.seeds; n++)
        d[n] =
            r->errors[task][size][LEARN_ATTENTION][n] - r->errors[task][size][LEARN_CONVOLUTION][n];
    return mean_interval_of(d, r->plan.seeds);
}
