/* SPDX-License-Identifier: MIT */
/*
 * Kernels of training: products with a transposed matrix, gradients of scores, dropout. The models
 * follow the contracts literally, so bits are compared.
 */
#include "support/backward_oracle.h"
#include "support/kernel_bench.h"

#include <math.h>

/* --------------------------------------------------------- product_transposed */

typedef struct transposed_case {
    int depth, rows, columns;
    ptrdiff_t ldx, ldw, ldy;
} transposed_case;

static transposed_case random_transposed(const mhak_table *kernels, test_random *random, int rows)
{
    transposed_case c = {.rows = rows, .depth = random_between(random, 0, 70)};
    c.columns = kernels->vector * random_between(random, 0, 9);
    c.ldx = random_between(random, rows, rows + 20);
    c.ldw = random_between(random, c.columns, c.columns + 20);
    c.ldy = random_between(random, c.columns, c.columns + 20);
    return c;
}

static void model_transposed(const mhak_table *kernels, const transposed_case *c, const float *x,
                             const float *w, float *y)
{
    for (int r = 0; r < c->rows; r++)
        for (int n = 0; n < c->columns; n++) {
            float sum = 0;
            for (int i = 0; i < c->depth; i++)
                sum = kernel_fma(kernels, x[i * c->ldx + r], w[i * c->ldw + n], sum);
            y[r * c->ldy + n] += sum;
        }
}

static void check_transposed(const mhak_table *kernels, const transposed_case *c, double odd,
                             test_random *random)
{
    span x = span_rows(random, E_F32, 0, c->depth, c->ldx, c->rows);
    span w = span_rows(random, E_F32, 0, c->depth, c->ldw, c->columns);
    span y = span_rows(random, E_F32, 0, c->rows, c->ldy, c->columns);
    span_fill_normal(&x, random);
    span_fill_normal(&w, random);
    span_fill_normal(&y, random);
    if (x.high > 0 && odd != 0)
        span_set(&x, test_random_below(random, x.high), odd);
    span want = span_copy(&y);
    span_seal(&x);
    span_seal(&w);
    kernels->product_transposed(x.origin, c->ldx, w.origin, c->ldw, c->depth, c->rows, c->columns,
                                y.origin, c->ldy);
    model_transposed(kernels, c, x.origin, w.origin, want.origin);
    span_check(&y, &want, "depth %d, %d rows, %d columns, ldx %td, ldw %td, ldy %td", c->depth,
               c->rows, c->columns, c->ldx, c->ldw, c->ldy);
    span *const all[] = {&x, &w, &y, &want};
    for (int n = 0; n < 4; n++)
        span_free(all[n]);
}

static void product_transposed_is_one_chain_an_element(const mhak_table *kernels)
{
    test_random random = {test_seed(101)};
    for (int rows = 0; rows <= MHAK_BLOCK; rows++)
        for (int n = 0; n < 4; n++) {
            const transposed_case c = random_transposed(kernels, &random, rows);
            check_transposed(kernels, &c, 0, &random);
        }
}

/* Infinities and NaN appear where IEEE requires, and affect no neighbour. */
static void product_transposed_keeps_what_is_not_finite(const mhak_table *kernels)
{
    static const double odd[] = {(double)INFINITY, -(double)INFINITY, (double)NAN};
    test_random random = {test_seed(102)};
    for (int n = 0; n < 150; n++) {
        const transposed_case c =
            random_transposed(kernels, &random, random_between(&random, 1, 3 * kernels->mr_pv));
        check_transposed(kernels, &c, odd[n % 3], &random);
    }
}

/* --------------------------------------------------------- score_gradient */

static void score_gradient_is_zero_where_masked(const mhak_table *kernels)
{
    test_random random = {test_seed(103)};
    for (int n = 0; n <= MHAK_BLOCK; n++) {
        const int whole = whole_vectors(kernels, n);
        const float delta = test_random_normal(&random);
        span p = span_new(&random, E_F32, 0, whole), d = span_new(&random, E_F32, 0, whole);
        span keep = span_new(&random, E_WORD, 0, (whole + 31) / 32);
        span_fill_unit(&p, &random);
        span_fill_normal(&d, &random);
        if (whole > 0)
            span_set(&d, whole / 2, n % 2 ? (double)NAN : (double)INFINITY);
        span want = span_copy(&d);
        float *const w = want.origin;
        const float *const weights = p.origin;
        for (int j = 0; j < whole; j++)
            w[j] = bit_of(keep.origin, j) ? weights[j] * (w[j] - delta) : 0;
        span_seal(&p);
        span_seal(&keep);
        kernels->score_gradient(p.origin, d.origin, n, keep.origin, delta);
        span_check(&d, &want, "%d scores", n);
        span *const all[] = {&p, &d, &keep, &want};
        for (int m = 0; m < 4; m++)
            span_free(all[m]);
    }
}

/* ---------------------------------------------------------------- dropout */

static void drop_bits_are_those_of_the_counter(const mhak_table *kernels)
{
    static const uint32_t thresholds[] = {0, 1, 6554, 32768, 65535, 65536};
    test_random random = {test_seed(104)};
    for (int n = 0; n < 300; n++) {
        const mhak_drop drop = {.seed = test_random_u64(&random),
                                .batch = (uint32_t)test_random_below(&random, 9),
                                .head = (uint32_t)test_random_below(&random, 99),
                                .threshold = thresholds[n % 6]};
        const uint32_t row = (uint32_t)test_random_u64(&random) >> n % 32;
        const uint32_t block = (uint32_t)test_random_below(&random, 1 << 20);
        span keep = span_new(&random, E_WORD, 0, MHAK_WORDS), want = span_copy(&keep);
        uint32_t *const words = want.origin;
        for (int j = 0; j < MHAK_BLOCK; j++) {
            const uint32_t bit = 1u << j % 32;
            words[j / 32] = (words[j / 32] & ~bit) |
                            (oracle_keeps(drop.seed, (double)drop.threshold / 65536,
                                          (ptrdiff_t)drop.batch, (ptrdiff_t)drop.head,
                                          (ptrdiff_t)row, (ptrdiff_t)block * MHAK_BLOCK + j)
                                 ? bit
                                 : 0);
        }
        kernels->drop_bits(&drop, row, block, keep.origin);
        span_check(&keep, &want, "threshold %u, row %u, block %u", drop.threshold, row, block);
        span_free(&keep);
        span_free(&want);
    }
}

static void thin_scales_what_is_kept(const mhak_table *kernels)
{
    test_random random = {test_seed(105)};
    for (int n = 0; n <= MHAK_BLOCK; n++) {
        const int whole = whole_vectors(kernels, n);
        const float factor = 1.0f / (1.0f - (float)n / 256.0f);
        span s = span_new(&random, E_F32, 0, whole);
        span keep = span_new(&random, E_WORD, 0, (whole + 31) / 32);
        span_fill_unit(&s, &random);
        if (whole > 0)
            span_set(&s, whole / 2, n % 2 ? (double)NAN : (double)INFINITY);
        span want = span_copy(&s);
        float *const w = want.origin;
        for (int j = 0; j < whole; j++)
            w[j] = bit_of(keep.origin, j) ? w[j] * factor : 0;
        span_seal(&keep);
        kernels->drop_apply(s.origin, n, keep.origin, factor);
        span_check(&s, &want, "%d weights", n);
        span_free(&s);
        span_free(&keep);
        span_free(&want);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    kernel_report_missing();
    RUN_KERNELS(product_transposed_is_one_chain_an_element);
    RUN_KERNELS(product_transposed_keeps_what_is_not_finite);
    RUN_KERNELS(score_gradient_is_zero_where_masked);
    RUN_KERNELS(drop_bits_are_those_of_the_counter);
    RUN_KERNELS(thin_scales_what_is_kept);
    return test_end();
}
