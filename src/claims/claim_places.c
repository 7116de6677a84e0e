/* SPDX-License-Identifier: MIT */
/*
 * Claim 4: one head cannot read two places apart, two heads can.
 *
 * The task: T tokens on a circle, each with a number x. Token i is to give the pair
 * (x[i-2], x[i+3]). Queries and keys see positions only, values see numbers only.
 *
 * One head gives token i a single mixture m = sum_j a_ij x_j and then a pair w m, whatever its
 * weights and whatever a_ij depends on: all pairs on one line. So it loses at least what the best
 * line through the origin loses, the smaller eigenvalue of the pairs' second moments: half the
 * energy of independent numbers. Two heads have two mixtures.
 */
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "claims/claims.h"

enum { T = 12, BATCH = 16, PAIR = 2, NUMBERS = BATCH * T, STEPS = 250, ATTEMPTS = 3 };
static const int offsets[PAIR] = {-2, 3};

typedef struct task {
    float places[T * T];          /* one-hot */
    float x[NUMBERS];             /* [BATCH][T] */
    float wanted[NUMBERS * PAIR]; /* [BATCH][T][PAIR] */
    double energy;                /* of what is wanted */
    double floor;                 /* least that one head loses of it, up to rounding */
} task;

/* The smaller eigenvalue of sum w w^T over its trace. */
static double best_line(const task *t)
{
    double aa = 0.0, ab = 0.0, bb = 0.0;
    for (int n = 0; n < NUMBERS; n++) {
        const double a = (double)t->wanted[PAIR * n], b = (double)t->wanted[PAIR * n + 1];
        aa += a * a;
        ab += a * b;
        bb += b * b;
    }
    return 0.5 - sqrt(0.25 * (aa - bb) * (aa - bb) + ab * ab) / (aa + bb);
}

/* Every other sequence is the one before it with every other sign turned: places an odd number
 * apart are then not correlated at all, and the best line is no better than any. */
static void make_task(task *t, uint64_t seed)
{
    rng r = rng_for(seed, 40);
    for (int i = 0; i < T; i++)
        t->places[i * T + i] = 1.0f;
    for (int n = 0; n < NUMBERS; n++) {
        const bool twin = n / T % 2 == 1;
        const float number = twin ? t->x[n - T] : (float)rng_normal(&r);
        t->x[n] = twin && n % 2 == 1 ? -number : number;
    }
    for (int n = 0; n < NUMBERS; n++)
        for (int k = 0; k < PAIR; k++) {
            const float number = t->x[n / T * T + (n % T + offsets[k] + T) % T];
            t->wanted[PAIR * n + k] = number;
            t->energy += (double)(number * number);
        }
    t->floor = best_line(t) - 1e-6; /* sums of the layer are f32 */
}

/* --------------------------------------------------------------- layer ----- */

/* All weights of a layer, one matrix after another: W_Q and W_K [T][T], W_V [T], W_O [PAIR][T].
 * However many heads there are, they share the width T. */
enum { Q_AT = 0, K_AT = T * T, V_AT = 2 * T * T, O_AT = V_AT + T, WEIGHTS = O_AT + PAIR * T };

static mha_layer_weights weights_of(const float *w)
{
    return (mha_layer_weights){.size = sizeof(mha_layer_weights),
                               .q = mha_matrix_out_in(w + Q_AT, MHA_F32, T),
                               .k = mha_matrix_out_in(w + K_AT, MHA_F32, T),
                               .v = mha_matrix_out_in(w + V_AT, MHA_F32, 1),
                               .o = mha_matrix_out_in(w + O_AT, MHA_F32, T)};
}

static mha_status create(mha_layer **layer, int heads, const float *w)
{
    const mha_layer_config config = {
        .size = sizeof config, .E = T, .H = heads, .value_width = 1, .output_width = PAIR};
    const mha_layer_weights weights = weights_of(w);
    return mha_layer_create(layer, &config, &weights);
}

/* The places are the same for all of the batch. */
static mha_layer_call call_of(const task *t, float *y)
{
    return (mha_layer_call){.size = sizeof(mha_layer_call),
                            .B = BATCH,
                            .L = T,
                            .S = T,
                            .query = {t->places, 0, 0, T},
                            .key = {t->places, 0, 0, T},
                            .value = mha_view_ble(t->x, T, 1),
                            .output = mha_out_ble(y, T, PAIR)};
}

/* Share of the energy that is lost; d_y, if wanted, is its gradient. */
static double loss(const task *t, const float *y, float *d_y)
{
    double sum = 0.0;
    for (int n = 0; n < NUMBERS * PAIR; n++) {
        const double off = (double)y[n] - (double)t->wanted[n];
        sum += off * off;
        if (d_y != NULL)
            d_y[n] = (float)(2.0 * off / t->energy);
    }
    return sum / t->energy;
}

/* ------------------------------------------------------------- by hand ----- */

/* Keys stand on a circle, in the first two elements of a head. Query i looks at the one `offset`
 * further; the next best is 1 - cos(2 pi/T) of `sharp` behind. */
static void look_at(float *w, int width, int head, int offset)
{
    const double turn = 6.283185307179586 / T, sharp = 512.0 * sqrt((double)width);
    float *const q = w + Q_AT + head * width * T, *const k = w + K_AT + head * width * T;
    for (int i = 0; i < T; i++) {
        k[i] = (float)cos(turn * i);
        k[T + i] = (float)sin(turn * i);
        q[i] = (float)(sharp * cos(turn * (i + offset)));
        q[T + i] = (float)(sharp * sin(turn * (i + offset)));
    }
    w[V_AT + head * width] = 1.0f;
}

/* One head of width T that looks at both places alike. */
static void look_at_both(float *w)
{
    for (int i = 0; i < T; i++) {
        w[K_AT + i * T + i] = 1.0f;
        for (int k = 0; k < PAIR; k++)
            w[Q_AT + (i + offsets[k] + T) % T * T + i] = 512.0f;
    }
    w[V_AT] = 1.0f;
}

static bool lose_by_hand(proof *p, const task *t, int heads, const float *w, double *lost)
{
    float y[NUMBERS * PAIR];
    const mha_layer_call call = call_of(t, y);
    mha_layer *layer;
    const bool fine = proof_ok(p, create(&layer, heads, w)) &&
                      proof_ok(p, mha_layer_run(layer, &call, NULL, 0, NULL));
    mha_layer_free(layer);
    *lost = fine ? loss(t, y, NULL) : NAN;
    return fine;
}

static bool the_construction(proof *p, const task *t)
{
    float one[WEIGHTS] = {0}, both[WEIGHTS] = {0}, two[WEIGHTS] = {0};
    double lost[3];
    look_at(one, T, 0, offsets[0]);
    one[O_AT] = 1.0f;
    look_at_both(both);
    both[O_AT] = both[O_AT + T] = 1.0f;
    for (int h = 0; h < PAIR; h++) {
        look_at(two, T / 2, h, offsets[h]);
        two[O_AT + h * T + h * T / 2] = 1.0f;
    }
    if (!lose_by_hand(p, t, 1, one, &lost[0]) || !lose_by_hand(p, t, 1, both, &lost[1]) ||
        !lose_by_hand(p, t, 2, two, &lost[2]))
        return false;
    proof_say(p, "So it loses at least %.6f of the energy. Heads made by hand:", t->floor);
    proof_at_least(p, lost[0], t->floor, "one head that looks at one of the places");
    proof_at_least(p, lost[1], t->floor, "one head that gives half to each: their mean");
    proof_at_most(p, lost[2], 1e-9, "two heads of half the width");
    return true;
}

/* -------------------------------------------------------------- trained ---- */

typedef struct training {
    mha_layer *layer;
    float w[WEIGHTS], slope[WEIGHTS], mean[WEIGHTS], square[WEIGHTS];
    float y[NUMBERS * PAIR], d_y[NUMBERS * PAIR];
    void *tape;
} training;

/* Forward and backward pass through the layer; the slope is that of the loss. */
static mha_status find_slope(training *g, const task *t, double *lost)
{
    mha_layer_call call = call_of(t, g->y);
    call.tape = g->tape;
    call.tape_size = mha_layer_tape_size(g->layer, &call);
    const mha_layer_gradients gradients = {.size = sizeof gradients,
                                           .d_output = mha_view_ble(g->d_y, T, PAIR),
                                           .q = {g->slope + Q_AT, T, 1},
                                           .k = {g->slope + K_AT, T, 1},
                                           .v = {g->slope + V_AT, 1, 1},
                                           .o = {g->slope + O_AT, T, 1}};
    mha_status status = mha_layer_run(g->layer, &call, NULL, 0, NULL);
    if (status != MHA_OK)
        return status;
    *lost = loss(t, g->y, g->d_y);
    return mha_layer_backward(g->layer, &call, &gradients, NULL, 0, NULL);
}

/* One step of Adam. */
static void descend(training *g, int step, double rate)
{
    const double settle = sqrt(1.0 - pow(0.99, step + 1)) / (1.0 - pow(0.9, step + 1));
    for (int n = 0; n < WEIGHTS; n++) {
        g->mean[n] = 0.9f * g->mean[n] + 0.1f * g->slope[n];
        g->square[n] = 0.99f * g->square[n] + 0.01f * g->slope[n] * g->slope[n];
        g->w[n] -=
            (float)(rate * settle * (double)g->mean[n] / (sqrt((double)g->square[n]) + 1e-8));
    }
}

static mha_status train(training *g, const task *t, double *least)
{
    for (int step = 0; step < STEPS; step++) {
        double lost;
        const mha_layer_weights weights = weights_of(g->w);
        mha_status status = mha_layer_update(g->layer, &weights);
        if (status == MHA_OK)
            status = find_slope(g, t, &lost);
        if (status != MHA_OK)
            return status;
        *least = lost < *least ? lost : *least;
        descend(g, step, 0.1);
    }
    return MHA_OK;
}

static mha_status start_and_train(training *g, const task *t, int heads, double *least)
{
    const mha_layer_call call = call_of(t, g->y);
    const mha_status status = create(&g->layer, heads, g->w);
    if (status != MHA_OK)
        return status;
    g->tape = aligned_alloc(64, (mha_layer_tape_size(g->layer, &call) + 63) / 64 * 64);
    return g->tape != NULL ? train(g, t, least) : MHA_ERR_MEMORY;
}

static bool lose_by_training(proof *p, const task *t, int heads, uint64_t attempt, double *least)
{
    training *const g = proof_room(p, sizeof *g);
    rng r = rng_for(p->seed, 41 + attempt);
    if (g == NULL)
        return false;
    for (int n = 0; n < WEIGHTS; n++)
        g->w[n] = (float)(0.5 * rng_normal(&r));
    const bool fine = proof_ok(p, start_and_train(g, t, heads, least));
    free(g->tape);
    mha_layer_free(g->layer);
    free(g);
    return fine;
}

/* Descent can end in a place where both heads read the same: then another start is tried. */
static bool the_training(proof *p, const task *t)
{
    double one = INFINITY, two = INFINITY;
    int attempts = 0;
    for (uint64_t n = 0; n < ATTEMPTS; n++)
        if (!lose_by_training(p, t, 1, n, &one))
            return false;
    while (two > 0.01 && attempts < ATTEMPTS)
        if (!lose_by_training(p, t, 2, (uint64_t)attempts++, &two))
            return false;
    proof_say(p, "Found by gradient descent through the layer, with %d weights each:", WEIGHTS);
    proof_at_least(p, one, t->floor, "one head, best of %d starts", ATTEMPTS);
    proof_at_most(p, two, 0.01, "two heads of half the width, start %d", attempts);
    return true;
}

void prove_places(proof *p)
{
    task *const t = proof_room(p, sizeof *t);
    if (t == NULL)
        return;
    make_task(t, p->seed);
    proof_say(p, "%d tokens on a circle: token i is to give the pair (x[i-2], x[i+3]). One head",
              T);
    proof_say(p, "gives w * sum_j a_ij x_j, a point on a line; pairs do not lie on a line.");
    if (the_construction(p, t))
        the_training(p, t);
    free(t);
}
