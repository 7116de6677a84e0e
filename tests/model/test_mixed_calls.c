/* SPDX-License-Identifier: MIT */
/*
 * Sixteen threads call everything in random order, on plans, a layer, a cache and a model that they
 * share and on caches of their own. Every result has the bits that one thread got before, and
 * memory does not grow. "make soak" makes a million of these calls.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "mha/mha.h"
#include "mha/mha_model.h"
#include "support/memory_use.h"
#include "support/test.h"
#include "support/tiny_models.h"

enum {
    THREADS = 16,
    CALLS = 3000, /* of all threads together */
    PLANS = 5,
    WIDTH = 48, /* of the layer */
    HEADS = 4,
    HEAD_WIDTH = 16,
    ROWS = 24,
    WORDS = 60,
    TOKENS = 9,
    NUMBERS = 1 << 15, /* the largest output */
    INPUTS = 40000,    /* the keys of the largest call, and what they begin after */
    KINDS = 5
};

static const mha_shape shapes[PLANS] = {
    {.B = 1, .H = 4, .L = 33, .S = 47, .D = 16},
    {.B = 2, .H = 6, .G = 2, .L = 20, .S = 20, .D = 24, .Dv = 10},
    {.B = 3, .H = 2, .L = 1, .S = 90, .D = 64},
    {.B = 1, .H = 1, .L = 70, .S = 70, .D = 5},
    {.B = 8, .H = 4, .L = 3, .S = 12, .D = 40},
};

static const mha_options variants[PLANS] = {
    {.size = sizeof(mha_options)},
    {.size = sizeof(mha_options), .flags = MHA_CAUSAL},
    {.size = sizeof(mha_options), .softcap = 5},
    {.size = sizeof(mha_options), .flags = MHA_CAUSAL, .dropout = 0.3f, .dropout_seed = 9},
    {.size = sizeof(mha_options), .scale = 0.1f},
};

/* What all threads share and none changes. */
typedef struct world {
    float numbers[INPUTS];
    mha_plan *plans[PLANS];
    mha_layer *layer;
    mha_cache *cache;
    mha_model *model;
    int32_t ids[TOKENS];
} world;

typedef float result[NUMBERS];

/* ---------------------------------------------------------------------- calls ---- */

static mha_status call_plan(const world *w, int which, float *to, mha_pool *pool)
{
    const mha_shape *const s = &shapes[which];
    const mha_plan *const plan = w->plans[which];
    const ptrdiff_t groups = s->G ? s->G : s->H, values = s->Dv ? s->Dv : s->D;
    const size_t size = mha_plan_work_size(plan, 2);
    void *const workspace = malloc(size);
    const mha_status status =
        mha_plan_run(plan, mha_view_bhld(w->numbers, s->H, s->L, s->D),
                     mha_view_bhld(w->numbers + 7, groups, s->S, s->D),
                     mha_view_bhld(w->numbers + 13, groups, s->S, values),
                     mha_out_bhld(to, s->H, s->L, values), &variants[which], workspace, size, pool);
    free(workspace);
    return status;
}

static mha_status call_layer(const world *w, int which, float *to, mha_pool *pool)
{
    const mha_layer_call call = {.size = sizeof call,
                                 .B = 2,
                                 .L = ROWS - which,
                                 .query = mha_view_ble(w->numbers + which, ROWS, WIDTH),
                                 .output = mha_out_ble(to, ROWS, WIDTH),
                                 .options = &variants[which % 2]};
    return mha_layer_run(w->layer, &call, NULL, 0, pool);
}

static const mha_shape step = {.B = 2, .H = HEADS, .L = 1, .D = HEAD_WIDTH};

static mha_status read_cache(const world *w, int which, float *to, mha_pool *pool)
{
    const int64_t sequences[2] = {which % 3, (which + 1) % 3};
    return mha_cache_attention(w->cache, sequences, &step,
                               mha_view_bhld(w->numbers + which, HEADS, 1, HEAD_WIDTH),
                               mha_out_bhld(to, HEADS, 1, HEAD_WIDTH), NULL, NULL, 0, pool);
}

static mha_status fill_cache(mha_cache *cache, const world *w, int which)
{
    const int64_t lengths[3] = {5 + which, ROWS, 1};
    const mha_view rows = mha_view_bhld(w->numbers + which, HEADS, ROWS, HEAD_WIDTH);
    return mha_cache_append(cache, 3, NULL, ROWS, lengths, rows, MHA_F32, rows, MHA_F32);
}

static mha_cache *new_cache(void)
{
    mha_cache *cache = NULL;
    const mha_cache_config config = {.size = sizeof config,
                                     .kind = MHA_CACHE_PAGED,
                                     .sequences = 3,
                                     .capacity = 128,
                                     .page_tokens = 32,
                                     .G = HEADS,
                                     .D = HEAD_WIDTH,
                                     .v_type = MHA_BF16};
    return mha_cache_create(&cache, &config) == MHA_OK ? cache : NULL;
}

/* A cache is made, filled, forked, cut and read. */
static mha_status live_cache(const world *w, int which, float *to, mha_pool *pool)
{
    mha_cache *const cache = new_cache();
    mha_status status = cache ? fill_cache(cache, w, which) : MHA_ERR_MEMORY;
    if (!status)
        status = mha_cache_fork(cache, 0, 1);
    if (!status)
        status = mha_cache_truncate(cache, 0, 3 + which);
    if (!status)
        status = fill_cache(cache, w, which + 1);
    if (!status)
        status =
            mha_cache_attention(cache, NULL, &step, mha_view_bhld(w->numbers, HEADS, 1, HEAD_WIDTH),
                                mha_out_bhld(to, HEADS, 1, HEAD_WIDTH), NULL, NULL, 0, pool);
    mha_cache_free(cache);
    return status;
}

static mha_status call_model(const world *w, int which, float *to, mha_pool *pool)
{
    const int64_t starts[3] = {0, 2 + which, TOKENS};
    const mha_model_call call = {
        .size = sizeof call, .B = 2, .starts = starts, .ids = w->ids, .logits = to};
    return mha_model_run(w->model, &call, NULL, 0, pool);
}

/* Writes its numbers to the beginning of `to`; the rest is zero. */
static mha_status call_any(const world *w, int kind, int which, float *to, mha_pool *pool)
{
    typedef mha_status function(const world *, int, float *, mha_pool *);
    static function *const functions[KINDS] = {call_plan, call_layer, read_cache, live_cache,
                                               call_model};
    memset(to, 0, sizeof(result));
    return functions[kind](w, which, to, pool);
}

/* ---------------------------------------------------------------------- world ---- */

static mha_layer *new_layer(const world *w)
{
    mha_layer *layer = NULL;
    const mha_layer_config config = {.size = sizeof config, .E = WIDTH, .H = HEADS};
    const mha_matrix matrix = mha_matrix_out_in(w->numbers, MHA_F32, WIDTH);
    const mha_layer_weights weights = {.size = sizeof weights,
                                       .q = matrix,
                                       .k = mha_matrix_from(matrix, 11),
                                       .v = mha_matrix_from(matrix, 23),
                                       .o = mha_matrix_from(matrix, 31)};
    CHECK(mha_layer_create(&layer, &config, &weights) == MHA_OK, "layer");
    return layer;
}

static world *new_world(void)
{
    world *const w = calloc(1, sizeof *w);
    test_random random = {test_seed(77)};
    for (int n = 0; n < INPUTS; n++)
        w->numbers[n] = test_random_normal(&random);
    for (int n = 0; n < PLANS; n++)
        CHECK(mha_plan_create(&w->plans[n], &shapes[n], &variants[n]) == MHA_OK, "plan %d", n);
    w->layer = new_layer(w);
    w->cache = new_cache();
    CHECK(w->cache && fill_cache(w->cache, w, 2) == MHA_OK, "cache");
    w->model = tiny_model_new(TINY_LLAMA, MHA_STORE_Q8, 4, NULL);
    tiny_ids(w->ids, TOKENS, WORDS, 3);
    return w;
}

static void free_world(world *w)
{
    for (int n = 0; n < PLANS; n++)
        mha_plan_free(w->plans[n]);
    mha_layer_free(w->layer);
    mha_cache_free(w->cache);
    mha_model_free(w->model);
    free(w);
}

/* -------------------------------------------------------------------- threads ---- */

typedef struct worker {
    const world *world;
    result *expected; /* [KINDS][PLANS] */
    uint64_t seed;
    int64_t calls, failed, different;
    mha_pool *pool;
} worker;

static void *work(void *arg)
{
    worker *const w = arg;
    test_random random = {w->seed};
    float *const own = malloc(sizeof(result));
    for (int64_t n = 0; own && n < w->calls; n++) {
        const int kind = (int)test_random_below(&random, KINDS);
        const int which = (int)test_random_below(&random, PLANS);
        w->failed += call_any(w->world, kind, which, own, w->pool) != MHA_OK;
        w->different += memcmp(own, w->expected[kind * PLANS + which], sizeof(result)) != 0;
    }
    w->failed += !own;
    free(own);
    return NULL;
}

/* Every fourth thread has others to help it. */
static void run_threads(const world *w, result *expected, int64_t calls, uint64_t seed)
{
    pthread_t threads[THREADS];
    worker workers[THREADS];
    for (int n = 0; n < THREADS; n++) {
        workers[n] = (worker){.world = w,
                              .expected = expected,
                              .seed = test_seed(seed + (uint64_t)n),
                              .calls = calls / THREADS + 1};
        CHECK(n % 4 || mha_pool_create(&workers[n].pool, 2) == MHA_OK, "pool %d", n);
        CHECK(pthread_create(&threads[n], NULL, work, &workers[n]) == 0, "thread %d", n);
    }
    for (int n = 0; n < THREADS; n++) {
        pthread_join(threads[n], NULL);
        mha_pool_free(workers[n].pool);
        CHECK(workers[n].failed == 0, "%lld calls failed", (long long)workers[n].failed);
        CHECK(workers[n].different == 0, "%lld of %lld results differ",
              (long long)workers[n].different, (long long)workers[n].calls);
    }
}

static void threads_call_everything(void)
{
    world *const w = new_world();
    result *const expected = malloc(sizeof(result) * KINDS * PLANS);
    for (int n = 0; n < KINDS * PLANS; n++) {
        const mha_status status = call_any(w, n / PLANS, n % PLANS, expected[n], NULL);
        CHECK(status == MHA_OK, "kind %d: %s", n / PLANS, mha_status_string(status));
    }
    const int64_t calls = test_effort(CALLS);
    run_threads(w, expected, calls / 10, 1000);
    const size_t before = memory_now();
    run_threads(w, expected, calls, 2000);
    const size_t after = memory_now();
    CHECK(after < before + ((size_t)16 << 20), "memory grew from %zu to %zu bytes", before, after);
    free(expected);
    free_world(w);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(threads_call_everything);
    return test_end();
}
