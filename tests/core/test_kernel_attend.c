/* SPDX-License-Identifier: MIT */
/*
 * Kernels that do at once what others do one after another: attend, fold_added, fold of a range
 * that ends inside a vector; and dot_rows. The model is the sequence of the other slots, which have
 * tests of their own, so bits are compared. Inputs end or begin at a page that must not be touched.
 */
#include "support/kernel_bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = MHAK_WORDS, MOST_ROWS = 40, MOST_WIDTH = 160, TILE = 24 };

/* ------------------------------------------------------------------- fold */

typedef struct softmax {
    float s[MOST_ROWS * MHAK_BLOCK], m[MOST_ROWS], l[MOST_ROWS], alpha[MOST_ROWS];
    bool seen[MOST_ROWS];
} softmax;

static void softmax_fill(softmax *x, test_random *random)
{
    for (int n = 0; n < MOST_ROWS * MHAK_BLOCK; n++)
        x->s[n] = test_random_below(random, 50) ? 3 * test_random_normal(random) : NAN;
    for (int r = 0; r < MOST_ROWS; r++) {
        x->m[r] = r % 3 ? test_random_normal(random) : -INFINITY;
        x->l[r] = r % 3 ? 1.5f : 0.0f;
        x->alpha[r] = 0.0f;
        x->seen[r] = r % 3 != 0;
    }
}

static void set_bit(uint32_t *keep, int j, bool on)
{
    keep[j / 32] = (keep[j / 32] & ~(1u << (j % 32))) | (uint32_t)on << (j % 32);
}

static bool same_softmax(const softmax *a, const softmax *b, int rows, int first, int last)
{
    bool same = true;
    for (int r = 0; r < rows; r++) {
        for (int j = first; j < last; j++)
            same &= same_float(a->s[r * MHAK_BLOCK + j], b->s[r * MHAK_BLOCK + j]);
        same &= same_float(a->m[r], b->m[r]) && same_float(a->l[r], b->l[r]) &&
                same_float(a->alpha[r], b->alpha[r]) && a->seen[r] == b->seen[r];
    }
    return same;
}

static void fold_ends_inside_a_vector(const mhak_table *kernels)
{
    static softmax x, y;
    static uint32_t keep[MOST_ROWS * WORDS];
    test_random random = {test_seed(5100)};
    for (int last = 1; last <= MHAK_BLOCK; last++) {
        const int rows = random_between(&random, 1, MOST_ROWS);
        const int first = (int)test_random_below(&random, last) / kernels->vector * kernels->vector;
        softmax_fill(&x, &random);
        y = x;
        for (int n = 0; n < rows * MHAK_BLOCK; n++)
            set_bit(keep + n / MHAK_BLOCK * WORDS, n % MHAK_BLOCK, n % MHAK_BLOCK < last);
        kernels->fold(x.s, rows, first, last, NULL, x.m, x.l, x.alpha, NULL);
        kernels->fold(y.s, rows, first, whole_vectors(kernels, last), keep, y.m, y.l, y.alpha,
                      NULL);
        CHECK(same_softmax(&x, &y, rows, first, last), "%d rows, keys [%d, %d)", rows, first, last);
    }
}

/* The mask is added, and its -inf become keep bits, one row after another. */
static bool model_added(const mhak_table *kernels, softmax *y, int rows, int first, int last,
                        const span *mask, ptrdiff_t stride)
{
    static uint32_t keep[MOST_ROWS * WORDS];
    bool any = false;
    memset(keep, 0, sizeof keep);
    for (int r = 0; r < rows; r++)
        for (int j = first; j < last; j++) {
            const float add = span_get(mask, r * stride + j - first);
            y->s[r * MHAK_BLOCK + j] += add;
            set_bit(keep + r * WORDS, j, add != -INFINITY);
            y->seen[r] |= add != -INFINITY;
            any |= add == -INFINITY;
        }
    kernels->fold(y->s, rows, first, whole_vectors(kernels, last), keep, y->m, y->l, y->alpha,
                  NULL);
    return any;
}

static void fold_added_adds_the_mask(const mhak_table *kernels)
{
    static softmax x, y;
    test_random random = {test_seed(5200)};
    for (int n = 0; n < 4 * MHAK_BLOCK; n++) {
        const int last = 1 + n % MHAK_BLOCK, rows = random_between(&random, 1, MOST_ROWS);
        const int first = (int)test_random_below(&random, last) / kernels->vector * kernels->vector;
        const ptrdiff_t stride = test_random_below(&random, 3) ? last - first + n % 5 : 0;
        span mask = span_rows(&random, E_F32, 0, rows, stride, last - first);
        span_fill_normal(&mask, &random);
        for (int64_t t = n % 4 ? mask.high : 0; t > 0; t -= 1 + test_random_below(&random, 30))
            span_set(&mask, test_random_below(&random, mask.high), -INFINITY);
        for (int j = 0; n % 8 == 1 && j < last - first; j++) /* a row without any key */
            span_set(&mask, (rows - 1) * stride + j, -INFINITY);
        span_seal(&mask);
        softmax_fill(&x, &random);
        y = x;
        const bool got = kernels->fold_added(x.s, rows, first, last, mask.origin, stride, x.m, x.l,
                                             x.alpha, x.seen);
        const bool want = model_added(kernels, &y, rows, first, last, &mask, stride);
        CHECK(got == want && same_softmax(&x, &y, rows, first, last),
              "%d rows, keys [%d, %d), stride %td", rows, first, last, stride);
        span_free(&mask);
    }
}

/* --------------------------------------------------------------- dot_rows */

static void dot_rows_are_plain_sums(const mhak_table *kernels)
{
    test_random random = {test_seed(5300)};
    for (int n = 0; n < 150; n++) {
        const int rows = random_between(&random, 0, 37);
        const ptrdiff_t lda = n + random_between(&random, 0, 9), ldb = n;
        span a = span_rows(&random, E_F32, 0, rows, lda, n);
        span b = span_rows(&random, E_F32, 0, rows, ldb, n);
        span_fill_normal(&a, &random);
        span_fill_normal(&b, &random);
        span_seal(&a);
        span_seal(&b);
        double got[37];
        kernels->dot_rows(a.origin, lda, b.origin, ldb, rows, n, got);
        for (int r = 0; r < rows; r++) {
            double want = 0.0;
            for (int c = 0; c < n; c++)
                want += (double)span_get(&a, r * lda + c) * (double)span_get(&b, r * ldb + c);
            CHECK(got[r] == want, "%d elements, row %d of %d: %a, not %a", n, r, rows, got[r],
                  want);
        }
        span_free(&a);
        span_free(&b);
    }
}

/* ----------------------------------------------------------------- attend */

/* Scratch of the kernel, and of the model. */
typedef struct scratch {
    float panels[MHAK_BLOCK * MOST_WIDTH], scaled[TILE * (MOST_WIDTH + 16)];
    float s[TILE * MHAK_BLOCK], sums[TILE * (MOST_WIDTH + 16)], inverse[TILE];
    float m[MOST_ROWS], l[MOST_ROWS];
    float q[MOST_WIDTH], panel[MHAK_MAX_PANEL * MOST_WIDTH], row[MHAK_BLOCK];
    float v_panels[MHAK_BLOCK * (MOST_WIDTH + 64)], o[MOST_WIDTH + 64];
    float groups[MHAK_BLOCK * MOST_WIDTH];
} scratch;

typedef struct attend_case {
    span q, k, v, mask, o, weights;
    bool has_mask, has_weights;
    mhak_attend x;
} attend_case;

static attend_case case_new(scratch *to, test_random *random)
{
    attend_case c = {.has_mask = test_random_below(random, 2) == 0,
                     .has_weights = test_random_below(random, 2) == 0};
    mhak_attend *const x = &c.x;
    x->rows = random_between(random, 1, test_random_below(random, 2) ? 5 : MOST_ROWS);
    x->keys = random_between(random, 1, test_random_below(random, 2) ? 24 : MHAK_BLOCK);
    x->d = random_between(random, 1, test_random_below(random, 2) ? 40 : MOST_WIDTH);
    x->dv = random_between(random, 1, test_random_below(random, 2) ? 40 : MOST_WIDTH);
    x->own = x->d >= 8 && test_random_below(random, 4) == 0;
    x->rise = !x->own && test_random_below(random, 3) == 0;
    x->sees = x->rise ? random_between(random, 1, MHAK_BLOCK) : x->keys;
    x->scale = 0.3f;
    x->columns = x->keys + random_between(random, 0, MHAK_BLOCK - x->keys);
    x->tile_rows = random_between(random, 1, TILE);
    x->q_stride = x->d + random_between(random, 0, 9);
    x->k_stride = x->d + random_between(random, 0, 9);
    x->v_stride = x->dv + random_between(random, 0, 9);
    x->o_stride = x->dv + random_between(random, 0, 9);
    x->mask_stride = test_random_below(random, 3) ? x->keys : 0;
    x->weights_stride = x->columns + random_between(random, 0, 5);
    x->k_row = x->own ? x->keys * x->k_stride : 0;
    x->v_row = x->own ? x->keys * x->v_stride : 0;
    const int sets = x->own ? x->rows : 1;
    c.q = span_rows(random, E_F32, 0, x->rows, x->q_stride, x->d);
    c.k = span_rows(random, E_F32, 0, (ptrdiff_t)sets * x->keys, x->k_stride, x->d);
    c.v = span_rows(random, E_F32, 0, (ptrdiff_t)sets * x->keys, x->v_stride, x->dv);
    c.mask = span_rows(random, E_F32, 0, x->rows, x->mask_stride, x->keys);
    c.o = span_rows(random, E_F32, 0, x->rows, x->o_stride, x->dv);
    c.weights = span_rows(random, E_F32, 0, x->rows, x->weights_stride, x->columns);
    span *const numbers[] = {&c.q, &c.k, &c.v, &c.mask};
    for (int n = 0; n < 4; n++)
        span_fill_normal(numbers[n], random);
    for (int64_t t = test_random_below(random, 9); t > 0; t--)
        span_set(&c.mask, test_random_below(random, c.mask.high), -INFINITY);
    x->q = c.q.origin;
    x->k = c.k.origin;
    for (int n = 0; n * MHAK_CHAIN < x->keys; n++)
        x->v[n] = (const float *)c.v.origin + n * MHAK_CHAIN * x->v_stride;
    x->mask = c.has_mask ? c.mask.origin : NULL;
    x->o = c.o.origin;
    x->weights = c.has_weights ? c.weights.origin : NULL;
    x->m = to->m;
    x->l = to->l;
    x->panels = to->panels;
    x->scaled = to->scaled;
    x->ld_scaled = MOST_WIDTH + 16;
    x->s = to->s;
    x->sums = to->sums;
    x->ld_sums = MOST_WIDTH + 16;
    x->inverse = to->inverse;
    return c;
}

static void case_free(attend_case *c)
{
    span *const all[] = {&c->q, &c->k, &c->v, &c->mask, &c->o, &c->weights};
    for (int n = 0; n < 6; n++)
        span_free(all[n]);
}

/* Keys into groups of a cache: what is past the last one is not a number. */
static void use_groups(attend_case *c, scratch *to)
{
    mhak_attend *const x = &c->x;
    for (int n = 0; n < MHAK_BLOCK * x->d; n++)
        to->groups[n] = NAN;
    for (int j = 0; j < x->keys; j++)
        for (int t = 0; t < x->d; t++)
            to->groups[(j / MHAK_GROUP * x->d + t) * MHAK_GROUP + j % MHAK_GROUP] =
                x->k[j * x->k_stride + t];
    for (int n = 0; n < MHAK_BLOCK / MHAK_GROUP; n++)
        x->groups[n] = to->groups + (ptrdiff_t)n * MHAK_GROUP * x->d;
    x->k = NULL;
}

/* Row r by the other slots. Returns false where the kernel may give up. */
static bool model_row(const mhak_table *kernels, const attend_case *c, scratch *to, int r,
                      const span *o, const span *weights)
{
    const mhak_attend *const x = &c->x;
    const float *const k = (const float *)c->k.origin + r * x->k_row;
    const float *const v = (const float *)c->v.origin + r * x->v_row;
    const ptrdiff_t sight = x->sees + x->rise * r;
    const int n = sight < x->keys ? (int)sight : x->keys, nr = kernels->nr;
    float m = -INFINITY, l = 0.0f, alpha = 0.0f;
    bool seen = false;
    kernels->load_row[E_F32]((const float *)c->q.origin + r * x->q_stride, x->d, x->scale, to->q);
    for (int j = 0; j < n; j += nr) {
        kernels->pack_k[E_F32](k + j * x->k_stride, x->k_stride, j + nr < n ? nr : n - j, x->d, nr,
                               to->panel);
        kernels->product[E_F32](to->q, 0, to->panel, x->d, 1, false, to->row + j, MHAK_BLOCK);
    }
    if (c->has_mask)
        kernels->fold_added(to->row, 1, 0, n, x->mask + r * x->mask_stride, 0, &m, &l, &alpha,
                            &seen);
    else
        kernels->fold(to->row, 1, 0, n, NULL, &m, &l, &alpha, NULL);
    const int width = whole_vectors(kernels, x->dv);
    const mhak_prefetch nothing = {.lines = 0};
    kernels->pack_v[E_F32](v, x->v_stride, 0, n, x->dv, NULL, to->v_panels);
    memset(to->o, 0, sizeof to->o);
    kernels->pv[E_F32](to->row, to->v_panels, kernels->nc, (ptrdiff_t)MHAK_BLOCK * kernels->nc, 0,
                       n, 1, width, &nothing, &alpha, to->o, width);
    const float inverse = 1.0f / l;
    kernels->store_row[E_F32](to->o, x->dv, inverse, (float *)o->origin + r * x->o_stride);
    for (int j = 0; c->has_weights && j < x->columns; j++)
        ((float *)weights->origin)[r * x->weights_stride + j] =
            j < n ? to->row[j] * inverse + 0.0f : 0.0f;
    to->m[r] = m;
    to->l[r] = l;
    return l > 0.0f;
}

static void check_attend(const mhak_table *kernels, scratch *to, test_random *random)
{
    attend_case c = case_new(to, random);
    span o = span_copy(&c.o), weights = span_copy(&c.weights);
    if (!c.x.own && test_random_below(random, 4) == 0)
        use_groups(&c, to);
    else
        c.x.packs = !c.x.own && test_random_below(random, 2);
    span *const sealed[] = {&c.q, &c.k, &c.v, &c.mask};
    for (int n = 0; n < 4; n++)
        span_seal(sealed[n]);
    float m[MOST_ROWS], l[MOST_ROWS];
    const bool got = kernels->attend(&c.x);
    memcpy(m, to->m, sizeof m);
    memcpy(l, to->l, sizeof l);
    bool want = true;
    for (int r = 0; r < c.x.rows; r++)
        want &= model_row(kernels, &c, to, r, &o, &weights);
    CHECK(got == want, "returned %d", got);
    for (int r = 0; got && r < c.x.rows; r++)
        CHECK(same_float(m[r], to->m[r]) && same_float(l[r], to->l[r]), "sums of row %d", r);
    if (got) {
        span_check(&c.o, &o, "o: %d rows, %d keys, d %d, dv %d, own %d, rise %d", c.x.rows,
                   c.x.keys, c.x.d, c.x.dv, c.x.own, c.x.rise);
        span_check(&c.weights, &weights, "weights: %d rows, %d keys of %d", c.x.rows, c.x.keys,
                   c.x.columns);
    }
    span_free(&o);
    span_free(&weights);
    case_free(&c);
}

static void attend_is_the_other_slots(const mhak_table *kernels)
{
    static scratch to;
    test_random random = {test_seed(5400)};
    for (int64_t n = 0; n < test_effort(1500); n++)
        check_attend(kernels, &to, &random);
}

/* A hidden value that is not a number must not reach the output: the kernel says so. */
static void attend_gives_up_on_hidden_nan(const mhak_table *kernels)
{
    static scratch to;
    test_random random = {test_seed(5500)};
    int given_up = 0;
    for (int n = 0; n < 200; n++) {
        attend_case c = case_new(&to, &random);
        c.x.own = false;
        c.x.k_row = c.x.v_row = 0;
        const int j = (int)test_random_below(&random, c.x.keys);
        span_set(&c.v, j * c.x.v_stride + test_random_below(&random, c.x.dv), NAN);
        if (c.has_mask)
            for (int r = 0; r < c.x.rows; r++)
                span_set(&c.mask, r * c.x.mask_stride + j, -INFINITY);
        const bool done = kernels->attend(&c.x);
        given_up += !done;
        for (ptrdiff_t at = 0; c.has_mask && done && at < c.x.rows * (ptrdiff_t)c.x.dv; at++)
            CHECK(isfinite(span_get(&c.o, at / c.x.dv * c.x.o_stride + at % c.x.dv)),
                  "a hidden NaN reached the output");
        case_free(&c);
    }
    CHECK(given_up > 0 && given_up < 200, "gave up %d times", given_up);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN_KERNELS(fold_ends_inside_a_vector);
    RUN_KERNELS(fold_added_adds_the_mask);
    RUN_KERNELS(dot_rows_are_plain_sums);
    RUN_KERNELS(attend_is_the_other_slots);
    RUN_KERNELS(attend_gives_up_on_hidden_nan);
    kernel_report_missing();
    return test_end();
}
