/* SPDX-License-Identifier: MIT */
/* The operator as a bench case: a plan and its workspace. If the problem is bound by memory, the
 * runs use copies of the keys and values in turn, so that they are read from memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_case.h"
#include "problem/problem.h"
#include "problem/problem_cost.h"

/* A problem with fewer flops per byte than this counts as bound by memory. The number is fixed,
 * near what today's cores achieve, so that a word is compared with the same peak in every run. */
#define FLOPS_PER_BYTE 8.0

typedef struct problem_body {
    problem p;
    mha_plan *plan;
    mha_pool *pool;
    void *work;
    size_t work_size;
    char *arena; /* copies of k and v, pair after pair; NULL: the problem's own are used */
    size_t k_size, copy_size;
    int copies, next_copy;
} problem_body;

static mha_status run(void *body)
{
    problem_body *x = body;
    mha_view k = x->p.call.k, v = x->p.call.v;
    if (x->arena != NULL) {
        const char *copy = x->arena + (size_t)x->next_copy * x->copy_size;
        k.data = copy;
        v.data = copy + x->k_size;
        x->next_copy = (x->next_copy + 1) % x->copies;
    }
    return mha_plan_run(x->plan, x->p.call.q, k, v, x->p.call.o, &x->p.call.options, x->work,
                        x->work_size, x->pool);
}

static void free_body(void *body)
{
    problem_body *x = body;
    problem_free(&x->p);
    mha_plan_free(x->plan);
    mha_pool_free(x->pool);
    free(x->work);
    free(x->arena);
    free(x);
}

static size_t rounded(size_t size)
{
    return (size + 63) / 64 * 64;
}

static bool make_arena(bench_case *bench, problem_body *x)
{
    x->k_size = rounded(x->p.tensors[TENSOR_K].bytes);
    x->copy_size = x->k_size + rounded(x->p.tensors[TENSOR_V].bytes);
    x->copies = bench_case_copies((double)x->copy_size);
    x->arena = bench_case_memory((size_t)x->copies * x->copy_size);
    if (x->arena == NULL)
        return false;
    for (int n = 0; n < x->copies; n++) {
        char *copy = x->arena + (size_t)n * x->copy_size;
        memcpy(copy, x->p.tensors[TENSOR_K].memory, x->p.tensors[TENSOR_K].bytes);
        memcpy(copy + x->k_size, x->p.tensors[TENSOR_V].memory, x->p.tensors[TENSOR_V].bytes);
    }
    bench->copies = x->copies;
    bench->memory = x->arena;
    bench->memory_size = (size_t)x->copies * x->copy_size;
    return true;
}

/* Makes the plan, its workspace and the pool, and runs once to see that the library accepts it. */
static mha_status make_plan(void *body, int threads)
{
    problem_body *x = body;
    mha_status status = MHA_OK;
    if (threads > 1)
        status = mha_pool_create(&x->pool, threads);
    if (status == MHA_OK)
        status = mha_plan_create(&x->plan, &x->p.call.shape, &x->p.call.options);
    if (status != MHA_OK)
        return status;
    x->work_size = mha_plan_work_size(x->plan, threads);
    x->work = bench_case_memory(x->work_size);
    return x->work != NULL ? run(x) : MHA_ERR_MEMORY;
}

bool bench_case_problem(bench_case *bench, const problem_word *word, char *message, size_t size)
{
    word_print(word, bench->word, sizeof bench->word);
    snprintf(message, size, "%s: out of memory for copies of the keys", bench->word);
    problem_body *x = calloc(1, sizeof *x);
    if (x == NULL)
        return false;
    bench->body = x;
    bench->run = run;
    bench->free = free_body;
    if (!problem_create(&x->p, word, 0, message, size) ||
        !bench_case_prepare(bench, &x->p.call.options, make_plan, message, size))
        return false;
    bench->copies = 1;
    bench->work_size = x->work_size;
    bench->flops = call_flops(&x->p.call);
    bench->bytes = call_bytes(&x->p.call);
    if (bench->flops == 0.0) {
        snprintf(message, size, "%s: no query sees a key, so there is nothing to measure",
                 bench->word);
        return false;
    }
    bench->memory_bound = bench->flops / bench->bytes < FLOPS_PER_BYTE;
    return !bench->memory_bound || make_arena(bench, x);
}
