/* SPDX-License-Identifier: MIT */
/*
 * The convolution is a plain loop, forward and backward; attention is an mha_layer with a bias,
 * whose gradient is summed over the pairs of pixels at the same distance. Losses, classes and Adam
 * are the same for both (filter_learner.h).
 */
#include "claims/filter_learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum { T = LEARN_PIXELS, C = LEARN_INPUTS, H = LEARN_HEADS, D = LEARN_WIDTH };

struct filter_learner {
    learner_kind kind;
    int outputs, classes, steps;
    ptrdiff_t layer_weights, weights;            /* the second with those of the classes */
    float *values, *gradients, *means, *squares; /* [weights] each, in one block */
    float *y, *d_y;                              /* [LEARN_BATCH_MAX][T][outputs] */
    float *bias, *d_bias;                        /* [H][T][T] */
    mha_layer *layer;
    void *tape, *work;
    size_t tape_size, work_size;
};

/* Where the parts of filter_learner_values() begin; `q` is also the taps of the convolution. */
typedef struct blocks {
    float *q, *k, *v, *o, *bias, *table, *classes;
} blocks;

static blocks blocks_of(const filter_learner *p, float *block)
{
    const ptrdiff_t in = (ptrdiff_t)H * D * C, out = (ptrdiff_t)H * D * p->outputs;
    blocks b = {.q = block, .classes = block + p->layer_weights};
    if (p->kind == LEARN_CONVOLUTION) {
        b.bias = block + (ptrdiff_t)LEARN_TAPS * C * p->outputs;
        return b;
    }
    b.k = b.q + in;
    b.v = b.k + in;
    b.o = b.v + in;
    b.bias = b.o + out;
    b.table = b.bias + p->outputs;
    return b;
}

ptrdiff_t filter_learner_weights(const filter_learner *p)
{
    return p->layer_weights;
}

double filter_learner_products(const filter_learner *p)
{
    const double outputs = p->outputs;
    if (p->kind == LEARN_CONVOLUTION)
        return (double)T * LEARN_TAPS * C * outputs;
    return (double)T * H * D * (3.0 * C + outputs) + 2.0 * T * T * H * D;
}

/* ------------------------------------------------------------ creation ----- */

void filter_learner_free(filter_learner *p)
{
    if (p == NULL)
        return;
    mha_layer_free(p->layer);
    free(p->values);
    free(p->y);
    free(p->bias);
    free(p->tape);
    free(p->work);
    free(p);
}

static mha_layer_weights matrices_of(const filter_learner *p)
{
    const blocks b = blocks_of(p, p->values);
    return (mha_layer_weights){.size = sizeof(mha_layer_weights),
                               .q = mha_matrix_out_in(b.q, MHA_F32, C),
                               .k = mha_matrix_out_in(b.k, MHA_F32, C),
                               .v = mha_matrix_out_in(b.v, MHA_F32, C),
                               .o = mha_matrix_out_in(b.o, MHA_F32, (ptrdiff_t)H * D),
                               .o_bias = {b.bias, MHA_F32}};
}

static void fill(float *values, ptrdiff_t count, double spread, rng *r)
{
    for (ptrdiff_t n = 0; n < count; n++)
        values[n] = (float)(spread * rng_normal(r));
}

/* Outputs begin with about the variance of the inputs in both. */
static void first_weights(filter_learner *p, uint64_t seed)
{
    const blocks b = blocks_of(p, p->values);
    rng r = rng_for(seed, 1);
    if (p->kind == LEARN_CONVOLUTION) {
        fill(b.q, b.bias - b.q, 1.0 / sqrt(LEARN_TAPS * C), &r);
    } else {
        fill(b.q, b.v - b.q, 0.3, &r);
        fill(b.v, b.o - b.v, 1.0 / sqrt(C), &r);
        fill(b.o, b.bias - b.o, 1.0 / sqrt(D), &r);
        fill(b.table, (ptrdiff_t)H * T, 1.0, &r);
    }
    r = rng_for(seed, 2);
    fill(b.classes, p->weights - p->layer_weights, 0.3, &r);
}

static mha_options options_of(const filter_learner *p)
{
    return (mha_options){.size = sizeof(mha_options),
                         .bias = {p->bias, 0, (ptrdiff_t)T * T, T},
                         .bias_type = MHA_F32};
}

static mha_layer_call call_of(const filter_learner *p, const learner_batch *batch,
                              const mha_options *options)
{
    return (mha_layer_call){.size = sizeof(mha_layer_call),
                            .B = batch->count,
                            .L = T,
                            .query = mha_view_ble(batch->x, T, C),
                            .output = mha_out_ble(p->y, T, p->outputs),
                            .options = options,
                            .tape = p->tape,
                            .tape_size = p->tape_size};
}

/* The layer, and room for its largest batch. */
static mha_status make_attention(filter_learner *p)
{
    const mha_layer_config config = {
        .size = sizeof config, .E = C, .H = H, .D = D, .Dv = D, .output_width = p->outputs};
    const mha_layer_weights matrices = matrices_of(p);
    const learner_batch most = {.count = LEARN_BATCH_MAX, .x = p->y};
    p->bias = calloc((size_t)2 * H * T * T, sizeof *p->bias);
    const mha_status status = mha_layer_create(&p->layer, &config, &matrices);
    if (p->bias == NULL || status != MHA_OK)
        return status != MHA_OK ? status : MHA_ERR_MEMORY;
    p->d_bias = p->bias + (ptrdiff_t)H * T * T;
    const mha_options options = options_of(p);
    mha_layer_call call = call_of(p, &most, &options);
    p->tape_size = (mha_layer_tape_size(p->layer, &call) + 63) / 64 * 64;
    p->tape = aligned_alloc(64, p->tape_size);
    call.tape = p->tape;
    call.tape_size = p->tape_size;
    p->work_size = (mha_layer_backward_work_size(p->layer, &call, 1) + 63) / 64 * 64;
    p->work = aligned_alloc(64, p->work_size);
    return p->tape != NULL && p->work != NULL ? MHA_OK : MHA_ERR_MEMORY;
}

static ptrdiff_t layer_weights_of(learner_kind kind, int outputs)
{
    if (kind == LEARN_CONVOLUTION)
        return (ptrdiff_t)(LEARN_TAPS * C + 1) * outputs;
    return (ptrdiff_t)H * D * (3 * C + outputs) + outputs + (ptrdiff_t)H * T;
}

static mha_status make(filter_learner *p, uint64_t seed)
{
    const size_t pixels = (size_t)LEARN_BATCH_MAX * T * (size_t)p->outputs;
    p->layer_weights = layer_weights_of(p->kind, p->outputs);
    p->weights = p->layer_weights + (ptrdiff_t)p->classes * (p->outputs + 1);
    p->values = calloc((size_t)p->weights * 4, sizeof *p->values);
    p->y = calloc(2 * pixels, sizeof *p->y);
    if (p->values == NULL || p->y == NULL)
        return MHA_ERR_MEMORY;
    p->gradients = p->values + p->weights;
    p->means = p->gradients + p->weights;
    p->squares = p->means + p->weights;
    p->d_y = p->y + pixels;
    first_weights(p, seed);
    return p->kind == LEARN_ATTENTION ? make_attention(p) : MHA_OK;
}

mha_status filter_learner_create(filter_learner **made, learner_kind kind, int outputs, int classes,
                                 uint64_t seed)
{
    filter_learner *const p = calloc(1, sizeof *p);
    *made = p;
    if (p == NULL)
        return MHA_ERR_MEMORY;
    p->kind = kind;
    p->outputs = outputs;
    p->classes = classes;
    const mha_status status = make(p, seed);
    if (status != MHA_OK) {
        filter_learner_free(p);
        *made = NULL;
    }
    return status;
}

/* --------------------------------------------------------- convolution ----- */

static void convolve(const filter_learner *p, const learner_batch *batch)
{
    const blocks b = blocks_of(p, p->values);
    const int F = p->outputs;
    for (int n = 0; n < batch->count * T; n++) {
        float *const y = p->y + (ptrdiff_t)n * F;
        memcpy(y, b.bias, (size_t)F * sizeof *y);
        for (int t = 0; t < LEARN_TAPS; t++) {
            const int from = n / T * T + learner_pixel(n % T, t / 3 - 1, t % 3 - 1);
            for (int c = 0; c < C; c++)
                for (int f = 0; f < F; f++)
                    y[f] += batch->x[from * C + c] * b.q[(t * C + c) * F + f];
        }
    }
}

static void convolve_backward(const filter_learner *p, const learner_batch *batch)
{
    const blocks g = blocks_of(p, p->gradients);
    const int F = p->outputs;
    memset(p->gradients, 0, (size_t)p->layer_weights * sizeof *p->gradients);
    for (int n = 0; n < batch->count * T; n++) {
        const float *const d = p->d_y + (ptrdiff_t)n * F;
        for (int f = 0; f < F; f++)
            g.bias[f] += d[f];
        for (int t = 0; t < LEARN_TAPS; t++) {
            const int from = n / T * T + learner_pixel(n % T, t / 3 - 1, t % 3 - 1);
            for (int c = 0; c < C; c++)
                for (int f = 0; f < F; f++)
                    g.q[(t * C + c) * F + f] += batch->x[from * C + c] * d[f];
        }
    }
}

/* ----------------------------------------------------------- attention ----- */

/* The place of the pair (query, key) in a table of distances. */
static int distance_of(int query, int key)
{
    return learner_pixel(key, -(query / LEARN_SIDE), -(query % LEARN_SIDE));
}

static mha_status attend(filter_learner *p, const learner_batch *batch)
{
    const blocks b = blocks_of(p, p->values);
    const mha_options options = options_of(p);
    for (int h = 0; h < H; h++)
        for (int n = 0; n < T * T; n++)
            p->bias[h * T * T + n] = b.table[h * T + distance_of(n / T, n % T)];
    const mha_layer_weights matrices = matrices_of(p);
    const mha_layer_call call = call_of(p, batch, &options);
    const mha_status status = mha_layer_update(p->layer, &matrices);
    return status == MHA_OK ? mha_layer_run(p->layer, &call, p->work, p->work_size, NULL) : status;
}

static mha_status attend_backward(filter_learner *p, const learner_batch *batch)
{
    const blocks g = blocks_of(p, p->gradients);
    const mha_options options = options_of(p);
    const mha_layer_call call = call_of(p, batch, &options);
    const mha_layer_gradients wanted = {.size = sizeof wanted,
                                        .d_output = mha_view_ble(p->d_y, T, p->outputs),
                                        .q = {g.q, C, 1},
                                        .k = {g.k, C, 1},
                                        .v = {g.v, C, 1},
                                        .o = {g.o, (ptrdiff_t)H * D, 1},
                                        .o_bias = g.bias,
                                        .d_bias = {p->d_bias, 0, (ptrdiff_t)T * T, T}};
    const mha_status status =
        mha_layer_backward(p->layer, &call, &wanted, p->work, p->work_size, NULL);
    memset(g.table, 0, (size_t)H * T * sizeof *g.table);
    for (int h = 0; h < H; h++)
        for (int n = 0; n < T * T; n++)
            g.table[h * T + distance_of(n / T, n % T)] += p->d_bias[h * T * T + n];
    return status;
}

/* ---------------------------------------------------------------- loss ----- */

/* Half the mean squared difference; its gradient goes to d_y. */
static double compare_pixels(const filter_learner *p, const learner_batch *batch)
{
    const ptrdiff_t count = (ptrdiff_t)batch->count * T * p->outputs;
    double sum = 0.0;
    for (ptrdiff_t n = 0; n < count; n++) {
        const float off = p->y[n] - batch->wanted[n];
        sum += 0.5 * (double)(off * off);
        p->d_y[n] = off / (float)count;
    }
    return sum / (double)count;
}

/* The mean square of each output over picture n. */
static void energies(const filter_learner *p, int n, double *energy)
{
    for (int f = 0; f < p->outputs; f++) {
        energy[f] = 0.0;
        for (int i = 0; i < T; i++) {
            const double y = (double)p->y[((ptrdiff_t)n * T + i) * p->outputs + f];
            energy[f] += y * y / T;
        }
    }
}

/* The probabilities of the classes of picture n, by a linear layer of the energies. */
static void classify(const filter_learner *p, const double *energy, double *share)
{
    const float *const w = p->values + p->layer_weights;
    double most = -INFINITY, sum = 0.0;
    for (int k = 0; k < p->classes; k++) {
        share[k] = (double)w[p->classes * p->outputs + k];
        for (int f = 0; f < p->outputs; f++)
            share[k] += (double)w[k * p->outputs + f] * energy[f];
        most = fmax(most, share[k]);
    }
    for (int k = 0; k < p->classes; k++)
        sum += share[k] = exp(share[k] - most);
    for (int k = 0; k < p->classes; k++)
        share[k] /= sum;
}

/* The gradients of one picture: of the linear layer, and of the outputs. */
static void classify_backward(filter_learner *p, int n, int count, const double *energy,
                              const double *d_score)
{
    const float *const w = p->values + p->layer_weights;
    float *const g = p->gradients + p->layer_weights;
    for (int k = 0; k < p->classes; k++) {
        for (int f = 0; f < p->outputs; f++)
            g[k * p->outputs + f] += (float)(d_score[k] * energy[f] / count);
        g[p->classes * p->outputs + k] += (float)(d_score[k] / count);
    }
    for (int f = 0; f < p->outputs; f++) {
        double d_energy = 0.0;
        for (int k = 0; k < p->classes; k++)
            d_energy += d_score[k] * (double)w[k * p->outputs + f] / count;
        for (int i = 0; i < T; i++) {
            const ptrdiff_t at = ((ptrdiff_t)n * T + i) * p->outputs + f;
            p->d_y[at] = (float)(2.0 * d_energy * (double)p->y[at] / T);
        }
    }
}

/* The mean cross-entropy of the classes. */
static double compare_classes(filter_learner *p, const learner_batch *batch)
{
    double sum = 0.0, energy[LEARN_OUTPUTS_MAX], share[LEARN_CLASSES_MAX];
    memset(p->gradients + p->layer_weights, 0,
           (size_t)(p->weights - p->layer_weights) * sizeof *p->gradients);
    for (int n = 0; n < batch->count; n++) {
        energies(p, n, energy);
        classify(p, energy, share);
        sum -= log(share[batch->classes[n]] + 1e-30);
        share[batch->classes[n]] -= 1.0;
        classify_backward(p, n, batch->count, energy, share);
    }
    return sum / batch->count;
}

static mha_status forward(filter_learner *p, const learner_batch *batch)
{
    if (p->kind == LEARN_ATTENTION)
        return attend(p, batch);
    convolve(p, batch);
    return MHA_OK;
}

static mha_status find_gradients(filter_learner *p, const learner_batch *batch, double *loss)
{
    const mha_status status = forward(p, batch);
    if (status != MHA_OK)
        return status;
    *loss = batch->wanted != NULL ? compare_pixels(p, batch) : compare_classes(p, batch);
    if (p->kind == LEARN_ATTENTION)
        return attend_backward(p, batch);
    convolve_backward(p, batch);
    return MHA_OK;
}

/* ------------------------------------------------------------ learning ----- */

static void descend(filter_learner *p, double rate)
{
    const double correction = sqrt(1.0 - pow(0.99, p->steps + 1)) / (1.0 - pow(0.9, p->steps + 1));
    const float step = (float)(rate * correction);
    p->steps++;
    for (ptrdiff_t n = 0; n < p->weights; n++) {
        const float g = p->gradients[n];
        p->means[n] = 0.9f * p->means[n] + 0.1f * g;
        p->squares[n] = 0.99f * p->squares[n] + 0.01f * g * g;
        p->values[n] -= step * p->means[n] / (sqrtf(p->squares[n]) + 1e-8f);
    }
}

mha_status filter_learner_step(filter_learner *p, const learner_batch *batch, double rate)
{
    double loss;
    const mha_status status = find_gradients(p, batch, &loss);
    if (status == MHA_OK)
        descend(p, rate);
    return status;
}

mha_status filter_learner_error(filter_learner *p, const learner_batch *batch, double *error)
{
    const ptrdiff_t count = (ptrdiff_t)batch->count * T * p->outputs;
    double energy[LEARN_OUTPUTS_MAX], share[LEARN_CLASSES_MAX];
    const mha_status status = forward(p, batch);
    for (ptrdiff_t n = 0; n < count && status == MHA_OK && batch->wanted != NULL; n++) {
        const double off = (double)p->y[n] - (double)batch->wanted[n];
        *error += off * off;
    }
    for (int n = 0; n < batch->count && status == MHA_OK && batch->wanted == NULL; n++) {
        int best = 0;
        energies(p, n, energy);
        classify(p, energy, share);
        for (int k = 1; k < p->classes; k++)
            best = share[k] > share[best] ? k : best;
        *error += best != batch->classes[n];
    }
    return status;
}

float *filter_learner_values(filter_learner *p, ptrdiff_t *count)
{
    *count = p->weights;
    return p->values;
}

mha_status filter_learner_gradients(filter_learner *p, const learner_batch *batch, double *loss,
                                    const float **gradients)
{
    *gradients = p->gradients;
    return find_gradients(p, batch, loss);
}
