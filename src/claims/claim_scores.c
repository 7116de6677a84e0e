/* SPDX-License-Identifier: MIT */
/*
 * Claim 1: self-attention without projections, S = X X^T / sqrt(C) and A = rowsoftmax(S).
 *
 * The scores obey the Cauchy-Schwarz inequality. The weights do not inherit it in the form that is
 * often stated, since each row has its own denominator. The file checks what they do inherit, and
 * what changes with projections: there the symmetric part of W_Q W_K^T decides whether two tokens
 * can prefer each other.
 */
#include <math.h>

#include "base/rng.h"
#include "claims/claims.h"
#include "claims/symmetric_eigen.h"

enum { T_MAX = 12, C_MAX = 16, TRIALS = 2000 };

/* T tokens of width C with their scores and weights, [T][T]. */
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

/* Scores or weights of the tokens x, of this type, as `mode` says. */
static mha_status run_attention(const tokens *t, mha_dtype type, mha_weights_mode mode,
                                const void *x, void *out)
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

/* Computes scores and weights of the tokens in this type. */
static bool attend(proof *p, tokens *t, mha_dtype type)
{
    if (type == MHA_F64)
        return proof_ok(p, run_attention(t, type, MHA_WEIGHTS_RAW, t->x, t->scores)) &&
               proof_ok(p, run_attention(t, type, MHA_WEIGHTS_SOFTMAX, t->x, t->weights));
    float x[T_MAX * C_MAX], scores[T_MAX * T_MAX], weights[T_MAX * T_MAX];
    for (ptrdiff_t n = 0; n < t->T * t->C; n++)
        x[n] = (float)t->x[n];
    if (!proof_ok(p, run_attention(t, type, MHA_WEIGHTS_RAW, x, scores)) ||
        !proof_ok(p, run_attention(t, type, MHA_WEIGHTS_SOFTMAX, x, weights)))
        return false;
    widen(scores, t->T * t->T, t->scores);
    widen(weights, t->T * t->T, t->weights);
    return true;
}

/* Rows of normal numbers, each scaled by 1/2, 1 or 2. */
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

/* Number of pairs that violate an inequality by more than rounding, 2 C u max(s_ii, s_jj). */
typedef struct violations {
    int cauchy, means, largest; /* of the scores */
    int mutual;                 /* of the weights: each token prefers the other to itself */
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

/* Largest relative difference that rounding can cause between two equal weights of a row. */
static double weight_slack(const tokens *t, mha_dtype type)
{
    double top = 0.0;
    for (ptrdiff_t i = 0; i < t->T; i++)
        top = proof_larger(top, t->scores[i * t->T + i]);
    return 4.0 * ((double)t->C * top + 4.0) * unit_roundoff(type);
}

/* Number of pairs of tokens that each prefer the other to themselves. */
static int mutual_preferences(const tokens *t, double slack)
{
    int count = 0;
    for (ptrdiff_t i = 0; i < t->T; i++)
        for (ptrdiff_t j = 0; j < i; j++)
            count += t->weights[i * t->T + j] > t->weights[i * t->T + i] * (1.0 + slack) &&
                     t->weights[j * t->T + i] > t->weights[j * t->T + j] * (1.0 + slack);
    return count;
}

/* Whether an a_ij exceeds max(a_ii, a_jj). */
static bool violates_popular_wording(const tokens *t, double slack)
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
    int violated; /* number of X that violate the popular wording */
} trials;

/* TRIALS random X of T tokens of width C; with T = 0 and C = 0 their sizes are random too. */
static bool run_trials(proof *p, trials *t, uint64_t series, mha_dtype type, ptrdiff_t T,
                       ptrdiff_t C)
{
    for (uint64_t n = 0; n < TRIALS; n++) {
        rng r = rng_for(p->seed + series, n);
        tokens x;
        random_tokens(&r, &x, T > 0 ? T : (ptrdiff_t)rng_between(&r, 2, T_MAX),
                      C > 0 ? C : (ptrdiff_t)rng_between(&r, 2, C_MAX));
        if (!attend(p, &x, type))
            return false;
        const double slack = weight_slack(&x, type);
        add_violations(&t->v, &x, type);
        t->v.mutual += mutual_preferences(&x, slack);
        t->violated += violates_popular_wording(&x, slack);
    }
    return true;
}

static bool show_scores(proof *p, mha_dtype type)
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

static bool show_counterexample(proof *p)
{
    tokens t = {.T = 3, .C = 2, .x = {1, 0, 2, 1, 0, 9}};
    trials random = {0};
    if (!attend(p, &t, MHA_F64) || !run_trials(p, &random, 1, MHA_F64, 8, 2))
        return false;
    const double *const a = t.weights;
    proof_say(p, "FALSE, although often stated: a_ij <= max(a_ii, a_jj) for the weights.");
    proof_say(p, "X = [[1,0],[2,1],[0,9]]: token 2 takes most of row 1, so that a_11 is small,");
    proof_say(p, "but not of row 0:");
    proof_at_most(p, fabs(a[1] - 0.575975), 5e-7, "a_01 = %.6f: off 0.575975 by", a[1]);
    proof_at_most(p, fabs(a[0] - 0.283995), 5e-7, "a_00 = %.6f: off 0.283995 by", a[0]);
    proof_at_most(p, fabs(a[4] - 0.055436), 5e-7, "a_11 = %.6f: off 0.055436 by", a[4]);
    proof_at_least(p, a[1], a[0] > a[4] ? a[0] : a[4], "a_01; max(a_00, a_11)");
    proof_at_least(p, random.violated / (double)TRIALS, 0.5,
                   "share of %d random X violating it, T=8 C=2", TRIALS);
    return true;
}

/* --------------------------------------------------------- equal norms ----- */

/* Scales every token to this norm. */
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

static bool show_equal_norms(proof *p)
{
    int larger = 0;
    for (uint64_t n = 0; n < TRIALS; n++) {
        rng r = rng_for(p->seed + 2, n);
        tokens t;
        const ptrdiff_t C = (ptrdiff_t)rng_between(&r, 2, C_MAX);
        random_tokens(&r, &t, (ptrdiff_t)rng_between(&r, 2, T_MAX), C);
        equalise(&t, 0.5 + 2.0 * rng_unit(&r));
        if (!attend(p, &t, MHA_F64))
            return false;
        const double slack = weight_slack(&t, MHA_F64);
        for (ptrdiff_t k = 0; k < t.T * t.T; k++)
            larger += !(t.weights[k] <= t.weights[k / t.T * (t.T + 1)] * (1.0 + slack));
    }
    proof_say(p, "TRUE if all rows of X have the same norm (cosine similarity, LayerNorm without");
    proof_say(p, "affine): the diagonal is the maximum of its row, a_ij <= a_ii.");
    proof_at_most(p, larger, 0.0, "f64: pairs with a_ij > a_ii");
    return true;
}

/* --------------------------------------------------------- projections ----- */

enum { WIDTH = 4 };

/* Attention weights [WIDTH][WIDTH] of a layer with one head on the tokens x [WIDTH][WIDTH]. Its
 * values and output do not matter. */
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

/* The smallest a_i,to(i) / a_ii over the rows i. */
static double preference(const float *weights, const int to[WIDTH])
{
    double least = INFINITY;
    for (int i = 0; i < WIDTH; i++)
        least = proof_smaller(least,
                              (double)weights[i * WIDTH + to[i]] / (double)weights[i * WIDTH + i]);
    return least;
}

/* Three W that are not symmetric positive semi-definite: every token, all of the same norm, prefers
 * another one to itself. */
static bool show_fixed_matrices(proof *p)
{
    static const float minus[WIDTH][WIDTH] = {
        {-4, 0, 0, 0}, {0, -4, 0, 0}, {0, 0, -4, 0}, {0, 0, 0, -4}};
    static const float cycle[WIDTH][WIDTH] = {
        {0, 4, 0, 0}, {0, 0, 4, 0}, {0, 0, 0, 4}, {4, 0, 0, 0}};
    static const float swap[WIDTH][WIDTH] = {
        {0, 4, 0, 0}, {4, 0, 0, 0}, {0, 0, 0, 4}, {0, 0, 4, 0}};
    static const int next[WIDTH] = {1, 2, 3, 0}, other[WIDTH] = {1, 0, 3, 2};
    float a[WIDTH * WIDTH];
    proof_say(p, "With projections s_ij = x_i W x_j^T / sqrt(d), W = W_Q W_K^T. The inequalities");
    proof_say(p, "of scores and of equal norms need W symmetric positive semi-definite. Tokens");
    proof_say(p, "e_0 ... e_3, a layer with W_K = I:");
    if (!project(p, minus, unity, unity[0], a))
        return false;
    proof_at_least(p, preference(a, next), 2.0, "W_Q = -4 I: a_ij / a_ii, any j");
    if (!project(p, cycle, unity, unity[0], a))
        return false;
    proof_at_least(p, preference(a, next), 2.0, "W_Q = 4 * cyclic shift: a_i,i+1 / a_ii");
    if (!project(p, swap, unity, unity[0], a))
        return false;
    proof_at_least(p, preference(a, other), 2.0, "W_Q = 4 * swap: a_ij / a_ii and a_ji / a_jj");
    return true;
}

typedef struct preferences {
    int pairs, mutual;
    int preferred; /* (i, j) with a_ij > a_ii: token i prefers token j to itself */
} preferences;

/* Adds the pairs of WIDTH random tokens under W_Q and W_K. The slack is for scores up to a few
 * hundred in f32. */
static bool add_preferences(proof *p, rng *r, const float w_q[WIDTH][WIDTH],
                            const float w_k[WIDTH][WIDTH], preferences *sum)
{
    const double slack = 1e-3;
    float x[WIDTH * WIDTH], a[WIDTH * WIDTH];
    tokens t = {.T = WIDTH, .C = WIDTH};
    for (int k = 0; k < WIDTH * WIDTH; k++)
        x[k] = (float)rng_normal(r);
    if (!project(p, w_q, w_k, x, a))
        return false;
    widen(a, WIDTH * WIDTH, t.weights);
    for (int k = 0; k < WIDTH * WIDTH; k++)
        sum->preferred += t.weights[k] > t.weights[k / WIDTH * (WIDTH + 1)] * (1.0 + slack);
    sum->mutual += mutual_preferences(&t, slack);
    sum->pairs += WIDTH * (WIDTH - 1) / 2;
    return true;
}

static void random_matrix(rng *r, float w[WIDTH][WIDTH])
{
    for (int k = 0; k < WIDTH * WIDTH; k++)
        w[k / WIDTH][k % WIDTH] = (float)rng_normal(r);
}

/* W = B B^T + K with a skew K and a B of random rank: not symmetric, and its symmetric part B B^T
 * is positive semi-definite. */
static void random_semidefinite(rng *r, float w[WIDTH][WIDTH])
{
    float b[WIDTH][WIDTH], k[WIDTH][WIDTH];
    const int rank = (int)rng_between(r, 1, WIDTH);
    random_matrix(r, b);
    random_matrix(r, k);
    for (int i = 0; i < WIDTH; i++)
        for (int j = 0; j < WIDTH; j++) {
            w[i][j] = k[i][j] - k[j][i];
            for (int n = 0; n < rank; n++)
                w[i][j] += b[i][n] * b[j][n];
        }
}

/* Returns the smallest eigenvalue of (W + W^T)/2; u becomes its unit eigenvector. */
static double smallest_eigenvalue(const float w[WIDTH][WIDTH], double u[WIDTH])
{
    double part[WIDTH * WIDTH], values[WIDTH], vectors[WIDTH * WIDTH];
    for (int k = 0; k < WIDTH * WIDTH; k++)
        part[k] = 0.5 * ((double)w[k / WIDTH][k % WIDTH] + (double)w[k % WIDTH][k / WIDTH]);
    symmetric_eigen(part, WIDTH, values, vectors);
    for (int c = 0; c < WIDTH; c++)
        u[c] = vectors[(WIDTH - 1) * WIDTH + c];
    return values[WIDTH - 1];
}

/* Largest |W_ij - W_ji|, twice the largest element of the skew part. */
static double asymmetry(const float w[WIDTH][WIDTH])
{
    double largest = 0.0;
    for (int i = 0; i < WIDTH; i++)
        for (int j = 0; j < i; j++)
            largest = proof_larger(largest, fabs((double)w[i][j] - (double)w[j][i]));
    return largest;
}

static bool show_semidefinite_part(proof *p)
{
    static const float turn[WIDTH][WIDTH] = {
        {0, 4, 0, 0}, {-4, 0, 0, 0}, {0, 0, 0, 4}, {0, 0, -4, 0}};
    preferences skewed = {0}, shared = {0};
    double least_skew = INFINITY, least_lambda = INFINITY;
    float a[WIDTH * WIDTH];
    if (!project(p, turn, unity, unity[0], a))
        return false;
    for (uint64_t n = 0; n < TRIALS / 4; n++) {
        rng r = rng_for(p->seed + 3, n);
        float w[WIDTH][WIDTH];
        double u[WIDTH];
        random_semidefinite(&r, w);
        least_skew = proof_smaller(least_skew, asymmetry(w));
        least_lambda = proof_smaller(least_lambda, smallest_eigenvalue(w, u));
        if (!add_preferences(p, &r, w, unity, &skewed))
            return false;
        random_matrix(&r, w);
        if (!add_preferences(p, &r, w, w, &shared))
            return false;
    }
    proof_say(p, "Two tokens can prefer each other exactly if the symmetric part of W has a");
    proof_say(p, "negative eigenvalue: s_ij + s_ji - s_ii - s_jj = -(x_i - x_j) W (x_i - x_j)^T");
    proof_say(p, "/ sqrt(d). W not symmetric, its symmetric part without a negative eigenvalue:");
    proof_at_least(p, (double)a[1] / (double)a[0], 2.0, "W_Q = 4 * quarter turn: a_01 / a_00");
    proof_at_most(p, (double)a[WIDTH] / (double)a[WIDTH + 1], 1.0,
                  "W_Q = 4 * quarter turn: a_10 / a_11");
    proof_at_least(p, least_skew, 0.01, "%d W = B B^T + skew: least |W_ij - W_ji|", TRIALS / 4);
    proof_at_least(p, least_lambda, -1e-5, "  smallest eigenvalue of the symmetric parts");
    proof_at_most(p, skewed.mutual, 0.0, "  %d pairs of tokens: mutual preferences", skewed.pairs);
    proof_at_least(p, skewed.preferred, 1.0, "  of them and their reverses, a_ij > a_ii");
    proof_at_most(p, shared.mutual, 0.0, "%d pairs, W_Q = W_K: mutual", shared.pairs);
    return true;
}

/* The smaller of a_01 / a_00 and a_10 / a_11 for the tokens u, -u, 0, 0, with u scaled so that
 * s_00 = -1. Then s_01 = 1. */
static bool opposite_tokens(proof *p, const float w[WIDTH][WIDTH], const double u[WIDTH],
                            double lambda, double *ratio)
{
    const double length = sqrt(sqrt((double)WIDTH) / -lambda);
    float x[WIDTH * WIDTH] = {0}, a[WIDTH * WIDTH];
    for (int c = 0; c < WIDTH; c++) {
        x[c] = (float)(length * u[c]);
        x[WIDTH + c] = -x[c];
    }
    if (!project(p, w, unity, x, a))
        return false;
    *ratio = proof_smaller((double)a[1] / (double)a[0], (double)a[WIDTH] / (double)a[WIDTH + 1]);
    return true;
}

static bool show_negative_eigenvalue(proof *p)
{
    double least = INFINITY;
    int found = 0;
    for (uint64_t n = 0; n < TRIALS / 4; n++) {
        rng r = rng_for(p->seed + 4, n);
        float w[WIDTH][WIDTH];
        double u[WIDTH], ratio;
        random_matrix(&r, w);
        const double lambda = smallest_eigenvalue(w, u);
        if (lambda > -0.01)
            continue;
        if (!opposite_tokens(p, w, u, lambda, &ratio))
            return false;
        least = proof_smaller(least, ratio);
        found++;
    }
    proof_say(p, "With a negative eigenvalue lambda and its vector u, the tokens u and -u,");
    proof_say(p, "scaled to s_00 = -1, have a_01 / a_00 = a_10 / a_11 = exp(2) = 7.38906:");
    proof_at_least(p, found, 100.0, "%d random W: those with lambda < -0.01", TRIALS / 4);
    proof_at_least(p, least, 7.3, "  smallest a_01 / a_00, a_10 / a_11 of these");
    return true;
}

void prove_scores(proof *p)
{
    proof_say(p, "S = X X^T / sqrt(C), A = rowsoftmax(S), no projections.");
    proof_say(p, "TRUE of scores: s_ij <= sqrt(s_ii s_jj) <= (s_ii + s_jj)/2 <= max(s_ii, s_jj).");
    proof_say(p, "TRUE of weights: no two tokens can each prefer the other to themselves.");
    proof_say(p,
              "%d random X, T 2 to %d, C 2 to %d, mixed norms, up to rounding (2 C u max):", TRIALS,
              T_MAX, C_MAX);
    const bool fine = show_scores(p, MHA_F64) && show_scores(p, MHA_F32) &&
                      show_counterexample(p) && show_equal_norms(p) && show_fixed_matrices(p) &&
                      show_semidefinite_part(p);
    if (fine)
        show_negative_eigenvalue(p);
}
