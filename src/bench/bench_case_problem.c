/* SPDX-License-Identifier: MIT */
/* The operator as a bench_case: a plan, its workspace, and copies of the keys and values where they
 * are to come from memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_case.h"
#include "problem/problem.h"
#include "problem/problem_cost.h"

/* A problem with fewer flops a byte than this counts as bound by memory. A fixed number near what
 * today's cores can do: which peak a word is held against must not change from run to run. */
#define FLOPS_PER_BYTE 8.0

typedef struct problem_body {
    problem p;
    mha_plan *plan;
    mha_pool *pool;
    void *work;
    size_t work_size;
    char *arena; /* copies of k and v, one pair after another; NULL: the problem's own */
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

static bool make_arena(bench_case *s, problem_body *x)
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
    s->copies = x->copies;
    s->memory = x->arena;
    s->memory_size = (size_t)x->copies * x->copy_size;
    return true;
}

/* The plan, its workspace, the pool; and one run to see that the library takes it. */
static mha_status make_plan(problem_body *x, int threads)
{
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

static bool plan_or_say(bench_case *s, problem_body *x, char *message, size_t size)
{
    char why[WORD_MESSAGE_MAX] = "";
    x->p.call.options.message = why;
    x->p.call.options.message_size = sizeof why;
    const mha_status status = make_plan(x, s->threads);
    x->p.call.options.message = NULL;
    x->p.call.options.message_size = 0;
    if (status != MHA_OK)
        snprintf(message, size, "%s: %s. %s", s->word, mha_status_string(status), why);
    return status == MHA_OK;
}

bool bench_case_problem(bench_case *s, const problem_word *word, char *message, size_t size)
{
    word_print(word, s->word, sizeof s->word);
    snprintf(message, size, "%s: no memory for copies of the keys", s->word);
    problem_body *x = calloc(1, sizeof *x);
    if (x == NULL)
        return false;
    s->body = x;
    s->run = run;
    s->free = free_body;
    if (!problem_create(&x->p, word, 0, message, size) || !plan_or_say(s, x, message, size))
        return false;
    s->copies = 1;
    s->work_size = x->work_size;
    s->flops = call_flops(&x->p.call);
    s->bytes = call_bytes(&x->p.call);
    if (s->flops == 0.0) {
        snprintf(message, size, "%s: no query sees a key, so there is nothing to measure", s->word);
        return false;
    }
    s->memory_bound = s->flops / s->bytes < FLOPS_PER_BYTE;
    return !s->memory_bound || make_arena(s, x);
}
