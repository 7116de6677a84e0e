/* SPDX-License-Identifier: MIT */
/*
 * mha_norm_run(): compared with double precision over odd widths, strides and offsets from 0; in
 * place; NaN and infinity; the same bits for any number of rows, threads and strides; errors.
 */
#include "support/guard.h"
#include "support/test.h"

#include <mha/mha.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const ptrdiff_t widths[] = {1,  2,  3,   7,   8,   15,   16,   17,   31,   33,   63,
                                   64, 65, 127, 384, 577, 1023, 1024, 1025, 2048, 2049, 11008};
enum { WIDTHS = sizeof widths / sizeof *widths };

typedef struct spec {
    mha_norm kind;
    ptrdiff_t rows, width;
    bool weight, bias, residual, sum;
    ptrdiff_t gap; /* elements between rows */
    double mean;   /* of the elements */
    float eps;
    uint64_t seed;
} spec;

typedef struct norm_case {
    spec s;
    mha_norm_config config;
    guard_buffer x, y, residual, sum, weight, bias;
    ptrdiff_t stride;
} norm_case;

static guard_buffer numbers(ptrdiff_t count, double mean, test_random *random, guard_side side)
{
    guard_buffer buffer = guard_new((size_t)count * sizeof(float), side);
    for (ptrdiff_t n = 0; n < count; n++)
        ((float *)buffer.data)[n] = (float)(mean + (double)test_random_normal(random));
    return buffer;
}

static norm_case case_of(const spec *s)
{
    norm_case n = {.s = *s, .stride = s->width + s->gap};
    test_random random = {s->seed};
    const guard_side side = s->seed % 2 ? GUARD_AFTER : GUARD_BEFORE;
    const ptrdiff_t all = s->rows > 0 ? (s->rows - 1) * n.stride + s->width : 0;
    n.x = numbers(all, s->mean, &random, side);
    n.y = numbers(all, 0, &random, side);
    n.residual = numbers(all, 0, &random, side);
    n.sum = numbers(all, 0, &random, side);
    n.weight = numbers(s->width, 1, &random, side);
    n.bias = numbers(s->width, 0, &random, side);
    n.config = (mha_norm_config){.size = sizeof n.config,
                                 .kind = s->kind,
                                 .width = s->width,
                                 .eps = s->eps,
                                 .weight = s->weight ? n.weight.data : NULL,
                                 .bias = s->bias ? n.bias.data : NULL,
                                 .residual = s->residual ? n.residual.data : NULL,
                                 .residual_stride = n.stride,
                                 .sum = s->sum ? n.sum.data : NULL,
                                 .sum_stride = n.stride};
    return n;
}

static void case_done(norm_case *n)
{
    guard_buffer *const all[] = {&n->x, &n->y, &n->residual, &n->sum, &n->weight, &n->bias};
    for (int i = 0; i < 6; i++)
        guard_free(all[i]);
}

static const char *name_of(const spec *s)
{
    static char text[160];
    snprintf(text, sizeof text, "kind %d, %td x %td%s%s%s%s, gap %td, mean %g, seed %llu",
             (int)s->kind, s->rows, s->width, s->weight ? ", weight" : "", s->bias ? ", bias" : "",
             s->residual ? ", residual" : "", s->sum ? ", sum" : "", s->gap, s->mean,
             (unsigned long long)s->seed);
    return text;
}

static mha_status run(const norm_case *n, const float *x, float *y, mha_pool *pool)
{
    return mha_norm_run(&n->config, n->s.rows, x, n->stride, y, n->stride, pool);
}

/* ------------------------------------------------------------------ oracle ---- */

/* x + residual as the library rounds it. */
static void oracle_input(const norm_case *n, ptrdiff_t row, float *to)
{
    for (ptrdiff_t c = 0; c < n->s.width; c++) {
        const ptrdiff_t at = row * n->stride + c;
        const float x = ((float *)n->x.data)[at];
        to[c] = n->s.residual ? x + ((float *)n->residual.data)[at] : x;
    }
}

/* One element in double precision. *size becomes the size of what is rounded: the mean is off by
 * a part of the differences from it, whose size after the norm is 1. */
static double oracle(const norm_case *n, const float *v, ptrdiff_t c, double *size)
{
    const ptrdiff_t width = n->s.width;
    double mean = 0, square = 0;
    for (ptrdiff_t i = 0; n->s.kind == MHA_NORM_LAYER && i < width; i++)
        mean += (double)v[i] / (double)width;
    for (ptrdiff_t i = 0; i < width; i++)
        square += ((double)v[i] - mean) * ((double)v[i] - mean) / (double)width;
    const double eps = n->s.eps != 0 ? (double)n->s.eps : (double)1e-5f;
    const double weight = n->s.weight ? (double)((float *)n->weight.data)[c] : 1;
    const double bias = n->s.bias ? (double)((float *)n->bias.data)[c] : 0;
    const double y = ((double)v[c] - mean) / sqrt(square + eps);
    *size = fabs(weight) * (fabs(y) + (n->s.kind == MHA_NORM_LAYER ? 1 : 0)) + fabs(bias);
    return y * weight + bias;
}

/* Some columns of each row: each costs a pass of the oracle. */
static void check_row(const norm_case *n, ptrdiff_t row, const float *v, const float *y)
{
    test_random random = {n->s.seed ^ (uint64_t)row};
    for (int k = 0; k < 12; k++) {
        const ptrdiff_t c =
            k == 0 ? n->s.width - 1 : (ptrdiff_t)test_random_below(&random, n->s.width);
        double size;
        const double want = oracle(n, v, c, &size), got = (double)y[row * n->stride + c];
        CHECK(fabs(got - want) <= 4 * 0x1p-24 * size,
              "%s: y(%td,%td) is %.9g, must be %.9g (%.2f units)", name_of(&n->s), row, c, got,
              want, fabs(got - want) / 0x1p-24 / size);
    }
}

static void check_case(const norm_case *n)
{
    float *const v = malloc(sizeof *v * (size_t)n->s.width);
    for (ptrdiff_t row = 0; row < n->s.rows; row++) {
        oracle_input(n, row, v);
        check_row(n, row, v, n->y.data);
        for (ptrdiff_t c = 0; n->s.sum && c < n->s.width; c++)
            CHECK(((float *)n->sum.data)[row * n->stride + c] == v[c], "%s: sum(%td,%td)",
                  name_of(&n->s), row, c);
    }
    free(v);
}

static void try_case(const spec *s)
{
    norm_case n = case_of(s);
    guard_seal(&n.x);
    guard_seal(&n.residual);
    guard_seal(&n.weight);
    guard_seal(&n.bias);
    const mha_status status = run(&n, n.x.data, n.y.data, NULL);
    CHECK(status == MHA_OK, "%s: %s", name_of(s), mha_status_string(status));
    CHECK(guard_intact(&n.y) && guard_intact(&n.sum), "%s: written outside", name_of(s));
    check_case(&n);
    case_done(&n);
}

static void every_width(void)
{
    for (int n = 0; n < WIDTHS * 32; n++) {
        const int flags = n % 32;
        const spec s = {.kind = flags & 1 ? MHA_NORM_RMS : MHA_NORM_LAYER,
                        .rows = 1 + n % 3,
                        .width = widths[n / 32],
                        .weight = flags & 2,
                        .bias = flags & 4,
                        .residual = flags & 8,
                        .sum = flags & 16,
                        .gap = n % 4,
                        .seed = (uint64_t)n + 5};
        try_case(&s);
    }
}

/* The mean is far from 0, the differences are small. */
static void rows_far_from_zero(void)
{
    static const double means[] = {1, -30, 1000, -1e5, 4e6};
    for (int n = 0; n < WIDTHS * 5; n++) {
        const spec s = {.kind = MHA_NORM_LAYER,
                        .rows = 2,
                        .width = widths[n / 5],
                        .weight = n % 2,
                        .mean = means[n % 5],
                        .eps = 1e-6f,
                        .seed = (uint64_t)n};
        try_case(&s);
    }
}

static void anything(void)
{
    test_random random = {test_seed(401)};
    for (int64_t n = 0; n < test_effort(300); n++) {
        const spec s = {.kind = test_random_below(&random, 2) ? MHA_NORM_RMS : MHA_NORM_LAYER,
                        .rows = (ptrdiff_t)test_random_below(&random, 20),
                        .width = 1 + (ptrdiff_t)test_random_below(&random, 700),
                        .weight = test_random_below(&random, 2),
                        .bias = test_random_below(&random, 2),
                        .residual = test_random_below(&random, 2),
                        .sum = test_random_below(&random, 2),
                        .gap = (ptrdiff_t)test_random_below(&random, 5),
                        .mean = (double)test_random_below(&random, 3),
                        .eps = test_random_below(&random, 2) ? 1e-12f : 0.0f,
                        .seed = test_random_u64(&random)};
        try_case(&s);
    }
}

/* -------------------------------------------------------------------- bits ---- */

static spec bits_spec(mha_norm kind, ptrdiff_t rows, ptrdiff_t width)
{
    return (spec){.kind = kind,
                  .rows = rows,
                  .width = width,
                  .weight = true,
                  .bias = true,
                  .residual = true,
                  .sum = true,
                  .mean = 0.5,
                  .seed = 12};
}

/* One row at a time with another stride gives the bits of all rows on several threads. */
static void rows_and_threads_do_not_matter(void)
{
    for (int n = 0; n < 2 * WIDTHS; n++) {
        const spec s = bits_spec(n % 2 ? MHA_NORM_RMS : MHA_NORM_LAYER, 37, widths[n / 2]);
        norm_case c = case_of(&s);
        float *const y = malloc(c.y.size);
        CHECK(run(&c, c.x.data, c.y.data, NULL) == MHA_OK, "run");
        memcpy(y, c.y.data, c.y.size);
        for (int threads = 2; threads <= 5; threads++) {
            mha_pool *pool;
            CHECK(mha_pool_create(&pool, threads) == MHA_OK, "pool");
            memset(c.y.data, 0, c.y.size);
            CHECK(run(&c, c.x.data, c.y.data, pool) == MHA_OK, "run");
            CHECK(memcmp(y, c.y.data, c.y.size) == 0, "%s: %d threads", name_of(&s), threads);
            mha_pool_free(pool);
        }
        for (ptrdiff_t r = 0; r < s.rows; r++) {
            const float *const x = (const float *)c.x.data + r * c.stride;
            mha_norm_config one = c.config;
            one.residual += r * c.stride;
            one.sum = NULL;
            float *const to = (float *)c.y.data + r * c.stride;
            CHECK(mha_norm_run(&one, 1, x, -7, to, 3, NULL) == MHA_OK, "row");
        }
        CHECK(memcmp(y, c.y.data, c.y.size) == 0, "%s: row by row", name_of(&s));
        free(y);
        case_done(&c);
    }
}

/* Every allowed way to share memory gives the bits of separate memory. */
static void in_place(void)
{
    for (int n = 0; n < 2 * WIDTHS * 6; n++) {
        const int way = n % 6;
        spec s = bits_spec(n / 6 % 2 ? MHA_NORM_RMS : MHA_NORM_LAYER, 5, widths[n / 12]);
        s.gap = n % 3;
        s.sum = way >= 2;
        norm_case want = case_of(&s), c = case_of(&s);
        CHECK(run(&want, want.x.data, want.y.data, NULL) == MHA_OK, "run");
        float *const sums[] = {NULL, NULL, c.x.data, c.residual.data, c.x.data, c.residual.data};
        void *const outputs[] = {c.x.data, c.residual.data, c.y.data,
                                 c.y.data, c.residual.data, c.x.data};
        c.config.sum = sums[way];
        CHECK(run(&c, c.x.data, outputs[way], NULL) == MHA_OK, "way %d", way);
        for (ptrdiff_t r = 0; r < s.rows; r++) {
            const size_t at = (size_t)(r * c.stride), size = (size_t)s.width * sizeof(float);
            CHECK(memcmp((float *)outputs[way] + at, (float *)want.y.data + at, size) == 0,
                  "%s: y of way %d", name_of(&s), way);
            CHECK(!sums[way] || memcmp(sums[way] + at, (float *)want.sum.data + at, size) == 0,
                  "%s: sum of way %d", name_of(&s), way);
        }
        case_done(&want);
        case_done(&c);
    }
}

/* The sum without a residual is x. */
static void sum_without_residual(void)
{
    spec s = bits_spec(MHA_NORM_LAYER, 3, 65);
    s.residual = false;
    norm_case c = case_of(&s);
    CHECK(run(&c, c.x.data, c.y.data, NULL) == MHA_OK, "run");
    CHECK(memcmp(c.sum.data, c.x.data, c.x.size) == 0, "sum is not x");
    case_done(&c);
}

/* --------------------------------------------------------------- NaN, zero ---- */

static void nan_and_infinity(void)
{
    for (int kind = MHA_NORM_RMS; kind <= MHA_NORM_LAYER; kind++)
        for (int what = 0; what < 3; what++) {
            spec s = {.kind = (mha_norm)kind, .rows = 3, .width = 37, .seed = 4};
            norm_case c = case_of(&s);
            const float bad = what == 0 ? NAN : what == 1 ? INFINITY : -INFINITY;
            ((float *)c.x.data)[c.stride + 5] = bad;
            CHECK(run(&c, c.x.data, c.y.data, NULL) == MHA_OK, "run");
            const float *const y = c.y.data;
            const bool zeros = kind == MHA_NORM_RMS && what > 0; /* x * 1/inf */
            for (ptrdiff_t i = 0; i < s.rows * s.width; i++) {
                const bool other = i / s.width != 1, at = i == c.stride + 5;
                CHECK(other          ? isfinite(y[i])
                      : zeros && !at ? y[i] == 0
                                     : isnan(y[i]),
                      "kind %d, %g: y[%td] is %g", kind, (double)bad, i, (double)y[i]);
            }
            case_done(&c);
        }
}

static void rows_of_zeros(void)
{
    static const float x[70] = {0};
    float y[70];
    for (int kind = MHA_NORM_RMS; kind <= MHA_NORM_LAYER; kind++) {
        const mha_norm_config c = {.size = sizeof c, .kind = (mha_norm)kind, .width = 35};
        CHECK(mha_norm_run(&c, 2, x, 35, y, 35, NULL) == MHA_OK, "run");
        for (int i = 0; i < 70; i++)
            CHECK(y[i] == 0, "y[%d] is %g", i, (double)y[i]);
    }
}

/* ------------------------------------------------------------------ errors ---- */

static mha_norm_config plain(void)
{
    return (mha_norm_config){.size = sizeof(mha_norm_config), .kind = MHA_NORM_RMS, .width = 8};
}

static void errors_of_the_config(void)
{
    float x[16] = {0}, y[16] = {7};
    mha_norm_config c = plain();
    CHECK(mha_norm_run(NULL, 2, x, 8, y, 8, NULL) == MHA_ERR_NULL, "config");
    c.size--;
    CHECK(mha_norm_run(&c, 2, x, 8, y, 8, NULL) == MHA_ERR_STRUCT, "size");
    static const int kinds[] = {MHA_NORM_NONE, 3, -1};
    for (int n = 0; n < 3; n++) {
        c = plain();
        c.kind = (mha_norm)kinds[n];
        CHECK(mha_norm_run(&c, 2, x, 8, y, 8, NULL) == MHA_ERR_FLAG, "kind %d", kinds[n]);
    }
    static const float bad[] = {-1e-5f, NAN, INFINITY};
    for (int n = 0; n < 3; n++) {
        c = plain();
        c.eps = bad[n];
        CHECK(mha_norm_run(&c, 2, x, 8, y, 8, NULL) == MHA_ERR_SCALE, "eps %g", (double)bad[n]);
    }
    c = plain();
    c.width = -1;
    CHECK(mha_norm_run(&c, 2, x, 8, y, 8, NULL) == MHA_ERR_SHAPE, "width");
    c.width = PTRDIFF_MAX;
    CHECK(mha_norm_run(&c, 2, x, 8, y, 8, NULL) == MHA_ERR_OVERFLOW, "width");
    c = plain();
    CHECK(mha_norm_run(&c, -1, x, 8, y, 8, NULL) == MHA_ERR_SHAPE, "rows");
    CHECK(mha_norm_run(&c, PTRDIFF_MAX, x, 8, y, 8, NULL) == MHA_ERR_OVERFLOW, "rows");
    CHECK(mha_norm_run(&c, 3, x, PTRDIFF_MAX / 4, y, 8, NULL) == MHA_ERR_OVERFLOW, "stride");
    CHECK(mha_norm_run(&c, 2, NULL, 8, y, 8, NULL) == MHA_ERR_NULL, "x");
    CHECK(mha_norm_run(&c, 2, x, 8, NULL, 8, NULL) == MHA_ERR_NULL, "y");
    CHECK(mha_norm_run(&c, 2, x, 8, y, 7, NULL) == MHA_ERR_STRIDE, "stride of y");
    CHECK(mha_norm_run(&c, 2, x, 0, y, 8, NULL) == MHA_OK && (y[0] = 7) > 0, "a broadcast x");
    CHECK(mha_norm_run(&c, 1, (float *)((char *)x + 2), 8, y, 8, NULL) == MHA_ERR_ALIGN, "align");
    CHECK(mha_norm_run(&c, 0, NULL, 8, NULL, 8, NULL) == MHA_OK, "no rows");
    c.width = 0;
    CHECK(mha_norm_run(&c, 2, NULL, 8, NULL, 8, NULL) == MHA_OK, "no width");
    CHECK(y[0] == 7, "y was written");
}

static void errors_of_overlaps(void)
{
    float x[40] = {0}, y[40], residual[40] = {0};
    mha_norm_config c = plain();
    CHECK(mha_norm_run(&c, 2, x, 8, x + 1, 8, NULL) == MHA_ERR_OVERLAP, "y is almost x");
    CHECK(mha_norm_run(&c, 2, x, 8, x, 9, NULL) == MHA_ERR_OVERLAP, "another stride");
    CHECK(mha_norm_run(&c, 2, x, 0, x, 8, NULL) == MHA_ERR_OVERLAP, "y over a broadcast x");
    c.weight = y + 3;
    CHECK(mha_norm_run(&c, 2, x, 8, y, 8, NULL) == MHA_ERR_OVERLAP, "weight");
    c = plain();
    c.bias = y + 15;
    CHECK(mha_norm_run(&c, 2, x, 8, y, 8, NULL) == MHA_ERR_OVERLAP, "bias");
    c = plain();
    c.sum = y;
    c.sum_stride = 8;
    CHECK(mha_norm_run(&c, 2, x, 8, y, 8, NULL) == MHA_ERR_OVERLAP, "y is the sum");
    c.sum = x;
    CHECK(mha_norm_run(&c, 2, x, 8, x, 8, NULL) == MHA_ERR_OVERLAP, "y is x and the sum");
    c.residual = residual;
    c.residual_stride = 8;
    c.sum = residual;
    c.sum_stride = 9;
    CHECK(mha_norm_run(&c, 2, x, 8, y, 8, NULL) == MHA_ERR_OVERLAP, "sum is almost the residual");
    c.sum_stride = 7;
    CHECK(mha_norm_run(&c, 2, x, 8, y, 8, NULL) == MHA_ERR_STRIDE, "stride of the sum");
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(every_width);
    RUN(rows_far_from_zero);
    RUN(anything);
    RUN(rows_and_threads_do_not_matter);
    RUN(in_place);
    RUN(sum_without_residual);
    RUN(nan_and_infinity);
    RUN(rows_of_zeros);
    RUN(errors_of_the_config);
    RUN(errors_of_overlaps);
    return test_end();
}
