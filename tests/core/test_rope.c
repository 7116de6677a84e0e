/* SPDX-License-Identifier: MIT */
/* Rotation by position and QK-norm of single heads, against plain double arithmetic. */
#include "core/rope.h"
#include "support/test.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { WIDEST = 130, MARGIN = 3 };

static const mha_rope_pairs pairings[] = {MHA_ROPE_HALVES, MHA_ROPE_NEIGHBOURS};

static void fill(test_random *random, float *x, ptrdiff_t count)
{
    for (ptrdiff_t c = 0; c < count; c++)
        x[c] = test_random_normal(random);
}

/* -------------------------------------------------------------- rotation ---- */

static double frequency(const mha_rope *rope, ptrdiff_t width, ptrdiff_t n)
{
    if (rope->frequencies)
        return (double)rope->frequencies[n];
    return pow(rope->base != 0 ? rope->base : 10000, -2 * (double)n / (double)width);
}

/* What a head must become, and how large its rounding errors may be at most. */
static void model_turn(const mha_rope *rope, ptrdiff_t D, double position, const float *x,
                       double *want, double *size)
{
    const ptrdiff_t width = rope->width ? rope->width : D;
    for (ptrdiff_t c = 0; c < D; c++) {
        want[c] = (double)x[c];
        size[c] = 0;
    }
    for (ptrdiff_t n = 0; n < width / 2; n++) {
        const bool halves = rope->pairs == MHA_ROPE_HALVES;
        const ptrdiff_t a = halves ? n : 2 * n, b = halves ? n + width / 2 : 2 * n + 1;
        const double angle = position * frequency(rope, width, n);
        const double u = (double)x[a], v = (double)x[b];
        want[a] = u * cos(angle) - v * sin(angle);
        want[b] = v * cos(angle) + u * sin(angle);
        size[a] = size[b] = fabs(u) + fabs(v);
    }
}

static void expect_transposed(const mha_rope *rope, ptrdiff_t D, double position, const float *x)
{
    float got[WIDEST + MARGIN];
    double want[WIDEST], size[WIDEST];
    memcpy(got, x, sizeof(float) * (size_t)(D + MARGIN));
    mhai_rope_row(got, rope, D, position);
    model_turn(rope, D, position, x, want, size);
    for (ptrdiff_t c = 0; c < D; c++)
        CHECK(fabs((double)got[c] - want[c]) <= 2 * (double)FLT_EPSILON * size[c],
              "pairs %d, D %td, width %td, position %g: element %td is %.9g, not %.9g",
              (int)rope->pairs, D, rope->width, position, c, (double)got[c], want[c]);
    CHECK(!memcmp(got + D, x + D, sizeof(float) * MARGIN), "D %td: written past the head", D);
}

static void heads_turn_as_the_formula_says(void)
{
    static const double positions[] = {0, 1, 2, 17, -1, -4095, 1e6, -1e6, 131071};
    static const double bases[] = {0, 10000, 500000, 1e6, 2, 0.5};
    test_random random = {test_seed(31)};
    float x[WIDEST + MARGIN];
    for (ptrdiff_t D = 2; D <= WIDEST; D += D < 20 ? 1 : 37)
        for (ptrdiff_t width = D % 2 ? 2 : 0; width <= D; width += 2)
            for (int n = 0; n < 18; n++) {
                const mha_rope rope = {pairings[n % 2], width, bases[n % 6], NULL};
                fill(&random, x, D + MARGIN);
                expect_transposed(&rope, D, positions[n / 2], x);
            }
}

static void frequencies_replace_the_base(void)
{
    test_random random = {test_seed(32)};
    float x[WIDEST + MARGIN], frequencies[WIDEST / 2];
    for (int n = 0; n < 64; n++) {
        const ptrdiff_t width = 2 * (1 + (ptrdiff_t)test_random_below(&random, WIDEST / 2));
        const mha_rope rope = {pairings[n % 2], width, n % 3 ? NAN : 0, frequencies};
        fill(&random, frequencies, width / 2);
        fill(&random, x, WIDEST + MARGIN);
        CHECK(mhai_rope_check(&rope, WIDEST) == MHA_OK, "the base counts beside frequencies");
        expect_transposed(&rope, WIDEST, (double)test_random_below(&random, 100000) - 50000, x);
    }
}

static void nothing_to_turn_changes_nothing(void)
{
    test_random random = {test_seed(33)};
    float x[64], before[64];
    fill(&random, x, 64);
    memcpy(before, x, sizeof x);
    const mha_rope none = {.pairs = MHA_ROPE_NONE};
    mhai_rope_row(x, &none, 64, 5);
    CHECK(!memcmp(x, before, sizeof x), "MHA_ROPE_NONE turns");
    for (int n = 0; n < 2; n++) {
        const mha_rope rope = {.pairs = pairings[n]};
        mhai_rope_row(x, &rope, 64, 0);
        CHECK(!memcmp(x, before, sizeof x), "position 0 turns");
    }
}

static double dot(const float *a, const float *b, ptrdiff_t n)
{
    double sum = 0;
    for (ptrdiff_t c = 0; c < n; c++)
        sum += (double)a[c] * (double)b[c];
    return sum;
}

/* q at position i and k at position j: their score is a function of i - j. */
static void scores_know_only_the_distance(void)
{
    enum { D = 64 };
    static const double shifts[] = {1, 100, 4096, -300, 1e6};
    test_random random = {test_seed(34)};
    for (int n = 0; n < 40; n++) {
        const mha_rope rope = {pairings[n % 2], n % 3 ? 0 : 32, 0, NULL};
        float x[D], y[D], q[D], k[D], q2[D], k2[D];
        fill(&random, x, D);
        fill(&random, y, D);
        memcpy(q, x, sizeof q);
        memcpy(q2, x, sizeof q);
        memcpy(k, y, sizeof k);
        memcpy(k2, y, sizeof k);
        const double i = (double)test_random_below(&random, 1000);
        const double j = (double)test_random_below(&random, 1000);
        mhai_rope_row(q, &rope, D, i);
        mhai_rope_row(k, &rope, D, j);
        mhai_rope_row(q2, &rope, D, i + shifts[n % 5]);
        mhai_rope_row(k2, &rope, D, j + shifts[n % 5]);
        const double size = sqrt(dot(x, x, D) * dot(y, y, D));
        CHECK(fabs(dot(q, k, D) - dot(q2, k2, D)) <= 1e-6 * size,
              "positions %g and %g, shifted by %g: %g is not %g", i, j, shifts[n % 5],
              dot(q2, k2, D), dot(q, k, D));
    }
}

static void expect_near(const float *got, const float *want, ptrdiff_t n, const char *law)
{
    const double size = sqrt(dot(want, want, n));
    for (ptrdiff_t c = 0; c < n; c++)
        CHECK(fabs((double)got[c] - (double)want[c]) <= 4e-7 * size,
              "%s: element %td is %.9g, not %.9g", law, c, (double)got[c], (double)want[c]);
}

static void turning_back_gives_the_head_again(void)
{
    enum { D = 48 };
    test_random random = {test_seed(35)};
    for (int n = 0; n < 40; n++) {
        const mha_rope rope = {pairings[n % 2], n % 3 ? 0 : 20, n % 5 ? 0 : 1e5, NULL};
        const double position = (double)test_random_below(&random, 2000000) - 1e6;
        float x[D], y[D];
        fill(&random, x, D);
        memcpy(y, x, sizeof y);
        mhai_rope_row(y, &rope, D, position);
        mhai_rope_row(y, &rope, D, -position);
        expect_near(y, x, D, "there and back");
    }
}

/* A key that was rotated at p and then by delta is a key rotated at p + delta. */
static void turns_add_up(void)
{
    enum { D = 32 };
    test_random random = {test_seed(36)};
    for (int n = 0; n < 40; n++) {
        const mha_rope rope = {.pairs = pairings[n % 2]};
        const double p = (double)test_random_below(&random, 100000);
        const double delta = -(double)test_random_below(&random, 100000);
        float x[D], y[D];
        fill(&random, x, D);
        memcpy(y, x, sizeof y);
        mhai_rope_row(x, &rope, D, p + delta);
        mhai_rope_row(y, &rope, D, p);
        mhai_rope_row(y, &rope, D, delta);
        expect_near(y, x, D, "a shift");
    }
}

static void transposed_bits_do_not_depend_on_the_place(void)
{
    enum { D = 74 };
    test_random random = {test_seed(37)};
    float x[D], first[D], memory[D + 16], cosines[D / 2 + 8], sines[D / 2 + 8];
    for (int n = 0; n < 2; n++) {
        const mha_rope rope = {.pairs = pairings[n]};
        fill(&random, x, D);
        memcpy(first, x, sizeof x);
        mhai_rope_row(first, &rope, D, 77);
        for (int at = 0; at < 8; at++) {
            memcpy(memory + at, x, sizeof x);
            mhai_rope_table(&rope, D, 77, cosines + at, sines + 7 - at);
            mhai_rope_rotate(memory + at, rope.pairs, D, cosines + at, sines + 7 - at);
            CHECK(!memcmp(memory + at, first, sizeof first), "bits differ at %d", at);
        }
    }
}

static void wrong_ropes_are_refused(void)
{
    static float frequencies[4] = {1, 0.5f, -0.25f, 0}, spoilt[4] = {1, NAN, 1, 1};
    static float endless[2] = {1, -INFINITY};
    const float *const askew = (const float *)((const char *)frequencies + 2);
    const struct {
        mha_rope rope;
        ptrdiff_t D;
        mha_status want;
    } cases[] = {
        {{MHA_ROPE_NONE, 0, 0, NULL}, 7, MHA_OK},
        {{MHA_ROPE_NONE, -5, NAN, NULL}, 0, MHA_OK},
        {{MHA_ROPE_HALVES, 0, 0, NULL}, 8, MHA_OK},
        {{MHA_ROPE_HALVES, 8, 1e4, NULL}, 8, MHA_OK},
        {{MHA_ROPE_NEIGHBOURS, 2, 0.5, NULL}, 3, MHA_OK},
        {{MHA_ROPE_NEIGHBOURS, 0, 0, frequencies}, 8, MHA_OK},
        {{(mha_rope_pairs)3, 0, 0, NULL}, 8, MHA_ERR_FLAG},
        {{(mha_rope_pairs)-1, 0, 0, NULL}, 8, MHA_ERR_FLAG},
        {{MHA_ROPE_HALVES, 0, 0, NULL}, 7, MHA_ERR_SHAPE},
        {{MHA_ROPE_HALVES, 0, 0, NULL}, 0, MHA_ERR_SHAPE},
        {{MHA_ROPE_HALVES, 3, 0, NULL}, 8, MHA_ERR_SHAPE},
        {{MHA_ROPE_HALVES, 10, 0, NULL}, 8, MHA_ERR_SHAPE},
        {{MHA_ROPE_NEIGHBOURS, -2, 0, NULL}, 8, MHA_ERR_SHAPE},
        {{MHA_ROPE_HALVES, PTRDIFF_MIN, 0, NULL}, 8, MHA_ERR_SHAPE},
        {{MHA_ROPE_HALVES, PTRDIFF_MAX - 1, 0, NULL}, 8, MHA_ERR_SHAPE},
        {{MHA_ROPE_HALVES, 0, -1, NULL}, 8, MHA_ERR_SCALE},
        {{MHA_ROPE_HALVES, 0, NAN, NULL}, 8, MHA_ERR_SCALE},
        {{MHA_ROPE_HALVES, 0, INFINITY, NULL}, 8, MHA_ERR_SCALE},
        {{MHA_ROPE_HALVES, 0, 0, spoilt}, 8, MHA_ERR_SCALE},
        {{MHA_ROPE_HALVES, 4, 0, endless}, 8, MHA_ERR_SCALE},
        {{MHA_ROPE_HALVES, 2, 0, spoilt}, 8, MHA_OK},
        {{MHA_ROPE_HALVES, 2, 0, askew}, 8, MHA_ERR_ALIGN},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        const mha_status got = mhai_rope_check(&cases[n].rope, cases[n].D);
        CHECK(got == cases[n].want, "case %zu: %s, not %s", n, mha_status_string(got),
              mha_status_string(cases[n].want));
    }
}

/* ------------------------------------------------------------------ norm ---- */

/* The formulas of the header; `size` bounds what rounding works on. */
static void model_norm(mha_norm norm, ptrdiff_t D, double eps, const float *x, const float *weight,
                       const float *bias, double *want, double *size)
{
    double mean = 0, square = 0;
    for (ptrdiff_t c = 0; norm == MHA_NORM_LAYER && c < D; c++)
        mean += (double)x[c];
    mean /= (double)D;
    for (ptrdiff_t c = 0; c < D; c++)
        square += ((double)x[c] - mean) * ((double)x[c] - mean) / (double)D;
    for (ptrdiff_t c = 0; c < D; c++) {
        const double y = ((double)x[c] - mean) / sqrt(square + eps);
        const double scaled = y * (weight ? (double)weight[c] : 1);
        want[c] = scaled + (bias ? (double)bias[c] : 0);
        size[c] = fabs(scaled) + fabs(want[c]);
    }
}

static void expect_norm(mha_norm norm, ptrdiff_t D, float eps, const float *x, const float *weight,
                        const float *bias)
{
    float got[WIDEST + MARGIN];
    double want[WIDEST], size[WIDEST];
    memcpy(got, x, sizeof(float) * (size_t)(D + MARGIN));
    mhai_norm_row(got, D, norm, eps, weight, bias);
    model_norm(norm, D, (double)eps, x, weight, bias, want, size);
    for (ptrdiff_t c = 0; c < D; c++)
        CHECK(fabs((double)got[c] - want[c]) <= 2 * (double)FLT_EPSILON * size[c],
              "norm %d, D %td, eps %g: element %td is %.9g, not %.9g", (int)norm, D, (double)eps, c,
              (double)got[c], want[c]);
    CHECK(!memcmp(got + D, x + D, sizeof(float) * MARGIN), "D %td: written past the head", D);
}

static void norms_are_what_the_formulas_say(void)
{
    static const float epsilons[] = {1e-5f, 1e-6f, 1.0f, 1e-12f};
    static const float sizes[] = {1, 1e-4f, 1e15f, 3e-20f};
    test_random random = {test_seed(38)};
    float x[WIDEST + MARGIN], weight[WIDEST], bias[WIDEST];
    for (ptrdiff_t D = 2; D <= WIDEST; D++)
        for (int n = 0; n < 8; n++) {
            const mha_norm norm = n % 2 ? MHA_NORM_LAYER : MHA_NORM_RMS;
            fill(&random, x, D + MARGIN);
            fill(&random, weight, D);
            fill(&random, bias, D);
            for (ptrdiff_t c = 0; c < D; c++)
                x[c] *= sizes[(D + n) % 4];
            expect_norm(norm, D, epsilons[n / 2], x, n & 2 ? weight : NULL, n & 4 ? bias : NULL);
        }
}

/* The mean must not drown what is left of it. */
static void a_large_mean_is_taken_out_exactly(void)
{
    float x[WIDEST + MARGIN];
    for (ptrdiff_t c = 0; c < WIDEST + MARGIN; c++)
        x[c] = 1e6f + 0.0625f * (float)(c % 5);
    expect_norm(MHA_NORM_LAYER, 65, 1e-5f, x, NULL, NULL);
}

static void rows_of_zeros_stay_zero(void)
{
    for (int n = 0; n < 2; n++) {
        float x[33] = {0};
        const float bias[33] = {[7] = 2.5f};
        mhai_norm_row(x, 33, n ? MHA_NORM_LAYER : MHA_NORM_RMS, 1e-5f, NULL, bias);
        for (int c = 0; c < 33; c++)
            CHECK(x[c] == bias[c], "norm %d: element %d is %g", n, c, (double)x[c]);
    }
}

/* A head of one element: RMS leaves its sign, layer norm nothing. */
static void heads_of_one_element(void)
{
    float x = -3, y = -3;
    mhai_norm_row(&x, 1, MHA_NORM_RMS, 1e-12f, NULL, NULL);
    mhai_norm_row(&y, 1, MHA_NORM_LAYER, 1e-12f, NULL, NULL);
    CHECK(x == -1 && y == 0, "%g and %g", (double)x, (double)y);
}

static void no_norm_changes_nothing(void)
{
    const float weight[4] = {2, 2, 2, 2};
    float x[4] = {1, -2, 3, NAN};
    const float before[4] = {1, -2, 3, NAN};
    mhai_norm_row(x, 4, MHA_NORM_NONE, 1e-5f, weight, weight);
    CHECK(!memcmp(x, before, sizeof x), "MHA_NORM_NONE changes the head");
}

static void nan_spoils_its_own_head(void)
{
    for (int n = 0; n < 2; n++) {
        float x[9] = {1, 2, 3, 4, NAN, 6, 7, 8, 9};
        mhai_norm_row(x, 9, n ? MHA_NORM_LAYER : MHA_NORM_RMS, 1e-5f, NULL, NULL);
        for (int c = 0; c < 9; c++)
            CHECK(isnan(x[c]), "norm %d: element %d is %g", n, c, (double)x[c]);
    }
}

static void normed_bits_do_not_depend_on_the_place(void)
{
    enum { D = 77 };
    test_random random = {test_seed(39)};
    float x[D], weight[D], first[D], memory[D + 16];
    fill(&random, x, D);
    fill(&random, weight, D);
    for (int n = 0; n < 2; n++) {
        const mha_norm norm = n ? MHA_NORM_LAYER : MHA_NORM_RMS;
        memcpy(first, x, sizeof x);
        mhai_norm_row(first, D, norm, 1e-5f, weight, NULL);
        for (int at = 0; at < 16; at++) {
            memcpy(memory + at, x, sizeof x);
            mhai_norm_row(memory + at, D, norm, 1e-5f, weight, NULL);
            CHECK(!memcmp(memory + at, first, sizeof first), "norm %d: bits differ at %d", n, at);
        }
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(heads_turn_as_the_formula_says);
    RUN(frequencies_replace_the_base);
    RUN(nothing_to_turn_changes_nothing);
    RUN(scores_know_only_the_distance);
    RUN(turning_back_gives_the_head_again);
    RUN(turns_add_up);
    RUN(transposed_bits_do_not_depend_on_the_place);
    RUN(wrong_ropes_are_refused);
    RUN(norms_are_what_the_formulas_say);
    RUN(a_large_mean_is_taken_out_exactly);
    RUN(rows_of_zeros_stay_zero);
    RUN(heads_of_one_element);
    RUN(no_norm_changes_nothing);
    RUN(nan_spoils_its_own_head);
    RUN(normed_bits_do_not_depend_on_the_place);
    return test_end();
}
