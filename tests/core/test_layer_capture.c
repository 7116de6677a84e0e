/* SPDX-License-Identifier: MIT */
/*
 * What a layer computes on its way: attention over the captured Q, K and V gives the captured heads
 * to the bit, and the captured heads times W_O the output; capturing changes no bit of the output;
 * through a cache each call captures its own tokens.
 */
#include "support/layer_case.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

/* Copies of one call, as rows of heads side by side. */
typedef struct copies {
    float *q, *k, *v, *heads;
} copies;

static float *numbers(ptrdiff_t count)
{
    float *const x = calloc((size_t)count + 1, sizeof *x);
    CHECK(x != NULL, "memory");
    return x;
}

static copies copies_request(mha_layer_call *call, const mha_layer_config *c, ptrdiff_t q_rows,
                             ptrdiff_t k_rows)
{
    const copies to = {numbers(q_rows * c->H * c->D), numbers(k_rows * c->G * c->D),
                       numbers(k_rows * c->G * c->Dv), numbers(q_rows * c->H * c->Dv)};
    call->captured_q = mha_out_blhd(to.q, c->H, call->L, c->D);
    call->captured_k = mha_out_blhd(to.k, c->G, call->S ? call->S : call->L, c->D);
    call->captured_v = mha_out_blhd(to.v, c->G, call->S ? call->S : call->L, c->Dv);
    call->captured_heads = mha_out_blhd(to.heads, c->H, call->L, c->Dv);
    return to;
}

static void copies_free(copies *c)
{
    free(c->q);
    free(c->k);
    free(c->v);
    free(c->heads);
}

/* Rows of each side: packed ones are counted to the end of the last batch. */
static ptrdiff_t rows_of(const int64_t *starts, ptrdiff_t B, ptrdiff_t extent)
{
    return starts ? (ptrdiff_t)starts[B] : B * extent;
}

static bool check_heads(const layer_case *c, const copies *got, ptrdiff_t q_rows)
{
    const mha_layer_call *const call = &c->p.call;
    const mha_layer_config f = mha_layer_get_config(c->layer);
    const ptrdiff_t S = call->captured_k.sb / (f.G * f.D);
    const mha_shape shape = {
        .B = call->B, .H = f.H, .G = f.G, .L = call->L, .S = S, .D = f.D, .Dv = f.Dv};
    float *const again = numbers(q_rows * f.H * f.Dv);
    mha_options options = *call->options;
    options.weights.data = options.lse.data = NULL;
    if (!options.k_starts && !call->key.data)
        options.k_starts = options.q_starts;
    const mha_status status =
        mha_attention(&shape, mha_view_blhd(got->q, f.H, call->L, f.D),
                      mha_view_blhd(got->k, f.G, S, f.D), mha_view_blhd(got->v, f.G, S, f.Dv),
                      mha_out_blhd(again, f.H, call->L, f.Dv), &options, NULL);
    const bool same = memcmp(again, got->heads, sizeof(float) * (size_t)(q_rows * f.H * f.Dv)) == 0;
    free(again);
    return CHECK(status == MHA_OK, "%s: %s", layer_case_name(c), mha_status_string(status)) &&
           CHECK(same, "%s: other heads", layer_case_name(c));
}

static bool has_extra_keys(const layer_spec *spec)
{
    return (spec->parts & LAYER_EXTRA) || (spec->config.flags & MHA_LAYER_ZERO_ATTN);
}

static void random_layers(void)
{
    const uint64_t first = test_seed(900);
    int compared = 0;
    for (int64_t n = 0; n < test_effort(400); n++) {
        const layer_spec spec = layer_spec_random(first + (uint64_t)n);
        if (has_extra_keys(&spec))
            continue;
        layer_case *const c = layer_case_new(&spec);
        const mha_layer_config f = mha_layer_get_config(c->layer);
        mha_layer_call *const call = &c->p.call;
        const mha_options *const o = call->options;
        const bool cross = call->key.data || call->value.data;
        const int64_t *const k_starts = cross ? o->k_starts : o->q_starts;
        const ptrdiff_t q_rows = rows_of(o->q_starts, call->B, call->L);
        const ptrdiff_t k_rows = rows_of(k_starts, call->B, cross ? call->S : call->L);
        copies got = copies_request(call, &f, q_rows, k_rows);
        layer_case_run(c, NULL);
        layer_case_check(c, 8);
        compared += check_heads(c, &got, q_rows);
        copies_free(&got);
        layer_case_free(c);
    }
    CHECK(compared > 0, "no layer was compared");
}

/* ------------------------------------------------------------------------ small layers ----- */

enum { E = 12, H = 4, G = 2, D = 6, TOKENS = 9 };

static mha_layer *small_layer(const float *weights)
{
    const mha_layer_config config = {.size = sizeof config,
                                     .E = E,
                                     .H = H,
                                     .G = G,
                                     .D = D,
                                     .norm = MHA_NORM_RMS,
                                     .rope = {.pairs = MHA_ROPE_HALVES}};
    const mha_layer_weights all = {.size = sizeof all,
                                   .q = mha_matrix_out_in(weights, MHA_F32, E),
                                   .k = mha_matrix_out_in(weights + 7, MHA_F32, E),
                                   .v = mha_matrix_out_in(weights + 50, MHA_F32, E),
                                   .o = mha_matrix_out_in(weights + 90, MHA_F32, H * D)};
    mha_layer *layer = NULL;
    CHECK(mha_layer_create(&layer, &config, &all) == MHA_OK, "layer");
    return layer;
}

static void fill(float *x, int count, uint64_t seed)
{
    test_random random = {seed};
    for (int n = 0; n < count; n++)
        x[n] = test_random_float(&random);
}

/* Token by token through a cache: the same copies as all at once. */
static void captured_through_a_cache(void)
{
    float weights[800], x[TOKENS * E], y[2][TOKENS * E];
    fill(weights, 800, 1);
    fill(x, TOKENS * E, 2);
    mha_layer *const layer = small_layer(weights);
    const mha_layer_config f = mha_layer_get_config(layer);
    const mha_options options = {.size = sizeof options, .flags = MHA_CAUSAL};
    mha_layer_call whole = {.size = sizeof whole,
                            .B = 1,
                            .L = TOKENS,
                            .query = mha_view_ble(x, TOKENS, E),
                            .output = mha_out_ble(y[0], TOKENS, E),
                            .options = &options};
    copies all = copies_request(&whole, &f, TOKENS, TOKENS);
    CHECK(mha_layer_run(layer, &whole, NULL, 0, NULL) == MHA_OK, "whole");

    const mha_cache_config caching = {
        .size = sizeof caching, .sequences = 1, .capacity = TOKENS, .G = G, .D = D};
    mha_cache *cache = NULL;
    CHECK(mha_cache_create(&cache, &caching) == MHA_OK, "cache");
    for (int t = 0; t < TOKENS; t++) {
        mha_layer_call step = {.size = sizeof step,
                               .B = 1,
                               .L = 1,
                               .query = mha_view_ble(x + t * E, 1, E),
                               .output = mha_out_ble(y[1] + t * E, 1, E),
                               .cache = cache,
                               .options = &options};
        copies one = copies_request(&step, &f, 1, 1);
        CHECK(mha_layer_run(layer, &step, NULL, 0, NULL) == MHA_OK, "step %d", t);
        CHECK(memcmp(one.q, all.q + t * H * D, sizeof(float) * H * D) == 0, "q of token %d", t);
        CHECK(memcmp(one.k, all.k + t * G * D, sizeof(float) * G * D) == 0, "k of token %d", t);
        CHECK(memcmp(one.v, all.v + t * G * D, sizeof(float) * G * D) == 0, "v of token %d", t);
        CHECK(memcmp(one.heads, all.heads + t * H * D, sizeof(float) * H * D) == 0,
              "heads of token %d", t);
        copies_free(&one);
    }
    CHECK(memcmp(y[0], y[1], sizeof y[0]) == 0, "output");
    copies_free(&all);
    mha_cache_free(cache);
    mha_layer_free(layer);
}

static void refusals(void)
{
    float weights[800], x[TOKENS * E], y[TOKENS * E], copy[TOKENS * H * D];
    char message[200] = "";
    fill(weights, 800, 3);
    fill(x, TOKENS * E, 4);
    mha_layer *const layer = small_layer(weights);
    const mha_cache_config caching = {
        .size = sizeof caching, .sequences = 1, .capacity = TOKENS, .G = G, .D = D};
    mha_cache *cache = NULL;
    CHECK(mha_cache_create(&cache, &caching) == MHA_OK, "cache");
    const mha_options options = {
        .size = sizeof options, .message = message, .message_size = sizeof message};
    mha_layer_call call = {.size = sizeof call,
                           .B = 1,
                           .S = TOKENS,
                           .key = mha_view_ble(x, TOKENS, E),
                           .cache = cache,
                           .cache_use = MHA_CACHE_STORE,
                           .options = &options};
    call.captured_q = mha_out_blhd(copy, H, TOKENS, D);
    CHECK(mha_layer_run(layer, &call, NULL, 0, NULL) == MHA_ERR_FLAG, "q of a store");
    CHECK(strstr(message, "captured_q") != NULL, "%s", message);
    call.captured_q.data = NULL;
    call.captured_k = mha_out_blhd(copy, G, TOKENS, D);
    CHECK(mha_layer_run(layer, &call, NULL, 0, NULL) == MHA_OK, "k of a store: %s", message);
    const mha_layer_call recall = {.size = sizeof recall,
                                   .B = 1,
                                   .L = TOKENS,
                                   .query = mha_view_ble(x, TOKENS, E),
                                   .output = mha_out_ble(y, TOKENS, E),
                                   .cache = cache,
                                   .cache_use = MHA_CACHE_RECALL,
                                   .options = &options,
                                   .captured_v = mha_out_blhd(copy, G, TOKENS, D)};
    CHECK(mha_layer_run(layer, &recall, NULL, 0, NULL) == MHA_ERR_FLAG, "v of a recall");
    const mha_layer_call onto = {.size = sizeof onto,
                                 .B = 1,
                                 .L = TOKENS,
                                 .query = mha_view_ble(x, TOKENS, E),
                                 .output = mha_out_ble(y, TOKENS, E),
                                 .options = &options,
                                 .captured_v = mha_out_blhd(y, G, TOKENS, D)};
    CHECK(mha_layer_run(layer, &onto, NULL, 0, NULL) == MHA_ERR_OVERLAP, "v onto the output");
    mha_cache_free(cache);
    mha_layer_free(layer);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(random_layers);
    RUN(captured_through_a_cache);
    RUN(refusals);
    return test_end();
}
