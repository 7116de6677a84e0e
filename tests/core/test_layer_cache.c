/* SPDX-License-Identifier: MIT */
/*
 * Layers with a cache: however a text is cut into calls, and however the cache lies in memory,
 * every token gets the bits it gets in one long causal call. A memory for cross-attention, stored
 * once and recalled, gives the bits of the direct call.
 */
#include "support/layer_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- generation ---- */

static void check_generation(const text *t, mha_cache_kind kind, ptrdiff_t capacity, mha_pool *pool)
{
    for (int how = 0; how < CUTS; how++) {
        mha_cache *const cache = text_cache(t, kind, capacity, MHA_F32);
        text_generate(t, cache, (text_cut)how, how == CHUNKS ? pool : NULL, t->c->spec.seed + 3);
        CHECK(snapshot_same(&t->whole, t->c->memory), "%s: other bits, cache %d, cut %d",
              layer_case_name(t->c), (int)kind, how);
        mha_cache_free(cache);
    }
}

static void contiguous_and_paged(void)
{
    const uint64_t first = test_seed(100);
    mha_pool *pool = NULL;
    CHECK(mha_pool_create(&pool, 3) == MHA_OK, "pool");
    for (int64_t n = 0; n < test_effort(40); n++) {
        const ptrdiff_t longest = n % 10 == 0 ? 150 : 1 + (ptrdiff_t)(n * 7 % 70);
        text *const t = text_new(first + (uint64_t)n, longest, n % 3 == 0 ? n % 20 : -1);
        check_generation(t, MHA_CACHE_CONTIGUOUS, longest, pool);
        check_generation(t, MHA_CACHE_PAGED, longest + 5, pool);
        text_free(t);
    }
    mha_pool_free(pool);
}

/* Longer than one partial softmax of the operator. */
static void long_texts(void)
{
    text *const t = text_new(test_seed(77), 1100, -1);
    for (int kind = 0; kind < 2; kind++) {
        mha_cache *const cache =
            text_cache(t, kind ? MHA_CACHE_PAGED : MHA_CACHE_CONTIGUOUS, 1100, MHA_F32);
        text_generate(t, cache, CHUNKS, NULL, 5);
        CHECK(snapshot_same(&t->whole, t->c->memory), "%s: other bits", layer_case_name(t->c));
        mha_cache_free(cache);
    }
    text_free(t);
}

/* Rings of exactly the window and larger ones; texts that go round many times, in one call too. */
static void rings(void)
{
    static const ptrdiff_t windows[] = {31, 63, 0, 1, 20, 30, 32, 40};
    const uint64_t first = test_seed(300);
    mha_pool *pool = NULL;
    CHECK(mha_pool_create(&pool, 2) == MHA_OK, "pool");
    for (int64_t n = 0; n < test_effort(24); n++) {
        const ptrdiff_t window = windows[n % 8];
        text *const t = text_new(first + (uint64_t)n, 1 + (ptrdiff_t)(n * 53 % 230), window);
        check_generation(t, MHA_CACHE_RING, window + 1, pool);
        check_generation(t, MHA_CACHE_RING, window + 50, pool);
        text_free(t);
    }
    mha_pool_free(pool);
}

/* Narrow caches round each token once: the cuts agree with each other to the bit, and with f32 as
 * far as the type goes. */
static void narrow_caches(void)
{
    static const struct {
        mha_dtype type;
        double tolerance;
    } types[] = {{MHA_F16, 0.02}, {MHA_BF16, 0.1}, {MHA_I8, 0.2}};
    for (int n = 0; n < 24; n++) {
        const mha_dtype type = types[n % 3].type;
        layer_case *c = NULL;
        text *const t = text_new(500 + (uint64_t)n, 40, n % 2 ? 31 : -1);
        c = t->c;
        const mha_cache_kind kind = n % 2 ? MHA_CACHE_RING : n % 4 ? MHA_CACHE_PAGED : 0;
        mha_cache *cache = text_cache(t, kind, 40, type);
        text_generate(t, cache, TOKENS, NULL, 1);
        mha_cache_free(cache);
        snapshot tokens = snapshot_of(c->memory);
        cache = text_cache(t, kind, 40, type);
        text_generate(t, cache, CHUNKS, NULL, 2);
        mha_cache_free(cache);
        CHECK(snapshot_same(&tokens, c->memory), "%s: other bits, type %d", layer_case_name(c),
              (int)type);
        const float *const near = (const float *)(void *)t->whole.bytes[TENSOR_WEIGHTS];
        const float *const got = (const float *)(void *)tokens.bytes[TENSOR_WEIGHTS];
        const size_t count = c->memory->tensors[TENSOR_WEIGHTS].bytes / sizeof(float);
        for (size_t k = 0; k < count; k++)
            CHECK(memcmp(&got[k], &near[k], 4) == 0 ||
                      fabs((double)got[k] - (double)near[k]) <= types[n % 3].tolerance,
                  "%s: type %d, weight %zu is %g, in f32 %g", layer_case_name(c), (int)type, k,
                  (double)got[k], (double)near[k]);
        snapshot_free(&tokens);
        text_free(t);
    }
}

/* The workspace of the first call serves all later ones of the same size. */
static void workspace_of_the_first_call(void)
{
    text *const t = text_new(611, 90, -1);
    mha_cache *const cache = text_cache(t, MHA_CACHE_PAGED, 90, MHA_F32);
    step s = {.t = t, .B = 1, .L = 1, .sequences = {1}, .counts = {1}};
    size_t size = 0;
    for (s.at[0] = 0; s.at[0] < t->lengths[1]; s.at[0]++) {
        step_begin(&s, cache);
        if (s.at[0] == 0)
            size = mha_layer_work_size(t->c->layer, &s.call, 1);
        guard_buffer work = guard_new(size, s.at[0] % 2 ? GUARD_AFTER : GUARD_BEFORE);
        const mha_status status = mha_layer_run(t->c->layer, &s.call, work.data, size, NULL);
        CHECK(status == MHA_OK && size > 0, "token %lld: %s", (long long)s.at[0],
              mha_status_string(status));
        CHECK(guard_intact(&work), "written outside");
        guard_free(&work);
        step_end(&s);
    }
    mha_cache_free(cache);
    text_free(t);
}

/* ------------------------------------------------------------- cross-attention ---- */

static layer_spec memory_spec(uint64_t seed)
{
    layer_spec spec = layer_spec_random(seed);
    spec.parts |= LAYER_CROSS;
    spec.parts &= ~(unsigned)(LAYER_POSITIONS | LAYER_SEQUENCE_FIRST);
    if (!(spec.parts & LAYER_VALUE))
        spec.config.value_width = spec.config.key_width;
    spec.options &=
        ~(unsigned)(FEATURE_PACKED | FEATURE_STRIDES | FEATURE_DOCUMENTS | FEATURE_OFFSET);
    spec.options &= ~(unsigned)(FEATURE_CAUSAL | FEATURE_WINDOW | FEATURE_ALIBI);
    spec.options |= FEATURE_LSE;
    return spec;
}

/* Store the key and value inputs, `chunk` tokens a call. */
static void store(const layer_case *c, mha_cache *cache, ptrdiff_t chunk)
{
    const mha_layer_config f = layer_defaults(&c->p.config);
    const ptrdiff_t S = c->p.call.S, size = (ptrdiff_t)mha_dtype_size(c->spec.input_type);
    const attention_call *const op = &c->memory->call;
    for (ptrdiff_t at = 0; at < S; at += chunk) {
        const ptrdiff_t rows = S - at < chunk ? S - at : chunk;
        int64_t lengths[TEXTS] = {0};
        for (ptrdiff_t b = 0; b < c->p.call.B; b++) {
            const ptrdiff_t left = call_keys(op, b) - at;
            lengths[b] = left < 0 ? 0 : left < rows ? left : rows;
        }
        const mha_options options = {.size = sizeof options, .k_lengths = lengths};
        mha_layer_call call = {.size = sizeof call,
                               .B = c->p.call.B,
                               .S = rows,
                               .key = c->p.call.key,
                               .value = c->p.call.value,
                               .input_type = c->spec.input_type,
                               .cache = cache,
                               .cache_use = MHA_CACHE_STORE,
                               .options = &options};
        call.key.data = (const char *)call.key.data + at * f.key_width * size;
        if (call.value.data)
            call.value.data = (const char *)call.value.data + at * f.value_width * size;
        const mha_status status = mha_layer_run(c->layer, &call, NULL, 0, NULL);
        CHECK(status == MHA_OK, "%s: store: %s", layer_case_name(c), mha_status_string(status));
    }
}

static void memory_is_recalled(void)
{
    const uint64_t first = test_seed(900);
    for (int64_t n = 0; n < test_effort(80); n++) {
        const layer_spec spec = memory_spec(first + (uint64_t)n);
        layer_case *const c = layer_case_new(&spec);
        /* Rotation of queries counts from where the caller says, the same in both calls. */
        c->memory->call.options.position = MHA_POSITION_TOP_LEFT;
        layer_case_run(c, NULL);
        snapshot direct = snapshot_of(c->memory);
        const text view = {.c = c};
        mha_cache *const cache =
            text_cache(&view, n % 2 ? MHA_CACHE_PAGED : MHA_CACHE_CONTIGUOUS, spec.S, MHA_F32);
        store(c, cache, n % 3 ? spec.S : 1 + (ptrdiff_t)(n % 5));
        mha_options options = *c->p.call.options;
        options.k_lengths = NULL;
        mha_layer_call call = c->p.call;
        call.key = call.value = (mha_view){0};
        call.cache = cache;
        call.cache_use = MHA_CACHE_RECALL;
        call.options = &options;
        for (int again = 0; again < 2; again++) {
            problem_reset(c->memory);
            const mha_status status = mha_layer_run(c->layer, &call, NULL, 0, NULL);
            CHECK(status == MHA_OK, "%s: recall: %s (%s)", layer_case_name(c),
                  mha_status_string(status), c->memory->message);
            CHECK(snapshot_same(&direct, c->memory), "%s: other bits from the memory",
                  layer_case_name(c));
        }
        snapshot_free(&direct);
        mha_cache_free(cache);
        layer_case_free(c);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(contiguous_and_paged);
    RUN(long_texts);
    RUN(rings);
    RUN(narrow_caches);
    RUN(workspace_of_the_first_call);
    RUN(memory_is_recalled);
    return test_end();
}
