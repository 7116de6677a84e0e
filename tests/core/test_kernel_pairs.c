/* SPDX-License-Identifier: MIT */
/*
 * Kernels of attention in pairs of bf16. How an instruction rounds the sum of a pair is its own, so
 * products are tested with small whole numbers, whose sums are exact whatever the order, and
 * compared with a plain model to the bit; with other numbers they have a bound, and bits that
 * depend neither on the number of rows nor on the way keys and values are read.
 */
#include "support/kernel_bench.h"

#include <math.h>
#include <string.h>

#define TABLE(native)                                \
    const mhak_pairs *const pairs = (native)->pairs; \
    if (!pairs)                                      \
    return

static int round_up(int n, int step)
{
    return (n + step - 1) / step * step;
}

/* Small whole numbers; sums of many products of two of them are exact. */
static void fill_whole(const span *s, test_random *random)
{
    for (ptrdiff_t i = s->low; i < s->high; i++)
        span_set(s, i, random_between(random, -5, 5));
}

static void fill(const span *s, test_random *random, bool whole)
{
    if (whole)
        fill_whole(s, random);
    else
        span_fill_normal(s, random);
}

static uint16_t half_at(const span *s, ptrdiff_t i)
{
    uint16_t x;
    memcpy(&x, (const char *)s->origin + i * 2, sizeof x);
    return x;
}

static ptrdiff_t random_stride(test_random *random, int width)
{
    const ptrdiff_t stride = width + random_between(random, 0, 9);
    return test_random_below(random, 3) == 0 ? -stride : stride;
}

/* ---------------------------------------------------------------- panels ----- */

static void keys_become_pairs(const mhak_native *native)
{
    TABLE(native);
    test_random random = {test_seed(301)};
    for (int n = 0; n < 150; n++) {
        const int keys = random_between(&random, 1, pairs->nr), d = random_between(&random, 1, 70);
        const int width = round_up(keys, pairs->vector), rows = (d + 1) / 2;
        const ptrdiff_t stride = random_stride(&random, d);
        span k = span_rows(&random, E_BF16, 0, keys, stride, d);
        span panel = span_new(&random, E_WORD, 0, (ptrdiff_t)rows * width),
             want = span_copy(&panel);
        for (int c = 0; c < rows; c++)
            for (int j = 0; j < width; j++) {
                const bool odd = 2 * c + 1 < d;
                const uint32_t low = j < keys ? half_at(&k, j * stride + 2 * c) : 0;
                const uint32_t high = j < keys && odd ? half_at(&k, j * stride + 2 * c + 1) : 0;
                ((uint32_t *)want.origin)[c * width + j] = low | high << 16;
            }
        span_seal(&k);
        pairs->pack_keys(k.origin, stride, keys, d, width, panel.origin);
        span_check(&panel, &want, "%d keys, d %d", keys, d);
        span_free(&k);
        span_free(&panel);
        span_free(&want);
    }
}

/* Where column c of the pair of keys j, j + 1 lies: panels of up to 4 vectors, the wider first. */
static ptrdiff_t value_index(const mhak_pairs *pairs, int dv, int j, int c)
{
    const int vectors = round_up(dv, pairs->vector) / pairs->vector, count = (vectors + 3) / 4;
    int before = 0;
    for (int n = 0; n < count; n++) {
        const int nv = vectors / count + (n < vectors % count);
        if (c < (before + nv) * pairs->vector)
            return ((ptrdiff_t)before * MHAK_BLOCK / 2 + (ptrdiff_t)j / 2 * nv) * pairs->vector +
                   c - before * pairs->vector;
        before += nv;
    }
    return -1;
}

static uint32_t value_of(const span *v, ptrdiff_t stride, int j, int c, int keys, int dv,
                         const uint32_t *keep)
{
    const bool there = j < keys && c < dv && (!keep || bit_of(keep, j));
    return there ? half_at(v, j * stride + c) : 0;
}

static void values_become_pairs(const mhak_native *native)
{
    TABLE(native);
    test_random random = {test_seed(302)};
    for (int n = 0; n < 150; n++) {
        const int first = 2 * random_between(&random, 0, 63), dv = random_between(&random, 1, 150);
        const int last = 2 * random_between(&random, first / 2 + 1, 64);
        const int keys = random_between(&random, first + 1, last);
        const ptrdiff_t stride = random_stride(&random, dv);
        uint32_t bits[MHAK_WORDS];
        for (int w = 0; w < MHAK_WORDS; w++)
            bits[w] = (uint32_t)test_random_u64(&random);
        const uint32_t *const keep = n % 2 ? bits : NULL;
        span v = span_rows(&random, E_BF16, first, keys, stride, dv);
        span panels =
            span_new(&random, E_WORD, 0, (ptrdiff_t)round_up(dv, pairs->vector) * MHAK_BLOCK / 2);
        span want = span_copy(&panels);
        for (int j = first; j < last; j += 2)
            for (int c = 0; c < round_up(dv, pairs->vector); c++)
                ((uint32_t *)want.origin)[value_index(pairs, dv, j, c)] =
                    value_of(&v, stride, j, c, keys, dv, keep) |
                    value_of(&v, stride, j + 1, c, keys, dv, keep) << 16;
        span_seal(&v);
        pairs->pack_values(v.origin, stride, first, last, keys, dv, keep, panels.origin);
        span_check(&panels, &want, "rows %d to %d of %d, dv %d", first, last, keys, dv);
        span_free(&v);
        span_free(&panels);
        span_free(&want);
    }
}

/* ---------------------------------------------------------------- scores ----- */

typedef struct score_case {
    int rows, keys, d;
    ptrdiff_t ldq, stride;
    float scale;
    span q, k, s;
} score_case;

/* Rows of s of so many keys: blocks of them one after another. */
static ptrdiff_t score_index(const score_case *c, int r, int j)
{
    return (ptrdiff_t)(j / MHAK_BLOCK * c->rows + r) * MHAK_BLOCK + j % MHAK_BLOCK;
}

static score_case score_new(test_random *random, int rows, int keys, int d, bool whole)
{
    score_case c = {.rows = rows, .keys = keys, .d = d, .scale = whole ? 0.25f : 0.3f};
    const int blocks = (keys + MHAK_BLOCK - 1) / MHAK_BLOCK;
    c.ldq = round_up(d, 2) + random_between(random, 0, 5);
    c.stride = random_stride(random, d);
    c.q = span_rows(random, E_BF16, 0, rows, c.ldq, round_up(d, 2));
    c.k = span_rows(random, E_BF16, 0, keys, c.stride, d);
    c.s = span_new(random, E_F32, 0, (ptrdiff_t)blocks * rows * MHAK_BLOCK);
    fill(&c.q, random, whole);
    fill(&c.k, random, whole);
    for (int r = 0; d % 2 != 0 && r < rows; r++)
        span_set(&c.q, r * c.ldq + d, 0);
    span_seal(&c.q);
    span_seal(&c.k);
    return c;
}

static void score_free(score_case *c)
{
    span_free(&c->q);
    span_free(&c->k);
    span_free(&c->s);
}

/* Checks vectors [from, to) of keys; the others must be as in `before`. */
static void check_scores(const score_case *c, const span *before, int from, int to, bool whole)
{
    span want = span_copy(before);
    for (int r = 0; r < c->rows; r++)
        for (int j = from; j < to; j++) {
            double sum = 0, size = 0;
            for (int e = 0; e < c->d; e++) {
                const double term = (double)span_get(&c->q, r * c->ldq + e) *
                                    (double)span_get(&c->k, j * c->stride + e);
                sum += term;
                size += fabs(term);
            }
            const float got = span_get(&c->s, score_index(c, r, j));
            const double error = fabs((double)got - sum * (double)c->scale);
            CHECK(error <= (c->d + 2) * 0x1p-23 * size * (double)c->scale, "d %d: off by %g", c->d,
                  error);
            span_set(&want, score_index(c, r, j), whole ? sum * (double)c->scale : (double)got);
        }
    span_check(&c->s, &want, "%d rows, %d keys, d %d", c->rows, c->keys, c->d);
    span_free(&want);
}

static void scores_of_panels(const mhak_native *native)
{
    TABLE(native);
    test_random random = {test_seed(303)};
    for (int n = 0; n < 200; n++) {
        const int keys = random_between(&random, 1, pairs->nr), d = random_between(&random, 1, 90);
        const int rows = random_between(&random, 1, 50), width = round_up(keys, pairs->vector);
        const int from = random_between(&random, 0, width / pairs->vector - 1);
        const int to = random_between(&random, from + 1, width / pairs->vector);
        const bool whole = n % 2 == 0;
        score_case c = score_new(&random, rows, keys, d, whole);
        span panel = span_new(&random, E_WORD, 0, (ptrdiff_t)(d + 1) / 2 * width);
        pairs->pack_keys(c.k.origin, c.stride, keys, d, width, panel.origin);
        span_seal(&panel);
        for (int r = 0; r < rows; r++)
            for (int j = keys; j < width; j++) /* missing keys have a score of 0 */
                span_set(&c.s, r * MHAK_BLOCK + j, 0);
        span before = span_copy(&c.s);
        pairs->score(c.q.origin, c.ldq, (const uint32_t *)panel.origin + from * pairs->vector,
                     width, to - from, (d + 1) / 2, rows, c.scale,
                     (float *)c.s.origin + from * pairs->vector);
        const int last = to * pairs->vector < keys ? to * pairs->vector : keys;
        check_scores(&c, &before, from * pairs->vector, last, whole);
        span_free(&before);
        span_free(&panel);
        score_free(&c);
    }
}

static void scores_in_place(const mhak_native *native)
{
    TABLE(native);
    test_random random = {test_seed(304)};
    for (int n = 0; n < 200; n++) {
        const int keys = pairs->vector * random_between(&random, 1, 300 / pairs->vector);
        const int rows = random_between(&random, 1, pairs->mr_in_place);
        score_case c = score_new(&random, rows, keys, random_between(&random, 1, 90), n % 2 == 0);
        span before = span_copy(&c.s);
        pairs->score_in_place(c.q.origin, c.ldq, c.k.origin, c.stride, c.d, keys, rows, c.scale,
                              c.s.origin);
        check_scores(&c, &before, 0, keys, n % 2 == 0);
        span_free(&before);
        score_free(&c);
    }
}

/* The same bits from panels of any width and in place, and for any number of rows. */
static void scores_have_the_same_bits(const mhak_native *native)
{
    TABLE(native);
    test_random random = {test_seed(305)};
    for (int n = 0; n < 60; n++) {
        const int keys = pairs->nr, rows = pairs->mr_in_place, d = random_between(&random, 1, 130);
        score_case c = score_new(&random, rows, keys, d, false);
        span panel = span_new(&random, E_WORD, 0, (ptrdiff_t)(d + 1) / 2 * keys);
        span want = span_copy(&c.s);
        pairs->pack_keys(c.k.origin, c.stride, keys, d, keys, panel.origin);
        pairs->score_in_place(c.q.origin, c.ldq, c.k.origin, c.stride, d, keys, rows, c.scale,
                              want.origin);
        for (int r = 0; r < rows; r += 1 + n % 2)
            for (int v = 0; v < 4; v += 2)
                pairs->score((const uint16_t *)c.q.origin + r * c.ldq, c.ldq,
                             (const uint32_t *)panel.origin + v * pairs->vector, keys, 2,
                             (d + 1) / 2, n % 2 ? 2 : 1, c.scale,
                             (float *)c.s.origin + r * MHAK_BLOCK + v * pairs->vector);
        span_check(&c.s, &want, "d %d", d);
        span_free(&want);
        span_free(&panel);
        score_free(&c);
    }
}

/* --------------------------------------------------------------- softmax ----- */

/* p as it must be rounded: to nearest even, and 0 if it is subnormal. */
static uint16_t rounded(float p)
{
    uint32_t bits;
    memcpy(&bits, &p, sizeof bits);
    if (fabsf(p) < 0x1p-126f)
        return 0;
    return isnan(p) ? 0x7fc0 : (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static void check_rounded(const span *s, const span *plain, int rows, int first, int last)
{
    for (int r = 0; r < rows; r++)
        for (int j = first; j < last; j++) {
            const float p = span_get(plain, r * MHAK_BLOCK + j);
            const uint16_t got = half_at(s, 2 * r * MHAK_BLOCK + j);
            /* A subnormal p may be rounded as others are: products take it as 0. */
            const bool tiny = fabsf(p) < 0x1p-126f && (got & 0x7f80u) == 0;
            CHECK(tiny || got == rounded(p) || (isnan(p) && (got & 0x7fffu) > 0x7f80u),
                  "row %d, key %d: %a became %#x", r, j, (double)p, got);
        }
}

static void fold_rounds_p(const mhak_native *native)
{
    TABLE(native);
    test_random random = {test_seed(306)};
    for (int n = 0; n < 100; n++) {
        const int rows = random_between(&random, 1, 40), vector = pairs->vector;
        const int first = vector * random_between(&random, 0, MHAK_BLOCK / vector - 1);
        const int last = vector * random_between(&random, first / vector + 1, MHAK_BLOCK / vector);
        span s = span_new(&random, E_F32, 0, (ptrdiff_t)rows * MHAK_BLOCK), plain;
        span sums = span_new(&random, E_F32, 0, (ptrdiff_t)3 * rows), want;
        span keep = span_new(&random, E_WORD, 0, (ptrdiff_t)rows * MHAK_WORDS);
        span_fill_normal(&s, &random);
        for (int i = 0; i < rows * MHAK_BLOCK; i++)
            span_set(&s, i, (double)span_get(&s, i) * (n % 3 == 0 ? 60 : 2));
        for (int r = 0; r < rows; r++) {
            span_set(&sums, r, r % 3 ? (double)test_random_normal(&random) : -(double)INFINITY);
            span_set(&sums, rows + r, r % 3 ? 2 : 0);
        }
        plain = span_copy(&s);
        want = span_copy(&sums);
        float *const m = sums.origin, *const m2 = want.origin;
        const uint32_t *const bits = n % 2 ? keep.origin : NULL;
        pairs->fold(s.origin, rows, first, last, bits, m, m + rows, m + 2 * rows);
        native->base->fold(plain.origin, rows, first, last, bits, m2, m2 + rows, m2 + 2 * rows,
                           NULL);
        span_check(&sums, &want, "m, l and alpha of %d rows, keys %d to %d", rows, first, last);
        check_rounded(&s, &plain, rows, first, last);
        span_free(&s);
        span_free(&plain);
        span_free(&sums);
        span_free(&want);
        span_free(&keep);
    }
}

static void rows_are_rounded(const mhak_native *native)
{
    TABLE(native);
    test_random random = {test_seed(307)};
    for (int n = 0; n < 40; n++) {
        const int rows = random_between(&random, 1, 5), vector = pairs->vector;
        const int first = vector * random_between(&random, 0, MHAK_BLOCK / vector - 1);
        const int last = vector * random_between(&random, first / vector + 1, MHAK_BLOCK / vector);
        span s = span_new(&random, E_F32, 0, (ptrdiff_t)rows * MHAK_BLOCK), plain = span_copy(&s);
        pairs->round(s.origin, rows, first, last);
        check_rounded(&s, &plain, rows, first, last);
        span_free(&s);
        span_free(&plain);
    }
}

/* ----------------------------------------------------------------- p . v ----- */

typedef struct add_case {
    int first, last, keys, rows, dv; /* whole vectors */
    ptrdiff_t stride, ldo;
    span p, v, panels, alpha, o;
} add_case;

static int add_blocks(const add_case *c)
{
    return (c->last + MHAK_BLOCK - 1) / MHAK_BLOCK;
}

static ptrdiff_t weight_index(const add_case *c, int r, int j)
{
    return (ptrdiff_t)(j / MHAK_BLOCK * c->rows + r) * 2 * MHAK_BLOCK + j % MHAK_BLOCK;
}

static add_case add_new(const mhak_pairs *pairs, test_random *random, add_case c, bool whole)
{
    const int vectors = c.dv / pairs->vector;
    c.stride = random_stride(random, c.dv);
    c.ldo = c.dv + pairs->vector * random_between(random, 0, 1);
    c.p = span_new(random, E_BF16, 0, (ptrdiff_t)add_blocks(&c) * c.rows * 2 * MHAK_BLOCK);
    c.v = span_rows(random, E_BF16, c.first, c.keys, c.stride, c.dv);
    c.panels = span_new(random, E_WORD, 0, (ptrdiff_t)vectors * pairs->vector * MHAK_BLOCK / 2);
    c.alpha = span_new(random, E_F32, 0, (ptrdiff_t)add_blocks(&c) * c.rows);
    c.o = span_rows(random, E_F32, 0, c.rows, c.ldo, c.dv);
    fill(&c.p, random, whole);
    fill(&c.v, random, whole);
    fill(&c.o, random, whole);
    for (ptrdiff_t i = 0; i < c.alpha.high; i++)
        span_set(&c.alpha, i, whole ? (i % 2 ? 2 : 1) : 0.7);
    for (int r = 0; c.keys < c.last && r < c.rows; r++)
        span_set(&c.p, weight_index(&c, r, c.keys), 0);
    span_seal(&c.p);
    span_seal(&c.v);
    span_seal(&c.alpha);
    if (c.last <= MHAK_BLOCK)
        pairs->pack_values(c.v.origin, c.stride, c.first, c.last, c.keys, c.dv, NULL,
                           c.panels.origin);
    return c;
}

static void add_free(add_case *c)
{
    span_free(&c->p);
    span_free(&c->v);
    span_free(&c->panels);
    span_free(&c->alpha);
    span_free(&c->o);
}

/* o as it must become. */
static void add_model(const add_case *c, const span *o)
{
    for (int r = 0; r < c->rows; r++)
        for (int e = 0; e < c->dv; e++) {
            double sum = (double)span_get(o, r * c->ldo + e);
            for (int j = 0; j < c->last; j++) {
                if (j % MHAK_BLOCK == 0)
                    sum *= (double)span_get(&c->alpha, j / MHAK_BLOCK * c->rows + r);
                if (j >= c->first && j < c->keys)
                    sum += (double)span_get(&c->p, weight_index(c, r, j)) *
                           (double)span_get(&c->v, j * c->stride + e);
            }
            span_set(o, r * c->ldo + e, sum);
        }
}

static void values_are_added(const mhak_native *native)
{
    TABLE(native);
    static const mhak_prefetch nothing = {.lines = 0};
    test_random random = {test_seed(308)};
    for (int n = 0; n < 200; n++) {
        const bool in_place = n % 2 != 0;
        add_case x = {.first = 2 * random_between(&random, 0, 63)};
        x.last = 2 * random_between(&random, x.first / 2 + 1, 64);
        x.rows = random_between(&random, 1, in_place ? pairs->mr_in_place : 50);
        x.dv = pairs->vector * random_between(&random, 1, 11);
        if (in_place && n % 3 == 0)
            x.last += MHAK_BLOCK * random_between(&random, 1, 2);
        x.keys = x.last - random_between(&random, 0, 1);
        add_case c = add_new(pairs, &random, x, true);
        span want = span_copy(&c.o);
        add_model(&c, &want);
        if (in_place)
            pairs->add_in_place(c.p.origin, c.v.origin, c.stride, c.first, c.last, c.keys, c.rows,
                                c.dv, &nothing, c.alpha.origin, c.o.origin, c.ldo);
        else
            pairs->add(c.p.origin, c.panels.origin, c.first, c.last, c.rows, c.dv / pairs->vector,
                       c.alpha.origin, c.o.origin, c.ldo);
        span_check(&c.o, &want, "keys %d to %d of %d, %d rows, dv %d, %s", c.first, c.last, c.keys,
                   c.rows, c.dv, in_place ? "in place" : "panels");
        span_free(&want);
        add_free(&c);
    }
}

/* The same bits in place and in panels, row by row and together, and if pairs whose p is 0 are left
 * out. */
static void values_have_the_same_bits(const mhak_native *native)
{
    TABLE(native);
    static const mhak_prefetch nothing = {.lines = 0};
    test_random random = {test_seed(309)};
    for (int n = 0; n < 60; n++) {
        add_case x = {.first = 0, .last = MHAK_BLOCK, .keys = MHAK_BLOCK};
        x.rows = pairs->mr_in_place;
        x.dv = pairs->vector * random_between(&random, 1, 9);
        add_case c = add_new(pairs, &random, x, false);
        const int from = 2 * random_between(&random, 0, 30),
                  to = 2 * random_between(&random, 31, 64);
        span p = span_copy(&c.p), one = span_copy(&c.o), part = span_copy(&c.o);
        for (int r = 0; r < c.rows; r++)
            for (int j = 0; j < MHAK_BLOCK; j++)
                if (j < from || j >= to)
                    span_set(&p, weight_index(&c, r, j), 0);
        pairs->add(p.origin, c.panels.origin, 0, MHAK_BLOCK, c.rows, c.dv / pairs->vector,
                   c.alpha.origin, c.o.origin, c.ldo);
        for (int r = 0; r < c.rows; r++)
            pairs->add((const float *)p.origin + r * MHAK_BLOCK, c.panels.origin, from, to, 1,
                       c.dv / pairs->vector, (const float *)c.alpha.origin + r,
                       (float *)one.origin + r * c.ldo, c.ldo);
        pairs->add_in_place(p.origin, c.v.origin, c.stride, from, to, MHAK_BLOCK, c.rows, c.dv,
                            &nothing, c.alpha.origin, part.origin, c.ldo);
        span_check(&one, &c.o, "row by row, keys %d to %d, dv %d", from, to, c.dv);
        span_check(&part, &c.o, "in place, keys %d to %d, dv %d", from, to, c.dv);
        span_free(&p);
        span_free(&one);
        span_free(&part);
        add_free(&c);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN_NATIVE(keys_become_pairs);
    RUN_NATIVE(values_become_pairs);
    RUN_NATIVE(scores_of_panels);
    RUN_NATIVE(scores_in_place);
    RUN_NATIVE(scores_have_the_same_bits);
    RUN_NATIVE(fold_rounds_p);
    RUN_NATIVE(rows_are_rounded);
    RUN_NATIVE(values_are_added);
    RUN_NATIVE(values_have_the_same_bits);
    return test_end();
}
