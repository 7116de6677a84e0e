/* SPDX-License-Identifier: MIT */
/*
 * Claim 1: self-attention without projections, S = X X^T / sqrt(C) and A = rowsoftmax(S).
 *
 * Scores obey Cauchy and Schwarz. The weights do not inherit it as it is often told: each row has a
 * denominator of its own. What they do inherit, and what W_Q and W_K change, is said here too.
 */
#include <math.h>

#include "base/rng.h"
#include "claims/claims.h"

enum { T_MAX = 12, C_MAX = 16, TRIALS = 2000 };

typedef struct tokens {
    ptrdiff_t T, C;
    double x[T_MAX * C_MAX];
    double scores[T_MAX * T_MAX], weights[T_MAX * T_MAX];
} tokens;

static double unit_roundoff(mha_dtype type)
{
    return type == MHA_F64 ? 0x1p-53 : 0x1p-24;
}

/* ----------------------------------------------------------- attention ----- */

static mha_status ask(const tokens *t, mha_dtype type, mha_weights_mode mode, const void *x,
                      void *out)
{
    const mha_shape shape = {.B = 1,
                             .H = 1,
                             .L = t->T,
                             .S = t->T,
                             .D = t->C,
                             .q_type = type,
                             .k_type = type,
                             .v_type = type,
                             .o_type = type};
    const mha_options options = {.size = sizeof options,
                                 .weights = mha_out_bhld(out, 1, t->T, t->T),
                                 .weights_type = type,
                                 .weights_mode = mode};
    double o[T_MAX * C_MAX];
    const mha_view in = mha_view_bhld(x, 1, t->T, t->C);
    return mha_attention(&shape, in, in, in, mha_out_bhld(o, 1, t->T, t->C), &options, NULL);
}

static void widen(const float *x, ptrdiff_t count, double *y)
{
    for (ptrdiff_t n = 0; n < count; n++)
        y[n] = (double)x[n];
}

/* Scores and weights of the tokens, in this type. */
static bool attend(proof *p, tokens *t, mha_dtype type)
{
    if (type == MHA_F64)
        return proof_ok(p, ask(t, type, MHA_WEIGHTS_RAW, t->x, t->scores)) &&
               proof_ok(p, ask(t, type, MHA_WEIGHTS_SOFTMAX, t->x, t->weights));
    float x[T_MAX * C_MAX], scores[T_MAX * T_MAX], weights[T_MAX * T_MAX];
    for (ptrdiff_t n = 0; n < t->T * t->C; n++)
        x[n] = (float)t->x[n];
    if (!proof_ok(p, ask(t, type, MHA_WEIGHTS_RAW, x, scores)) ||
        !proof_ok(p, ask(t, type, MHA_WEIGHTS_SOFTMAX, x, weights)))
        return false;
    widen(scores, t->T * t->T, t->scores);
    widen(weights, t->T * t->T, t->weights);
    return true;
}

/* Normal rows, each made shorter or longer. */
static void random_tokens(rng *r, tokens *t, ptrdiff_t T, ptrdiff_t C)
{
    static const double lengths[] = {0.5, 1.0, 2.0};
    t->T = T;
    t->C = C;
    for (ptrdiff_t i = 0; i < T; i++) {
        const double length = lengths[rng_below(r, 3)];
        for (ptrdiff_t c = 0; c < C; c++)
            t->x[i * C + c] = (double)(float)(length * rng_normal(r));
    }
}

/* ------------------------------------------------------------ theorems ----- */

/* Pairs of tokens that break an inequality by more than rounding, 2 C u max(s_ii, s_jj). */
typedef struct violations {
    int cauchy, means, largest; /* of the scores */
    int mutual;                 /* of the weights: each prefers the other to itself */
} violations;

static void add_violations(violations *v, const tokens *t, mha_dtype type)
{
    for (ptrdiff_t i = 0; i < t->T; i++)
        for (ptrdiff_t j = 0; j < t->T; j++) {
            const double score = t->scores[i * t->T + j];
            const double own = t->scores[i * t->T + i], other = t->scores[j * t->T + j];
            const double top = own > other ? own : other, root = sqrt(own * other);
            const double slack = 2.0 * (double)t->C * unit_roundoff(type) * top;
            v->cauchy += !(score <= root + slack);
            v->means += !(root <= 0.5 * (own + other) + slack);
            v->largest += !(score <= top + slack);
        }
}

/* What rounding can make of two weights of a row that are equal: a factor, less 1. */
static double weight_slack(const tokens *t, mha_dtype type)
{
    double top = 0.0;
    for (ptrdiff_t i = 0; i < t->T; i++)
        top = proof_worse(top, t->scores[i * t->T + i]);
    return 4.0 * ((double)t->C * top + 4.0) * unit_roundoff(type);
}

/* Pairs of tokens that each prefer the other to themselves. */
static int mutual_preferences(const tokens *t, double slack)
{
    int count = 0;
    for (ptrdiff_t i = 0; i < t->T; i++)
        for (ptrdiff_t j = 0; j < i; j++)
            count += t->weights[i * t->T + j] > t->weights[i * t->T + i] * (1.0 + slack) &&
                     t->weights[j * t->T + i] > t->weights[j * t->T + j] * (1.0 + slack);
    return count;
}

/* Whether some a_ij is more than max(a_ii, a_jj). */
static bool breaks_popular_wording(const tokens *t, double slack)
{
    for (ptrdiff_t i = 0; i < t->T; i++)
        for (ptrdiff_t j = 0; j < t->T; j++) {
            const double own = t->weights[i * t->T + i], other = t->weights[j * t->T + j];
            if (t->weights[i * t->T + j] > (own > other ? own : other) * (1.0 + slack))
                return true;
        }
    return false;
}

typedef struct trials {
    violations v;
    int broken; /* X that break the popular wording */
} trials;

/* T tokens of width C, or, with 0, of many sizes. */
static bool run_trials(proof *p, trials *t, uint64_t series, mha_dtype type, ptrdiff_t T,
                       ptrdiff_t C)
{
    for (uint64_t n = 0; n < TRIALS; n++) {
        rng r = rng_for(p->seed + series, n);
        tokens x;
        random_tokens(&r, &x, T > 0 ? T : rng_between(&r, 2, T_MAX),
                      C > 0 ? C : rng_between(&r, 2, C_MAX));
        if (!attend(p, &x, type))
            return false;
        const double slack = weight_slack(&x, type);
        add_violations(&t->v, &x, type);
        t->v.mutual += mutual_preferences(&x, slack);
        t->broken += breaks_popular_wording(&x, slack);
    }
    return true;
}

static bool the_scores(proof *p, mha_dtype type)
{
    trials t = {0};
    const char *const name = type == MHA_F64 ? "f64" : "f32";
    if (!run_trials(p, &t, 0, type, 0, 0))
        return false;
    proof_at_most(p, t.v.cauchy, 0.0, "%s: pairs with s_ij > sqrt(s_ii s_jj)", name);
    proof_at_most(p, t.v.means, 0.0, "%s: with sqrt(s_ii s_jj) > (s_ii + s_jj)/2", name);
    proof_at_most(p, t.v.largest, 0.0, "%s: with s_ij > max(s_ii, s_jj)", name);
    proof_at_most(p, t.v.mutual, 0.0, "%s: with a_ij > a_ii and a_ji > a_jj", name);
    return true;
}

/* ------------------------------------------------------ counterexample ----- */

static bool the_popular_wording(proof *p)
{
    tokens t = {.T = 3, .C = 2, .x = {1, 0, 2, 1, 0, 9}};
    trials random = {0};
    if (!attend(p, &t, MHA_F64) || !run_trials(p, &random, 1, MHA_F64, 8, 2))
        return false;
    const double *const a = t.weights;
    proof_say(p, "FALSE, although often told: a_ij <= max(a_ii, a_jj) for the weights.");
    proof_say(p, "X = [[1,0],[2,1],[0,9]]: token 2 drains row 1, so a_11 collapses; row 0 it");
    proof_say(p, "does not drain:");
    proof_at_most(p, fabs(a[1] - 0.575975), 5e-7, "a_01 = %.6f: off 0.575975 by", a[1]);
    proof_at_most(p, fabs(a[0] - 0.283995), 5e-7, "a_00 = %.6f: off 0.283995 by", a[0]);
    proof_at_most(p, fabs(a[4] - 0.055436), 5e-7, "a_11 = %.6f: off 0.055436 by", a[4]);
    proof_at_least(p, a[1], a[0] > a[4] ? a[0] : a[4], "a_01, against max(a_00, a_11)");
    proof_at_least(p, random.broken / (double)TRIALS, 0.5,
                   "share of %d random X that break it, T=8 C=2", TRIALS);
    return true;
}

/* --------------------------------------------------------- equal norms ----- */

static void equalise(tokens *t, double norm)
{
    for (ptrdiff_t i = 0; i < t->T; i++) {
        double sum = 0.0;
        for (ptrdiff_t c = 0; c < t->C; c++)
            sum += t->x[i * t->C + c] * t->x[i * t->C + c];
        for (ptrdiff_t c = 0; c < t->C; c++)
            t->x[i * t->C + c] *= norm / sqrt(sum);
    }
}

static bool the_equal_norms(proof *p)
{
    int larger = 0;
    for (uint64_t n = 0; n < TRIALS; n++) {
        rng r = rng_for(p->seed + 2, n);
        tokens t;
        random_tokens(&r, &t, rng_between(&r, 2, T_MAX), rng_between(&r, 2, C_MAX));
        equalise(&t, 0.5 + 2.0 * rng_unit(&r));
        if (!attend(p, &t, MHA_F64))
            return false;
        const double slack = weight_slack(&t, MHA_F64);
        for (ptrdiff_t k = 0; k < t.T * t.T; k++)
            larger += !(t.weights[k] <= t.weights[k / t.T * (t.T + 1)] * (1.0 + slack));
    }
    proof_say(p, "TRUE when all rows of X have one norm (cosine similarity, LayerNorm without");
    proof_say(p, "affine): the diagonal is the row's maximum, a_ij <= a_ii.");
    proof_at_most(p, larger, 0.0, "f64: pairs with a_ij > a_ii");
    return true;
}

/* --------------------------------------------------------- projections ----- */

enum { WIDTH = 4 };

/* Weights of a layer with one head. */
static bool project(proof *p, const float w_q[WIDTH][WIDTH], const float w_k[WIDTH][WIDTH],
                    const float *x, float *weights)
{
    float y[WIDTH * WIDTH];
    const mha_layer_config config = {.size = sizeof config, .E = WIDTH, .H = 1};
    const mha_layer_weights matrices = {.size = sizeof matrices,
                                        .q = mha_matrix_in_out(w_q, MHA_F32, WIDTH),
                                        .k = mha_matrix_in_out(w_k, MHA_F32, WIDTH),
                                        .v = mha_matrix_in_out(w_k, MHA_F32, WIDTH),
                                        .o = mha_matrix_in_out(w_k, MHA_F32, WIDTH)};
    const mha_options options = {.size = sizeof options,
                                 .weights = mha_out_bhld(weights, 1, WIDTH, WIDTH)};
    const mha_layer_call call = {.size = sizeof call,
                                 .B = 1,
                                 .L = WIDTH,
                                 .query = mha_view_ble(x, WIDTH, WIDTH),
                                 .output = mha_out_ble(y, WIDTH, WIDTH),
                                 .options = &options};
    mha_layer *layer;
    bool fine = proof_ok(p, mha_layer_create(&layer, &config, &matrices));
    fine = fine && proof_ok(p, mha_layer_run(layer, &call, NULL, 0, NULL));
    mha_layer_free(layer);
    return fine;
}

static const float unity[WIDTH][WIDTH] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};

/* Over the rows, the smallest a_i,to(i) / a_ii. */
static double preference(const float *weights, const int to[WIDTH])
{
    double least = INFINITY;
    for (int i = 0; i < WIDTH; i++)
        least = fmin(least, (double)weights[i * WIDTH + to[i]] / (double)weights[i * WIDTH + i]);
    return least;
}

static bool the_indefinite(proof *p)
{
    static const float minus[WIDTH][WIDTH] = {
        {-4, 0, 0, 0}, {0, -4, 0, 0}, {0, 0, -4, 0}, {0, 0, 0, -4}};
    static const float cycle[WIDTH][WIDTH] = {
        {0, 4, 0, 0}, {0, 0, 4, 0}, {0, 0, 0, 4}, {4, 0, 0, 0}};
    static const float swap[WIDTH][WIDTH] = {
        {0, 4, 0, 0}, {4, 0, 0, 0}, {0, 0, 0, 4}, {0, 0, 4, 0}};
    static const int next[WIDTH] = {1, 2, 3, 0}, other[WIDTH] = {1, 0, 3, 2};
    float a[WIDTH * WIDTH];
    proof_say(p, "With W_Q W_K^T not symmetric positive semi-definite none of this holds: that");
    proof_say(p, "is what the weights buy. Tokens e_0 ... e_3, a layer with W_K = I:");
    if (!project(p, minus, unity, unity[0], a))
        return false;
    proof_at_least(p, preference(a, next), 2.0, "W_Q = -4 I: a_ij / a_ii, any j");
    if (!project(p, cycle, unity, unity[0], a))
        return false;
    proof_at_least(p, preference(a, next), 2.0, "W_Q = 4 * cyclic shift: a_i,i+1 / a_ii");
    if (!project(p, swap, unity, unity[0], a))
        return false;
    proof_at_least(p, preference(a, other), 2.0, "W_Q = 4 * swap: both prefer the other, by");
    return true;
}

/* With W_Q = W_K the scores are those of the tokens X W: nothing new can happen. */
static bool the_shared_projection(proof *p)
{
    int mutual = 0;
    for (uint64_t n = 0; n < TRIALS / 4; n++) {
        rng r = rng_for(p->seed + 3, n);
        float w[WIDTH][WIDTH], x[WIDTH * WIDTH], a[WIDTH * WIDTH];
        for (int k = 0; k < WIDTH * WIDTH; k++) {
            w[k / WIDTH][k % WIDTH] = (float)rng_normal(&r);
            x[k] = (float)rng_normal(&r);
        }
        tokens t = {.T = WIDTH, .C = WIDTH};
        if (!project(p, w, w, x, a))
            return false;
        widen(a, WIDTH * WIDTH, t.weights);
        /* Of scores up to a few hundred, in f32. */
        mutual += mutual_preferences(&t, 1e-3);
    }
    proof_at_most(p, mutual, 0.0, "W_Q = W_K, random: mutual preferences");
    return true;
}

void prove_scores(proof *p)
{
    proof_say(p, "S = X X^T / sqrt(C), A = rowsoftmax(S), no projections.");
    proof_say(p, "TRUE of scores: s_ij <= sqrt(s_ii s_jj) <= (s_ii + s_jj)/2 <= max(s_ii, s_jj).");
    proof_say(p, "TRUE of weights: no two tokens can each prefer the other to themselves.");
    proof_say(p,
              "In %d random X, T 2 to %d, C 2 to %d, norms mixed, up to rounding, 2Cu max:", TRIALS,
              T_MAX, C_MAX);
    const bool fine = the_scores(p, MHA_F64) && the_scores(p, MHA_F32) && the_popular_wording(p) &&
                      the_equal_norms(p) && the_indefinite(p);
    if (fine)
        the_shared_projection(p);
}
