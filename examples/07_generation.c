/* SPDX-License-Identifier: MIT */
/*
 * 7. Generation with a cache.
 *
 * A decoder writes one token, reads it back and writes the next. Token t attends to the keys and
 * values of all tokens before it. These never change, so they are kept. The prompt is processed in
 * one call (prefill), then every step computes one row and appends one key and one value.
 *
 *      prompt  [ 0 1 ... 69 ]  one call with L = 70        cache: 70 tokens
 *      step    [ 70 ]          one call with L = 1         cache: 71 tokens
 *      step    [ 71 ]          ...
 *
 * Here a "model" of a single layer continues a prompt in two ways at once: after the prompt the
 * sequence is forked, and both sequences continue in one call. They share the pages of the prompt;
 * a page is copied only when one of them writes into it. At the end each is computed again in one
 * call without a cache: the bits are the same.
 */
#include <math.h>
#include <mha/mha.h>
#include <stdio.h>
#include <string.h>

#include "numbers.h"

enum { E = 64, H = 4, G = 2, D = E / H, VOCABULARY = 50, PROMPT = 70, TOKENS = 100, WAYS = 2 };

static float matrices[4][E][E];
static float embedding[VOCABULARY][E];
static int token[WAYS][TOKENS];         /* the tokens so far */
static float input[WAYS][TOKENS][E];    /* their embeddings */
static float stepwise[WAYS][TOKENS][E]; /* output of the layer */
static float at_once[TOKENS][E];

/* Grouped heads: 4 query heads share 2 heads of keys and values, so the cache is half as large.
 * RoPE rotates queries and keys by their positions, which the cache knows. */
static mha_status make(mha_layer **layer)
{
    const float size = 3 * sqrtf(3.0f / E);
    numbers(&matrices[0][0][0], (size_t)4 * E * E, 1, size);
    numbers(&embedding[0][0], (size_t)VOCABULARY * E, 2, 1.7f);
    const mha_layer_config config = {
        .size = sizeof config, .E = E, .H = H, .G = G, .rope = {.pairs = MHA_ROPE_HALVES}};
    const mha_layer_weights weights = {.size = sizeof weights,
                                       .q = mha_matrix_out_in(matrices[0], MHA_F32, E),
                                       .k = mha_matrix_out_in(matrices[1], MHA_F32, E),
                                       .v = mha_matrix_out_in(matrices[2], MHA_F32, E),
                                       .o = mha_matrix_out_in(matrices[3], MHA_F32, E)};
    return mha_layer_create(layer, &config, &weights);
}

static mha_status make_cache(mha_cache **cache)
{
    const mha_cache_config config = {.size = sizeof config,
                                     .kind = MHA_CACHE_PAGED,
                                     .sequences = WAYS,
                                     .capacity = TOKENS,
                                     .page_tokens = 32,
                                     .G = G,
                                     .D = D};
    return mha_cache_create(cache, &config);
}

static void write_token(int way, int position, int word)
{
    token[way][position] = word;
    memcpy(input[way][position], embedding[word], sizeof embedding[word]);
}

/* Tokens [first, first + count) of the first `ways` sequences. The position of a token is the
 * number of tokens before it in the cache. */
static mha_status step(const mha_layer *layer, mha_cache *cache, int ways, int first, int count)
{
    const mha_options options = {.size = sizeof options, .flags = MHA_CAUSAL};
    const mha_layer_call call = {.size = sizeof call,
                                 .B = ways,
                                 .L = count,
                                 .query = mha_view_ble(input[0][first], TOKENS, E),
                                 .output = mha_out_ble(stepwise[0][first], TOKENS, E),
                                 .cache = cache,
                                 .options = &options};
    return mha_layer_run(layer, &call, NULL, 0, NULL);
}

/* The token whose embedding is most similar to y, except the token `but`. */
static int most_like(const float *y, int but)
{
    int best = -1;
    float largest = -INFINITY;
    for (int word = 0; word < VOCABULARY; word++) {
        float sum = 0;
        for (int c = 0; c < E; c++)
            sum += y[c] * embedding[word][c];
        if (word != but && sum > largest) {
            best = word;
            largest = sum;
        }
    }
    return best;
}

/* The prompt, the fork, then both ways token by token: way 0 continues with the best token, way 1
 * with the second best. */
static mha_status generate(const mha_layer *layer, mha_cache *cache)
{
    for (int t = 0; t < PROMPT; t++)
        write_token(0, t, (7 * t * t + 3 * t) % VOCABULARY);
    mha_status status = step(layer, cache, 1, 0, PROMPT);
    if (status == MHA_OK)
        status = mha_cache_fork(cache, 1, 0);
    if (status != MHA_OK)
        return status;
    memcpy(token[1], token[0], sizeof token[0]);
    memcpy(input[1], input[0], sizeof input[0]);
    memcpy(stepwise[1], stepwise[0], sizeof stepwise[0]);
    for (int t = PROMPT; t < TOKENS && status == MHA_OK; t++) {
        const int best = most_like(stepwise[0][t - 1], -1);
        write_token(0, t, best);
        write_token(1, t, most_like(stepwise[1][t - 1], t == PROMPT ? best : -1));
        status = step(layer, cache, WAYS, t, 1);
    }
    return status;
}

static int same_at_once(const mha_layer *layer, int way)
{
    const mha_options options = {.size = sizeof options, .flags = MHA_CAUSAL};
    const mha_layer_call call = {.size = sizeof call,
                                 .B = 1,
                                 .L = TOKENS,
                                 .query = mha_view_ble(input[way], TOKENS, E),
                                 .output = mha_out_ble(at_once, TOKENS, E),
                                 .options = &options};
    return mha_layer_run(layer, &call, NULL, 0, NULL) == MHA_OK &&
           memcmp(at_once, stepwise[way], sizeof at_once) == 0;
}

int main(void)
{
    mha_layer *layer = NULL;
    mha_cache *cache = NULL;
    mha_status status = make(&layer);
    if (status == MHA_OK)
        status = make_cache(&cache);
    const ptrdiff_t pages = mha_cache_free_pages(cache);
    if (status == MHA_OK)
        status = generate(layer, cache);
    if (status != MHA_OK) {
        fprintf(stderr, "%s\n", mha_status_string(status));
        return 1;
    }

    int right = 1;
    for (int way = 0; way < WAYS; way++) {
        const int same = same_at_once(layer, way);
        printf("way %d: %d tokens of prompt, then", way, PROMPT);
        for (int t = PROMPT; t < PROMPT + 8; t++)
            printf(" %d", token[way][t]);
        printf(" ...; %s one call\n", same ? "same bits as" : "DIFFERENT from");
        right &= same && mha_cache_length(cache, way) == TOKENS;
    }
    /* 100 tokens are 4 pages of 32. Two of them contain only prompt and are shared. */
    const int used = (int)(pages - mha_cache_free_pages(cache));
    printf("%d pages for two sequences of 4\n", used);
    right &= used == 6 && token[0][PROMPT] != token[1][PROMPT];
    mha_cache_free(cache);
    mha_layer_free(layer);
    return !right;
}
