/* SPDX-License-Identifier: MIT */
/*
 * The matrix products. The model follows the contract literally: chains of multiply-adds in
 * ascending order, so kernel and model agree to the bit. The model itself is compared with double
 * precision, with an error bound.
 */
#include "support/kernel_bench.h"

#include <mha/mha.h>

#include <math.h>

/* ---------------------------------------------------------------- product */

typedef struct product_case {
    element type;
    bool group; /* of the slot product_groups, one group */
    int columns, depth, rows;
    ptrdiff_t ldx, ldy;
    bool add;
} product_case;

/* `rows` rows of the case. */
static void call_product(const mhak_table *kernels, const product_case *c, const void *x,
                         const void *panel, int rows, void *y)
{
    if (c->group)
        kernels->product_groups[c->type](x, c->ldx, panel, 0, 1, NULL, c->depth, rows, c->add, y,
                                         c->ldy);
    else
        kernels->product[c->type](x, c->ldx, panel, c->depth, rows, c->add, y, c->ldy);
}

/* Rows with the smallest stride or a larger one; no two cases are alike. */
static product_case random_product(const mhak_table *kernels, test_random *random, element type,
                                   bool group, int depth, int rows)
{
    product_case c = {.type = type, .group = group, .depth = depth, .rows = rows};
    c.columns = group ? MHAK_GROUP : kernels->nr;
    c.ldx = random_between(random, c.depth, c.depth + 5);
    c.ldy = test_random_below(random, 3) == 0
                ? MHAK_BLOCK
                : random_between(random, c.columns, c.columns + 2 * MHAK_MAX_VECTOR);
    c.add = test_random_below(random, 2);
    return c;
}

static void model_product(const mhak_table *kernels, const product_case *c, const float *x,
                          const float *panel, float *y)
{
    for (int r = 0; r < c->rows; r++)
        for (int j = 0; j < c->columns; j++) {
            float sum = 0;
            for (int n = 0; n < c->depth; n++)
                sum = kernel_fma(kernels, x[r * c->ldx + n], panel[n * c->columns + j], sum);
            float *const at = y + r * c->ldy + j;
            *at = c->add ? *at + sum : sum;
        }
}

static void check_product_bound(const product_case *c, const float *x, const float *panel,
                                const float *y)
{
    if (c->add)
        return;
    for (int r = 0; r < c->rows; r++)
        for (int j = 0; j < c->columns; j++) {
            double sum = 0, size = 0;
            for (int n = 0; n < c->depth; n++) {
                const double term = (double)x[r * c->ldx + n] * (double)panel[n * c->columns + j];
                sum += term;
                size += fabs(term);
            }
            const double error = fabs((double)y[r * c->ldy + j] - sum);
            CHECK(error <= (c->depth + 1) * 0x1p-24 * size,
                  "depth %d, row %d, column %d: off by %g", c->depth, r, j, error);
        }
}

/* The same numbers as f32. */
static span numbers_of(test_random *random, const span *from)
{
    const span to = span_new(random, E_F32, from->low, from->high);
    for (ptrdiff_t i = from->low; i < from->high; i++)
        span_set(&to, i, (double)span_get(from, i));
    return to;
}

/* The arguments of one call, and the expected y. */
typedef struct product_data {
    span x, panel, numbers, y, want;
} product_data;

static product_data product_data_new(const product_case *c, test_random *random)
{
    product_data d;
    d.x = span_rows(random, E_F32, 0, c->rows, c->ldx, c->depth);
    d.panel = span_new(random, c->type, 0, (ptrdiff_t)c->depth * c->columns);
    d.y = span_rows(random, E_F32, 0, c->rows, c->ldy, c->columns);
    span_fill_normal(&d.x, random);
    span_fill_normal(&d.panel, random);
    span_fill_normal(&d.y, random);
    d.numbers = numbers_of(random, &d.panel);
    d.want = span_copy(&d.y);
    return d;
}

static void product_data_free(product_data *d)
{
    span *const all[] = {&d->x, &d->panel, &d->numbers, &d->y, &d->want};
    for (int n = 0; n < 5; n++)
        span_free(all[n]);
}

static void check_product(const mhak_table *kernels, test_random *random, const product_case *c)
{
    product_data d = product_data_new(c, random);
    span_seal(&d.x);
    span_seal(&d.panel);
    call_product(kernels, c, d.x.origin, d.panel.origin, c->rows, d.y.origin);
    model_product(kernels, c, d.x.origin, d.numbers.origin, d.want.origin);
    span_check(&d.y, &d.want, "type %d, group %d, depth %d, %d rows, ldx %td, ldy %td, add %d",
               (int)c->type, c->group, c->depth, c->rows, c->ldx, c->ldy, c->add);
    check_product_bound(c, d.x.origin, d.numbers.origin, d.y.origin);
    product_data_free(&d);
}

static void check_products(const mhak_table *kernels, uint64_t seed, bool group)
{
    static const int depths[] = {1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 33, 64, 127, MHAK_SLICE};
    test_random random = {seed};
    for (int rows = 0; rows <= 2 * kernels->mr_qk + 1; rows++)
        for (size_t n = 0; n < sizeof depths / sizeof depths[0]; n++)
            for (int t = 0; t < STORAGE_TYPES; t++) {
                product_case c =
                    random_product(kernels, &random, storage_types[t], group, depths[n], rows);
                check_product(kernels, &random, &c);
                c.add = !c.add;
                check_product(kernels, &random, &c);
            }
}

static void product_is_one_chain_an_element(const mhak_table *kernels)
{
    check_products(kernels, test_seed(51), false);
}

static void product_group_is_one_chain_an_element(const mhak_table *kernels)
{
    check_products(kernels, test_seed(59), true);
}

/* Two groups at once give what each gives alone, however far apart they lie. */
static void two_groups_are_each_alone(const mhak_table *kernels)
{
    test_random random = {test_seed(61)};
    for (int n = 0; n < 200; n++) {
        const element type = storage_types[n % STORAGE_TYPES];
        product_case c =
            random_product(kernels, &random, type, true, random_between(&random, 1, 70),
                           random_between(&random, 0, kernels->mr_qk + 1));
        const ptrdiff_t size = (ptrdiff_t)c.depth * MHAK_GROUP;
        const ptrdiff_t stride = size + random_between(&random, 0, 40);
        c.ldy = random_between(&random, 2 * MHAK_GROUP, 3 * MHAK_GROUP);
        span x = span_rows(&random, E_F32, 0, c.rows, c.ldx, c.depth);
        span groups = span_rows(&random, type, 0, 2, stride, size);
        span next = span_new(&random, type, 0, 2 * size); /* may be read, but is never used */
        span y = span_rows(&random, E_F32, 0, c.rows, c.ldy, 2 * MHAK_GROUP);
        span_fill_normal(&x, &random);
        span_fill_normal(&groups, &random);
        span_fill_normal(&y, &random);
        span_seal(&next);
        span want = span_copy(&y);
        kernels->product_groups[type](x.origin, c.ldx, groups.origin, stride, 2,
                                      n / STORAGE_TYPES % 2 ? next.origin : NULL, c.depth, c.rows,
                                      c.add, y.origin, c.ldy);
        for (int g = 0; g < 2; g++)
            call_product(kernels, &c, x.origin,
                         (const char *)groups.origin +
                             (size_t)(g * stride) * mha_dtype_size((mha_dtype)type),
                         c.rows, (float *)want.origin + g * MHAK_GROUP);
        span_check(&y, &want, "type %d, depth %d, %d rows, stride %td", (int)type, c.depth, c.rows,
                   stride);
        span *const all[] = {&x, &groups, &next, &y, &want};
        for (int m = 0; m < 5; m++)
            span_free(all[m]);
    }
}

/* Infinities and NaN appear where IEEE requires, and affect no neighbour. */
static void product_keeps_what_is_not_finite(const mhak_table *kernels)
{
    enum { DEPTH = 7 };
    static const float odd[] = {INFINITY, -INFINITY, NAN};
    test_random random = {test_seed(52)};
    for (int n = 0; n < 240; n++) {
        const product_case c =
            random_product(kernels, &random, storage_types[n % STORAGE_TYPES], n / 120, DEPTH,
                           random_between(&random, 1, 2 * kernels->mr_qk));
        product_data d = product_data_new(&c, &random);
        span_set(&d.x, test_random_below(&random, c.rows) * c.ldx, (double)odd[n % 3]);
        if (c.type != E_I8) {
            const ptrdiff_t at = test_random_below(&random, d.panel.high);
            span_set(&d.panel, at, (double)odd[n / 3 % 3]);
            span_set(&d.numbers, at, (double)odd[n / 3 % 3]);
        }
        call_product(kernels, &c, d.x.origin, d.panel.origin, c.rows, d.y.origin);
        model_product(kernels, &c, d.x.origin, d.numbers.origin, d.want.origin);
        span_check(&d.y, &d.want, "type %d, group %d, %d rows, case %d", (int)c.type, c.group,
                   c.rows, n);
        product_data_free(&d);
    }
}

/* Element (n, column) of a matrix that is cut into panels `columns` wide. */
static ptrdiff_t in_panels(int columns, int depth, int n, int column)
{
    return ((ptrdiff_t)(column / columns) * depth + n) * columns + column % columns;
}

/* All panels of one matrix, `width` columns in all. */
static void run_panels(const mhak_table *kernels, product_case c, const span *x, const span *matrix,
                       int width, test_random *random, const span *y)
{
    c.columns = c.group ? MHAK_GROUP : kernels->nr;
    span panels = span_new(random, c.type, 0, (ptrdiff_t)c.depth * width);
    for (int n = 0; n < c.depth; n++)
        for (int j = 0; j < width; j++)
            span_set(&panels, in_panels(c.columns, c.depth, n, j),
                     (double)span_get(matrix, n * width + j));
    const size_t size = panels.memory.size / (size_t)(width / c.columns); /* of one panel */
    for (int j = 0; j < width; j += c.columns)
        call_product(kernels, &c, x->origin,
                     (const char *)panels.origin + (size_t)(j / c.columns) * size, c.rows,
                     (float *)y->origin + j);
    span_free(&panels);
}

/* A column has the same bits in a panel and in a group. */
static void groups_and_panels_agree(const mhak_table *kernels)
{
    test_random random = {test_seed(60)};
    const int width = kernels->nr > MHAK_GROUP ? kernels->nr : MHAK_GROUP;
    for (int rows = 1; rows <= 2 * kernels->mr_qk + 1; rows++)
        for (int t = 0; t < STORAGE_TYPES; t++) {
            product_case c = random_product(kernels, &random, storage_types[t], false,
                                            random_between(&random, 1, MHAK_SLICE), rows);
            c.ldy = random_between(&random, width, width + 9);
            span x = span_rows(&random, E_F32, 0, rows, c.ldx, c.depth);
            span matrix = span_new(&random, c.type, 0, (ptrdiff_t)c.depth * width);
            span y = span_rows(&random, E_F32, 0, rows, c.ldy, width);
            span_fill_normal(&x, &random);
            span_fill_normal(&matrix, &random);
            span_fill_normal(&y, &random);
            span grouped = span_copy(&y);
            run_panels(kernels, c, &x, &matrix, width, &random, &y);
            c.group = true;
            run_panels(kernels, c, &x, &matrix, width, &random, &grouped);
            span_check(&grouped, &y, "type %d, depth %d, %d rows", (int)c.type, c.depth, rows);
            span *const all[] = {&x, &matrix, &y, &grouped};
            for (int n = 0; n < 4; n++)
                span_free(all[n]);
        }
}

/* ---------------------------------------------------------------- qk_in_place */

static const mhak_prefetch nothing_ahead = {.lines = 0};

/* Rows to prefetch, or none: no bit depends on them. */
static mhak_prefetch random_ahead(test_random *random, span *memory)
{
    mhak_prefetch ahead = nothing_ahead;
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
static span panel_of(const product_case *c, test_random *random, const span *k, ptrdiff_t stride)
{
    const span panel = span_new(random, E_F32, 0, (ptrdiff_t)c->depth * c->columns);
    for (int j = 0; j < c->columns; j++)
        for (int n = 0; n < c->depth; n++)
            span_set(&panel, n * c->columns + j, (double)span_get(k, j * stride + n));
    return panel;
}

static void check_qk_in_place(const mhak_table *kernels, test_random *random, const product_case *c,
                              ptrdiff_t stride)
{
    const bool more = test_random_below(random, 2) != 0;
    const int readable = c->columns + (more ? kernels->vector : 0);
    span q = span_rows(random, E_F32, 0, c->rows, c->ldx, c->depth);
    span k = span_rows(random, c->type, 0, readable, stride, c->depth);
    span_fill_normal(&q, random);
    span_fill_normal(&k, random);
    span panel = panel_of(c, random, &k, stride);
    span s = span_rows(random, E_F32, 0, c->rows, MHAK_BLOCK, c->columns), want = span_copy(&s);
    span_seal(&q);
    span_seal(&k);
    kernels->qk_in_place[c->type](q.origin, c->ldx, k.origin, stride, c->depth, c->columns, more,
                                  c->rows, s.origin);
    model_product(kernels, c, q.origin, panel.origin, want.origin);
    span_check(&s, &want, "type %d, d %d, %d keys%s, %d rows, stride %td", (int)c->type, c->depth,
               c->columns, more ? " and more" : "", c->rows, stride);
    span *const all[] = {&q, &k, &panel, &s, &want};
    for (int n = 0; n < 5; n++)
        span_free(all[n]);
}

static void qk_in_place_gives_the_bits_of_product(const mhak_table *kernels)
{
    static const int widths[] = {1, 2, 3, 4, 5, 6, 7, 8, 14, 17, 64, 65, 127, MHAK_DEPTH};
    test_random random = {test_seed(57)};
    for (int rows = 0; rows <= kernels->mr_in_place; rows++)
        for (size_t n = 0; n < sizeof widths / sizeof widths[0]; n++)
            for (int type = E_F32; type <= E_BF16; type++) {
                product_case c = {.type = (element)type,
                                  .columns = kernels->vector * random_between(&random, 1, 3),
                                  .depth = widths[n],
                                  .rows = rows,
                                  .ldy = MHAK_BLOCK};
                c.ldx = random_between(&random, c.depth, c.depth + 5);
                const int gap = random_between(&random, 0, 5);
                const ptrdiff_t strides[] = {0, c.depth + gap, -c.depth - gap, c.depth};
                for (int way = 0; way < 4; way++)
                    check_qk_in_place(kernels, &random, &c, strides[way]);
            }
}

/* --------------------------------------------------------------------- pv */

typedef struct pv_case {
    element type;
    int first, last, rows, dv;
    ptrdiff_t stride, panel, ldo;
    bool no_alpha; /* alpha is NULL, which counts as 1 */
} pv_case;

/* Index of column col of value row j. */
static ptrdiff_t value_at(const mhak_table *kernels, const pv_case *c, int j, int col)
{
    return col / kernels->nc * c->panel + j * c->stride + col % kernels->nc;
}

/* The sum of one chain of keys; the case has [first, last) of them. */
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
            *at = kernel_fma(kernels, *at, c->no_alpha ? 1.0f : alpha[r],
                             model_chain(kernels, c, row, v, 0, col));
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
                    int rows, const mhak_prefetch *ahead, float *o)
{
    const float *const alpha = c->no_alpha ? NULL : (const float *)x->alpha.origin + row;
    kernels->pv[c->type]((float *)x->p.origin + row * MHAK_BLOCK, x->v.origin, c->stride, c->panel,
                         c->first, c->last, rows, c->dv, ahead, alpha, o + row * c->ldo, c->ldo);
}

static void check_pv(const mhak_table *kernels, test_random *random, const pv_case *c)
{
    pv_data x = pv_data_new(kernels, c, random);
    span want = span_copy(&x.o), next;
    const mhak_prefetch ahead = random_ahead(random, &next);
    span_seal(&x.p);
    span_seal(&x.v);
    span_seal(&x.alpha);
    call_pv(kernels, c, &x, 0, c->rows, &ahead, x.o.origin);
    model_pv(kernels, c, x.p.origin, &x.v, x.alpha.origin, want.origin);
    span_check(&x.o, &want, "type %d, keys [%d, %d), %d rows, dv %d, stride %td, panel %td%s",
               (int)c->type, c->first, c->last, c->rows, c->dv, c->stride, c->panel,
               c->no_alpha ? ", no alpha" : "");
    pv_data_free(&x);
    span_free(&want);
    span_free(&next);
}

/* V in panels, in place, in place backwards, without gaps, or one row for all keys. */
static void choose_layout(const mhak_table *kernels, test_random *random, pv_case *c)
{
    const int64_t how = test_random_below(random, 5);
    c->panel = how == 0 ? (ptrdiff_t)MHAK_BLOCK * kernels->nc : kernels->nc;
    c->stride = how == 0   ? kernels->nc
                : how == 1 ? random_between(random, c->dv, c->dv + 9)
                : how == 2 ? -random_between(random, c->dv, c->dv + 9)
                : how == 3 ? c->dv
                           : 0;
    c->ldo = random_between(random, c->dv, c->dv + 5);
}

static void pv_sums_chain_by_chain(const mhak_table *kernels)
{
    test_random random = {test_seed(53)};
    const int widest = 2 * kernels->nc + kernels->vector;
    for (int rows = 0; rows <= 2 * kernels->mr_pv + 1; rows++)
        for (int dv = 0; dv <= widest; dv += kernels->vector)
            for (int t = 0; t < STORAGE_TYPES; t++) {
                pv_case c = {.type = storage_types[t], .rows = rows, .dv = dv};
                c.no_alpha = test_random_below(&random, 4) == 0;
                c.first = random_between(&random, 0, MHAK_BLOCK - 12);
                c.last = c.first + random_between(&random, 1, 12);
                choose_layout(kernels, &random, &c);
                check_pv(kernels, &random, &c);
            }
}

/* V of f32 without gaps, and rows to prefetch: V is read in the order in which it lies. */
static void pv_takes_a_stream_of_values(const mhak_table *kernels)
{
    test_random random = {test_seed(58)};
    for (int rows = 1; rows <= 2 * kernels->mr_pv + 1; rows++)
        for (int n = 0; n < 24; n++) {
            pv_case c = {.type = E_F32, .rows = rows, .panel = kernels->nc};
            c.dv = n % 3 == 0 ? kernels->nc : 8 * kernels->vector;
            c.stride = c.dv;
            c.ldo = random_between(&random, c.dv, c.dv + 5);
            c.no_alpha = n % 4 == 0;
            c.first = n % 5 == 0 ? 0 : random_between(&random, 0, MHAK_BLOCK - 1);
            c.last = n % 7 == 0 ? MHAK_BLOCK : random_between(&random, c.first + 1, MHAK_BLOCK);
            check_pv(kernels, &random, &c);
        }
}

static void pv_takes_any_range_of_keys(const mhak_table *kernels)
{
    test_random random = {test_seed(54)};
    for (int n = 0; n < 240; n++) {
        pv_case c = {.type = random_storage(&random), .rows = 1 + n % (2 * kernels->mr_pv)};
        c.no_alpha = n % 3 == 0;
        c.dv = kernels->vector * random_between(&random, 1, 9);
        c.first = n % 5 == 0 ? 0 : random_between(&random, 0, MHAK_BLOCK - 1);
        c.last = n % 7 == 0 ? MHAK_BLOCK : random_between(&random, c.first + 1, MHAK_BLOCK);
        if (n % 11 == 0)
            c.first = c.last; /* no key, but alpha */
        choose_layout(kernels, &random, &c);
        check_pv(kernels, &random, &c);
    }
}

/* ------------------------------------------------------------------- laws */

/* A row gives the same bits alone and among others. */
static void rows_of_product_do_not_see_each_other(const mhak_table *kernels)
{
    enum { DEPTH = 37, MOST = 40 };
    test_random random = {test_seed(55)};
    for (int rows = 1; rows <= MOST; rows++)
        for (int n = 0; n < 2 * STORAGE_TYPES; n++) {
            const product_case c =
                random_product(kernels, &random, storage_types[n / 2], n % 2, DEPTH, rows);
            product_data d = product_data_new(&c, &random);
            call_product(kernels, &c, d.x.origin, d.panel.origin, rows, d.y.origin);
            for (int r = 0; r < rows; r++)
                call_product(kernels, &c, (float *)d.x.origin + r * c.ldx, d.panel.origin, 1,
                             (float *)d.want.origin + r * c.ldy);
            span_check(&d.y, &d.want, "type %d, group %d, %d rows", (int)c.type, c.group, rows);
            product_data_free(&d);
        }
}

static void rows_of_pv_do_not_see_each_other(const mhak_table *kernels)
{
    enum { MOST = 40 };
    test_random random = {test_seed(58)};
    const int dv = 2 * kernels->nc + kernels->vector;
    for (int rows = 1; rows <= MOST; rows++) {
        const pv_case c = {random_storage(&random), 3, 99, rows, dv, dv, kernels->nc, dv, false};
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
        pv_case c = {
            random_storage(&random), 0, MHAK_BLOCK, rows, dv, dv, kernels->nc, dv, n % 3 == 0};
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
    RUN_KERNELS(product_is_one_chain_an_element);
    RUN_KERNELS(product_group_is_one_chain_an_element);
    RUN_KERNELS(two_groups_are_each_alone);
    RUN_KERNELS(product_keeps_what_is_not_finite);
    RUN_KERNELS(groups_and_panels_agree);
    RUN_KERNELS(qk_in_place_gives_the_bits_of_product);
    RUN_KERNELS(pv_sums_chain_by_chain);
    RUN_KERNELS(pv_takes_a_stream_of_values);
    RUN_KERNELS(pv_takes_any_range_of_keys);
    RUN_KERNELS(rows_of_product_do_not_see_each_other);
    RUN_KERNELS(rows_of_pv_do_not_see_each_other);
    RUN_KERNELS(pv_of_a_range_is_pv_of_all);
    return test_end();
}
