/* SPDX-License-Identifier: MIT */
/* Steps of a layer that cannot be: each has its own status, and leaves no trace in the cache. */
#include "support/layer_text.h"

#include <string.h>

enum { GAP = 0xa5 };

typedef struct cache_state {
    ptrdiff_t lengths[TEXTS], pages;
    float keys[TEXTS][64];
} cache_state;

/* Lengths, pages, and the last keys of every sequence. */
static cache_state state_of(const mha_cache *cache)
{
    cache_state state = {.pages = mha_cache_free_pages(cache)};
    const mha_cache_config config = mha_cache_get_config(cache);
    for (int b = 0; b < TEXTS; b++) {
        state.lengths[b] = mha_cache_length(cache, b);
        if (state.lengths[b] > 0 && config.G * config.D <= 64)
            CHECK(mha_cache_read(cache, b, state.lengths[b] - 1, 1,
                                 (mha_out){state.keys[b], 0, config.D, config.D},
                                 (mha_out){0}) == MHA_OK,
                  "read");
    }
    return state;
}

/* The step must fail so, and nothing may be written anywhere. */
static void expect_refusal(step *s, const mha_layer_call *call, mha_status wanted, const char *what)
{
    const cache_state before = state_of(call->cache);
    const size_t bytes = (size_t)(s->B * s->L) *
                         (size_t)layer_defaults(&s->t->c->p.config).output_width *
                         mha_dtype_size(s->t->c->spec.output_type);
    memset(s->y, GAP, bytes);
    const mha_status status = mha_layer_run(s->t->c->layer, call, NULL, 0, NULL);
    CHECK(status == wanted, "%s: %s", what, mha_status_string(status));
    for (size_t n = 0; n < bytes; n++)
        CHECK(s->y[n] == GAP, "%s: output written", what);
    const cache_state after = state_of(call->cache);
    CHECK(memcmp(&before, &after, sizeof after) == 0, "%s: the cache changed", what);
}

/* One sequence of two would outgrow its room: neither grows. */
static void no_room_changes_nothing(void)
{
    for (int kind = 0; kind < 3; kind += 2) {
        text *const t = text_new(1200, 60, -1);
        mha_cache *const cache = text_cache(t, (mha_cache_kind)kind, 40, MHA_F32);
        t->lengths[0] = 10;
        t->lengths[1] = 38;
        t->lengths[2] = 1;
        text_generate(t, cache, CHUNKS, NULL, 4);
        step s = {.t = t, .B = 2, .L = 3, .sequences = {0, 1}, .counts = {3, 3}, .at = {10, 38}};
        step_begin(&s, cache);
        expect_refusal(&s, &s.call, MHA_ERR_FULL, "past the capacity");
        s.counts[1] = 2;
        CHECK(mha_layer_run(t->c->layer, &s.call, NULL, 0, NULL) == MHA_OK, "up to the capacity");
        CHECK(mha_cache_length(cache, 0) == 13 && mha_cache_length(cache, 1) == 40, "lengths");
        step_end(&s);
        mha_cache_free(cache);
        text_free(t);
    }
}

static void no_pages_change_nothing(void)
{
    text *const t = text_new(1201, 60, -1);
    const mha_layer_config f = layer_defaults(&t->c->p.config);
    const mha_cache_config config = {.size = sizeof config,
                                     .kind = MHA_CACHE_PAGED,
                                     .sequences = TEXTS,
                                     .capacity = 96,
                                     .page_tokens = 32,
                                     .pages = 3,
                                     .G = f.G,
                                     .D = f.D,
                                     .Dv = f.Dv};
    mha_cache *cache = NULL;
    CHECK(mha_cache_create(&cache, &config) == MHA_OK, "cache");
    t->lengths[0] = t->lengths[1] = 31;
    t->lengths[2] = 0;
    text_generate(t, cache, ALL_AT_ONCE, NULL, 4);
    step s = {.t = t, .B = 2, .L = 2, .sequences = {0, 1}, .counts = {2, 2}, .at = {31, 31}};
    step_begin(&s, cache);
    expect_refusal(&s, &s.call, MHA_ERR_FULL, "two pages where there is one");
    s.counts[1] = 1;
    CHECK(mha_layer_run(t->c->layer, &s.call, NULL, 0, NULL) == MHA_OK, "one page");
    CHECK(mha_cache_free_pages(cache) == 0, "pages left");
    step_end(&s);
    mha_cache_free(cache);
    text_free(t);
}

/* Calls with a cache that cannot be. */
static void wrong_calls(void)
{
    text *const t = text_new(1202, 8, -1);
    const mha_layer_config f = layer_defaults(&t->c->p.config);
    mha_cache *const cache = text_cache(t, MHA_CACHE_CONTIGUOUS, 20, MHA_F32);
    step s = {.t = t, .B = 2, .L = 2, .sequences = {0, 1}, .counts = {2, 2}};
    step_begin(&s, cache);
    const int64_t wrong_sequences[][2] = {{0, 0}, {0, 3}, {-1, 0}, {1, INT64_MAX}};
    for (int n = 0; n < 4; n++) {
        mha_layer_call call = s.call;
        call.sequences = wrong_sequences[n];
        expect_refusal(&s, &call, MHA_ERR_SEQUENCE, "sequences");
    }
    mha_layer_call call = s.call;
    call.cache_use = (mha_cache_use)3;
    expect_refusal(&s, &call, MHA_ERR_FLAG, "unknown use");
    call = s.call;
    call.S = 1;
    expect_refusal(&s, &call, MHA_ERR_SHAPE, "fewer columns than tokens");
    mha_options options = s.options;
    const int64_t starts[] = {0, 2, 4};
    options.k_starts = starts;
    call = s.call;
    call.options = &options;
    expect_refusal(&s, &call, MHA_ERR_FLAG, "k_starts");
    const int64_t too_long[] = {2, 3};
    options = s.options;
    options.q_lengths = too_long;
    expect_refusal(&s, &call, MHA_ERR_LENGTH, "q_lengths");

    const ptrdiff_t wrong[][3] = {{f.G + 1, f.D, f.Dv}, {f.G, f.D + 1, f.Dv}, {f.G, f.D, f.Dv + 1}};
    for (int n = 0; n < 3; n++) {
        const mha_cache_config config = {.size = sizeof config,
                                         .sequences = TEXTS,
                                         .capacity = 20,
                                         .G = wrong[n][0],
                                         .D = wrong[n][1],
                                         .Dv = wrong[n][2]};
        mha_cache *other = NULL;
        CHECK(mha_cache_create(&other, &config) == MHA_OK, "cache");
        call = s.call;
        call.cache = other;
        expect_refusal(&s, &call, MHA_ERR_SHAPE, "another layer's cache");
        mha_cache_free(other);
    }
    CHECK(mha_layer_run(t->c->layer, &s.call, NULL, 0, NULL) == MHA_OK, "the call itself");
    step_end(&s);
    mha_cache_free(cache);
    text_free(t);
}

/* Inputs and lengths that do not go with what the cache is for. */
static void wrong_uses(void)
{
    text *const t = text_new(1204, 8, -1);
    mha_cache *const cache = text_cache(t, MHA_CACHE_PAGED, 20, MHA_F32);
    step s = {.t = t, .B = 2, .L = 2, .sequences = {0, 1}, .counts = {2, 2}};
    step_begin(&s, cache);
    for (int value = 0; value < 2; value++)
        for (int use = MHA_CACHE_STEP; use <= MHA_CACHE_RECALL; use += 2) {
            mha_layer_call call = s.call;
            *(value ? &call.value : &call.key) = call.query;
            call.cache_use = (mha_cache_use)use;
            expect_refusal(&s, &call, MHA_ERR_FLAG, "a key or value input");
        }
    mha_layer_call call = s.call;
    call.cache_use = MHA_CACHE_STORE;
    expect_refusal(&s, &call, MHA_ERR_FLAG, "nothing to store");
    mha_options options = s.options;
    options.k_lengths = s.counts;
    call = s.call;
    call.options = &options;
    expect_refusal(&s, &call, MHA_ERR_FLAG, "k_lengths in a step");
    call = s.call;
    call.cache = NULL;
    for (int use = MHA_CACHE_STORE; use <= MHA_CACHE_RECALL; use++) {
        call.cache_use = (mha_cache_use)use;
        const mha_status status = mha_layer_run(t->c->layer, &call, NULL, 0, NULL);
        CHECK(status == MHA_ERR_NULL, "no cache to use: %s", mha_status_string(status));
    }
    step_end(&s);
    mha_cache_free(cache);
    text_free(t);
}

/* A ring that keeps fewer tokens than a window sees is refused at once, not when it is full. */
static void rings_smaller_than_the_window(void)
{
    text *const t = text_new(1203, 8, 32);
    mha_cache *const cache = text_cache(t, MHA_CACHE_RING, 32, MHA_F32);
    step s = {.t = t, .B = 2, .L = 2, .sequences = {0, 1}, .counts = {2, 2}};
    step_begin(&s, cache);
    expect_refusal(&s, &s.call, MHA_ERR_WINDOW, "a window of 33 in a ring of 32");
    s.options.window_left = 31;
    CHECK(mha_layer_run(t->c->layer, &s.call, NULL, 0, NULL) == MHA_OK, "a window of 32");
    step_end(&s);
    mha_cache_free(cache);
    text_free(t);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(no_room_changes_nothing);
    RUN(no_pages_change_nothing);
    RUN(wrong_calls);
    RUN(wrong_uses);
    RUN(rings_smaller_than_the_window);
    return test_end();
}
