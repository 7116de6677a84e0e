/* SPDX-License-Identifier: MIT */
/* Every claim of `mha prove`, its numbers, and that an assertion can fail. */
#include "support/test.h"

#include <math.h>
#include <string.h>

#include "claims/claims.h"

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
    check_claim(2, test_seed(1));
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

/* The row of a proof whose text begins so. */
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
    const proof_row *share = find(&p, "share of 2000 random X that break it");
    CHECK(share != NULL && fabs(share->value - 0.59) < 0.06, "share %g",
          share != NULL ? share->value : NAN);
    proof_free(&p);
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
    CHECK(proof_worse(1.0, 2.0) == 2.0 && proof_worse(2.0, 1.0) == 2.0, "larger");
    CHECK(isnan(proof_worse((double)NAN, 1.0)) && isnan(proof_worse(1.0, (double)NAN)), "NaN");
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
    RUN(the_counterexample_has_its_figures);
    RUN(assertions_can_fail);
    RUN(a_proof_can_be_void);
    RUN(long_texts_are_cut);
    RUN(nan_is_the_worst);
    RUN(least_squares_by_hand);
    return test_end();
}
