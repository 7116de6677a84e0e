/* SPDX-License-Identifier: MIT */
/*
 * Kernels of statistics: fold_statistics, add_scaled. The models are plain loops in the order that
 * kernels.h gives, so bits are compared.
 */
#include "support/kernel_bench.h"

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

/* Scores with ties and -inf. */
static void fill_scores(const span *s, test_random *random)
{
    for (ptrdiff_t j = s->low; j < s->high; j++)
        span_set(s, j,
                 test_random_below(random, 5) ? (double)random_between(random, -40, 8) / 4
                                              : -INFINITY);
}

enum { ROWS = 21, TOP_MOST = 20 };

/* Rows that have seen some keys, and a block to be folded. */
typedef struct statistics_case {
    const mhak_table *kernels;
    range c;
    int rows, top, room;
    span s, m, l, alpha, keep, sums, base, best, top_scores, held, scores;
    int64_t best_key[ROWS], anchor[ROWS];
    int32_t top_keys[ROWS * 2 * MHAK_MAX_VECTOR];
    bool masked, holds, holds_scores;
} statistics_case;

static statistics_case statistics_case_new(const mhak_table *kernels, test_random *random)
{
    statistics_case w = {.kernels = kernels, .c = random_range(kernels, random)};
    w.rows = random_between(random, 1, ROWS);
    w.top = random_between(random, 0, TOP_MOST);
    w.room = (w.top + kernels->vector - 1) / kernels->vector * kernels->vector;
    w.masked = test_random_below(random, 2);
    w.holds = test_random_below(random, 2);
    w.holds_scores = test_random_below(random, 2);
    w.s = span_new(random, E_F32, 0, w.rows * MHAK_BLOCK);
    w.keep = span_new(random, E_WORD, 0, w.rows * MHAK_WORDS);
    w.m = span_new(random, E_F32, 0, w.rows);
    w.l = span_new(random, E_F32, 0, w.rows);
    w.alpha = span_new(random, E_F32, 0, w.rows);
    w.base = span_new(random, E_F32, 0, w.rows);
    w.best = span_new(random, E_F32, 0, w.rows);
    w.sums = span_new(random, E_F32, 0, w.rows * MHAK_SUMS * kernels->vector);
    w.top_scores = span_new(random, E_F32, 0, w.rows * w.room);
    w.held = span_new(random, E_F32, 0, w.rows * MHAK_BLOCK);
    w.scores = span_new(random, E_F32, 0, w.rows * MHAK_BLOCK);
    fill_scores(&w.s, random);
    span_fill_normal(&w.sums, random);
    span_fill_normal(&w.l, random);
    for (int r = 0; r < w.rows; r++) {
        const bool begun = test_random_below(random, 4) != 0,
                   split = test_random_below(random, 3) == 0;
        const double base = begun ? (double)random_between(random, -20, 4) / 4 : -INFINITY;
        span_set(&w.base, r, base);
        span_set(&w.best, r, base);
        span_set(&w.m, r, split ? -INFINITY : base);
        w.best_key[r] = 7;
        w.anchor[r] = random_between(random, 0, 5000);
        for (int n = 0; n < w.room; n++) {
            span_set(&w.top_scores, r * w.room + n, begun && n < 3 ? base - n : -INFINITY);
            w.top_keys[r * w.room + n] = begun && n < 3 ? 100 + n : -1;
        }
    }
    return w;
}

static statistics_case statistics_case_copy(const statistics_case *w)
{
    statistics_case copy = *w;
    span *const to[] = {&copy.s,    &copy.m,    &copy.l,     &copy.alpha,
                        &copy.keep, &copy.sums, &copy.base,  &copy.top_scores,
                        &copy.best, &copy.held, &copy.scores};
    for (size_t n = 0; n < sizeof to / sizeof to[0]; n++)
        *to[n] = span_copy(to[n]);
    return copy;
}

static void statistics_case_free(statistics_case *w)
{
    span *const all[] = {&w->s,    &w->m,          &w->l,    &w->alpha, &w->keep,  &w->sums,
                         &w->base, &w->top_scores, &w->best, &w->held,  &w->scores};
    for (size_t n = 0; n < sizeof all / sizeof all[0]; n++)
        span_free(all[n]);
}

static const uint32_t *keep_of(const statistics_case *w)
{
    return w->masked ? w->keep.origin : NULL;
}

enum { BLOCK_KEY = 3 * MHAK_BLOCK };

static void run_kernel(statistics_case *w)
{
    const mhak_hold hold = {w->scores.origin, MHAK_BLOCK};
    const mhak_statistics statistics = {.sums = w->sums.origin,
                                        .base = w->base.origin,
                                        .best = w->best.origin,
                                        .best_key = w->best_key,
                                        .anchor = w->anchor,
                                        .key = BLOCK_KEY,
                                        .held = w->holds ? w->held.origin : NULL,
                                        .held_stride = MHAK_BLOCK,
                                        .hold = w->holds_scores ? &hold : NULL,
                                        .top = w->top,
                                        .top_scores = w->top_scores.origin,
                                        .top_keys = w->top_keys};
    span_seal(&w->keep);
    w->kernels->fold_statistics(w->s.origin, w->rows, w->c.first, w->c.last, keep_of(w),
                                w->m.origin, w->l.origin, w->alpha.origin, &statistics);
}

static float above_no_score(float x)
{
    return x > -1000.0f ? x : -1000.0f;
}

/* One lane of the sums of a row, with the scores and p of its keys. */
static void model_lane(const statistics_case *w, int r, int lane, const float *scores,
                       const float *p, float before)
{
    const mhak_table *const k = w->kernels;
    float *const sums = (float *)w->sums.origin + r * MHAK_SUMS * k->vector + lane;
    const float m = ((float *)w->m.origin)[r], after = m > before ? m : before;
    const float fall = above_no_score(before - after), below = above_no_score(m - after);
    const float shrink = kernel_exp(k, fall), by = kernel_exp(k, below);
    float mass = 0.0f, energy = 0.0f, reach = 0.0f;
    for (int j = w->c.first + lane; j < w->c.last; j += k->vector) {
        mass += p[j];
        energy = kernel_fma(k, p[j], above_no_score(scores[j] - m), energy);
        reach = kernel_fma(k, p[j], fabsf((float)(BLOCK_KEY + j - w->anchor[r])), reach);
    }
    float *const sum_mass = sums + MHAK_MASS * k->vector;
    float *const sum_energy = sums + MHAK_ENERGY * k->vector;
    float *const sum_reach = sums + MHAK_REACH * k->vector;
    *sum_energy = kernel_fma(k, by, kernel_fma(k, below, mass, energy),
                             kernel_fma(k, fall, *sum_mass, *sum_energy) * shrink);
    *sum_reach = kernel_fma(k, by, reach, *sum_reach * shrink);
    *sum_mass = kernel_fma(k, by, mass, *sum_mass * shrink);
}

/* Inserts into the list, after all scores that are not smaller. */
static void model_insert(float *scores, int32_t *keys, int room, float score, int32_t key)
{
    int n = room;
    while (n > 0 && scores[n - 1] < score)
        n--;
    for (int to = room - 1; to > n; to--) {
        scores[to] = scores[to - 1];
        keys[to] = keys[to - 1];
    }
    if (n < room) {
        scores[n] = score;
        keys[n] = key;
    }
}

static void model_row(statistics_case *w, int r, float *scores, const float *p)
{
    float *const base = (float *)w->base.origin + r, *const best = (float *)w->best.origin + r;
    const float m = ((float *)w->m.origin)[r];
    for (int j = w->c.first; j < w->c.last; j++) {
        if (w->masked && !bit_of((uint32_t *)w->keep.origin + r * MHAK_WORDS, j))
            scores[j] = -INFINITY;
        if (scores[j] > *best) {
            *best = scores[j];
            w->best_key[r] = BLOCK_KEY + j;
        }
        if (w->top > 0)
            model_insert((float *)w->top_scores.origin + r * w->room, w->top_keys + r * w->room,
                         w->room, scores[j], BLOCK_KEY + j);
        if (w->holds)
            span_set(&w->held, r * MHAK_BLOCK + j, (double)p[j]);
    }
    for (int lane = 0; m > -INFINITY && lane < w->kernels->vector; lane++)
        model_lane(w, r, lane, scores, p, *base);
    *base = m > *base ? m : *base;
}

/* Only the first `top` of each list are promised. */
static void check_lists(const statistics_case *got, const statistics_case *want)
{
    for (int r = 0; r < got->rows; r++)
        for (int n = 0; n < got->top; n++) {
            const int at = r * got->room + n;
            CHECK(span_get(&got->top_scores, at) == span_get(&want->top_scores, at) &&
                      got->top_keys[at] == want->top_keys[at],
                  "row %d, number %d of %d: key %d instead of %d", r, n, got->top,
                  (int)got->top_keys[at], (int)want->top_keys[at]);
        }
}

static void fold_statistics_is_fold_with_sums(const mhak_table *kernels)
{
    test_random random = {test_seed(81)};
    for (int n = 0; n < 200; n++) {
        statistics_case got = statistics_case_new(kernels, &random),
                        want = statistics_case_copy(&got);
        span scores = span_copy(&want.s);
        run_kernel(&got);
        const mhak_hold hold = {want.scores.origin, MHAK_BLOCK};
        kernels->fold(want.s.origin, want.rows, want.c.first, want.c.last, keep_of(&want),
                      want.m.origin, want.l.origin, want.alpha.origin,
                      want.holds_scores ? &hold : NULL);
        for (int r = 0; r < want.rows; r++)
            model_row(&want, r, (float *)scores.origin + r * MHAK_BLOCK,
                      (float *)want.s.origin + r * MHAK_BLOCK);
        span_check(&got.s, &want.s, "p, keys [%d, %d)", want.c.first, want.c.last);
        span_check(&got.m, &want.m, "m");
        span_check(&got.l, &want.l, "l");
        span_check(&got.alpha, &want.alpha, "alpha");
        span_check(&got.base, &want.base, "base");
        span_check(&got.best, &want.best, "best");
        span_check(&got.held, &want.held, "held");
        span_check(&got.scores, &want.scores, "scores");
        span_check(&got.sums, &want.sums, "sums, keys [%d, %d), %d rows", want.c.first, want.c.last,
                   want.rows);
        CHECK(memcmp(got.best_key, want.best_key, sizeof(int64_t) * (size_t)got.rows) == 0,
              "keys of the best");
        check_lists(&got, &want);
        span_free(&scores);
        statistics_case_free(&got);
        statistics_case_free(&want);
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
    RUN_KERNELS(fold_statistics_is_fold_with_sums);
    RUN_KERNELS(add_scaled_adds_a_multiple);
    return test_end();
}
