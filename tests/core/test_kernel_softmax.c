/* SPDX-License-Identifier: MIT */
/*
 * Kernels of the softmax: fold, merge, exp_scale, alibi, all_finite, and the sizes of the tables.
 * The models take their exponentials from the table itself, whose error is checked by test_exp;
 * everything else about them (maxima, order of sums, factors) is plain C, so bits are compared.
 */
#include "support/kernel_bench.h"

#include <float.h>
#include <math.h>
#include <string.h>

static void sizes_fit_together(const mhak_table *kernels)
{
    const int vector = kernels->vector;
    CHECK(vector > 0 && vector <= MHAK_MAX_VECTOR && (vector & (vector - 1)) == 0, "vector %d",
          vector);
    CHECK(kernels->nr % vector == 0 && MHAK_BLOCK % kernels->nr == 0, "nr %d", kernels->nr);
    CHECK(kernels->nc > 0 && kernels->nc % vector == 0, "nc %d", kernels->nc);
    CHECK(kernels->mr_qk > 0 && kernels->mr_pv > 0, "mr %d, %d", kernels->mr_qk, kernels->mr_pv);
    CHECK(MHAK_BLOCK / kernels->nr <= 32, "more panels in a block than bits in a word");
}

/* ------------------------------------------------------------------- fold */

typedef struct fold_case {
    int rows, first, last;
    bool masked, holds;
} fold_case;

/* The arguments of one call. */
typedef struct fold_data {
    span s, keep, m, l, alpha, held;
} fold_data;

enum { HELD_STRIDE = 2 * MHAK_BLOCK };

static fold_data fold_data_new(const fold_case *c, test_random *random)
{
    fold_data x;
    x.s = c->rows == 0 || c->first == c->last
              ? span_new(random, E_F32, 0, 0)
              : span_new(random, E_F32, c->first, (c->rows - 1) * MHAK_BLOCK + c->last);
    x.keep = span_new(random, E_WORD, 0, c->masked ? c->rows * MHAK_WORDS : 0);
    x.m = span_new(random, E_F32, 0, c->rows);
    x.l = span_new(random, E_F32, 0, c->rows);
    x.alpha = span_new(random, E_F32, 0, c->rows);
    x.held = c->rows == 0 || c->first == c->last
                 ? span_new(random, E_F32, 0, 0)
                 : span_new(random, E_F32, c->first, (c->rows - 1) * HELD_STRIDE + c->last);
    span_fill_normal(&x.s, random);
    span_fill_normal(&x.m, random);
    span_fill_unit(&x.l, random);
    return x;
}

static fold_data fold_data_copy(const fold_data *x)
{
    return (fold_data){span_copy(&x->s), span_copy(&x->keep),  span_copy(&x->m),
                       span_copy(&x->l), span_copy(&x->alpha), span_copy(&x->held)};
}

static void fold_data_free(fold_data *x)
{
    span_free(&x->s);
    span_free(&x->keep);
    span_free(&x->m);
    span_free(&x->l);
    span_free(&x->alpha);
    span_free(&x->held);
}

/* Rows [row, row + rows) of the case. */
static void call_fold(const mhak_table *kernels, const fold_case *c, const fold_data *x, int row,
                      int rows)
{
    const mhak_hold hold = {(float *)x->held.origin + row * HELD_STRIDE, HELD_STRIDE};
    kernels->fold((float *)x->s.origin + row * MHAK_BLOCK, rows, c->first, c->last,
                  c->masked ? (uint32_t *)x->keep.origin + row * MHAK_WORDS : NULL,
                  (float *)x->m.origin + row, (float *)x->l.origin + row,
                  (float *)x->alpha.origin + row, c->holds ? &hold : NULL);
}

/* Lane by lane over the vectors, then the upper half of the lanes onto the lower, and again. */
static float lane_sum(const mhak_table *kernels, const float *p, int first, int last)
{
    float lanes[MHAK_MAX_VECTOR] = {0};
    for (int j = first; j < last; j++)
        lanes[j % kernels->vector] += p[j];
    for (int half = kernels->vector / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return lanes[0];
}

static void model_fold_row(const mhak_table *kernels, const fold_case *c, float *s,
                           const uint32_t *keep, float *m, float *l, float *alpha, float *held)
{
    float top = *m;
    for (int j = c->first; j < c->last; j++) {
        if (keep && !bit_of(keep, j))
            s[j] = -INFINITY;
        if (c->holds)
            held[j] = s[j];
        if (s[j] > top)
            top = s[j];
    }
    const float base = finite_base(top);
    *alpha = kernel_exp(kernels, *m - base);
    for (int j = c->first; j < c->last; j++)
        s[j] = kernel_exp(kernels, s[j] - base);
    *l = *l * *alpha + lane_sum(kernels, s, c->first, c->last);
    *m = top;
}

static void model_fold(const mhak_table *kernels, const fold_case *c, const fold_data *x)
{
    for (int r = 0; r < c->rows; r++)
        model_fold_row(kernels, c, (float *)x->s.origin + r * MHAK_BLOCK,
                       c->masked ? (uint32_t *)x->keep.origin + r * MHAK_WORDS : NULL,
                       (float *)x->m.origin + r, (float *)x->l.origin + r,
                       (float *)x->alpha.origin + r, (float *)x->held.origin + r * HELD_STRIDE);
}

static void compare_folds(const fold_case *c, const fold_data *got, const fold_data *want)
{
    static const char *const words = "%s, %d rows, keys [%d, %d), masked %d";
    const span *const a[] = {&got->s, &got->m, &got->l, &got->alpha, &got->held};
    const span *const b[] = {&want->s, &want->m, &want->l, &want->alpha, &want->held};
    static const char *const names[] = {"p", "m", "l", "alpha", "held"};
    for (int n = 0; n < 5; n++)
        span_check(a[n], b[n], words, names[n], c->rows, c->first, c->last, c->masked);
}

static void check_fold(const mhak_table *kernels, const fold_case *c, fold_data *x)
{
    fold_data want = fold_data_copy(x);
    span_seal(&x->keep);
    call_fold(kernels, c, x, 0, c->rows);
    model_fold(kernels, c, &want);
    compare_folds(c, x, &want);
    fold_data_free(&want);
}

static fold_case random_fold(const mhak_table *kernels, test_random *random, int rows)
{
    const int vectors = MHAK_BLOCK / kernels->vector;
    fold_case c = {.rows = rows, .masked = test_random_below(random, 2)};
    c.holds = test_random_below(random, 2);
    c.first = kernels->vector * random_between(random, 0, vectors);
    c.last = random_between(random, c.first / kernels->vector, vectors) * kernels->vector;
    return c;
}

static void fold_keeps_the_invariant(const mhak_table *kernels)
{
    test_random random = {test_seed(71)};
    for (int rows = 0; rows <= 2 * kernels->vector + 1; rows++)
        for (int n = 0; n < 8; n++) {
            fold_case c = random_fold(kernels, &random, rows);
            if (n == 0)
                c.first = 0;
            if (n <= 1)
                c.last = MHAK_BLOCK;
            fold_data x = fold_data_new(&c, &random);
            check_fold(kernels, &c, &x);
            fold_data_free(&x);
        }
}

/* Values that are awkward in one of the arguments of each row. */
static void make_awkward(const fold_case *c, fold_data *x, test_random *random)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN, FLT_MAX, -FLT_MAX, 1e4f, -1e4f, 0.0f};
    float *const m = x->m.origin, *const l = x->l.origin, *const s = x->s.origin;
    uint32_t *const keep = x->keep.origin;
    for (int r = 0; r < c->rows; r++) {
        const int64_t how = test_random_below(random, 8);
        const float value = odd[test_random_below(random, 8)];
        if (how < 4) { /* nothing seen so far */
            m[r] = -INFINITY;
            l[r] = 0;
        }
        if (how == 0 && c->masked) /* and nothing now */
            memset(keep + r * MHAK_WORDS, 0, MHAK_WORDS * sizeof(uint32_t));
        if (how == 1)
            for (int j = c->first; j < c->last; j++)
                s[r * MHAK_BLOCK + j] = -INFINITY;
        if (how == 7)
            m[r] = value;
        for (int n = 0; how >= 2 && n < 3 && c->first < c->last; n++)
            s[r * MHAK_BLOCK + random_between(random, c->first, c->last - 1)] = value;
    }
}

static void fold_takes_any_score(const mhak_table *kernels)
{
    test_random random = {test_seed(72)};
    for (int n = 0; n < 200; n++) {
        const fold_case c = random_fold(kernels, &random, random_between(&random, 1, 20));
        fold_data x = fold_data_new(&c, &random);
        make_awkward(&c, &x, &random);
        check_fold(kernels, &c, &x);
        fold_data_free(&x);
    }
}

/* Compared with double precision: l * exp(m) grows by the sum of exp(score). */
static void fold_is_a_softmax(const mhak_table *kernels)
{
    test_random random = {test_seed(73)};
    for (int n = 0; n < 100; n++) {
        fold_case c = random_fold(kernels, &random, 1);
        c.masked = false;
        fold_data x = fold_data_new(&c, &random);
        const float *const s = x.s.origin, *const m = x.m.origin, *const l = x.l.origin;
        double want = (double)l[0] * exp((double)m[0]);
        for (int j = c.first; j < c.last; j++)
            want += exp((double)s[j]);
        call_fold(kernels, &c, &x, 0, 1);
        const double got = (double)l[0] * exp((double)m[0]);
        CHECK(fabs(got - want) <= 1e-5 * want, "keys [%d, %d): %g, not %g", c.first, c.last, got,
              want);
        fold_data_free(&x);
    }
}

static void rows_do_not_see_each_other(const mhak_table *kernels)
{
    test_random random = {test_seed(74)};
    for (int rows = 1; rows <= 2 * kernels->vector + 1; rows++) {
        const fold_case c = random_fold(kernels, &random, rows);
        fold_data x = fold_data_new(&c, &random), alone = fold_data_copy(&x);
        call_fold(kernels, &c, &x, 0, rows);
        for (int r = 0; r < rows; r++)
            call_fold(kernels, &c, &alone, r, 1);
        compare_folds(&c, &x, &alone);
        fold_data_free(&x);
        fold_data_free(&alone);
    }
}

/* Clears the bits outside of [first, last) in every row. */
static void hide_outside(const fold_case *c, const fold_data *x, int first, int last)
{
    uint32_t *const keep = x->keep.origin;
    for (int j = 0; j < MHAK_BLOCK; j++)
        for (int r = 0; (j < first || j >= last) && r < c->rows; r++)
            keep[r * MHAK_WORDS + j / 32] &= ~(1u << (j % 32));
}

/* Vectors that are masked in every row may be left out: the range only saves work. */
static void fold_of_a_range_is_fold_of_all(const mhak_table *kernels)
{
    test_random random = {test_seed(75)};
    for (int n = 0; n < 60; n++) {
        const fold_case part = random_fold(kernels, &random, 1 + n % 7);
        const fold_case all = {part.rows, 0, MHAK_BLOCK, true, false};
        const fold_case narrow = {part.rows, part.first, part.last, true, false};
        fold_data x = fold_data_new(&all, &random);
        hide_outside(&all, &x, part.first, part.last);
        fold_data y = fold_data_copy(&x);
        call_fold(kernels, &all, &x, 0, all.rows);
        call_fold(kernels, &narrow, &y, 0, all.rows);
        float *const p = y.s.origin; /* left out means weight 0 */
        for (int j = 0; j < MHAK_BLOCK; j++)
            for (int r = 0; (j < part.first || j >= part.last) && r < all.rows; r++)
                p[r * MHAK_BLOCK + j] = 0;
        compare_folds(&narrow, &y, &x);
        fold_data_free(&x);
        fold_data_free(&y);
    }
}

/* ------------------------------------------------------------------ merge */

typedef struct state {
    span m, l, o;
} state;

static state state_new(test_random *random, int rows, ptrdiff_t ldo)
{
    const state x = {span_new(random, E_F32, 0, rows), span_new(random, E_F32, 0, rows),
                     span_new(random, E_F32, 0, rows * ldo)};
    span_fill_normal(&x.m, random);
    span_fill_unit(&x.l, random);
    span_fill_normal(&x.o, random);
    return x;
}

static state state_copy(const state *x)
{
    return (state){span_copy(&x->m), span_copy(&x->l), span_copy(&x->o)};
}

static void state_free(state *x)
{
    span_free(&x->m);
    span_free(&x->l);
    span_free(&x->o);
}

static void state_empty_row(const state *x, int r, ptrdiff_t ldo)
{
    ((float *)x->m.origin)[r] = -INFINITY;
    ((float *)x->l.origin)[r] = 0;
    memset((float *)x->o.origin + r * ldo, 0, sizeof(float) * (size_t)ldo);
}

static void call_merge(const mhak_table *kernels, int rows, ptrdiff_t ldo, const state *x,
                       const state *y)
{
    kernels->merge(rows, ldo, x->m.origin, x->l.origin, x->o.origin, y->m.origin, y->l.origin,
                   y->o.origin);
}

static void model_merge(const mhak_table *kernels, int rows, ptrdiff_t ldo, const state *x,
                        const state *y)
{
    float *const m = x->m.origin, *const l = x->l.origin, *const o = x->o.origin;
    const float *const m2 = y->m.origin, *const l2 = y->l.origin, *const o2 = y->o.origin;
    for (int r = 0; r < rows; r++) {
        const float top = m2[r] > m[r] ? m2[r] : m[r];
        const float a = kernel_exp(kernels, m[r] - finite_base(top));
        const float b = kernel_exp(kernels, m2[r] - finite_base(top));
        l[r] = l[r] * a + l2[r] * b;
        m[r] = top;
        for (ptrdiff_t c = r * ldo; c < (r + 1) * ldo; c++)
            o[c] = kernel_fma(kernels, o[c], a, o2[c] * b);
    }
}

static void compare_states(const state *got, const state *want, int rows, ptrdiff_t ldo)
{
    span_check(&got->m, &want->m, "m, %d rows of %td", rows, ldo);
    span_check(&got->l, &want->l, "l, %d rows of %td", rows, ldo);
    span_check(&got->o, &want->o, "o, %d rows of %td", rows, ldo);
}

static void merge_joins_two_states(const mhak_table *kernels)
{
    test_random random = {test_seed(76)};
    for (int n = 0; n < 100; n++) {
        const int rows = n % 10;
        const ptrdiff_t ldo = kernels->vector * random_between(&random, 1, 5);
        state x = state_new(&random, rows, ldo), y = state_new(&random, rows, ldo);
        for (int r = 0; r < rows; r++) {
            if (test_random_below(&random, 4) == 0)
                state_empty_row(&x, r, ldo);
            if (test_random_below(&random, 4) == 0)
                state_empty_row(&y, r, ldo);
        }
        state want = state_copy(&x);
        span_seal(&y.m);
        span_seal(&y.l);
        span_seal(&y.o);
        call_merge(kernels, rows, ldo, &x, &y);
        model_merge(kernels, rows, ldo, &want, &y);
        compare_states(&x, &want, rows, ldo);
        state_free(&x);
        state_free(&y);
        state_free(&want);
    }
}

static void merge_with_nothing_changes_no_bit(const mhak_table *kernels)
{
    enum { ROWS = 5 };
    test_random random = {test_seed(77)};
    for (int vectors = 1; vectors < 6; vectors++) {
        const ptrdiff_t ldo = kernels->vector * vectors;
        state some = state_new(&random, ROWS, ldo), nothing = state_new(&random, ROWS, ldo);
        for (int r = 0; r < ROWS; r++)
            state_empty_row(&nothing, r, ldo);
        state before = state_copy(&some);
        call_merge(kernels, ROWS, ldo, &some, &nothing);
        compare_states(&some, &before, ROWS, ldo);
        call_merge(kernels, ROWS, ldo, &nothing, &some);
        compare_states(&nothing, &before, ROWS, ldo);
        state_free(&some);
        state_free(&nothing);
        state_free(&before);
    }
}

/* ----------------------------------------------------------------- scores */

static void weigh_gives_weights(const mhak_table *kernels)
{
    static const float maxima[] = {0.0f, 2.5f, -30.0f, -INFINITY, NAN, INFINITY};
    test_random random = {test_seed(78)};
    for (int n = 1; n <= MHAK_BLOCK; n++) {
        const int whole = whole_vectors(kernels, n);
        const float m = maxima[n % 6], factor = 1.0f / (float)n;
        span s = span_new(&random, E_F32, 0, whole);
        span keep = span_new(&random, E_WORD, 0, (whole + 31) / 32);
        span_fill_normal(&s, &random);
        span_set(&s, whole / 2, n % 4 == 0 ? NAN : -INFINITY);
        span want = span_copy(&s);
        float *const w = want.origin;
        for (int j = 0; j < n; j++)
            w[j] = bit_of(keep.origin, j) ? kernel_exp(kernels, w[j] - finite_base(m)) * factor : 0;
        span_seal(&keep);
        kernels->exp_scale(s.origin, n, keep.origin, m, factor, s.origin);
        span_check(&s, &want, "%d scores, m %g", n, (double)m);
        span_free(&s);
        span_free(&keep);
        span_free(&want);
    }
}

static void exp_scale_add_adds_weights(const mhak_table *kernels)
{
    test_random random = {test_seed(84)};
    for (int n = 1; n <= 2 * MHAK_BLOCK; n++) {
        const int whole = whole_vectors(kernels, n);
        span s = span_new(&random, E_F32, 0, whole), sum = span_new(&random, E_F32, 0, n);
        span keep = span_new(&random, E_WORD, 0, (whole + 31) / 32);
        span_fill_normal(&s, &random);
        span_fill_normal(&sum, &random);
        span want = span_copy(&sum);
        const float *const x = s.origin;
        float *const w = want.origin;
        for (int j = 0; j < n; j++)
            if (bit_of(keep.origin, j))
                w[j] += kernel_exp(kernels, x[j] - 0.5f) * 0.25f;
        span_seal(&keep);
        span_seal(&s);
        kernels->exp_scale_add(s.origin, n, keep.origin, 0.5f, 0.25f, sum.origin);
        span_check(&sum, &want, "%d scores", n);
        span_free(&s);
        span_free(&sum);
        span_free(&keep);
        span_free(&want);
    }
}

static void alibi_grows_with_distance(const mhak_table *kernels)
{
    test_random random = {test_seed(79)};
    for (int n = 0; n <= MHAK_BLOCK; n++) {
        const int whole = whole_vectors(kernels, n);
        const float slope = test_random_float(&random);
        const float position = (float)random_between(&random, -200, n % 2 ? 200 : 1 << 23);
        span s = span_new(&random, E_F32, 0, whole);
        span_fill_normal(&s, &random);
        span want = span_copy(&s);
        float *const w = want.origin;
        for (int j = 0; j < whole; j++)
            w[j] = kernel_fma(kernels, -slope, fabsf(position - (float)j), w[j]);
        kernels->alibi(s.origin, n, slope, position);
        span_check(&s, &want, "%d scores, slope %a, position %g", n, (double)slope,
                   (double)position);
        span_free(&s);
        span_free(&want);
    }
}

static void all_finite_finds_every_other(const mhak_table *kernels)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN, -NAN};
    test_random random = {test_seed(80)};
    for (int vectors = 0; vectors < 9; vectors++) {
        const int n = vectors * kernels->vector;
        span x = span_new(&random, E_F32, 0, n);
        float *const at = x.origin;
        for (int i = 0; i < n; i++)
            at[i] = i % 3 ? FLT_MAX : -FLT_MAX;
        CHECK(kernels->all_finite(at, n), "%d finite numbers", n);
        for (int i = 0; i < n; i++) {
            const float before = at[i];
            for (int k = 0; k < 4; k++) {
                at[i] = odd[k];
                CHECK(!kernels->all_finite(at, n), "%g at %d of %d", (double)odd[k], i, n);
            }
            at[i] = before;
        }
        span_free(&x);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    kernel_report_missing();
    RUN_KERNELS(sizes_fit_together);
    RUN_KERNELS(fold_keeps_the_invariant);
    RUN_KERNELS(fold_takes_any_score);
    RUN_KERNELS(fold_is_a_softmax);
    RUN_KERNELS(rows_do_not_see_each_other);
    RUN_KERNELS(fold_of_a_range_is_fold_of_all);
    RUN_KERNELS(merge_joins_two_states);
    RUN_KERNELS(merge_with_nothing_changes_no_bit);
    RUN_KERNELS(weigh_gives_weights);
    RUN_KERNELS(exp_scale_add_adds_weights);
    RUN_KERNELS(alibi_grows_with_distance);
    RUN_KERNELS(all_finite_finds_every_other);
    return test_end();
}
