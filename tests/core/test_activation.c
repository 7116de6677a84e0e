/* SPDX-License-Identifier: MIT */
/*
 * Activations: every slot compared with double precision over a dense sample of all floats (with
 * MHA_TEST_EXHAUSTIVE=1 over every float), infinities, NaN and denormal numbers; the public call
 * with any length, alignment and number of threads; its errors.
 */
#include "support/kernel_bench.h"

#include <mha/mha.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 4096, SAMPLE_STEP = 509, ACTIVATIONS = 7, LONGEST = 40000 };

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint64_t step_of_all(void)
{
    const char *const all = getenv("MHA_TEST_EXHAUSTIVE");
    return all && *all && strcmp(all, "0") != 0 ? 1 : SAMPLE_STEP;
}

static double sigmoid_times(double x, double y)
{
    return y < 0 ? x * exp(y) / (1 + exp(y)) : x / (1 + exp(-y));
}

static double exact(mha_activation activation, double x)
{
    switch (activation) {
    case MHA_ACTIVATION_RELU:
        return x > 0 ? x : 0;
    case MHA_ACTIVATION_GELU:
        return x * 0.5 * erfc(-x * 0.70710678118654752440);
    case MHA_ACTIVATION_GELU_TANH:
        return sigmoid_times(x, 1.5957691216057307118 * (x + 0.044715 * x * x * x));
    case MHA_ACTIVATION_GELU_QUICK:
        return sigmoid_times(x, 1.702 * x);
    case MHA_ACTIVATION_SILU:
        return sigmoid_times(x, x);
    case MHA_ACTIVATION_TANH:
        return tanh(x);
    default:
        return x;
    }
}

/* The largest relative error. The argument of the exponential is rounded where it is not x itself,
 * which counts for more the larger it is. */
static double bound(mha_activation activation, double x)
{
    switch (activation) {
    case MHA_ACTIVATION_NONE:
    case MHA_ACTIVATION_RELU:
        return 0;
    case MHA_ACTIVATION_GELU:
        return 6e-7;
    case MHA_ACTIVATION_GELU_TANH:
        return 5e-7 + 2.5e-7 * fabs(1.6 * (x + 0.044715 * x * x * x));
    case MHA_ACTIVATION_GELU_QUICK:
        return 5e-7 + 1.3e-7 * fabs(1.702 * x);
    default:
        return 5e-7;
    }
}

/* Large negative arguments may give 0 where the exact result is below this. */
static const double smallest = 2e-36;

/* The worst error, as a multiple of the bound. */
static double worst_of(const float *x, const float *y, mha_activation activation)
{
    double worst = 0;
    for (int i = 0; i < CHUNK; i++) {
        const double want = exact(activation, (double)x[i]);
        const double error = fabs((double)y[i] - want);
        const bool vanishes = fabs(want) < smallest && fabs((double)x[i]) > 1;
        const double room =
            vanishes ? smallest
                     : bound(activation, (double)x[i]) * fabs(want) + 2 * (double)FLT_TRUE_MIN;
        CHECK(error <= room, "activation %d of %a is %a, must be %a", (int)activation, (double)x[i],
              (double)y[i], want);
        worst = fmax(worst, error / room);
    }
    return worst;
}

static void activations_are_within_their_bounds(const mhak_table *kernels)
{
    static float x[CHUNK], y[CHUNK];
    const uint64_t by = step_of_all();
    for (int a = 0; a < ACTIVATIONS; a++) {
        double worst = 0;
        for (uint64_t at = 0; at <= UINT32_MAX; at += by * CHUNK) {
            for (uint64_t n = 0; n < CHUNK; n++) {
                const uint64_t bits = at + n * by;
                x[n] = bits <= UINT32_MAX ? float_of((uint32_t)bits) : 1.0f;
                if (!isfinite(x[n]))
                    x[n] = 2.0f;
            }
            kernels->activate(a, x, CHUNK, y);
            worst = fmax(worst, worst_of(x, y, (mha_activation)a));
        }
        printf("     %s: activation %d at most %.3f of its bound off\n", kernels->name, a, worst);
    }
}

/* Where activations are used: evenly over [-14, 14]. */
static void activations_are_within_their_bounds_near_zero(const mhak_table *kernels)
{
    static float x[CHUNK], y[CHUNK];
    for (int a = 0; a < ACTIVATIONS; a++)
        for (int block = 0; block < 100; block++) {
            for (int n = 0; n < CHUNK; n++)
                x[n] = (float)(block * CHUNK + n - 50 * CHUNK) * (14.0f / (50.0f * CHUNK));
            kernels->activate(a, x, CHUNK, y);
            worst_of(x, y, (mha_activation)a);
        }
}

static float one(const mhak_table *kernels, int activation, float x)
{
    float y;
    kernels->activate(activation, &x, 1, &y);
    return y;
}

static void special_numbers(const mhak_table *kernels)
{
    test_random random = {test_seed(301)};
    for (int a = 0; a < ACTIVATIONS; a++) {
        const bool tanh_like = a == MHA_ACTIVATION_TANH, none = a == MHA_ACTIVATION_NONE;
        CHECK(one(kernels, a, INFINITY) == (tanh_like ? 1.0f : INFINITY), "%d of +inf", a);
        CHECK(one(kernels, a, -INFINITY) == (tanh_like ? -1.0f
                                             : none    ? -INFINITY
                                                       : 0.0f),
              "%d of -inf is %g", a, (double)one(kernels, a, -INFINITY));
        CHECK(one(kernels, a, 0.0f) == 0.0f && one(kernels, a, -0.0f) == 0.0f, "%d of 0", a);
        for (int n = 0; n < 1000; n++) {
            const uint32_t bits = (uint32_t)test_random_u64(&random) | 0x7f800001u;
            CHECK(isnan(one(kernels, a, float_of(bits))), "%d of the NaN %#x", a, bits);
        }
        for (int n = 0; n < 1000; n++) {
            const float x = float_of((uint32_t)test_random_u64(&random) & 0x807fffffu);
            const float y = one(kernels, a, x);
            CHECK(fabs((double)y - exact((mha_activation)a, (double)x)) <= 2 * (double)FLT_TRUE_MIN,
                  "%d of the denormal %a is %a", a, (double)x, (double)y);
        }
    }
}

/* Each element depends on its own argument alone, wherever it lies. */
static void lengths_and_places_do_not_matter(const mhak_table *kernels)
{
    test_random random = {test_seed(302)};
    for (int n = 0; n <= 5 * kernels->vector + 3; n++)
        for (int a = 0; a < ACTIVATIONS; a++) {
            span x = span_new(&random, E_F32, 0, n), y = span_new(&random, E_F32, 0, n);
            span_fill_normal(&x, &random);
            span want = span_copy(&y);
            for (int i = 0; i < n; i++)
                ((float *)want.origin)[i] = one(kernels, a, span_get(&x, i));
            kernels->activate(a, x.origin, n, y.origin);
            span_check(&y, &want, "%d of %d numbers", a, n);
            kernels->activate(a, x.origin, n, x.origin);
            span_check(&x, &want, "%d of %d numbers in place", a, n);
            span_free(&x);
            span_free(&y);
            span_free(&want);
        }
}

/* ------------------------------------------------------------------ public ---- */

static void threads_do_not_matter(void)
{
    static float x[LONGEST], y[LONGEST], again[LONGEST];
    static const ptrdiff_t counts[] = {0, 1, 17, 16383, 16384, 16385, LONGEST};
    test_random random = {test_seed(303)};
    for (int i = 0; i < LONGEST; i++)
        x[i] = 4.0f * test_random_normal(&random);
    for (int threads = 1; threads <= 3; threads++) {
        mha_pool *pool;
        CHECK(mha_pool_create(&pool, threads) == MHA_OK, "pool");
        for (int a = 0; a < ACTIVATIONS; a++)
            for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
                const size_t size = sizeof(float) * (size_t)counts[n];
                memset(y, 0xa5, sizeof y);
                memcpy(again, x, sizeof x);
                CHECK(mha_activation_run((mha_activation)a, counts[n], x, y, NULL) == MHA_OK &&
                          mha_activation_run((mha_activation)a, counts[n], again, again, pool) ==
                              MHA_OK,
                      "run");
                CHECK(memcmp(y, again, size) == 0, "%d: other bits with %d threads", a, threads);
                CHECK(counts[n] == LONGEST || memcmp(y + counts[n], "\xa5\xa5\xa5\xa5", 4) == 0,
                      "written past the end");
            }
        mha_pool_free(pool);
    }
}

static void errors(void)
{
    float x[8] = {0}, y[8] = {7};
    CHECK(mha_activation_run((mha_activation)7, 8, x, y, NULL) == MHA_ERR_FLAG, "unknown");
    CHECK(mha_activation_run((mha_activation)-1, 8, x, y, NULL) == MHA_ERR_FLAG, "unknown");
    CHECK(mha_activation_run(MHA_ACTIVATION_RELU, -1, x, y, NULL) == MHA_ERR_SHAPE, "negative");
    CHECK(mha_activation_run(MHA_ACTIVATION_RELU, PTRDIFF_MAX, x, y, NULL) == MHA_ERR_OVERFLOW,
          "overflow");
    CHECK(mha_activation_run(MHA_ACTIVATION_RELU, 8, NULL, y, NULL) == MHA_ERR_NULL, "x");
    CHECK(mha_activation_run(MHA_ACTIVATION_RELU, 8, x, NULL, NULL) == MHA_ERR_NULL, "y");
    CHECK(mha_activation_run(MHA_ACTIVATION_RELU, 4, x, x + 1, NULL) == MHA_ERR_OVERLAP, "overlap");
    CHECK(mha_activation_run(MHA_ACTIVATION_RELU, 4, x, x + 4, NULL) == MHA_OK, "side by side");
    CHECK(mha_activation_run(MHA_ACTIVATION_RELU, 4, (float *)((char *)x + 1), y, NULL) ==
              MHA_ERR_ALIGN,
          "alignment");
    CHECK(mha_activation_run(MHA_ACTIVATION_RELU, 0, NULL, NULL, NULL) == MHA_OK, "nothing");
    CHECK(y[0] == 7, "y was written");
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    kernel_report_missing();
    RUN_KERNELS(activations_are_within_their_bounds);
    RUN_KERNELS(activations_are_within_their_bounds_near_zero);
    RUN_KERNELS(special_numbers);
    RUN_KERNELS(lengths_and_places_do_not_matter);
    RUN(threads_do_not_matter);
    RUN(errors);
    return test_end();
}
