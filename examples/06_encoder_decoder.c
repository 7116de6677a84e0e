/* SPDX-License-Identifier: MIT */
/*
 * 6. Encoder and decoder.
 *
 * The first Transformer translates. Its three uses of attention are one layer in three roles:
 *
 *      source ---> encoder: self-attention, all words to all --------> memory
 *                                                                        | keys, values
 *                                                                        v
 *      target ---> decoder: self-attention, causal ---- queries ---> cross-attention ---> y
 *
 * Cross-attention takes its queries from the target, its keys and values from the memory: L != S.
 * The memory does not change while the target grows, so its keys and values are computed once and
 * kept in a cache. (Between these layers a Transformer has residual sums, norms and feed-forward
 * networks; they do not mix words, and are left out.)
 */
#include <math.h>
#include <mha/mha.h>
#include <stdio.h>
#include <string.h>

#include "numbers.h"

enum { E = 64, H = 4, SOURCE = 7, TARGET = 5 };

static float matrices[4][E][E];
static float source[SOURCE][E], target[TARGET][E];
static float memory[SOURCE][E], state[TARGET][E], y[TARGET][E];

static mha_status make(mha_layer **layer, uint32_t seed)
{
    numbers(&matrices[0][0][0], (size_t)4 * E * E, seed, 2 * sqrtf(3.0f / E));
    const mha_layer_config config = {.size = sizeof config, .E = E, .H = H};
    const mha_layer_weights weights = {.size = sizeof weights,
                                       .q = mha_matrix_out_in(matrices[0], MHA_F32, E),
                                       .k = mha_matrix_out_in(matrices[1], MHA_F32, E),
                                       .v = mha_matrix_out_in(matrices[2], MHA_F32, E),
                                       .o = mha_matrix_out_in(matrices[3], MHA_F32, E)};
    return mha_layer_create(layer, &config, &weights);
}

static mha_status encode(const mha_layer *layer)
{
    const mha_layer_call call = {.size = sizeof call,
                                 .B = 1,
                                 .L = SOURCE,
                                 .query = mha_view_ble(source, SOURCE, E),
                                 .output = mha_out_ble(memory, SOURCE, E)};
    return mha_layer_run(layer, &call, NULL, 0, NULL);
}

static mha_status decode(const mha_layer *layer)
{
    const mha_options options = {.size = sizeof options, .flags = MHA_CAUSAL};
    const mha_layer_call call = {.size = sizeof call,
                                 .B = 1,
                                 .L = TARGET,
                                 .query = mha_view_ble(target, TARGET, E),
                                 .output = mha_out_ble(state, TARGET, E),
                                 .options = &options};
    return mha_layer_run(layer, &call, NULL, 0, NULL);
}

/* Queries from the decoder, keys and values from the encoder. */
static mha_status cross(const mha_layer *layer)
{
    const mha_layer_call call = {.size = sizeof call,
                                 .B = 1,
                                 .L = TARGET,
                                 .S = SOURCE,
                                 .query = mha_view_ble(state, TARGET, E),
                                 .key = mha_view_ble(memory, SOURCE, E), /* and values */
                                 .output = mha_out_ble(y, TARGET, E)};
    return mha_layer_run(layer, &call, NULL, 0, NULL);
}

/* ---- the memory in a cache ---- */

static mha_status remember(const mha_layer *layer, mha_cache **cache)
{
    const mha_cache_config config = {
        .size = sizeof config, .sequences = 1, .capacity = SOURCE, .G = H, .D = E / H};
    const mha_status status = mha_cache_create(cache, &config);
    if (status != MHA_OK)
        return status;
    const mha_layer_call call = {.size = sizeof call,
                                 .B = 1,
                                 .S = SOURCE,
                                 .key = mha_view_ble(memory, SOURCE, E),
                                 .cache = *cache,
                                 .cache_use = MHA_CACHE_STORE};
    return mha_layer_run(layer, &call, NULL, 0, NULL);
}

/* The target word by word: only the query of the new word is computed. */
static mha_status recall(const mha_layer *layer, mha_cache *cache, float output[TARGET][E])
{
    mha_status status = MHA_OK;
    for (int i = 0; i < TARGET && status == MHA_OK; i++) {
        const mha_layer_call call = {.size = sizeof call,
                                     .B = 1,
                                     .L = 1,
                                     .query = mha_view_ble(state[i], 1, E),
                                     .output = mha_out_ble(output[i], 1, E),
                                     .cache = cache,
                                     .cache_use = MHA_CACHE_RECALL};
        status = mha_layer_run(layer, &call, NULL, 0, NULL);
    }
    return status;
}

static int same_from_cache(const mha_layer *layer)
{
    static float again[TARGET][E];
    mha_cache *cache = NULL;
    mha_status status = remember(layer, &cache);
    if (status == MHA_OK)
        status = recall(layer, cache, again);
    const int same = status == MHA_OK && memcmp(y, again, sizeof y) == 0;
    printf("memory in a cache of %zu bytes, word by word: %s\n", mha_cache_bytes(cache),
           same ? "same bits" : mha_status_string(status));
    mha_cache_free(cache);
    return same;
}

/* ---- which rows depend on which words ---- */

/* Change the last word and run again: how many rows of the output are still the same? */
static int rows_unmoved(const mha_layer *layer, mha_status run(const mha_layer *),
                        float (*input)[E], float (*output)[E], int rows)
{
    float before[SOURCE][E];
    memcpy(before, output, sizeof(float[E]) * (size_t)rows);
    input[rows - 1][0] += 1;
    int unmoved = run(layer) == MHA_OK ? 0 : -1;
    for (int i = 0; i < rows && unmoved >= 0; i++)
        unmoved += memcmp(before[i], output[i], sizeof before[i]) == 0;
    return unmoved;
}

int main(void)
{
    numbers(&source[0][0], (size_t)SOURCE * E, 1, 1.7f);
    numbers(&target[0][0], (size_t)TARGET * E, 2, 1.7f);
    mha_layer *encoder = NULL, *decoder = NULL, *crossing = NULL;
    if (make(&encoder, 3) != MHA_OK || make(&decoder, 4) != MHA_OK || make(&crossing, 5) != MHA_OK)
        return 1;

    int right = encode(encoder) == MHA_OK && decode(decoder) == MHA_OK && cross(crossing) == MHA_OK;
    printf("source (%d, %d) -> memory (%d, %d); target (%d, %d) -> output (%d, %d)\n", SOURCE, E,
           SOURCE, E, TARGET, E, TARGET, E);
    right &= same_from_cache(crossing);

    const int in_encoder = rows_unmoved(encoder, encode, source, memory, SOURCE);
    const int in_decoder = rows_unmoved(decoder, decode, target, state, TARGET);
    printf("another last word of the source changes %d of %d rows of the memory\n",
           SOURCE - in_encoder, SOURCE);
    printf("another last word of the target changes %d of %d rows of the decoder\n",
           TARGET - in_decoder, TARGET);
    right &= in_encoder == 0 && in_decoder == TARGET - 1;

    mha_layer_free(encoder);
    mha_layer_free(decoder);
    mha_layer_free(crossing);
    return !right;
}
