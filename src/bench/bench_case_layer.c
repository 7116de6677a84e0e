/* SPDX-License-Identifier: MIT */
/*
 * Layers, steps of decoding and attention over a cache as bench cases.
 *
 * The copies are like the layers of a model: each has its own weights and, in the cache that all
 * share, its own sequences. After a step of decoding the cache is truncated again, so that every
 * run finds the same number of tokens; this changes only lengths and moves no memory.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/bench_case.h"

typedef struct layer_body {
    layer_word w;
    int copies, next_copy;
    mha_layer **layers; /* [copies]; NULL: only attention over the cache */
    mha_cache *cache;   /* or NULL */
    int64_t *sequences; /* [copies][b] */
    float *x, *y;
    float *d_x, *d_weights; /* gradients of the input, and of all matrices and biases; or NULL */
    void *tape;
    size_t tape_size;
    mha_options options;
    void *work;
    size_t work_size;
    mha_pool *pool;
} layer_body;

static void free_body(void *body)
{
    layer_body *p = body;
    for (int n = 0; p->layers != NULL && n < p->copies; n++)
        mha_layer_free(p->layers[n]);
    free(p->layers);
    mha_cache_free(p->cache);
    mha_pool_free(p->pool);
    free(p->sequences);
    free(p->work);
    free(p->x);
    free(p->y);
    free(p->d_x);
    free(p->d_weights);
    free(p->tape);
    free(p);
}

/* ------------------------------------------------------------------ runs ----- */

static const int64_t *next_sequences(layer_body *p)
{
    const int64_t *now = p->sequences + p->next_copy * p->w.b;
    p->next_copy = (p->next_copy + 1) % p->copies;
    return now;
}

static mha_layer_call call_of(const layer_body *p, const int64_t *sequences)
{
    const layer_word *w = &p->w;
    return (mha_layer_call){.size = sizeof(mha_layer_call),
                            .B = w->b,
                            .L = w->l,
                            .query = mha_view_ble(p->x, w->l, w->e),
                            .output = mha_out_ble(p->y, w->l, w->e),
                            .cache = p->cache,
                            .sequences = p->cache != NULL ? sequences : NULL,
                            .options = &p->options,
                            .tape = p->tape,
                            .tape_size = p->tape_size};
}

/* Views of the gradients in d_weights: four matrices, then four biases. The loss is such that the
 * gradient of the output is x. */
static mha_layer_gradients gradients_of(const layer_body *p)
{
    const layer_word *w = &p->w;
    const ptrdiff_t q = w->h * w->d, k = w->g * w->d, v = w->g * w->v, o = w->h * w->v;
    float *const matrices = p->d_weights, *const biases = matrices + w->e * (q + k + v + o);
    return (mha_layer_gradients){.size = sizeof(mha_layer_gradients),
                                 .d_output = mha_view_ble(p->x, w->l, w->e),
                                 .d_query = mha_out_ble(p->d_x, w->l, w->e),
                                 .q = {matrices, w->e, 1},
                                 .k = {matrices + w->e * q, w->e, 1},
                                 .v = {matrices + w->e * (q + k), w->e, 1},
                                 .o = {matrices + w->e * (q + k + v), o, 1},
                                 .q_bias = biases,
                                 .k_bias = biases + q,
                                 .v_bias = biases + q + k,
                                 .o_bias = biases + q + k + v};
}

/* The forward pass and all gradients, as in a training step. */
static mha_status run_training(void *body)
{
    layer_body *p = body;
    const mha_layer_call call = call_of(p, NULL);
    const mha_layer_gradients gradients = gradients_of(p);
    const mha_status status = mha_layer_run(p->layers[0], &call, p->work, p->work_size, p->pool);
    if (status != MHA_OK)
        return status;
    return mha_layer_backward(p->layers[0], &call, &gradients, p->work, p->work_size, p->pool);
}

static mha_status run_layer(void *body)
{
    layer_body *p = body;
    const mha_layer *layer = p->layers[p->next_copy];
    const int64_t *sequences = next_sequences(p);
    const mha_layer_call call = call_of(p, sequences);
    mha_status status = mha_layer_run(layer, &call, p->work, p->work_size, p->pool);
    for (ptrdiff_t b = 0; p->cache != NULL && b < p->w.b && status == MHA_OK; b++)
        status = mha_cache_truncate(p->cache, (ptrdiff_t)sequences[b], p->w.s - p->w.l);
    return status;
}

static mha_shape heads_of(const layer_word *w)
{
    return (mha_shape){.B = w->b, .H = w->h, .L = w->l};
}

static mha_status run_cache(void *body)
{
    layer_body *p = body;
    const layer_word *w = &p->w;
    const mha_shape shape = heads_of(w);
    return mha_cache_attention(
        p->cache, next_sequences(p), &shape, mha_view_blhd(p->x, w->h, w->l, w->d),
        mha_out_blhd(p->y, w->h, w->l, w->v), &p->options, p->work, p->work_size, p->pool);
}

/* --------------------------------------------------------------- weights ----- */

static double largest(const layer_word *w)
{
    const ptrdiff_t wide = w->d > w->v ? w->d : w->v;
    return (double)w->e * (double)w->h * (double)wide;
}

/* All matrices and biases overlap in one block of numbers, each at another offset: separate sources
 * for the four of GPT-3 would take as much memory as the layer itself. */
static mha_layer_weights weights_of(const layer_word *w, const float *block)
{
    enum { SHIFT = 4099 };
    const float *k = block + SHIFT, *v = block + 2 * SHIFT, *o = block + 3 * SHIFT;
    return (mha_layer_weights){.size = sizeof(mha_layer_weights),
                               .q = mha_matrix_out_in(block, MHA_F32, w->e),
                               .k = mha_matrix_out_in(k, MHA_F32, w->e),
                               .v = mha_matrix_out_in(v, MHA_F32, w->e),
                               .o = mha_matrix_out_in(o, MHA_F32, w->h * w->v),
                               .q_bias = {k, MHA_F32},
                               .k_bias = {v, MHA_F32},
                               .v_bias = {o, MHA_F32},
                               .o_bias = {block, MHA_F32}};
}

static mha_status make_layers(layer_body *p, char *why, size_t size)
{
    const layer_word *w = &p->w;
    const double biases = (double)w->e + (double)(w->h * (w->d + w->v)) + 4.0 * 4099.0;
    float *block = bench_case_numbers(largest(w) + biases, 1.0f / sqrtf((float)w->e));
    p->layers = calloc((size_t)p->copies, sizeof(mha_layer *));
    if (block == NULL || p->layers == NULL) {
        free(block);
        return MHA_ERR_MEMORY;
    }
    const mha_layer_weights weights = weights_of(w, block);
    const mha_layer_config config = {.size = sizeof config,
                                     .E = w->e,
                                     .H = w->h,
                                     .G = w->g,
                                     .D = w->d,
                                     .Dv = w->v,
                                     .stored = w->stored,
                                     .message = why,
                                     .message_size = size,
                                     .arithmetic = layer_word_arithmetic(w)};
    mha_status status = MHA_OK;
    for (int n = 0; status == MHA_OK && n < p->copies; n++)
        status = mha_layer_create(&p->layers[n], &config, &weights);
    free(block);
    return status;
}

/* ----------------------------------------------------------------- cache ----- */

/* Appends the same tokens to every sequence. */
static mha_status fill_cache(layer_body *p, ptrdiff_t tokens)
{
    const layer_word *w = &p->w;
    const double rows = (double)w->g * (double)tokens;
    float *k = bench_case_numbers(rows * (double)w->d, 1.0f);
    float *v = bench_case_numbers(rows * (double)w->v, 1.0f);
    mha_view k_view = mha_view_bhld(k, w->g, tokens, w->d);
    mha_view v_view = mha_view_bhld(v, w->g, tokens, w->v);
    k_view.sb = v_view.sb = 0;
    mha_status status = MHA_ERR_MEMORY;
    if (k != NULL && v != NULL)
        status = mha_cache_append(p->cache, p->copies * w->b, NULL, tokens, NULL, k_view, MHA_F32,
                                  v_view, MHA_F32);
    free(k);
    free(v);
    return status;
}

static mha_status make_cache(layer_body *p, char *why, size_t size)
{
    const layer_word *w = &p->w;
    const mha_cache_config config = {.size = sizeof config,
                                     .sequences = p->copies * w->b,
                                     .capacity = w->s,
                                     .G = w->g,
                                     .D = w->d,
                                     .Dv = w->v,
                                     .k_type = w->cache,
                                     .v_type = w->cache,
                                     .message = why,
                                     .message_size = size};
    const mha_status status = mha_cache_create(&p->cache, &config);
    const ptrdiff_t tokens = w->kind == WORD_DECODE ? w->s - w->l : w->s;
    return status == MHA_OK && tokens > 0 ? fill_cache(p, tokens) : status;
}

/* -------------------------------------------------------------- creation ----- */

static size_t work_size_of(const layer_body *p, int threads)
{
    if (p->layers == NULL) {
        const mha_shape shape = heads_of(&p->w);
        return mha_cache_work_size(p->cache, &shape, &p->options, threads);
    }
    const mha_layer_call call = call_of(p, p->sequences);
    const size_t forward = mha_layer_work_size(p->layers[0], &call, threads);
    const size_t back = p->w.grad ? mha_layer_backward_work_size(p->layers[0], &call, threads) : 0;
    return forward > back ? forward : back;
}

static mha_status take_tape(layer_body *p)
{
    const mha_layer_call call = call_of(p, NULL);
    p->tape_size = mha_layer_tape_size(p->layers[0], &call);
    p->tape = bench_case_memory(p->tape_size);
    return p->tape != NULL ? MHA_OK : MHA_ERR_MEMORY;
}

/* Makes pool, layers, cache, tape and workspace, and runs once. `why` receives the library's
 * message. */
static mha_status prepare(bench_case *bench, layer_body *p, char *why, size_t size)
{
    mha_status status = bench->threads > 1 ? mha_pool_create(&p->pool, bench->threads) : MHA_OK;
    if (status == MHA_OK && p->w.kind != WORD_CACHE)
        status = make_layers(p, why, size);
    if (status == MHA_OK && p->w.kind != WORD_LAYER)
        status = make_cache(p, why, size);
    if (status == MHA_OK && p->w.grad)
        status = take_tape(p);
    if (status != MHA_OK)
        return status;
    p->options.message = why;
    p->options.message_size = size;
    bench->work_size = p->work_size = work_size_of(p, bench->threads);
    p->work = bench_case_memory(p->work_size);
    status = p->work != NULL ? bench->run(p) : MHA_ERR_MEMORY;
    p->options.message = NULL;
    p->options.message_size = 0;
    return status;
}

static bool take_memory(layer_body *p)
{
    const layer_word *w = &p->w;
    const double rows = (double)w->b * (double)w->l;
    const double in = w->kind == WORD_CACHE ? (double)(w->h * w->d) : (double)w->e;
    const double out = w->kind == WORD_CACHE ? (double)(w->h * w->v) : (double)w->e;
    if ((double)p->copies * (double)w->b * (double)w->s > 0x1p40)
        return false;
    p->x = bench_case_numbers(rows * in, 1.0f);
    p->y = bench_case_numbers(rows * out, 1.0f);
    p->d_x = w->grad ? bench_case_numbers(rows * in, 1.0f) : NULL;
    p->d_weights =
        w->grad ? bench_case_numbers(layer_word_weights(w) + layer_word_outputs(w), 1.0f) : NULL;
    if (w->grad && (p->d_x == NULL || p->d_weights == NULL))
        return false;
    p->sequences = calloc((size_t)(p->copies * w->b), sizeof *p->sequences);
    for (ptrdiff_t n = 0; p->sequences != NULL && n < p->copies * w->b; n++)
        p->sequences[n] = n;
    return p->x != NULL && p->y != NULL && p->sequences != NULL;
}

bool bench_case_layer(bench_case *bench, const layer_word *w, char *message, size_t size)
{
    char why[WORD_MESSAGE_MAX] = "";
    layer_body *p = calloc(1, sizeof *p);
    if (p == NULL)
        return false;
    bench->body = p;
    bench->run = w->kind == WORD_CACHE ? run_cache : w->grad ? run_training : run_layer;
    bench->free = free_body;
    p->w = *w;
    p->copies = bench->copies;
    p->options.size = sizeof p->options;
    p->options.flags = w->kind != WORD_LAYER || w->causal ? (uint32_t)MHA_CAUSAL : 0u;
    if (!take_memory(p))
        return false;
    const mha_status status = prepare(bench, p, why, sizeof why);
    return bench_case_accepted(bench, status, why, message, size);
}
