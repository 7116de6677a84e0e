/* SPDX-License-Identifier: MIT */
/* Kernels that take several blocks of keys in one call: the same bits as one call per block. */
#include "support/kernel_bench.h"

#include <mha/mha.h>

static const void *element_at(const span *s, ptrdiff_t i)
{
    return (const char *)s->origin + i * (ptrdiff_t)mha_dtype_size((mha_dtype)s->kind);
}

static int at_most(int n, int most)
{
    return n < most ? n : most;
}

/* --------------------------------------------------------------- qk_in_place */

static void check_near(const mhak_table *kernels, test_random *random, element type, int rows)
{
    enum { BLOCKS = 3 };
    const int d = random_between(random, 1, MHAK_DEPTH);
    const int keys = (BLOCKS - 1) * MHAK_BLOCK + kernels->vector * random_between(random, 1, 3);
    span q = span_rows(random, E_F32, 0, rows, d, d), k = span_rows(random, type, 0, keys, d, d);
    span s = span_new(random, E_F32, 0, BLOCKS * rows * MHAK_BLOCK), want = span_copy(&s);
    span_fill_normal(&q, random);
    span_fill_normal(&k, random);
    span_seal(&q);
    span_seal(&k);
    kernels->qk_in_place[type](q.origin, d, k.origin, d, d, keys, false, rows, s.origin);
    for (int j = 0; j < keys; j += MHAK_BLOCK)
        kernels->qk_in_place[type](q.origin, d, element_at(&k, (ptrdiff_t)j * d), d, d,
                                   at_most(keys - j, MHAK_BLOCK), false, rows,
                                   (float *)want.origin + j * rows);
    span_check(&s, &want, "type %d, d %d, %d keys, %d rows", (int)type, d, keys, rows);
    span *const all[] = {&q, &k, &s, &want};
    for (int n = 0; n < 4; n++)
        span_free(all[n]);
}

static void qk_in_place_takes_many_blocks(const mhak_table *kernels)
{
    test_random random = {test_seed(61)};
    for (int rows = 1; rows <= kernels->mr_in_place; rows++)
        for (int type = E_F32; type <= E_BF16; type++)
            for (int n = 0; n < 6; n++)
                check_near(kernels, &random, (element)type, rows);
}

/* --------------------------------------------------------------------- pv */

static void check_pv(const mhak_table *kernels, test_random *random, element type, int rows, int dv,
                     bool asks)
{
    enum { BLOCKS = 3 };
    const int keys = (BLOCKS - 1) * MHAK_BLOCK + random_between(random, 1, MHAK_BLOCK);
    span p = span_new(random, E_F32, 0, BLOCKS * rows * MHAK_BLOCK);
    span v = span_rows(random, type, 0, keys, dv, dv);
    span alpha = span_new(random, E_F32, 0, BLOCKS * rows);
    span o = span_rows(random, E_F32, 0, rows, dv, dv);
    span_fill_unit(&p, random);
    span_fill_normal(&v, random);
    span_fill_unit(&alpha, random);
    span_fill_normal(&o, random);
    span want = span_copy(&o);
    span_seal(&p);
    span_seal(&v);
    span_seal(&alpha);
    const mhak_prefetch ahead = {v.origin, 1, asks ? 1 : 0, keys};
    kernels->pv[type](p.origin, v.origin, dv, kernels->nc, 0, keys, rows, dv, &ahead, alpha.origin,
                      o.origin, dv);
    for (int j = 0; j < keys; j += MHAK_BLOCK)
        kernels->pv[type]((const float *)p.origin + j * rows, element_at(&v, (ptrdiff_t)j * dv), dv,
                          kernels->nc, 0, at_most(keys - j, MHAK_BLOCK), rows, dv, &ahead,
                          (const float *)alpha.origin + j / MHAK_BLOCK * rows, want.origin, dv);
    span_check(&o, &want, "type %d, %d keys, %d rows, dv %d%s", (int)type, keys, rows, dv,
               asks ? ", asking" : "");
    span *const all[] = {&p, &v, &alpha, &o, &want};
    for (int n = 0; n < 5; n++)
        span_free(all[n]);
}

static void pv_takes_many_blocks(const mhak_table *kernels)
{
    test_random random = {test_seed(62)};
    const int widths[] = {kernels->vector, kernels->nc, 8 * kernels->vector,
                          2 * kernels->nc + kernels->vector};
    for (int rows = 1; rows <= 2 * kernels->mr_pv + 1; rows++)
        for (int t = 0; t < STORAGE_TYPES; t++)
            for (int n = 0; n < 8; n++)
                check_pv(kernels, &random, storage_types[t], rows, widths[n % 4], n >= 4);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    kernel_report_missing();
    RUN_KERNELS(qk_in_place_takes_many_blocks);
    RUN_KERNELS(pv_takes_many_blocks);
    return test_end();
}
