/* SPDX-License-Identifier: MIT */
/*
 * The exponential and the soft cap compared with libm in double precision, with errors in units of
 * the last place. By default over a sample of the floats; with MHA_TEST_EXHAUSTIVE=1 exp and tanh
 * over every float there is.
 */
#include "support/kernel_bench.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 4096, SAMPLE_STEP = 1009 };

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static uint64_t step_of_all(void)
{
    const char *const all = getenv("MHA_TEST_EXHAUSTIVE");
    return all && *all && strcmp(all, "0") != 0 ? 1 : SAMPLE_STEP;
}

/* The spacing of floats around a number of at least FLT_MIN. */
static double spacing(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= UINT64_C(0x7ff) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power * 0x1p-23;
}

typedef void judge(const mhak_table *kernels, const float *x, const float *y, int n, double *worst);

/*
 * Calls the judge on chunks of floats, every by-th bit pattern from `first` to `last`, with the
 * results of the slot. Returns the worst error that the judge has seen.
 */
static double over_floats(const mhak_table *kernels, uint32_t first, uint32_t last, uint64_t by,
                          void (*slot)(const mhak_table *kernels, const float *x, float *y),
                          judge *judged)
{
    static float x[CHUNK], y[CHUNK];
    double worst = 0;
    for (uint64_t at = first; at <= last; at += by * CHUNK) {
        int n = 0;
        for (uint64_t bits = at; n < CHUNK; n++, bits += by)
            x[n] = float_of(bits <= last ? (uint32_t)bits : last);
        slot(kernels, x, y);
        judged(kernels, x, y, n, &worst);
    }
    return worst;
}

/* -------------------------------------------------------------------- exp */

static void exp_slot(const mhak_table *kernels, const float *x, float *y)
{
    kernels->exp_row(x, CHUNK, y);
}

/* The error bound of exp(x) in units: larger without fused multiply-add, or with a table. */
static double exp_bound(const mhak_table *kernels, float x)
{
    const bool table = strcmp(kernels->name, "avx512") == 0;
    return (table ? 1.75 : 1) + fabs((double)x) * (kernel_fuses(kernels) ? 0.25 : 1.25);
}

/* The worst error, as a multiple of the bound. */
static void judge_exp(const mhak_table *kernels, const float *x, const float *y, int n,
                      double *worst)
{
    for (int i = 0; i < n; i++) {
        const double want = exp((double)x[i]), error = fabs((double)y[i] - want);
        CHECK(y[i] >= 0, "exp(%a) is %a", (double)x[i], (double)y[i]);
        if (want < (double)FLT_MIN)
            CHECK(error <= (double)FLT_MIN, "exp(%a) is %a", (double)x[i], (double)y[i]);
        else
            *worst = fmax(*worst, error / spacing(want) / exp_bound(kernels, x[i]));
    }
}

static void judge_exp_below_one(const mhak_table *kernels, const float *x, const float *y, int n,
                                double *worst)
{
    judge_exp(kernels, x, y, n, worst);
    for (int i = 0; i < n; i++)
        CHECK(y[i] <= 1 && (x[i] >= -88.1f || y[i] == 0), "exp(%a) is %a", (double)x[i],
              (double)y[i]);
}

static void exp_is_within_its_bound(const mhak_table *kernels)
{
    const uint64_t by = step_of_all();
    const double above = over_floats(kernels, 0, bits_of(88.0f), by, exp_slot, judge_exp);
    const double below =
        over_floats(kernels, bits_of(-0.0f), bits_of(-INFINITY), by, exp_slot, judge_exp_below_one);
    const double worst = fmax(above, below);
    CHECK(worst <= 1, "%.3f bounds off", worst);
    printf("     %s: exp at most %.3f of its bound off\n", kernels->name, worst);
}

/* Neighbouring floats, where results are close together: the order may only break by a unit. */
static void judge_order(const mhak_table *kernels, const float *x, const float *y, int n,
                        double *worst)
{
    (void)kernels;
    (void)worst;
    for (int i = 1; i < n; i++)
        CHECK(y[i] <= y[i - 1] * (1 + 0x1p-22f), "exp(%a) > exp(%a)", (double)x[i],
              (double)x[i - 1]);
}

static void exp_falls_with_its_argument(const mhak_table *kernels)
{
    over_floats(kernels, bits_of(-0x1p-30f), bits_of(-90.0f), step_of_all(), exp_slot, judge_order);
}

static void check_exp_of(const mhak_table *kernels, float x, float want)
{
    float in[MHAK_MAX_VECTOR], out[MHAK_MAX_VECTOR];
    for (int lane = 0; lane < kernels->vector; lane++) {
        for (int i = 0; i < kernels->vector; i++)
            in[i] = i == lane ? x : -1.0f;
        kernels->exp_row(in, kernels->vector, out);
        CHECK(same_float(out[lane], want), "exp(%a) is %a in lane %d", (double)x, (double)out[lane],
              lane);
    }
}

static void exp_is_exact_where_it_must_be(const mhak_table *kernels)
{
    check_exp_of(kernels, 0.0f, 1.0f);
    check_exp_of(kernels, -0.0f, 1.0f);
    check_exp_of(kernels, FLT_TRUE_MIN, 1.0f);
    check_exp_of(kernels, -FLT_TRUE_MIN, 1.0f);
    check_exp_of(kernels, -INFINITY, 0.0f);
    check_exp_of(kernels, -FLT_MAX, 0.0f);
    check_exp_of(kernels, -88.1f, 0.0f);
}

/* Of either sign, quiet or signalling. */
static void nan_stays_nan(const mhak_table *kernels)
{
    test_random random = {test_seed(91)};
    for (int n = 0; n < 100000; n++) {
        const float nan = float_of((uint32_t)test_random_u64(&random) | 0x7f800001u);
        float s[MHAK_MAX_VECTOR];
        for (int i = 0; i < kernels->vector; i++)
            s[i] = nan;
        CHECK(isnan(kernel_exp(kernels, nan)), "exp of the NaN %#x", bits_of(nan));
        kernels->softcap(s, kernels->vector, 30.0f);
        CHECK(isnan(s[0]), "soft cap of the NaN %#x", bits_of(nan));
    }
}

static void exp_row_stays_inside(const mhak_table *kernels)
{
    test_random random = {test_seed(92)};
    for (int n = 0; n <= 9 * kernels->vector; n += kernels->vector) {
        span x = span_new(&random, E_F32, 0, n), y = span_new(&random, E_F32, 0, n);
        span_fill_normal(&x, &random);
        span want = span_copy(&y);
        for (int i = 0; i < n; i++)
            ((float *)want.origin)[i] = kernel_exp(kernels, span_get(&x, i));
        span_seal(&x);
        kernels->exp_row(x.origin, n, y.origin);
        span_check(&y, &want, "%d numbers", n);
        span_free(&x);
        span_free(&y);
        span_free(&want);
    }
}

/* --------------------------------------------------------------- soft cap */

static float cap_now;

static void softcap_slot(const mhak_table *kernels, const float *x, float *y)
{
    memcpy(y, x, CHUNK * sizeof *y);
    kernels->softcap(y, CHUNK, cap_now);
}

/* In units of the result. Where x / cap is subnormal, in units of the smallest result for which it
 * is not. */
static void judge_softcap(const mhak_table *kernels, const float *x, const float *y, int n,
                          double *worst)
{
    (void)kernels;
    const double cap = (double)cap_now;
    const double smallest = fmax(1, cap) * (double)FLT_MIN;
    for (int i = 0; i < n; i++) {
        const double want = cap * tanh((double)x[i] / cap);
        *worst = fmax(*worst, fabs((double)y[i] - want) / spacing(fmax(fabs(want), smallest)));
        CHECK(fabsf(y[i]) <= cap_now, "cap %g: %a becomes %a", cap, (double)x[i], (double)y[i]);
    }
}

static double worst_softcap(const mhak_table *kernels, float cap, uint64_t by)
{
    cap_now = cap;
    const double above =
        over_floats(kernels, 0, bits_of(INFINITY), by, softcap_slot, judge_softcap);
    const double below =
        over_floats(kernels, bits_of(-0.0f), bits_of(-INFINITY), by, softcap_slot, judge_softcap);
    return fmax(above, below);
}

static void tanh_is_within_its_bound(const mhak_table *kernels)
{
    const double worst = worst_softcap(kernels, 1.0f, step_of_all());
    CHECK(worst <= 4, "%.3f units off", worst);
    printf("     %s: tanh at most %.3f units off\n", kernels->name, worst);
}

static void softcap_works_with_any_cap(const mhak_table *kernels)
{
    static const float caps[] = {30.0f, 50.0f, 0.1f, 1e-20f, 1e20f, FLT_MIN, 0x1p-140f, FLT_MAX};
    for (size_t n = 0; n < sizeof caps / sizeof caps[0]; n++) {
        const double worst = worst_softcap(kernels, caps[n], 10 * SAMPLE_STEP);
        CHECK(worst <= 6, "cap %g: %.3f units off", (double)caps[n], worst);
    }
}

static void softcap_stays_inside(const mhak_table *kernels)
{
    test_random random = {test_seed(93)};
    for (int n = 0; n <= MHAK_BLOCK; n++) {
        const int whole = whole_vectors(kernels, n);
        span s = span_new(&random, E_F32, 0, whole);
        span_fill_normal(&s, &random);
        span want = span_copy(&s);
        for (int i = 0; i < whole; i++) {
            float one[MHAK_MAX_VECTOR] = {span_get(&s, i)};
            kernels->softcap(one, 1, 2.0f);
            ((float *)want.origin)[i] = one[0];
        }
        kernels->softcap(s.origin, n, 2.0f);
        span_check(&s, &want, "%d scores", n);
        span_free(&s);
        span_free(&want);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    kernel_report_missing();
    RUN_KERNELS(exp_is_within_its_bound);
    RUN_KERNELS(exp_falls_with_its_argument);
    RUN_KERNELS(exp_is_exact_where_it_must_be);
    RUN_KERNELS(nan_stays_nan);
    RUN_KERNELS(exp_row_stays_inside);
    RUN_KERNELS(tanh_is_within_its_bound);
    RUN_KERNELS(softcap_works_with_any_cap);
    RUN_KERNELS(softcap_stays_inside);
    return test_end();
}
