/* SPDX-License-Identifier: MIT */
/*
 * mha prove: runs every claim with some seeds, checks the numbers of those rows that carry a claim,
 * and checks that an assertion can fail. The convolutions themselves are in test_convolution.c.
 */
#include "support/test.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "claims/claims.h"
#include "claims/convolution_mixed.h"
#include "claims/symmetric_eigen.h"

static void check_claim(int number, uint64_t seed)
{
    proof p = {.seed = seed};
    claims[number].prove(&p);
    CHECK(p.status == MHA_OK, "%s: %s", claims[number].name, mha_status_string(p.status));
    CHECK(p.asserted > 0, "%s asserts nothing", claims[number].name);
    for (int n = 0; n < p.count; n++) {
        CHECK(p.rows[n].holds, "%s, seed %d: %s %g, bound %g", claims[number].name, (int)seed,
              p.rows[n].text, p.rows[n].value, p.rows[n].bound);
        CHECK(strlen(p.rows[n].text) <= (p.rows[n].kind == PROOF_SAY ? 78u : 45u),
              "%s: too wide: %s", claims[number].name, p.rows[n].text);
    }
    CHECK(proof_holds(&p), "%s does not hold", claims[number].name);
    proof_free(&p);
}

static void scores(void)
{
    check_claim(0, test_seed(1));
    for (int64_t n = 1; n < test_effort(3); n++)
        check_claim(0, test_seed(1) + (uint64_t)n);
}

static void pointwise(void)
{
    for (int64_t n = 0; n < test_effort(20); n++)
        check_claim(1, test_seed(1) + (uint64_t)n);
}

static void convolution(void)
{
    for (int64_t n = 0; n < test_effort(3); n++)
        check_claim(2, test_seed(1) + (uint64_t)n);
}

static void places(void)
{
    check_claim(3, test_seed(1));
}

static void cost(void)
{
    check_claim(4, test_seed(1));
}

static void fold(void)
{
    for (int64_t n = 0; n < test_effort(20); n++)
        check_claim(5, test_seed(1) + (uint64_t)n);
}

static void heads(void)
{
    for (int64_t n = 0; n < test_effort(3); n++)
        check_claim(6, test_seed(1) + (uint64_t)n);
}

/* Claim 8 in small, for its rows; test_prove.sh runs it as it is, test_data_study.c has its
 * numbers. */
static void data_in_small(void)
{
    study_plan plan = study_plan_short(test_seed(1));
    study_result study = {.plan = {.seeds = 0}};
    proof p = {.seed = test_seed(1), .study = &study};
    for (int n = 0; n < STUDY_SIZES_MAX; n++)
        plan.sizes[n] = n == 0 ? 4 : 1000 + n;
    plan.size_count = STUDY_SIZES_MAX;
    plan.seeds = 2;
    plan.steps = 2;
    plan.fresh = 8;
    plan.rates[1] = 0.01;
    plan.rate_count = 2;
    prove_data_by(&p, &plan);
    CHECK(p.status == MHA_OK && p.asserted == 4, "%s, %d assertions", mha_status_string(p.status),
          p.asserted);
    for (int n = 0; n < p.count; n++)
        CHECK(strlen(p.rows[n].text) <= (p.rows[n].kind == PROOF_SAY ? 78u : 45u), "too wide: %s",
              p.rows[n].text);
    CHECK(study.plan.seeds == 2 && study.plan.sizes[1] == 1001, "the numbers are left");
    proof_free(&p);
}

/* The row whose text begins with `text`. */
static const proof_row *find(const proof *p, const char *text)
{
    for (int n = 0; n < p->count; n++)
        if (strncmp(p->rows[n].text, text, strlen(text)) == 0)
            return &p->rows[n];
    CHECK(false, "no row \"%s\"", text);
    return NULL;
}

static void the_counterexample_has_its_figures(void)
{
    proof p = {.seed = 5};
    prove_scores(&p);
    find(&p, "a_01 = 0.575975: off 0.575975");
    find(&p, "a_00 = 0.283995: off 0.283995");
    find(&p, "a_11 = 0.055436: off 0.055436");
    const proof_row *share = find(&p, "share of 2000 random X violating it, T=8 C=2");
    CHECK(share != NULL && fabs(share->value - 0.59) < 0.06, "share %g",
          share != NULL ? share->value : NAN);
    proof_free(&p);
}

/* Checks that a row is an assertion, that it holds, and that its number is in [low, high]. */
static void check_row(const proof *p, const char *text, double low, double high)
{
    const proof_row *const row = find(p, text);
    if (row == NULL)
        return;
    CHECK(row->kind != PROOF_SAY && row->kind != PROOF_NOTE, "%s asserts nothing", text);
    CHECK(row->holds && row->value >= low && row->value <= high, "%s: %g, not %g to %g", text,
          row->value, low, high);
}

/* The symmetric part of W_Q W_K^T decides whether two tokens can prefer each other. */
static void mutual_preference_has_its_figures(void)
{
    proof p = {.seed = 5};
    prove_scores(&p);
    check_row(&p, "W_Q = 4 * quarter turn: a_01 / a_00", exp(2.0) - 1e-4, exp(2.0) + 1e-4);
    check_row(&p, "W_Q = 4 * quarter turn: a_10 / a_11", exp(-2.0) - 1e-5, exp(-2.0) + 1e-5);
    check_row(&p, "500 W = B B^T + skew: least |W_ij - W_ji|", 0.01, 10.0);
    check_row(&p, "  smallest eigenvalue of the symmetric parts", -1e-5, 1e-3);
    check_row(&p, "  3000 pairs of tokens: mutual preferences", 0.0, 0.0);
    check_row(&p, "  of them and their reverses, a_ij > a_ii", 300.0, 3000.0);
    check_row(&p, "3000 pairs, W_Q = W_K: mutual", 0.0, 0.0);
    check_row(&p, "500 random W: those with lambda < -0.01", 450.0, 500.0);
    check_row(&p, "  smallest a_01 / a_00, a_10 / a_11", exp(2.0) - 1e-2, exp(2.0) + 1e-2);
    proof_free(&p);
}

/* Two heads for one channel, nine for 3 -> 4 channels. Seed 5 has taps of both signs. */
static void heads_needed_have_their_figures(void)
{
    proof p = {.seed = 5};
    prove_convolution(&p);
    check_row(&p, "f64 3x3 random, circular: 2 heads", 0.0, 1e-14);
    check_row(&p, "f64 7x7 random, replicate: 2 heads", 1e-17, 1e-13);
    check_row(&p, "f32 3x3 random, replicate: 2 heads", 1e-9, 1e-5);
    check_row(&p, "f32 7x7 random, circular: 2 heads", 1e-9, 1e-4);
    check_row(&p, "f64 3x3 Sobel, some taps 0: 2 heads", 0.0, 1e-13);
    check_row(&p, "f64 5x5 all taps positive: 1 head", 0.0, 1e-13);
    check_row(&p, "f64 3x3 all taps 0: 1 head", 0.0, 0.0);
    check_row(&p, "largest number of heads", 2.0, 2.0);
    check_row(&p, "smallest / largest singular value", 1e-3, 1.0);
    check_row(&p, "9 heads, one per tap: share lost", 0.0, 1e-24);
    check_row(&p, "8 heads, built: lost", 1e-4, 0.1);
    check_row(&p, "2 heads, built: lost", 0.3, 1.0);
    check_row(&p, "8 heads, any weights: lost at least", 1e-4, 0.1);
    check_row(&p, "4 heads, any weights: lost at least", 0.05, 0.5);
    check_row(&p, "13 heads instead of 25: largest error", 0.0, 1e-12);
    proof_free(&p);
}

/* Kernels of these seeds are close to rank 8: eight heads lose less than 1e-4 of them. */
static void kernels_close_to_a_smaller_rank(void)
{
    check_claim(2, 4664);
    check_claim(2, 5334);
}

/* One head keeps two contents of different subspaces, and loses their places. */
static void vectors_have_their_figures(void)
{
    proof p = {.seed = 5};
    prove_places(&p);
    check_row(&p, "one head: 2 * mean - sum of both contents", 0.0, 1e-6);
    check_row(&p, "one head: change by the swap, largest", 0.0, 1e-6);
    check_row(&p, "two heads: output - content of each place", 0.0, 1e-6);
    check_row(&p, "two heads: change by the swap, smallest", 0.5, 1.5);
    proof_free(&p);
}

/* The n-th assertion of a proof, counted from 0. */
static const proof_row *assertion(const proof *p, int number)
{
    for (int n = 0; n < p->count; n++)
        if (p->rows[n].kind != PROOF_SAY && p->rows[n].kind != PROOF_NOTE && number-- == 0)
            return &p->rows[n];
    CHECK(false, "there are not so many assertions");
    return NULL;
}

/* Ends of intervals: two places need two heads; one place is learnt better and faster by one. */
static void heads_have_their_figures(void)
{
    static const double low[] = {-0.55, 0.1, 0.1, 1.0}, high[] = {-0.3, 1.0, 1.0, 30.0};
    proof p = {.seed = 5};
    prove_heads(&p);
    for (int n = 0; n < 4; n++) {
        const proof_row *const row = assertion(&p, n);
        CHECK(row != NULL && row->value >= low[n] && row->value <= high[n],
              "assertion %d: %g, not %g to %g", n, row != NULL ? row->value : NAN, low[n], high[n]);
    }
    const proof_row *const never = find(&p, "1 head: starts of 8 that reach a loss of 0.1");
    const proof_row *const always = find(&p, "2 heads: the same");
    CHECK(never != NULL && never->value == 0.0, "one head reaches it");
    CHECK(always != NULL && always->value >= 6.0, "two heads do not");
    proof_free(&p);
}

/* Claims 3, 4 and 7 are false without the condition that their titles name. */
static void titles_state_their_conditions(void)
{
    CHECK(strstr(claims[6].title, "where the task needs them") != NULL, "%s", claims[6].title);
    CHECK(strstr(claims[2].title, "K^2 heads") != NULL, "%s", claims[2].title);
    CHECK(strstr(claims[3].title, "one number per token") != NULL, "%s", claims[3].title);
}

/* ----------------------------------------------------------- lower bound ---- */

enum { TAPS = 9, PATHS = 12 };

/* Share of the squares of w [TAPS][PATHS] that no choice of matrices saves, if head h gives tap t
 * the weight share[h][t]. Least squares, one column of w at a time. */
static double unexplained_share(const double *w, const double *share, int heads)
{
    double lost = 0.0, all = 0.0;
    for (int n = 0; n < PATHS; n++) {
        double columns[TAPS * TAPS], target[TAPS];
        memcpy(columns, share, (size_t)(heads * TAPS) * sizeof *share);
        for (int t = 0; t < TAPS; t++) {
            target[t] = w[t * PATHS + n];
            all += target[t] * target[t];
        }
        lost += proof_unexplained(columns, heads, target, TAPS);
    }
    return lost / all;
}

/* No random weights, of any sign, beat the bound of the singular values; with as many heads as taps
 * nothing is lost. */
static void no_heads_beat_the_singular_values(void)
{
    for (uint64_t seed = 0; seed < (uint64_t)test_effort(200); seed++) {
        rng r = rng_for(test_seed(1), seed);
        double w[TAPS * PATHS], share[TAPS * TAPS], values[PATHS], rest = 0.0, all = 0.0;
        const conv_spec spec = {.kernel = {3, 3}, .inputs = 3, .outputs = 4, .weights = w};
        const int heads = 1 + (int)(seed % TAPS);
        for (int n = 0; n < TAPS * PATHS; n++)
            w[n] = rng_normal(&r);
        for (int n = 0; n < TAPS * TAPS; n++)
            share[n] = seed % 2 == 0 ? rng_normal(&r) : rng_unit(&r);
        conv_singular_values(&spec, values);
        for (int n = 0; n < PATHS; n++) {
            all += values[n] * values[n];
            rest += n >= heads ? values[n] * values[n] : 0.0;
        }
        const double lost = unexplained_share(w, share, heads);
        CHECK(lost >= rest / all - 1e-12, "%d heads lose %g, not %g", heads, lost, rest / all);
        if (heads == TAPS)
            CHECK(lost < 1e-12 && rest == 0.0, "9 heads lose %g", lost);
        else
            CHECK(rest / all > 1e-5, "%d heads: a bound of %g", heads, rest / all);
    }
}

/* ---------------------------------------------------------- eigenvalues ----- */

static void eigenvalues_by_hand(void)
{
    double a[4] = {0, 2, 2, 3}, values[4], vectors[16];
    symmetric_eigen(a, 2, values, vectors);
    CHECK(fabs(values[0] - 4.0) < 1e-14 && fabs(values[1] + 1.0) < 1e-14, "%g %g", values[0],
          values[1]);
    CHECK(fabs(vectors[1] - 2.0 * vectors[0]) < 1e-14, "(1, 2): %g %g", vectors[0], vectors[1]);
    double diagonal[9] = {1, 0, 0, 0, 3, 0, 0, 0, -2}, zero[4] = {0}, one[1] = {-7};
    symmetric_eigen(diagonal, 3, values, vectors);
    CHECK(values[0] == 3.0 && values[1] == 1.0 && values[2] == -2.0, "descending");
    CHECK(fabs(vectors[1]) == 1.0 && fabs(vectors[3]) == 1.0 && fabs(vectors[8]) == 1.0, "axes");
    symmetric_eigen(zero, 2, values, vectors);
    CHECK(values[0] == 0.0 && values[1] == 0.0 && vectors[0] == 1.0 && vectors[3] == 1.0, "zero");
    symmetric_eigen(one, 1, values, vectors);
    CHECK(values[0] == -7.0 && vectors[0] == 1.0, "1x1");
}

/* A v = lambda v, and the vectors are orthonormal. */
static void check_eigen(const double *a, ptrdiff_t n, double top)
{
    double copy[12 * 12], values[12], vectors[12 * 12], off = 0.0;
    memcpy(copy, a, (size_t)(n * n) * sizeof *a);
    symmetric_eigen(copy, n, values, vectors);
    for (ptrdiff_t k = 0; k < n; k++) {
        CHECK(k == 0 || values[k] <= values[k - 1], "value %td ascends", k);
        for (ptrdiff_t i = 0; i < n; i++) {
            double product = 0.0, angle = 0.0;
            for (ptrdiff_t j = 0; j < n; j++) {
                product += a[i * n + j] * vectors[k * n + j];
                angle += vectors[i * n + j] * vectors[k * n + j];
            }
            off = proof_larger(off, fabs(product - values[k] * vectors[k * n + i]) / top);
            off = proof_larger(off, fabs(angle - (i == k ? 1.0 : 0.0)));
        }
    }
    CHECK(off < 1e-13, "n = %td: off by %g", n, off);
}

static void eigenvectors_of_random_matrices(void)
{
    for (uint64_t seed = 0; seed < (uint64_t)test_effort(200); seed++) {
        rng r = rng_for(test_seed(2), seed);
        const ptrdiff_t n = rng_between(&r, 1, 12);
        double a[12 * 12] = {0};
        for (ptrdiff_t i = 0; i < n; i++)
            for (ptrdiff_t j = 0; j <= i; j++)
                a[i * n + j] = a[j * n + i] = seed % 4 == 0 ? 1.0 : rng_normal(&r);
        check_eigen(a, n, 8.0);
    }
}

/* ------------------------------------------------------------- machinery --- */

static void assertions_can_fail(void)
{
    proof p = {0};
    proof_at_most(&p, 1.0, 1.0, "equal");
    proof_at_least(&p, 1.0, 1.0, "equal");
    CHECK(proof_holds(&p), "what holds");
    proof_at_most(&p, 1.5, 1.0, "above %d", 1);
    CHECK(p.failed == 1 && !p.rows[2].holds && strcmp(p.rows[2].text, "above 1") == 0, "above");
    proof_at_least(&p, 0.5, 1.0, "below");
    proof_at_most(&p, (double)NAN, 1.0, "NaN");
    proof_at_least(&p, (double)NAN, 1.0, "NaN");
    proof_at_most(&p, 1.0, (double)NAN, "NaN");
    CHECK(p.failed == 5 && p.asserted == 7 && !proof_holds(&p), "%d failed of %d", p.failed,
          p.asserted);
    proof_free(&p);
    CHECK(p.count == 0 && p.rows == NULL, "freed");
}

static void a_proof_can_be_void(void)
{
    proof p = {0};
    CHECK(!proof_holds(&p), "nothing asserted");
    proof_at_most(&p, 0.0, 1.0, "fine");
    CHECK(proof_holds(&p), "one asserted");
    CHECK(!proof_ok(&p, MHA_ERR_MEMORY) && !proof_ok(&p, MHA_ERR_SHAPE), "errors are fine");
    CHECK(proof_ok(&p, MHA_OK), "no error is one");
    CHECK(p.status == MHA_ERR_MEMORY && !proof_holds(&p), "not void: %d", (int)p.status);
    proof_free(&p);
}

static void long_texts_are_cut(void)
{
    proof p = {0};
    proof_say(&p, "%0200d", 7);
    CHECK(strlen(p.rows[0].text) == PROOF_TEXT - 1, "%zu", strlen(p.rows[0].text));
    proof_free(&p);
}

static void nan_is_the_worst(void)
{
    CHECK(proof_larger(1.0, 2.0) == 2.0 && proof_larger(2.0, 1.0) == 2.0, "larger");
    CHECK(isnan(proof_larger((double)NAN, 1.0)) && isnan(proof_larger(1.0, (double)NAN)), "NaN");
    CHECK(proof_smaller(1.0, 2.0) == 1.0 && proof_smaller(2.0, 1.0) == 1.0, "smaller");
    CHECK(isnan(proof_smaller((double)NAN, 1.0)) && isnan(proof_smaller(1.0, (double)NAN)), "NaN");
}

static void least_squares_by_hand(void)
{
    /* 3 points, a line through them by a constant and a slope: 0, 0, 3 leaves 1.5. */
    double columns[6] = {1, 1, 1, 0, 1, 2}, target[3] = {0, 0, 3};
    CHECK(fabs(proof_unexplained(columns, 2, target, 3) - 1.5) < 1e-12, "a line");
    double same[6] = {1, 2, 2, 1, 2, 2}, other[3] = {3, 0, 0};
    CHECK(fabs(proof_unexplained(same, 2, other, 3) - 8.0) < 1e-12, "a column twice");
    double none[1], all[2] = {3, 4};
    CHECK(proof_unexplained(none, 0, all, 2) == 25.0, "no columns");
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(scores);
    RUN(pointwise);
    RUN(convolution);
    RUN(places);
    RUN(cost);
    RUN(fold);
    RUN(heads);
    RUN(data_in_small);
    RUN(heads_have_their_figures);
    RUN(the_counterexample_has_its_figures);
    RUN(mutual_preference_has_its_figures);
    RUN(heads_needed_have_their_figures);
    RUN(kernels_close_to_a_smaller_rank);
    RUN(vectors_have_their_figures);
    RUN(titles_state_their_conditions);
    RUN(no_heads_beat_the_singular_values);
    RUN(eigenvalues_by_hand);
    RUN(eigenvectors_of_random_matrices);
    RUN(assertions_can_fail);
    RUN(a_proof_can_be_void);
    RUN(long_texts_are_cut);
    RUN(nan_is_the_worst);
    RUN(least_squares_by_hand);
    return test_end();
}
