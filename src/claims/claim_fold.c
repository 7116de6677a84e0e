/* SPDX-License-Identifier: MIT */
/*
 * Claim 6: with one head, W_V and W_O fold into one matrix.
 *
 *      one head      Y = A (X W_V + b_V) W_O + b_O = A X (W_V W_O) + (b_V W_O + b_O)
 *      many heads    Y = sum_h A_h X (W_V_h W_O_h) + (b_V W_O + b_O)
 *
 * The bias b_V folds only if each row of A sums to 1, which a sink or a fully masked row prevents.
 * Several heads have one product each, and these add up to one only if all A_h are equal.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "claims/claims.h"

enum { E = 16, L = 96, HEADS = 4, WIDTH = E / HEADS, APART = HEADS * E };

/* Inputs and weights of all layers. Matrices are [out][in]. */
typedef struct ground {
    float x[L * E], q[E * E], k[E * E], v[E * E], o[E * E], v_bias[E], o_bias[E];
    float zero[E * E], unity[E * E];
    float product[E * E], bias[E];               /* W_V W_O, and b_V W_O + b_O */
    float products[APART * E], adder[E * APART]; /* W_V_h W_O_h stacked; the sum over heads */
} ground;

/* One layer: the number of heads, the width of their values, and the matrices. */
typedef struct form {
    ptrdiff_t H, Dv;
    const float *q, *v, *o, *v_bias, *o_bias;
} form;

static void fill(rng *r, float *x, int count, double size)
{
    for (int n = 0; n < count; n++)
        x[n] = (float)(size * rng_normal(r));
}

/* Element of W_V W_O from input c to output n, over the head elements first to last - 1. */
static double path(const ground *g, int n, int c, int first, int last)
{
    double sum = 0.0;
    for (int m = first; m < last; m++)
        sum += (double)g->o[n * E + m] * (double)g->v[m * E + c];
    return sum;
}

/* Computes the folded matrices and the folded bias from v, o and their biases. */
static void fold(ground *g)
{
    for (int n = 0; n < E; n++) {
        double bias = (double)g->o_bias[n];
        g->unity[n * E + n] = 1.0f;
        for (int c = 0; c < E; c++) {
            bias += (double)g->o[n * E + c] * (double)g->v_bias[c];
            g->product[n * E + c] = (float)path(g, n, c, 0, E);
            for (int h = 0; h < HEADS; h++)
                g->products[(h * E + n) * E + c] = (float)path(g, n, c, h * WIDTH, (h + 1) * WIDTH);
        }
        for (int h = 0; h < HEADS; h++)
            g->adder[n * APART + h * E + n] = 1.0f;
        g->bias[n] = (float)bias;
    }
}

static void make_ground(ground *g, uint64_t seed)
{
    rng r = rng_for(seed, 60);
    fill(&r, g->x, L * E, 1.0);
    fill(&r, g->q, E * E, 0.5);
    fill(&r, g->k, E * E, 0.5);
    fill(&r, g->v, E * E, 0.25);
    fill(&r, g->o, E * E, 0.25);
    fill(&r, g->v_bias, E, 1.0);
    fill(&r, g->o_bias, E, 1.0);
    fold(g);
}

/* --------------------------------------------------------------- layers ---- */

/* Creates the layer, runs it on g->x and frees it. False: a call failed. */
static bool run(proof *p, const ground *g, const form *f, const mha_options *options, float *y)
{
    const mha_layer_config config = {
        .size = sizeof config, .E = E, .H = f->H, .D = E / f->H, .Dv = f->Dv};
    const mha_layer_weights weights = {.size = sizeof weights,
                                       .q = mha_matrix_out_in(f->q, MHA_F32, E),
                                       .k = mha_matrix_out_in(g->k, MHA_F32, E),
                                       .v = mha_matrix_out_in(f->v, MHA_F32, E),
                                       .o = mha_matrix_out_in(f->o, MHA_F32, f->H * f->Dv),
                                       .v_bias = {f->v_bias, MHA_F32},
                                       .o_bias = {f->o_bias, MHA_F32}};
    const mha_layer_call call = {.size = sizeof call,
                                 .B = 1,
                                 .L = L,
                                 .query = mha_view_ble(g->x, L, E),
                                 .output = mha_out_ble(y, L, E),
                                 .options = options};
    mha_layer *layer;
    const bool fine = proof_ok(p, mha_layer_create(&layer, &config, &weights)) &&
                      proof_ok(p, mha_layer_run(layer, &call, NULL, 0, NULL));
    mha_layer_free(layer);
    return fine;
}

static form plain(const ground *g, ptrdiff_t heads)
{
    return (form){heads, E / heads, g->q, g->v, g->o, g->v_bias, g->o_bias};
}

/* W_V W_O as the only value matrix, and the identity as W_O. */
static form folded(const ground *g, ptrdiff_t heads)
{
    return (form){heads, E / heads, g->q, g->product, g->unity, NULL, g->bias};
}

/* Largest difference of the outputs of two layers, divided by the largest output. NaN: a call
 * failed. */
static double differ(proof *p, const ground *g, const form *a, const form *b,
                     const mha_options *options)
{
    float y[L * E], z[L * E];
    double worst = 0.0, top = 0.0;
    if (!run(p, g, a, options, y) || !run(p, g, b, options, z))
        return NAN;
    for (int n = 0; n < L * E; n++) {
        worst = proof_larger(worst, fabs((double)y[n] - (double)z[n]));
        top = proof_larger(top, fabs((double)y[n]));
    }
    return worst / top;
}

/* ------------------------------------------------------------- one head ---- */

static void show_one_head(proof *p, const ground *g)
{
    uint8_t mask[L * L];
    const float sink = 4.0f;
    const mha_options drained = {.size = sizeof drained, .sinks = &sink};
    const mha_options masked = {.size = sizeof masked, .attend_mask = {mask, 0, 0, L}};
    const form one = plain(g, 1), product = folded(g, 1);
    memset(mask, 1, sizeof mask);
    memset(mask, 0, L); /* row 0 is fully masked */
    proof_say(p, "One head: Y = A X (W_V W_O) + (b_V W_O + b_O). Largest difference between the");
    proof_say(p, "layer and the folded layer, divided by the largest output:");
    proof_at_most(p, differ(p, g, &one, &product, NULL), 1e-5, "one head, with biases");
    proof_say(p, "b_V folds only if the weights of each row sum to 1:");
    proof_at_least(p, differ(p, g, &one, &product, &drained), 1e-3, "one head with a sink");
    proof_at_least(p, differ(p, g, &one, &product, &masked), 1e-3, "one head, a fully masked row");
}

/* ---------------------------------------------------------- many heads ----- */

/* The columns of A_h X, [E][L]. */
static void mix(const float *weights, const float *x, double *columns)
{
    for (int c = 0; c < E; c++)
        for (int i = 0; i < L; i++) {
            double sum = 0.0;
            for (int j = 0; j < L; j++)
                sum += (double)weights[i * L + j] * (double)x[j * E + c];
            columns[c * L + i] = sum;
        }
}

/*
 * One matrix W for all heads, without a W_O that mixes them: an output channel reads one head only.
 * Returns the share of the outputs' sum of squares (without the bias) that is lost with the best
 * such W, found by least squares. NaN: a call failed. `room` has [E + 1][L] doubles, followed by
 * [HEADS][L][L] floats.
 */
static double lost_at_best(proof *p, const ground *g, double *room)
{
    double *const columns = room, *const target = columns + E * L;
    float *const weights = (float *)(target + L);
    float y[L * E];
    const mha_options options = {.size = sizeof options,
                                 .weights = mha_out_bhld(weights, HEADS, L, L)};
    const form many = plain(g, HEADS);
    double lost = 0.0, energy = 0.0;
    if (!run(p, g, &many, &options, y))
        return NAN;
    for (int n = 0; n < E; n++) {
        mix(weights + n / WIDTH * L * L, g->x, columns);
        for (int i = 0; i < L; i++) {
            target[i] = (double)y[i * E + n] - (double)g->bias[n];
            energy += target[i] * target[i];
        }
        lost += proof_unexplained(columns, E, target, L);
    }
    return lost / energy;
}

static void show_heads(proof *p, const ground *g)
{
    double *const room =
        proof_calloc(p, (E + 1) * L * sizeof(double) + HEADS * L * L * sizeof(float));
    form uniform = plain(g, HEADS), product = folded(g, HEADS);
    const form many = uniform;
    const form apart = {HEADS, E, g->q, g->products, g->adder, NULL, g->bias};
    if (room == NULL)
        return;
    proof_say(
        p, "%d heads: each head's own product folds, one W_V W_O for all heads does not:", HEADS);
    proof_at_most(p, differ(p, g, &many, &apart, NULL), 1e-5, "each head with its W_V_h W_O_h");
    proof_note(p, HEADS * E * E / (2.0 * E * E), "weights this needs / weights of W_V and W_O");
    proof_at_least(p, differ(p, g, &many, &product, NULL), 1e-2, "one W_V W_O for all heads");
    proof_at_least(p, lost_at_best(p, g, room), 1e-2, "share of squares lost with the best W");
    uniform.q = product.q = g->zero;
    proof_at_most(p, differ(p, g, &uniform, &product, NULL), 1e-5,
                  "all heads with the same A (W_Q = 0)");
    free(room);
}

void prove_fold(proof *p)
{
    ground *const g = proof_calloc(p, sizeof *g);
    if (g == NULL)
        return;
    make_ground(g, p->seed);
    show_one_head(p, g);
    show_heads(p, g);
    free(g);
}
