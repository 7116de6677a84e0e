/* SPDX-License-Identifier: MIT */
/*
 * Kernels of statistics: watch, above, watched_scores, add_scaled. The models are plain loops in
 * the order that kernels.h gives, so bits are compared.
 */
#include "kernel_bench.h"

#include <math.h>
#include <string.h>

/* Whole vectors of a block. */
typedef struct range {
    int first, last;
} range;

static range random_range(const mhak_table *kernels, test_random *random)
{
    const int vectors = MHAK_BLOCK / kernels->vector, first = random_between(random, 0, vectors);
    return (range){first * kernels->vector,
                   random_between(random, first, vectors) * kernels->vector};
}

/* Lane n of the state, over its keys ascending. */
static void model_watch_lane(const mhak_table *kernels, const float *s, const float *p, int first,
                             int last, const mhak_watch *how, float *state, int n)
{
    const int vector = kernels->vector;
    float *const mass = state + MHAK_MASS * vector + n, *const at = state + MHAK_AT * vector + n;
    float *const energy = state + MHAK_ENERGY * vector + n;
    float *const reach = state + MHAK_REACH * vector + n;
    float *const best = state + MHAK_BEST * vector + n;
    *energy = kernel_fma(kernels, how->fall, *mass, *energy) * how->shrink;
    *mass *= how->shrink;
    *reach *= how->shrink;
    for (int j = first + n; j < last; j += vector) {
        const float w = p[j] * how->by, below = s[j] - how->base;
        *mass += w;
        *energy = kernel_fma(kernels, w, below > -1000.0f ? below : -1000.0f, *energy);
        *reach = kernel_fma(kernels, w, fabsf(how->start + (float)j), *reach);
        if (s[j] > *best) {
            *best = s[j];
            *at = how->start + (float)j;
        }
    }
}

static mhak_watch random_watch(test_random *random)
{
    mhak_watch how = {1.0f, 0.0f, 1.0f, 2.0f, (float)random_between(random, -5000, 5000)};
    switch (test_random_below(random, 4)) {
    case 0: /* the first block */
        how.shrink = 0.0f;
        break;
    case 1: /* a new largest score */
        how.fall = -fabsf(test_random_normal(random));
        how.shrink = expf(how.fall);
        break;
    case 2: /* a split that lies lower */
        how.by = expf(-fabsf(test_random_normal(random)));
        break;
    default:
        break;
    }
    return how;
}

/* Scores with ties and -inf. */
static void fill_scores(const span *s, test_random *random)
{
    for (ptrdiff_t j = s->low; j < s->high; j++)
        span_set(s, j,
                 test_random_below(random, 5) ? (double)random_between(random, -40, 8) / 4
                                              : -INFINITY);
}

static void watch_sums_lane_by_lane(const mhak_table *kernels)
{
    test_random random = {test_seed(81)};
    for (int n = 0; n < 200; n++) {
        const range c = random_range(kernels, &random);
        const mhak_watch how = random_watch(&random);
        span s = span_new(&random, E_F32, c.first, c.last);
        span p = span_new(&random, E_F32, c.first, c.last);
        span state = span_new(&random, E_F32, 0, MHAK_WATCHED * kernels->vector);
        fill_scores(&s, &random);
        for (int j = c.first; j < c.last; j++)
            span_set(&p, j, exp((double)(span_get(&s, j) - how.base)));
        span_fill_normal(&state, &random);
        if (n % 4 == 0)
            for (int i = 0; i < kernels->vector; i++)
                span_set(&state, MHAK_BEST * kernels->vector + i, -INFINITY);
        span want = span_copy(&state);
        span_seal(&s);
        span_seal(&p);
        kernels->watch(s.origin, p.origin, c.first, c.last, &how, state.origin);
        for (int i = 0; i < kernels->vector; i++)
            model_watch_lane(kernels, s.origin, p.origin, c.first, c.last, &how, want.origin, i);
        span_check(&state, &want, "keys [%d, %d), shrink %g", c.first, c.last, (double)how.shrink);
        span_free(&s);
        span_free(&p);
        span_free(&state);
        span_free(&want);
    }
}

static void above_marks_larger_scores(const mhak_table *kernels)
{
    test_random random = {test_seed(82)};
    for (int n = 0; n < 200; n++) {
        const range c = random_range(kernels, &random);
        const float threshold = n % 5 ? (float)random_between(&random, -40, 8) / 4 : -INFINITY;
        span s = span_new(&random, E_F32, c.first, c.last);
        fill_scores(&s, &random);
        span bits = span_new(&random, E_WORD, 0, MHAK_WORDS), want = span_copy(&bits);
        memset(want.origin, 0, MHAK_WORDS * sizeof(uint32_t));
        for (int j = c.first; j < c.last; j++)
            if (span_get(&s, j) > threshold)
                ((uint32_t *)want.origin)[j / 32] |= 1u << (j % 32);
        span_seal(&s);
        kernels->above(s.origin, c.first, c.last, threshold, bits.origin);
        span_check(&bits, &want, "keys [%d, %d) above %g", c.first, c.last, (double)threshold);
        span_free(&s);
        span_free(&bits);
        span_free(&want);
    }
}

static void watched_scores_hide_the_masked(const mhak_table *kernels)
{
    test_random random = {test_seed(83)};
    for (int n = 0; n <= MHAK_BLOCK; n += kernels->vector)
        for (int masked = 0; masked < 2; masked++) {
            span s = span_new(&random, E_F32, 0, n), to = span_new(&random, E_F32, 0, n);
            span keep = span_new(&random, E_WORD, 0, masked ? (n + 31) / 32 : 0);
            span_fill_normal(&s, &random);
            if (n > 0)
                span_set(&s, n / 2, NAN);
            span want = span_copy(&s);
            for (int j = 0; masked && j < n; j++)
                if (!bit_of(keep.origin, j))
                    span_set(&want, j, -INFINITY);
            span_seal(&s);
            span_seal(&keep);
            kernels->watched_scores(s.origin, n, masked ? keep.origin : NULL, to.origin);
            span_check(&to, &want, "%d scores, masked %d", n, masked);
            span_free(&s);
            span_free(&to);
            span_free(&keep);
            span_free(&want);
        }
}

static void add_scaled_adds_a_multiple(const mhak_table *kernels)
{
    test_random random = {test_seed(84)};
    for (int n = 0; n <= 2 * MHAK_BLOCK; n += kernels->vector) {
        const float factor = test_random_normal(&random);
        span dst = span_new(&random, E_F32, 0, n), src = span_new(&random, E_F32, 0, n);
        span_fill_normal(&dst, &random);
        span_fill_normal(&src, &random);
        span want = span_copy(&dst);
        for (int c = 0; c < n; c++)
            ((float *)want.origin)[c] =
                kernel_fma(kernels, span_get(&src, c), factor, span_get(&dst, c));
        span_seal(&src);
        kernels->add_scaled(dst.origin, src.origin, n, factor);
        span_check(&dst, &want, "%d numbers times %g", n, (double)factor);
        span_free(&dst);
        span_free(&src);
        span_free(&want);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    kernel_report_missing();
    RUN_KERNELS(watch_sums_lane_by_lane);
    RUN_KERNELS(above_marks_larger_scores);
    RUN_KERNELS(watched_scores_hide_the_masked);
    RUN_KERNELS(add_scaled_adds_a_multiple);
    return test_end();
}
