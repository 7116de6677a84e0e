/* SPDX-License-Identifier: MIT */
/*
 * Kernels of native arithmetic. Rows and products of i8 are compared with plain models to the bit,
 * for every table. So are products of bf16 in f32; those of instructions, whose roundings are their
 * own, have a bound, and bits that do not depend on the number of rows.
 */
#include "support/kernel_bench.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Inputs that are odd in every way: parts of vectors, of quads and of pairs. */
static const int depths[] = {1,  2,  3,  4,  5,   7,   8,   15,  16,  17,  31,  33,
                             59, 64, 65, 96, 127, 255, 256, 257, 511, 516, 700, 1027};
enum { DEPTHS = sizeof depths / sizeof depths[0] };

static int round_up(int n, int step)
{
    return (n + step - 1) / step * step;
}

/* -------------------------------------------------------------------- bf16 ---- */

static float bf16_input(const mhak_native *native, const span *row, ptrdiff_t at)
{
    const char *const from = (const char *)row->origin + at * native->bf16_bytes;
    uint32_t bits = 0;
    float x;
    if (native->bf16_bytes == 4)
        memcpy(&bits, from, 4);
    else
        memcpy((char *)&bits + 2, from, 2);
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void row_bf16_rounds_to_nearest_even(const mhak_native *native)
{
    test_random random = {test_seed(201)};
    for (int n = 0; n < DEPTHS; n++) {
        const int depth = depths[n], padded = round_up(depth, MHAK_PAIR);
        span x = span_new(&random, E_F32, 0, depth);
        span want = span_new(&random, E_BF16, 0, padded);
        span to = span_new(&random, E_BYTE, 0, padded * native->bf16_bytes);
        for (int c = 0; c < depth; c++) {
            const uint32_t bits = (uint32_t)test_random_u64(&random);
            float value;
            memcpy(&value, &bits, sizeof value);
            /* Every third is a tie, every fifth has random bits. */
            if (c % 5 != 0)
                value = test_random_normal(&random);
            if (c % 3 == 0)
                value = (float)(1.0 + (double)(c % 64) / 128 + 1.0 / 256);
            span_set(&x, c, (double)value);
            span_set(&want, c, (double)value);
        }
        span_seal(&x);
        native->row_bf16(x.origin, depth, to.origin);
        for (int c = 0; c < padded; c++) {
            const float value = c < depth ? span_get(&want, c) : 0.0f;
            CHECK(same_float(bf16_input(native, &to, c), value), "%d of %d: %a, not %a", c, depth,
                  (double)bf16_input(native, &to, c), (double)value);
        }
        span_free(&x);
        span_free(&want);
        span_free(&to);
    }
}

typedef struct bf16_case {
    int depth, rows, pairs;
    ptrdiff_t ldx, ldy;
    bool add;
    span x, panel, y;
} bf16_case;

/* Element c, n of a panel. */
static ptrdiff_t pair_index(const mhak_native *native, int c, int n)
{
    return ((ptrdiff_t)(c / 2) * native->base->nr + n) * 2 + c % 2;
}

static bf16_case bf16_new(const mhak_native *native, test_random *random, int depth, int rows)
{
    const int nr = native->base->nr, padded = round_up(depth, MHAK_PAIR);
    bf16_case c = {.depth = depth, .rows = rows, .add = test_random_below(random, 2) != 0};
    c.ldx = (ptrdiff_t)(padded + random_between(random, 0, 9)) * native->bf16_bytes;
    c.ldy = nr + random_between(random, 0, 20);
    c.x = span_rows(random, E_BYTE, 0, rows, c.ldx, (ptrdiff_t)padded * native->bf16_bytes);
    c.panel = span_new(random, E_BF16, 0, (ptrdiff_t)padded * nr);
    c.y = span_rows(random, E_F32, 0, rows, c.ldy, nr);
    span_fill_normal(&c.panel, random);
    span_fill_normal(&c.y, random);
    for (int n = 0; n < nr && padded > depth; n++)
        span_set(&c.panel, pair_index(native, depth, n), 0);
    span row = span_new(random, E_F32, 0, depth);
    for (int r = 0; r < rows; r++) {
        span_fill_normal(&row, random);
        native->row_bf16(row.origin, depth, (char *)c.x.origin + r * c.ldx);
    }
    span_free(&row);
    span_seal(&c.x);
    span_seal(&c.panel);
    return c;
}

static float bf16_x(const mhak_native *native, const bf16_case *c, int r, int at)
{
    span row = c->x;
    row.origin = (char *)row.origin + r * c->ldx;
    return bf16_input(native, &row, at);
}

/* One element, and in double precision with the sum of magnitudes. */
static float bf16_chain(const mhak_native *native, const bf16_case *c, int r, int n, double *exact,
                        double *size)
{
    float sum = 0;
    *exact = *size = 0;
    for (int i = 0; i < c->depth; i++) {
        const float x = bf16_x(native, c, r, i);
        const float w = span_get(&c->panel, pair_index(native, i, n));
        sum = kernel_fma(native->base, x, w, sum);
        *exact += (double)x * (double)w;
        *size += fabs((double)x * (double)w);
    }
    return sum;
}

static void bf16_check(const mhak_native *native, const bf16_case *c, const span *before)
{
    const int nr = native->base->nr;
    span want = span_copy(&c->y);
    for (int r = 0; r < c->rows; r++)
        for (int n = 0; n < nr; n++) {
            const ptrdiff_t at = r * c->ldy + n;
            const float was = c->add ? span_get(before, at) : 0.0f;
            double exact, size;
            const float chain = bf16_chain(native, c, r, n, &exact, &size);
            const float plain = c->add ? was + chain : chain;
            const double bound = (size + fabs((double)was)) * 0x1p-24 * (c->depth + 2);
            if (!native->bf16)
                span_set(&want, at, (double)plain);
            else
                CHECK(fabs((double)span_get(&c->y, at) - exact - (double)was) <= bound,
                      "%d inputs, row %d, output %d: %a, not %a", c->depth, r, n,
                      (double)span_get(&c->y, at), exact + (double)was);
        }
    span_check(&c->y, &want, "%d inputs, %d rows", c->depth, c->rows);
    span_free(&want);
}

/* A row has the bits that it has alone. */
static void bf16_check_alone(const mhak_native *native, const bf16_case *c, const span *before)
{
    const int nr = native->base->nr;
    for (int r = 0; r < c->rows; r++) {
        float y[MHAK_MAX_PANEL];
        for (int n = 0; n < nr; n++)
            y[n] = span_get(before, r * c->ldy + n);
        native->product_bf16((const char *)c->x.origin + r * c->ldx, c->ldx, c->panel.origin,
                             c->depth, 1, c->add, y, nr);
        for (int n = 0; n < nr; n++)
            CHECK(same_float(y[n], span_get(&c->y, r * c->ldy + n)), "%d inputs, row %d of %d",
                  c->depth, r, c->rows);
    }
}

static void product_bf16_sums_pairs(const mhak_native *native)
{
    test_random random = {test_seed(202)};
    for (int n = 0; n < DEPTHS; n++)
        for (int rows = 1; rows <= 2 * native->base->mr_qk + 1; rows++) {
            bf16_case c = bf16_new(native, &random, depths[n], rows);
            span before = span_copy(&c.y);
            native->product_bf16(c.x.origin, c.ldx, c.panel.origin, c.depth, rows, c.add,
                                 c.y.origin, c.ldy);
            bf16_check(native, &c, &before);
            bf16_check_alone(native, &c, &before);
            span *const all[] = {&c.x, &c.panel, &c.y, &before};
            for (int s = 0; s < 4; s++)
                span_free(all[s]);
        }
}

/* ---------------------------------------------------------- pairs of rows ---- */

static float half_of(uint32_t word, int which)
{
    const uint32_t bits = which ? word & 0xffff0000u : word << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Normal numbers, ties among them. */
static void fill_with_ties(span *x, int rows, int n, ptrdiff_t stride, test_random *random)
{
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < n; c++)
            span_set(x, r * stride + c,
                     c % 3 == 0 ? 1.0 + (double)(c % 64) / 128 + 1.0 / 256
                                : (double)test_random_normal(random));
}

static void pair_rows_rounds_to_nearest_even(const mhak_native *native)
{
    test_random random = {test_seed(207)};
    span want = span_new(&random, E_BF16, 0, 1); /* rounds what it is set to */
    const int vector = native->base->vector;
    for (int n = 0; n < DEPTHS; n++)
        for (int rows = 1; rows <= 5; rows++) {
            const int columns = depths[n], padded = round_up(columns, vector);
            const int pairs = (rows + 1) / 2;
            const ptrdiff_t stride = columns + random_between(&random, 0, 5);
            const int width = rows % 2 ? padded : vector; /* one panel, or many */
            const ptrdiff_t ld = width + vector * random_between(&random, 0, 1);
            const ptrdiff_t step = pairs * ld, panels = padded / width;
            span x = span_rows(&random, E_F32, 0, rows, stride, columns);
            fill_with_ties(&x, rows, columns, stride, &random);
            span_seal(&x);
            span to = span_rows(&random, E_WORD, 0, panels * pairs, ld, width);
            native->pair_rows(x.origin, stride, rows, columns, to.origin, ld, width, step);
            for (int k = 0; k < pairs; k++)
                for (int c = 0; c < 2 * padded; c++) {
                    const int row = 2 * k + c % 2, column = c / 2;
                    span_set(&want, 0,
                             row < rows && column < columns
                                 ? (double)span_get(&x, row * stride + column)
                                 : 0.0);
                    const ptrdiff_t at = column / width * step + k * ld + column % width;
                    const float got = half_of(((uint32_t *)to.origin)[at], c % 2);
                    CHECK(same_float(got, span_get(&want, 0)), "row %d of %d, column %d of %d: %a",
                          row, rows, column, columns, (double)got);
                }
            span_free(&x);
            span_free(&to);
        }
    span_free(&want);
}

/* One element of y += x^T . w, in the order of the contract, and in double precision. */
static float outer_chain(const mhak_native *native, const uint32_t *x, ptrdiff_t ldx,
                         const uint32_t *w, int pairs, double *exact, double *size)
{
    float sum = 0;
    *exact = *size = 0;
    for (int i = 0; i < 2 * pairs; i++) {
        const float a = half_of(x[i / 2 * ldx], i % 2);
        const float b = half_of(w[i / 2 * native->base->nr], i % 2);
        sum = kernel_fma(native->base, a, b, sum);
        *exact += (double)a * (double)b;
        *size += fabs((double)a * (double)b);
    }
    return sum;
}

static span random_pairs(const mhak_native *native, test_random *random, int pairs, int columns,
                         ptrdiff_t ld)
{
    const int padded = round_up(columns, native->base->vector);
    span rows = span_rows(random, E_F32, 0, 2 * pairs, padded, padded);
    span made = span_rows(random, E_WORD, 0, pairs, ld, columns);
    span_fill_normal(&rows, random);
    uint32_t *const all = calloc((size_t)(pairs * padded), sizeof *all);
    native->pair_rows(rows.origin, padded, 2 * pairs, padded, all, padded, padded, 0);
    for (int k = 0; k < pairs; k++)
        memcpy((uint32_t *)made.origin + k * ld, all + k * padded, sizeof *all * (size_t)columns);
    free(all);
    span_free(&rows);
    span_seal(&made);
    return made;
}

static void check_outer(const mhak_native *native, test_random *random, int pairs, int rows)
{
    const int nr = native->base->nr;
    const ptrdiff_t ldx = rows + random_between(random, 0, 9);
    const ptrdiff_t ldy = nr + random_between(random, 0, 20);
    span x = random_pairs(native, random, pairs, rows, ldx);
    span w = random_pairs(native, random, pairs, nr, nr);
    span y = span_rows(random, E_F32, 0, rows, ldy, nr);
    span_fill_normal(&y, random);
    span want = span_copy(&y), before = span_copy(&y);
    native->outer_bf16(x.origin, ldx, w.origin, pairs, rows, y.origin, ldy);
    for (int r = 0; r < rows; r++)
        for (int n = 0; n < nr; n++) {
            const float was = span_get(&before, r * ldy + n);
            double exact, size;
            const float chain = outer_chain(native, (const uint32_t *)x.origin + r, ldx,
                                            (const uint32_t *)w.origin + n, pairs, &exact, &size);
            const float got = span_get(&y, r * ldy + n);
            if (!native->bf16)
                span_set(&want, r * ldy + n, (double)(was + chain));
            else if (CHECK(fabs((double)got - exact - (double)was) <=
                               (size + fabs((double)was)) * 0x1p-24 * (2 * pairs + 2),
                           "%d pairs, row %d, column %d: %a, not %a", pairs, r, n, (double)got,
                           exact + (double)was))
                span_set(&want, r * ldy + n, (double)got);
        }
    span_check(&y, &want, "%d pairs, %d rows", pairs, rows);
    span *const all[] = {&x, &w, &y, &want, &before};
    for (int s = 0; s < 5; s++)
        span_free(all[s]);
}

static void outer_bf16_sums_pairs(const mhak_native *native)
{
    static const int pairs[] = {1, 2, 3, 7, 8, 33, 64};
    test_random random = {test_seed(208)};
    for (size_t n = 0; n < sizeof pairs / sizeof pairs[0]; n++)
        for (int rows = 1; rows <= 2 * native->base->mr_qk + 1; rows++)
            check_outer(native, &random, pairs[n], rows);
}

/* ---------------------------------------------------------------------- i8 ---- */

static int i8_input(const mhak_native *native, const void *row, ptrdiff_t at)
{
    if (native->i8_bytes == 1)
        return ((const int8_t *)row)[at];
    float x;
    memcpy(&x, (const char *)row + 4 * at, sizeof x);
    return (int)x;
}

/* The contract of row_i8, literally. */
static mhak_i8_row model_row(const float *x, int n, int8_t *q)
{
    float low = 0, high = 0;
    bool finite = true;
    memset(q, 0, (size_t)round_up(n, MHAK_QUAD));
    for (int c = 0; c < n; c++) {
        finite = finite && isfinite(x[c]);
        low = x[c] < low ? x[c] : low;
        high = x[c] > high ? x[c] : high;
    }
    const float scale = high / 253.0f - low / 253.0f, factor = 1.0f / scale;
    if (!finite || !isfinite(factor))
        return (mhak_i8_row){.scale = finite ? 0.0f : NAN};
    mhak_i8_row row = {.scale = scale};
    row.zero = (int32_t)nearbyintf(-127.0f - low * factor);
    for (int c = 0; c < n; c++) {
        const double whole = nearbyint((double)(x[c] * factor) + row.zero);
        CHECK(whole >= -128 && whole <= 127, "%a becomes %g", (double)x[c], whole);
        q[c] = (int8_t)whole;
        row.sum += q[c];
    }
    return row;
}

static void check_row_i8(const mhak_native *native, const span *x, int n, test_random *random)
{
    const int padded = round_up(n, MHAK_QUAD);
    int8_t *const q = malloc((size_t)padded + 1);
    span to = span_new(random, E_BYTE, 0, (ptrdiff_t)padded * native->i8_bytes);
    const mhak_i8_row want = model_row(x->origin, n, q);
    const mhak_i8_row got = native->row_i8(x->origin, n, to.origin);
    CHECK(same_float(got.scale, want.scale) && got.zero == want.zero && got.sum == want.sum,
          "%d inputs: scale %a, zero %d, sum %d; not %a, %d, %d", n, (double)got.scale, got.zero,
          got.sum, (double)want.scale, want.zero, want.sum);
    for (int c = 0; c < padded; c++)
        CHECK(i8_input(native, to.origin, c) == q[c], "input %d of %d: %d, not %d", c, n,
              i8_input(native, to.origin, c), q[c]);
    span_free(&to);
    free(q);
}

/* Numbers of all sizes: normal, all positive, all negative, with an outlier, tiny, huge, equal. */
static float odd_number(test_random *random, int kind, int c)
{
    const float x = test_random_normal(random);
    switch (kind) {
    case 1:
        return fabsf(x);
    case 2:
        return -fabsf(x) - 3.0f;
    case 3:
        return c % 37 == 5 ? 1000.0f : x;
    case 4:
        return x * 0x1p-120f;
    case 5:
        return x * 0x1p-140f;
    case 6:
        return x > 0 ? FLT_MAX : -FLT_MAX;
    case 7:
        return 2.5f;
    case 8:
        return 0.0f;
    default:
        return x;
    }
}
enum { ODD_NUMBERS = 9 };

static void row_i8_is_its_contract(const mhak_native *native)
{
    test_random random = {test_seed(203)};
    for (int n = 0; n < DEPTHS; n++)
        for (int kind = 0; kind < ODD_NUMBERS; kind++) {
            span x = span_new(&random, E_F32, 0, depths[n]);
            for (int c = 0; c < depths[n]; c++)
                span_set(&x, c, (double)odd_number(&random, kind, c));
            span_seal(&x);
            check_row_i8(native, &x, depths[n], &random);
            span_free(&x);
        }
}

static void row_i8_is_nan_if_an_input_is_not_finite(const mhak_native *native)
{
    static const double odd[] = {(double)INFINITY, -(double)INFINITY, (double)NAN};
    test_random random = {test_seed(204)};
    for (int n = 0; n < DEPTHS; n++)
        for (int kind = 0; kind < 3; kind++) {
            span x = span_new(&random, E_F32, 0, depths[n]);
            span_fill_normal(&x, &random);
            span_set(&x, test_random_below(&random, depths[n]), odd[kind]);
            span_seal(&x);
            check_row_i8(native, &x, depths[n], &random);
            span_free(&x);
        }
}

typedef struct i8_case {
    int depth, rows;
    int8_t *q; /* [rows][padded] */
    mhak_i8_row *of;
    int padded;
    span x, panel, sums, y;
    ptrdiff_t ldx, ldy;
} i8_case;

static int weight_at(const mhak_native *native, const i8_case *c, int i, int n)
{
    const uint8_t *const panel = c->panel.origin;
    const uint8_t byte = panel[((ptrdiff_t)(i / 4) * native->base->nr + n) * 4 + i % 4];
    return native->bias ? byte - native->bias : (int8_t)byte;
}

/* Weights: any, or all the same extreme; inputs as well. */
static void i8_fill(const mhak_native *native, i8_case *c, bool extreme, test_random *random)
{
    const int nr = native->base->nr;
    uint8_t *const panel = c->panel.origin;
    int32_t *const sums = c->sums.origin;
    memset(sums, 0, sizeof(int32_t) * (size_t)nr);
    for (int i = 0; i < c->padded; i++)
        for (int n = 0; n < nr; n++) {
            const int any = extreme ? (n % 2 ? 127 : -127) : random_between(random, -127, 127);
            const int w = i < c->depth ? any : 0;
            panel[((ptrdiff_t)(i / 4) * nr + n) * 4 + i % 4] = (uint8_t)(w + native->bias);
            sums[n] += w;
        }
    float *const row = malloc(sizeof(float) * (size_t)c->depth);
    for (int r = 0; r < c->rows; r++) {
        for (int i = 0; i < c->depth; i++)
            row[i] = extreme ? (i > 0 || r % 2 ? 1.0f : -1.0f) : odd_number(random, r % 5, i);
        model_row(row, c->depth, c->q + (ptrdiff_t)r * c->padded);
        c->of[r] = native->row_i8(row, c->depth, (char *)c->x.origin + r * c->ldx);
    }
    free(row);
}

static i8_case i8_new(const mhak_native *native, test_random *random, int depth, int rows,
                      bool extreme)
{
    const int nr = native->base->nr, padded = round_up(depth, MHAK_QUAD);
    i8_case c = {.depth = depth, .rows = rows, .padded = padded};
    c.q = calloc((size_t)rows * (size_t)padded, 1);
    c.of = calloc((size_t)rows, sizeof *c.of);
    c.ldx = (ptrdiff_t)(padded + 4 * random_between(random, 0, 9)) * native->i8_bytes;
    c.ldy = nr + random_between(random, 0, 20);
    c.x = span_rows(random, E_BYTE, 0, rows, c.ldx, (ptrdiff_t)padded * native->i8_bytes);
    c.panel = span_new(random, E_BYTE, 0, (ptrdiff_t)padded * nr);
    c.sums = span_new(random, E_WORD, 0, nr);
    c.y = span_rows(random, E_F32, 0, rows, c.ldy, nr);
    i8_fill(native, &c, extreme, random);
    span_seal(&c.x);
    span_seal(&c.panel);
    span_seal(&c.sums);
    return c;
}

static void check_product_i8(const mhak_native *native, test_random *random, int depth, int rows,
                             bool extreme)
{
    i8_case c = i8_new(native, random, depth, rows, extreme);
    span want = span_copy(&c.y);
    native->product_i8(&(mhak_i8_product){.x = c.x.origin,
                                          .ldx = c.ldx,
                                          .rows = c.of,
                                          .count = rows,
                                          .panel = c.panel.origin,
                                          .sums = c.sums.origin,
                                          .depth = depth,
                                          .y = c.y.origin,
                                          .ldy = c.ldy});
    for (int r = 0; r < rows; r++)
        for (int n = 0; n < native->base->nr; n++) {
            int64_t sum = 0;
            for (int i = 0; i < depth; i++)
                sum += (int64_t)(c.q[(ptrdiff_t)r * c.padded + i] - c.of[r].zero) *
                       weight_at(native, &c, i, n);
            ((float *)want.origin)[r * c.ldy + n] = (float)sum * c.of[r].scale;
        }
    span_check(&c.y, &want, "%d inputs, %d rows", depth, rows);
    span *const all[] = {&c.x, &c.panel, &c.sums, &c.y, &want};
    for (int s = 0; s < 5; s++)
        span_free(all[s]);
    free(c.q);
    free(c.of);
}

static void product_i8_is_exact(const mhak_native *native)
{
    test_random random = {test_seed(205)};
    for (int n = 0; n < DEPTHS; n++)
        for (int rows = 1; rows <= 2 * native->base->mr_qk + 1; rows++)
            check_product_i8(native, &random, depths[n], rows, false);
}

/* The most inputs with the largest numbers of one sign, and of both. */
static void product_i8_does_not_overflow(const mhak_native *native)
{
    test_random random = {test_seed(206)};
    for (int rows = 1; rows <= 3; rows++)
        check_product_i8(native, &random, MHAK_I8_INPUTS, rows, true);
    check_product_i8(native, &random, 1500, native->base->mr_qk + 1, true);
}

static void every_slot_is_filled(const mhak_native *native)
{
    if (!CHECK(native->base && native->name && native->row_bf16 && native->product_bf16 &&
                   native->pair_rows && native->outer_bf16 && native->row_i8 &&
                   native->product_i8 && native->bf16_words && native->i8_words,
               "a slot is empty"))
        return;
    CHECK(strncmp(native->name, native->base->name, strlen(native->base->name)) == 0, "%s is %s",
          native->name, native->base->name);
    CHECK(native->bf16_bytes == (native->bf16 ? 2 : 4) && native->i8_bytes == (native->i8 ? 1 : 4),
          "%s", native->name);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    kernel_report_missing();
    RUN_NATIVE(every_slot_is_filled);
    RUN_NATIVE(row_bf16_rounds_to_nearest_even);
    RUN_NATIVE(product_bf16_sums_pairs);
    RUN_NATIVE(pair_rows_rounds_to_nearest_even);
    RUN_NATIVE(outer_bf16_sums_pairs);
    RUN_NATIVE(row_i8_is_its_contract);
    RUN_NATIVE(row_i8_is_nan_if_an_input_is_not_finite);
    RUN_NATIVE(product_i8_is_exact);
    RUN_NATIVE(product_i8_does_not_overflow);
    return test_end();
}
