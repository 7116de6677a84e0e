/* SPDX-License-Identifier: MIT */
/*
 * The operator's backward pass as a bench case. The forward pass runs once and is not measured. The
 * loss is |o|^2 / 2, so that the gradient of the output is the output itself. The gradients of q, k
 * and v are computed, and those of bias, slopes and sinks if the word has them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_case.h"
#include "problem/problem.h"
#include "problem/problem_cost.h"

typedef struct gradients_body {
    problem p;
    tensor d_o, d_q, d_k, d_v, d_bias;
    float *d_slopes, *d_sinks;
    mha_gradients gradients;
    mha_pool *pool;
    void *work;
    size_t work_size;
} gradients_body;

static mha_status run(void *body)
{
    gradients_body *x = body;
    const attention_call *call = &x->p.call;
    return mha_attention_backward(&call->shape, call->q, call->k, call->v,
                                  tensor_view(&x->p.tensors[TENSOR_O]), &call->options,
                                  &x->gradients, x->work, x->work_size, x->pool);
}

static void free_body(void *body)
{
    gradients_body *x = body;
    tensor *const tensors[] = {&x->d_o, &x->d_q, &x->d_k, &x->d_v, &x->d_bias};
    for (size_t n = 0; n < sizeof tensors / sizeof tensors[0]; n++)
        free(tensors[n]->memory);
    problem_free(&x->p);
    mha_pool_free(x->pool);
    free(x->d_slopes);
    free(x->d_sinks);
    free(x->work);
    free(x);
}

/* ---------------------------------------------------------------- memory ----- */

/* Makes a tensor of zeros in the layout of `of`; if that has no memory, it gets none either. */
static bool make_like(tensor *t, const tensor *of, mha_dtype type)
{
    *t = *of;
    t->element = mha_dtype_size(type);
    t->bytes = of->memory != NULL ? of->bytes / of->element * t->element : 0;
    t->memory = of->memory != NULL ? bench_case_memory(t->bytes) : NULL;
    return t->memory != NULL || of->memory == NULL;
}

static bool make_heads(float **numbers, bool wanted, ptrdiff_t heads)
{
    *numbers = wanted ? bench_case_memory((size_t)heads * sizeof **numbers) : NULL;
    return *numbers != NULL || !wanted;
}

static bool make_gradients(gradients_body *x)
{
    const attention_call *call = &x->p.call;
    const tensor *of = x->p.tensors;
    if (!make_like(&x->d_o, &of[TENSOR_O], call->shape.o_type) ||
        !make_like(&x->d_q, &of[TENSOR_Q], MHA_F32) ||
        !make_like(&x->d_k, &of[TENSOR_K], MHA_F32) ||
        !make_like(&x->d_v, &of[TENSOR_V], MHA_F32) ||
        !make_like(&x->d_bias, &of[TENSOR_BIAS], MHA_F32) ||
        !make_heads(&x->d_slopes, call->options.alibi_slopes != NULL, call->shape.H) ||
        !make_heads(&x->d_sinks, call->options.sinks != NULL, call->shape.H))
        return false;
    x->gradients = (mha_gradients){.size = sizeof x->gradients,
                                   .d_o = tensor_view(&x->d_o),
                                   .d_o_type = call->shape.o_type,
                                   .d_q = tensor_out(&x->d_q),
                                   .d_k = tensor_out(&x->d_k),
                                   .d_v = tensor_out(&x->d_v),
                                   .d_bias = tensor_out(&x->d_bias),
                                   .d_alibi_slopes = x->d_slopes,
                                   .d_sinks = x->d_sinks};
    return true;
}

/* -------------------------------------------------------------- creation ----- */

/* Runs the forward pass, and one backward pass to see that the library accepts it. */
static mha_status make_passes(void *body, int threads)
{
    gradients_body *x = body;
    mha_status status = MHA_OK;
    if (threads > 1)
        status = mha_pool_create(&x->pool, threads);
    if (status == MHA_OK)
        status = call_run(&x->p.call, x->pool);
    if (status != MHA_OK)
        return status;
    memcpy(x->d_o.memory, x->p.tensors[TENSOR_O].memory, x->d_o.bytes);
    x->work_size = mha_backward_work_size(&x->p.call.shape, &x->p.call.options, threads);
    x->work = bench_case_memory(x->work_size);
    return x->work != NULL ? run(x) : MHA_ERR_MEMORY;
}

/* The bytes of the forward pass, of the gradient of the output, and of the three results. */
static double needed_bytes(const gradients_body *x)
{
    return call_bytes(&x->p.call) +
           (double)(x->d_o.bytes + x->d_q.bytes + x->d_k.bytes + x->d_v.bytes);
}

bool bench_case_gradients(bench_case *bench, const problem_word *word, char *message, size_t size)
{
    problem_word forward = *word;
    forward.lse = true;
    word_print(word, bench->word, sizeof bench->word);
    gradients_body *x = calloc(1, sizeof *x);
    snprintf(message, size, "%s does not fit in memory", bench->word);
    if (x == NULL)
        return false;
    bench->body = x;
    bench->run = run;
    bench->free = free_body;
    if (!problem_create(&x->p, &forward, 0, message, size) || !make_gradients(x) ||
        !bench_case_prepare(bench, &x->p.call.options, make_passes, message, size))
        return false;
    bench->copies = 1;
    bench->work_size = x->work_size;
    bench->flops = call_backward_flops(&x->p.call);
    bench->bytes = needed_bytes(x);
    if (bench->flops == 0.0)
        snprintf(message, size, "%s: no query sees a key, so there is nothing to measure",
                 bench->word);
    return bench->flops > 0.0;
}
