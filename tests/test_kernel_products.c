/* SPDX-License-Identifier: MIT */
/*
 * The two matrix products. The model is the contract read literally: chains of multiply-adds
 * in ascending order, so kernel and model agree to the bit. The model itself is held by a
 * bound against double precision.
 */
#include "kernel_bench.h"

#include <math.h>

/* --------------------------------------------------------------------- qk */

typedef struct qk_case {
    int keys, d, rows;
    ptrdiff_t ldq;
    bool add;
} qk_case;

static void model_qk(const mhak_table *kernels, const qk_case *c, const float *q,
                     const float *panel, float *s)
{
    for (int r = 0; r < c->rows; r++)
        for (int j = 0; j < c->keys; j++) {
            float sum = 0;
            for (int x = 0; x < c->d; x++)
                sum = kernel_fma(kernels, q[r * c->ldq + x], panel[x * c->keys + j], sum);
            float *const at = s + r * MHAK_BLOCK + j;
            *at = c->add ? *at + sum : sum;
        }
}

static void check_qk_bound(const qk_case *c, const float *q, const float *panel, const float *s)
{
    if (c->add)
        return;
    for (int r = 0; r < c->rows; r++)
        for (int j = 0; j < c->keys; j++) {
            double sum = 0, size = 0;
            for (int x = 0; x < c->d; x++) {
                const double term = (double)q[r * c->ldq + x] * (double)panel[x * c->keys + j];
                sum += term;
                size += fabs(term);
            }
            const double error = fabs((double)s[r * MHAK_BLOCK + j] - sum);
            CHECK(error <= (c->d + 1) * 0x1p-24 * size, "d %d, row %d, key %d: off by %g", c->d, r,
                  j, error);
        }
}

static void check_qk(const mhak_table *kernels, test_random *random, const qk_case *c)
{
    span q = span_rows(random, E_F32, 0, c->rows, c->ldq, c->d);
    span panel = span_new(random, E_F32, 0, (ptrdiff_t)c->d * c->keys);
    span s = span_rows(random, E_F32, 0, c->rows, MHAK_BLOCK, c->keys);
    span_fill_normal(&q, random);
    span_fill_normal(&panel, random);
    span_fill_normal(&s, random);
    span want = span_copy(&s);
    span_seal(&q);
    span_seal(&panel);
    kernels->qk(q.origin, c->ldq, panel.origin, c->d, c->rows, c->add, s.origin);
    model_qk(kernels, c, q.origin, panel.origin, want.origin);
    span_check(&s, &want, "d %d, %d rows, ldq %td, add %d", c->d, c->rows, c->ldq, c->add);
    check_qk_bound(c, q.origin, panel.origin, s.origin);
    span_free(&q);
    span_free(&panel);
    span_free(&s);
    span_free(&want);
}

static void qk_is_one_chain_a_score(const mhak_table *kernels)
{
    static const int widths[] = {1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 33, 64, 127, MHAK_DEPTH};
    test_random random = {test_seed(51)};
    for (int rows = 0; rows <= 2 * kernels->mr_qk + 1; rows++)
        for (size_t n = 0; n < sizeof widths / sizeof widths[0]; n++) {
            qk_case c = {.keys = kernels->nr, .d = widths[n], .rows = rows};
            c.ldq = random_between(&random, c.d, c.d + 5);
            c.add = test_random_below(&random, 2);
            check_qk(kernels, &random, &c);
            c.add = !c.add;
            check_qk(kernels, &random, &c);
        }
}

/* Infinities and NaN go where IEEE says, and into no neighbour. */
static void qk_keeps_what_is_not_finite(const mhak_table *kernels)
{
    test_random random = {test_seed(52)};
    static const float odd[] = {INFINITY, -INFINITY, NAN};
    for (int n = 0; n < 60; n++) {
        const int nr = kernels->nr, rows = 1 + n % (2 * kernels->mr_qk);
        const qk_case c = {.keys = nr, .d = 7, .rows = rows, .ldq = 7};
        span q = span_rows(&random, E_F32, 0, c.rows, c.ldq, c.d);
        span panel = span_new(&random, E_F32, 0, (ptrdiff_t)c.d * nr);
        span s = span_rows(&random, E_F32, 0, c.rows, MHAK_BLOCK, nr), want = span_copy(&s);
        span_fill_normal(&q, &random);
        span_fill_normal(&panel, &random);
        ((float *)q.origin)[test_random_below(&random, q.high)] = odd[n % 3];
        ((float *)panel.origin)[test_random_below(&random, panel.high)] = odd[n / 3 % 3];
        kernels->qk(q.origin, c.ldq, panel.origin, c.d, c.rows, false, s.origin);
        model_qk(kernels, &c, q.origin, panel.origin, want.origin);
        span_check(&s, &want, "%d rows, case %d", c.rows, n);
        span_free(&q);
        span_free(&panel);
        span_free(&s);
        span_free(&want);
    }
}

/* ---------------------------------------------------------------- qk_near */

static const mhak_ahead nothing_ahead = {.lines = 0};

/* Rows to ask for meanwhile, or none: no bit depends on them. */
static mhak_ahead random_ahead(test_random *random, span *memory)
{
    mhak_ahead ahead = nothing_ahead;
    *memory = span_new(random, E_BYTE, 0, 0);
    if (test_random_below(random, 2)) {
        span_free(memory);
        ahead.lines = random_between(random, 1, 9);
        ahead.count = random_between(random, 1, 40);
        ahead.stride = random_between(random, -700, 700);
        *memory = span_rows(random, E_BYTE, 0, ahead.count, ahead.stride,
                            (ahead.lines - 1) * MHAK_LINE + 1);
        ahead.rows = memory->origin;
    }
    return ahead;
}

/* The keys as a panel. */
static span panel_of(const qk_case *c, test_random *random, const span *k, ptrdiff_t stride)
{
    const span panel = span_new(random, E_F32, 0, (ptrdiff_t)c->d * c->keys);
    for (int j = 0; j < c->keys; j++)
        for (int x = 0; x < c->d; x++)
            span_set(&panel, x * c->keys + j, (double)span_get(k, j * stride + x));
    return panel;
}

static void check_qk_near(const mhak_table *kernels, test_random *random, element type,
                          const qk_case *c, ptrdiff_t stride)
{
    span q = span_rows(random, E_F32, 0, c->rows, c->ldq, c->d);
    span k = span_rows(random, type, 0, c->keys, stride, c->d);
    span_fill_normal(&q, random);
    span_fill_normal(&k, random);
    span panel = panel_of(c, random, &k, stride), next;
    span s = span_rows(random, E_F32, 0, c->rows, MHAK_BLOCK, c->keys), want = span_copy(&s);
    const mhak_ahead ahead = random_ahead(random, &next);
    span_seal(&q);
    span_seal(&k);
    kernels->qk_near[type](q.origin, c->ldq, k.origin, stride, c->d, c->rows, &ahead, s.origin);
    model_qk(kernels, c, q.origin, panel.origin, want.origin);
    span_check(&s, &want, "type %d, d %d, %d rows, stride %td", (int)type, c->d, c->rows, stride);
    span *const all[] = {&q, &k, &panel, &s, &want, &next};
    for (int n = 0; n < 6; n++)
        span_free(all[n]);
}

static void qk_near_gives_the_bits_of_qk(const mhak_table *kernels)
{
    static const int widths[] = {1, 2, 3, 4, 5, 6, 7, 8, 14, 17, 64, 65, 127, MHAK_DEPTH};
    test_random random = {test_seed(57)};
    for (int rows = 0; rows <= kernels->mr_near; rows++)
        for (size_t n = 0; n < sizeof widths / sizeof widths[0]; n++)
            for (int type = E_F32; type <= E_BF16; type++) {
                qk_case c = {.keys = kernels->vector, .d = widths[n], .rows = rows};
                c.ldq = random_between(&random, c.d, c.d + 5);
                const int gap = random_between(&random, 0, 5);
                const ptrdiff_t strides[] = {0, c.d + gap, -c.d - gap};
                check_qk_near(kernels, &random, (element)type, &c,
                              strides[test_random_below(&random, 3)]);
            }
}

/* --------------------------------------------------------------------- pv */

typedef struct pv_case {
    element type;
    int first, last, rows, dv;
    ptrdiff_t stride, panel, ldo;
} pv_case;

/* Index of column col of value row j. */
static ptrdiff_t value_at(const mhak_table *kernels, const pv_case *c, int j, int col)
{
    return col / kernels->nc * c->panel + j * c->stride + col % kernels->nc;
}

/* The sum of one chain of keys, of which the case has [first, last). */
static float model_chain(const mhak_table *kernels, const pv_case *c, const float *p, const span *v,
                         int chain, int col)
{
    float sum = 0;
    for (int j = chain; j < chain + MHAK_CHAIN; j++)
        if (j >= c->first && j < c->last)
            sum = kernel_fma(kernels, p[j], span_get(v, value_at(kernels, c, j, col)), sum);
    return sum;
}

static void model_pv(const mhak_table *kernels, const pv_case *c, const float *p, const span *v,
                     const float *alpha, float *o)
{
    for (int r = 0; r < c->rows; r++)
        for (int col = 0; col < c->dv; col++) {
            float *const at = o + r * c->ldo + col;
            const float *const row = p + r * MHAK_BLOCK;
            *at = kernel_fma(kernels, *at, alpha[r], model_chain(kernels, c, row, v, 0, col));
            for (int chain = MHAK_CHAIN; chain < MHAK_BLOCK; chain += MHAK_CHAIN)
                *at += model_chain(kernels, c, row, v, chain, col);
        }
}

static span values_of(const mhak_table *kernels, const pv_case *c, test_random *random)
{
    if (c->dv == 0)
        return span_new(random, c->type, 0, 0);
    return span_rows(random, c->type, c->first, c->last, c->stride,
                     value_at(kernels, c, 0, c->dv - 1) + 1);
}

/* The arguments of one call. */
typedef struct pv_data {
    span p, v, alpha, o;
} pv_data;

static pv_data pv_data_new(const mhak_table *kernels, const pv_case *c, test_random *random)
{
    pv_data x;
    x.p = c->rows == 0 ? span_new(random, E_F32, 0, 0)
                       : span_new(random, E_F32, c->first, (c->rows - 1) * MHAK_BLOCK + c->last);
    x.v = values_of(kernels, c, random);
    x.alpha = span_new(random, E_F32, 0, c->rows);
    x.o = span_rows(random, E_F32, 0, c->rows, c->ldo, c->dv);
    span_fill_unit(&x.p, random);
    span_fill_normal(&x.v, random);
    span_fill_unit(&x.alpha, random);
    span_fill_normal(&x.o, random);
    return x;
}

static void pv_data_free(pv_data *x)
{
    span_free(&x->p);
    span_free(&x->v);
    span_free(&x->alpha);
    span_free(&x->o);
}

/* Rows [row, row + rows) of the case. */
static void call_pv(const mhak_table *kernels, const pv_case *c, const pv_data *x, int row,
                    int rows, const mhak_ahead *ahead, float *o)
{
    kernels->pv[c->type]((float *)x->p.origin + row * MHAK_BLOCK, x->v.origin, c->stride, c->panel,
                         c->first, c->last, rows, c->dv, ahead, (float *)x->alpha.origin + row,
                         o + row * c->ldo, c->ldo);
}

static void check_pv(const mhak_table *kernels, test_random *random, const pv_case *c)
{
    pv_data x = pv_data_new(kernels, c, random);
    span want = span_copy(&x.o), next;
    const mhak_ahead ahead = random_ahead(random, &next);
    span_seal(&x.p);
    span_seal(&x.v);
    span_seal(&x.alpha);
    call_pv(kernels, c, &x, 0, c->rows, &ahead, x.o.origin);
    model_pv(kernels, c, x.p.origin, &x.v, x.alpha.origin, want.origin);
    span_check(&x.o, &want, "type %d, keys [%d, %d), %d rows, dv %d, stride %td, panel %td",
               (int)c->type, c->first, c->last, c->rows, c->dv, c->stride, c->panel);
    pv_data_free(&x);
    span_free(&want);
    span_free(&next);
}

/* V in panels, in place, in place backwards, or one row for all keys. */
static void choose_layout(const mhak_table *kernels, test_random *random, pv_case *c)
{
    const int64_t how = test_random_below(random, 4);
    c->panel = how == 0 ? (ptrdiff_t)MHAK_BLOCK * kernels->nc : kernels->nc;
    c->stride = how == 0   ? kernels->nc
                : how == 1 ? random_between(random, c->dv, c->dv + 9)
                : how == 2 ? -random_between(random, c->dv, c->dv + 9)
                           : 0;
    c->ldo = random_between(random, c->dv, c->dv + 5);
}

static void pv_sums_chain_by_chain(const mhak_table *kernels)
{
    test_random random = {test_seed(53)};
    const int widest = 2 * kernels->nc + kernels->vector;
    for (int rows = 0; rows <= 2 * kernels->mr_pv + 1; rows++)
        for (int dv = 0; dv <= widest; dv += kernels->vector)
            for (int type = E_F32; type <= E_BF16; type++) {
                pv_case c = {.type = (element)type, .rows = rows, .dv = dv};
                c.first = random_between(&random, 0, MHAK_BLOCK - 12);
                c.last = c.first + random_between(&random, 1, 12);
                choose_layout(kernels, &random, &c);
                check_pv(kernels, &random, &c);
            }
}

static void pv_takes_any_range_of_keys(const mhak_table *kernels)
{
    test_random random = {test_seed(54)};
    for (int n = 0; n < 150; n++) {
        pv_case c = {.type = (element)(n % 3), .rows = 1 + n % (2 * kernels->mr_pv)};
        c.dv = kernels->vector * random_between(&random, 1, 9);
        c.first = n % 5 == 0 ? 0 : random_between(&random, 0, MHAK_BLOCK - 1);
        c.last = n % 7 == 0 ? MHAK_BLOCK : random_between(&random, c.first + 1, MHAK_BLOCK);
        choose_layout(kernels, &random, &c);
        check_pv(kernels, &random, &c);
    }
}

/* ------------------------------------------------------------------- laws */

/* A row by itself gives the bits it gives among others. */
static void rows_of_qk_do_not_see_each_other(const mhak_table *kernels)
{
    enum { D = 37, MOST = 40 };
    test_random random = {test_seed(55)};
    const int nr = kernels->nr;
    span q = span_rows(&random, E_F32, 0, MOST, D, D);
    span panel = span_new(&random, E_F32, 0, (ptrdiff_t)D * nr);
    span_fill_normal(&q, &random);
    span_fill_normal(&panel, &random);
    for (int rows = 1; rows <= MOST; rows++) {
        span s = span_rows(&random, E_F32, 0, rows, MHAK_BLOCK, nr), alone = span_copy(&s);
        kernels->qk(q.origin, D, panel.origin, D, rows, false, s.origin);
        for (int r = 0; r < rows; r++)
            kernels->qk((float *)q.origin + r * D, D, panel.origin, D, 1, false,
                        (float *)alone.origin + r * MHAK_BLOCK);
        span_check(&s, &alone, "%d rows", rows);
        span_free(&s);
        span_free(&alone);
    }
    span_free(&q);
    span_free(&panel);
}

static void rows_of_pv_do_not_see_each_other(const mhak_table *kernels)
{
    enum { MOST = 40 };
    test_random random = {test_seed(58)};
    const int dv = 2 * kernels->nc + kernels->vector;
    for (int rows = 1; rows <= MOST; rows++) {
        const pv_case c = {(element)(rows % 3), 3, 99, rows, dv, dv, kernels->nc, dv};
        pv_data x = pv_data_new(kernels, &c, &random);
        span alone = span_copy(&x.o);
        call_pv(kernels, &c, &x, 0, rows, &nothing_ahead, x.o.origin);
        for (int r = 0; r < rows; r++)
            call_pv(kernels, &c, &x, r, 1, &nothing_ahead, alone.origin);
        span_check(&x.o, &alone, "%d rows", rows);
        pv_data_free(&x);
        span_free(&alone);
    }
}

/* Keys of weight 0 may be left out: the range only saves work. */
static void pv_of_a_range_is_pv_of_all(const mhak_table *kernels)
{
    test_random random = {test_seed(56)};
    for (int n = 0; n < 60; n++) {
        const int dv = kernels->nc + kernels->vector, rows = 1 + n % 9;
        pv_case c = {(element)(n % 3), 0, MHAK_BLOCK, rows, dv, dv, kernels->nc, dv};
        const int first = random_between(&random, 0, MHAK_BLOCK - 1);
        const int last = random_between(&random, first + 1, MHAK_BLOCK);
        pv_data x = pv_data_new(kernels, &c, &random);
        float *const p = x.p.origin;
        for (int j = 0; j < rows * MHAK_BLOCK; j++)
            if (j % MHAK_BLOCK < first || j % MHAK_BLOCK >= last)
                p[j] = 0;
        span part = span_copy(&x.o);
        call_pv(kernels, &c, &x, 0, rows, &nothing_ahead, x.o.origin);
        c.first = first;
        c.last = last;
        call_pv(kernels, &c, &x, 0, rows, &nothing_ahead, part.origin);
        span_check(&part, &x.o, "keys [%d, %d), %d rows", first, last, rows);
        pv_data_free(&x);
        span_free(&part);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    kernel_report_missing();
    RUN_KERNELS(qk_is_one_chain_a_score);
    RUN_KERNELS(qk_keeps_what_is_not_finite);
    RUN_KERNELS(qk_near_gives_the_bits_of_qk);
    RUN_KERNELS(pv_sums_chain_by_chain);
    RUN_KERNELS(pv_takes_any_range_of_keys);
    RUN_KERNELS(rows_of_qk_do_not_see_each_other);
    RUN_KERNELS(rows_of_pv_do_not_see_each_other);
    RUN_KERNELS(pv_of_a_range_is_pv_of_all);
    return test_end();
}
