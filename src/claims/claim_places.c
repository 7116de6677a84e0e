/* SPDX-License-Identifier: MIT */
/*
 * Claim 4: if a token has one number, one head cannot read two places separately; two heads can.
 * The task: T tokens on a circle, token i has to output the pair (x[i-2], x[i+3]). One head gives
 * it a single mixture m = sum_j a_ij x_j and the pair w m, whatever a_ij depends on: all pairs lie
 * on one line, and at least the smaller eigenvalue of the pairs' second moments is lost, which is
 * half the sum of squares here. With vectors, one head can keep both contents, but not their
 * places.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "claims/claims.h"
#include "claims/position_layer.h"

enum { T = 12, BATCH = 16, PAIR = 2, NUMBERS = BATCH * T, STEPS = 250, ATTEMPTS = 3 };
static const int offsets[PAIR] = {-2, 3};

typedef struct task {
    float places[T * T];          /* one-hot */
    float x[NUMBERS];             /* [BATCH][T] */
    float wanted[NUMBERS * PAIR]; /* [BATCH][T][PAIR] */
    double energy;                /* sum of squares of `wanted` */
    double floor;                 /* least share that one head loses, up to rounding */
} task;

/* The smaller eigenvalue of the 2x2 matrix sum w w^T over the wanted pairs w, divided by its trace.
 */
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

/* Every second sequence repeats the one before it with every second sign flipped. Places an odd
 * distance apart are then exactly uncorrelated, and no line is better than any other. */
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
    t->floor = best_line(t) - 1e-6; /* the layer adds in f32 */
}

/* --------------------------------------------------------------- layer ----- */

/* All weights of a layer in one array: W_Q and W_K [T][T], W_V [T], W_O [PAIR][T]. The heads divide
 * the width T among them, so that the number of weights does not depend on the number of heads. */
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

/* Queries and keys are the positions, the same for the whole batch; values are the numbers. */
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

/* Squared error divided by the energy. */
static double loss(const task *t, const float *y)
{
    double sum = 0.0;
    for (int n = 0; n < NUMBERS * PAIR; n++) {
        const double off = (double)y[n] - (double)t->wanted[n];
        sum += off * off;
    }
    return sum / t->energy;
}

/* ------------------------------------------------------------- by hand ----- */

/* Makes token i attend to the token at i + offset. Keys are points on a circle, in the first two
 * elements of the head; the score of the second best key is lower by 1 - cos(2 pi/T) times `sharp`,
 * before the scaling by 1/sqrt(width). */
static void attend_to(float *w, int width, int head, int offset)
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

/* One head of width T that gives both places the same weight. */
static void attend_to_both(float *w)
{
    for (int i = 0; i < T; i++) {
        w[K_AT + i * T + i] = 1.0f;
        for (int k = 0; k < PAIR; k++)
            w[Q_AT + (i + offsets[k] + T) % T * T + i] = 512.0f;
    }
    w[V_AT] = 1.0f;
}

/* The loss of a layer with these weights. */
static bool loss_of(proof *p, const task *t, int heads, const float *w, double *lost)
{
    float y[NUMBERS * PAIR];
    const mha_layer_call call = call_of(t, y);
    mha_layer *layer;
    const bool fine = proof_ok(p, create(&layer, heads, w)) &&
                      proof_ok(p, mha_layer_run(layer, &call, NULL, 0, NULL));
    mha_layer_free(layer);
    *lost = fine ? loss(t, y) : NAN;
    return fine;
}

static bool show_construction(proof *p, const task *t)
{
    float one[WEIGHTS] = {0}, both[WEIGHTS] = {0}, two[WEIGHTS] = {0};
    double lost[3];
    attend_to(one, T, 0, offsets[0]);
    one[O_AT] = 1.0f;
    attend_to_both(both);
    both[O_AT] = both[O_AT + T] = 1.0f;
    for (int h = 0; h < PAIR; h++) {
        attend_to(two, T / 2, h, offsets[h]);
        two[O_AT + h * T + h * T / 2] = 1.0f;
    }
    if (!loss_of(p, t, 1, one, &lost[0]) || !loss_of(p, t, 1, both, &lost[1]) ||
        !loss_of(p, t, 2, two, &lost[2]))
        return false;
    proof_say(p, "So one head loses at least %.6f of the squares. Weights set by hand:", t->floor);
    proof_at_least(p, lost[0], t->floor, "one head that attends to one of the places");
    proof_at_least(p, lost[1], t->floor, "one head, half of the weight for each place");
    proof_at_most(p, lost[2], 1e-9, "two heads of half the width");
    return true;
}

/* -------------------------------------------------------------- trained ---- */

/* STEPS steps of gradient descent. `least` is lowered to the smallest loss that was seen. */
static mha_status train(position_layer *layer, const position_task *wanted, double *least)
{
    mha_status status = MHA_OK;
    for (int step = 0; step < STEPS && status == MHA_OK; step++) {
        double lost = INFINITY;
        status = position_layer_step(layer, wanted, 0.1, &lost);
        *least = lost < *least ? lost : *least;
    }
    return status;
}

/* Trains a layer from random weights; see train() for `least`. */
static bool train_attempt(proof *p, const task *t, int heads, uint64_t attempt, double *least)
{
    const position_task wanted = {T, PAIR, BATCH, t->x, t->wanted};
    position_layer *layer = NULL;
    float w[WEIGHTS];
    rng r = rng_for(p->seed, 41 + attempt);
    for (int n = 0; n < WEIGHTS; n++)
        w[n] = (float)(0.5 * rng_normal(&r));
    const bool fine = proof_ok(p, position_layer_create(&layer, &wanted, heads, w)) &&
                      proof_ok(p, train(layer, &wanted, least));
    position_layer_free(layer);
    return fine;
}

/* Descent can end in a local minimum where both heads read the same place. Then two heads get
 * another start, up to ATTEMPTS; one head always has that many. */
static bool show_training(proof *p, const task *t)
{
    double one = INFINITY, two = INFINITY;
    int attempts = 0;
    for (uint64_t n = 0; n < ATTEMPTS; n++)
        if (!train_attempt(p, t, 1, n, &one))
            return false;
    while (two > 0.01 && attempts < ATTEMPTS)
        if (!train_attempt(p, t, 2, (uint64_t)attempts++, &two))
            return false;
    proof_say(p, "Found by gradient descent through the layer, with %d weights each:", WEIGHTS);
    proof_at_least(p, one, t->floor, "one head, best of %d starts", ATTEMPTS);
    proof_at_most(p, two, 0.01, "two heads of half the width, start %d", attempts);
    return true;
}

/* ------------------------------------------------------------- vectors ----- */

enum { CONTENT = 4, RUNS = 1 + T };

/* Tokens with vectors: those at even places have a content in the first half of their elements,
 * those at odd places in the second half. The two places of a token are an odd number apart. Run 0
 * has the contents x; run 1 + i has those of token i's two places swapped. */
typedef struct contents {
    float places[T * T];
    float x[RUNS * T * CONTENT];
    float one[RUNS * T * CONTENT];        /* output of one head */
    float two[RUNS * T * CONTENT * PAIR]; /* output of two heads, side by side */
} contents;

static int place_of(int token, int which)
{
    return (token + offsets[which] + T) % T;
}

static void make_contents(contents *c, uint64_t seed)
{
    rng r = rng_for(seed, 45);
    for (int i = 0; i < T; i++)
        c->places[i * T + i] = 1.0f;
    for (int n = 0; n < T * CONTENT; n++) {
        const bool filled = n % CONTENT / (CONTENT / 2) == n / CONTENT % 2;
        const double number = (0.5 + rng_unit(&r)) * (rng_chance(&r, 50) ? 1.0 : -1.0);
        c->x[n] = filled ? (float)number : 0.0f;
    }
    for (int i = 0; i < T; i++) {
        float *const swapped = c->x + (1 + i) * T * CONTENT;
        const int first = place_of(i, 0), second = place_of(i, 1);
        memcpy(swapped, c->x, T * CONTENT * sizeof *swapped);
        memcpy(swapped + first * CONTENT, c->x + second * CONTENT, CONTENT * sizeof *swapped);
        memcpy(swapped + second * CONTENT, c->x + first * CONTENT, CONTENT * sizeof *swapped);
    }
}

/* W_Q and W_K are those of `w`, W_V copies a token's vector into each head, and W_O is `factor`
 * times the identity. */
static bool read_contents(proof *p, const contents *c, int heads, const float *w, float factor,
                          float *y)
{
    enum { WIDEST = PAIR * CONTENT };
    const ptrdiff_t wide = heads * CONTENT;
    float v[WIDEST * CONTENT] = {0}, o[WIDEST * WIDEST] = {0};
    for (int n = 0; n < wide; n++) {
        v[n * CONTENT + n % CONTENT] = 1.0f;
        o[n * wide + n] = factor;
    }
    const mha_layer_config config = {.size = sizeof config,
                                     .E = T,
                                     .H = heads,
                                     .Dv = CONTENT,
                                     .value_width = CONTENT,
                                     .output_width = wide};
    mha_layer_weights weights = weights_of(w);
    weights.v = mha_matrix_out_in(v, MHA_F32, CONTENT);
    weights.o = mha_matrix_out_in(o, MHA_F32, wide);
    const mha_layer_call call = {.size = sizeof call,
                                 .B = RUNS,
                                 .L = T,
                                 .S = T,
                                 .query = {c->places, 0, 0, T},
                                 .key = {c->places, 0, 0, T},
                                 .value = mha_view_ble(c->x, T, CONTENT),
                                 .output = mha_out_ble(y, T, wide)};
    mha_layer *layer;
    const bool fine = proof_ok(p, mha_layer_create(&layer, &config, &weights)) &&
                      proof_ok(p, mha_layer_run(layer, &call, NULL, 0, NULL));
    mha_layer_free(layer);
    return fine;
}

/* Largest difference between the output of run 0 and the contents of both places: their sum for one
 * head, both side by side for two heads. */
static double content_error(const contents *c, int heads, const float *y)
{
    double worst = 0.0;
    for (int n = 0; n < T * heads * CONTENT; n++) {
        const int token = n / (heads * CONTENT), head = n / CONTENT % heads, at = n % CONTENT;
        double wanted = (double)c->x[place_of(token, head) * CONTENT + at];
        if (heads == 1)
            wanted += (double)c->x[place_of(token, 1) * CONTENT + at];
        worst = proof_larger(worst, fabs((double)y[n] - wanted));
    }
    return worst;
}

/* Largest change of what token i reads between run 0 and run 1 + i; of all tokens, the smallest and
 * the largest such change. */
static void swap_changes(const float *y, int wide, double *least, double *most)
{
    *least = INFINITY;
    *most = 0.0;
    for (int i = 0; i < T; i++) {
        const float *const kept = y + i * wide, *const swapped = kept + (1 + i) * T * wide;
        double change = 0.0;
        for (int n = 0; n < wide; n++)
            change = proof_larger(change, fabs((double)kept[n] - (double)swapped[n]));
        *least = proof_smaller(*least, change);
        *most = proof_larger(*most, change);
    }
}

static bool show_vectors(proof *p, contents *c)
{
    float both[WEIGHTS] = {0}, two[WEIGHTS] = {0};
    double least, most;
    make_contents(c, p->seed);
    attend_to_both(both);
    for (int h = 0; h < PAIR; h++)
        attend_to(two, T / 2, h, offsets[h]);
    if (!read_contents(p, c, 1, both, 2.0f, c->one) || !read_contents(p, c, 2, two, 1.0f, c->two))
        return false;
    proof_say(p, "With a vector per token, one head's mean keeps both contents if they lie in");
    proof_say(p, "different subspaces. It loses which content came from which place: if the two");
    proof_say(p, "tokens swap their contents, the mean is the same. Largest differences:");
    proof_at_most(p, content_error(c, 1, c->one), 1e-6,
                  "one head: 2 * mean - sum of both contents");
    swap_changes(c->one, CONTENT, &least, &most);
    proof_at_most(p, most, 1e-6, "one head: change by the swap, largest");
    proof_at_most(p, content_error(c, 2, c->two), 1e-6,
                  "two heads: output - content of each place");
    swap_changes(c->two, PAIR * CONTENT, &least, &most);
    proof_at_least(p, least, 0.5, "two heads: change by the swap, smallest");
    return true;
}

void prove_places(proof *p)
{
    task *const t = proof_calloc(p, sizeof *t);
    contents *const c = proof_calloc(p, sizeof *c);
    if (t != NULL && c != NULL) {
        make_task(t, p->seed);
        proof_say(p, "One number per token, %d tokens on a circle: token i has to give the pair",
                  T);
        proof_say(p, "(x[i-2], x[i+3]). One head gives w * sum_j a_ij x_j, a point on one line;");
        proof_say(p, "the pairs do not lie on a line.");
        if (show_construction(p, t) && show_training(p, t))
            show_vectors(p, c);
    }
    free(t);
    free(c);
}
