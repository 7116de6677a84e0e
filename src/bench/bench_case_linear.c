/* SPDX-License-Identifier: MIT */
/* Matrix products y = x W^T as bench cases: by the library, with weights packed once, and by
 * OpenBLAS for comparison. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench/bench_case.h"
#include "bench/openblas.h"

/* Both have input rows, output rows, and several copies of the weights, used in turn. */
typedef struct linear_body {
    ptrdiff_t m, n, k;
    float *x, *y;
    int copies, next_copy;

    mha_linear **linears; /* [copies]; NULL for OpenBLAS */
    void *work;
    size_t work_size;
    mha_pool *pool;

    openblas blas;
    bool vector;
    openblas_layout layout;
    float *weights; /* [copies][n * k] */
} linear_body;

static void free_body(void *body)
{
    linear_body *p = body;
    for (int n = 0; p->linears != NULL && n < p->copies; n++)
        mha_linear_free(p->linears[n]);
    free(p->linears);
    mha_pool_free(p->pool);
    openblas_close(&p->blas);
    free(p->work);
    free(p->weights);
    free(p->x);
    free(p->y);
    free(p);
}

/* Returns NULL if out of memory; the caller of bench_case_create() frees the body. */
static linear_body *make_body(bench_case *bench, const layer_word *w, mha_status (*run)(void *))
{
    linear_body *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    bench->body = p;
    bench->run = run;
    bench->free = free_body;
    p->m = w->m;
    p->n = w->n;
    p->k = w->k;
    p->copies = bench->copies;
    p->x = bench_case_numbers((double)w->m * (double)w->k, 1.0f);
    p->y = bench_case_numbers((double)w->m * (double)w->n, 1.0f);
    return p->x != NULL && p->y != NULL ? p : NULL;
}

/* The index of the copy for this run. */
static int next(linear_body *p)
{
    const int now = p->next_copy;
    p->next_copy = (now + 1) % p->copies;
    return now;
}

/* ----------------------------------------------------------- the library ----- */

static mha_status run_linear(void *body)
{
    linear_body *p = body;
    return mha_linear_run(p->linears[next(p)], p->m, p->x, MHA_F32, p->k, p->y, MHA_F32, p->n,
                          p->work, p->work_size, p->pool);
}

static mha_status make_linears(linear_body *p, const layer_word *w, char *why, size_t size)
{
    const double weights = (double)p->n * (double)p->k;
    float *source = bench_case_numbers(weights, 1.0f / sqrtf((float)p->k));
    p->linears = calloc((size_t)p->copies, sizeof(mha_linear *));
    mha_status status = source != NULL && p->linears != NULL ? MHA_OK : MHA_ERR_MEMORY;
    const mha_linear_config config = {.size = sizeof config,
                                      .inputs = p->k,
                                      .outputs = p->n,
                                      .weight = mha_matrix_out_in(source, MHA_F32, p->k),
                                      .stored = w->stored,
                                      .message = why,
                                      .message_size = size,
                                      .arithmetic = layer_word_arithmetic(w)};
    for (int n = 0; status == MHA_OK && n < p->copies; n++)
        status = mha_linear_create(&p->linears[n], &config);
    free(source);
    return status;
}

static mha_status prepare_linear(linear_body *p, int threads)
{
    const mha_status status = threads > 1 ? mha_pool_create(&p->pool, threads) : MHA_OK;
    if (status != MHA_OK)
        return status;
    p->work_size = mha_linear_work_size(p->linears[0], p->m, threads);
    p->work = bench_case_memory(p->work_size);
    return p->work != NULL ? run_linear(p) : MHA_ERR_MEMORY;
}

bool bench_case_linear(bench_case *bench, const layer_word *w, char *message, size_t size)
{
    char why[WORD_MESSAGE_MAX] = "";
    linear_body *p = make_body(bench, w, run_linear);
    if (p == NULL)
        return false;
    mha_status status = make_linears(p, w, why, sizeof why);
    if (status == MHA_OK)
        status = prepare_linear(p, bench->threads);
    bench->work_size = p->work_size;
    return bench_case_accepted(bench, status, why, message, size);
}

/* -------------------------------------------------------------- OpenBLAS ----- */

/* Its threads spin for 2^26 clock ticks before they sleep. */
#define SPIN_SECONDS 0.04

static mha_status run_openblas(void *body)
{
    linear_body *p = body;
    const float *weight = p->weights + (ptrdiff_t)next(p) * p->n * p->k;
    if (p->vector)
        openblas_vector_product(&p->blas, p->layout, (int)p->n, (int)p->k, p->x, weight, p->y);
    else
        openblas_product(&p->blas, p->layout, (int)p->m, (int)p->n, (int)p->k, p->x, weight, p->y);
    return MHA_OK;
}

/* The seconds of the fastest of up to five runs; after one that takes a second it stops. */
static double seconds_of_layout(linear_body *p, openblas_layout layout)
{
    double best = (double)INFINITY;
    p->layout = layout;
    for (int n = 0; n < 5 && (n < 1 || best < 1.0); n++) {
        const double begin = clock_seconds();
        run_openblas(p);
        best = fmin(best, clock_seconds() - begin);
    }
    return best;
}

/* OpenBLAS gets its weights in the layout in which it is faster. The same numbers are used for both
 * layouts, since its speed does not depend on them. */
static void choose_layout(linear_body *p)
{
    const double out_in = seconds_of_layout(p, OPENBLAS_OUT_IN);
    const double in_out = seconds_of_layout(p, OPENBLAS_IN_OUT);
    p->layout = out_in <= in_out ? OPENBLAS_OUT_IN : OPENBLAS_IN_OUT;
}

bool bench_case_openblas(bench_case *bench, const layer_word *w, char *message, size_t size)
{
    char why[WORD_MESSAGE_MAX] = "";
    const double weights = (double)w->n * (double)w->k * bench->copies;
    if (w->m > INT_MAX || w->n > INT_MAX || w->k > INT_MAX)
        return false;
    linear_body *p = make_body(bench, w, run_openblas);
    if (p == NULL)
        return false;
    if (!openblas_open(&p->blas, why, sizeof why)) {
        snprintf(message, size, "%s: %s", bench->word, why);
        return false;
    }
    p->vector = w->gemv;
    p->weights = bench_case_numbers(weights, 1.0f / sqrtf((float)p->k));
    if (p->weights == NULL)
        return false;
    bench->quiet = bench->threads > 1 ? SPIN_SECONDS : 0.0;
    p->blas.set_threads(bench->threads);
    choose_layout(p);
    return true;
}
