/* SPDX-License-Identifier: MIT */
/* Corners of linears, layers and caches that were wrong once. */
#include <mha/mha.h>

#include <math.h>
#include <string.h>

#include "support/guard.h"
#include "support/test.h"

/* A start that no view reaches is refused, even where there is no batch to use it. */
static void starts_beyond_all_memory(void)
{
    const int64_t starts[] = {INT64_MAX};
    const float weight = 1.0f;
    const mha_matrix one = mha_matrix_out_in(&weight, MHA_F32, 1);
    const mha_layer_config config = {.size = sizeof config, .E = 1, .H = 1};
    const mha_layer_weights weights = {
        .size = sizeof weights, .q = one, .k = one, .v = one, .o = one};
    mha_layer *layer;
    CHECK(mha_layer_create(&layer, &config, &weights) == MHA_OK, "create");
    const mha_options options = {.size = sizeof options, .q_starts = starts, .k_starts = starts};
    const mha_layer_call call = {.size = sizeof call, .options = &options};
    const mha_status status = mha_layer_run(layer, &call, NULL, 0, NULL);
    CHECK(status == MHA_ERR_LENGTH, "%s", mha_status_string(status));
    mha_layer_free(layer);
}

/* A workspace is looked at as far as it is needed, however large the caller calls it. */
static void an_endless_workspace_over_the_output(void)
{
    enum { N = 16 };
    static float weight[N * N], x[N], memory[1 << 16];
    const mha_linear_config config = {.size = sizeof config,
                                      .inputs = N,
                                      .outputs = N,
                                      .weight = mha_matrix_out_in(weight, MHA_F32, N)};
    mha_linear *linear;
    CHECK(mha_linear_create(&linear, &config) == MHA_OK, "create");
    CHECK(mha_linear_work_size(linear, 1, 1) <= sizeof memory, "the test's memory is too small");
    const mha_status status =
        mha_linear_run(linear, 1, x, MHA_F32, N, memory + 8, MHA_F32, N, memory, SIZE_MAX, NULL);
    CHECK(status == MHA_ERR_OVERLAP, "%s", mha_status_string(status));
    mha_linear_free(linear);
}

/* More batches than sequences cannot all be different: refused before the list is read. */
static void more_batches_than_sequences(void)
{
    const mha_cache_config config = {
        .size = sizeof config, .sequences = 2, .capacity = 32, .G = 1, .D = 1};
    const int64_t sequences[] = {0, 1};
    const float x[1] = {0};
    const mha_view view = {x, 0, 0, 0};
    mha_cache *cache;
    CHECK(mha_cache_create(&cache, &config) == MHA_OK, "create");
    const mha_status status =
        mha_cache_append(cache, PTRDIFF_MAX, sequences, 1, NULL, view, MHA_F32, view, MHA_F32);
    CHECK(status == MHA_ERR_SEQUENCE, "%s", mha_status_string(status));
    mha_cache_free(cache);
}

/* A type that is none is refused, even where there is no weight of it. */
static void weights_of_no_type(void)
{
    const mha_linear_config config = {
        .size = sizeof config, .outputs = 3, .weight = {.type = MHA_F64}};
    mha_linear *linear;
    const mha_status status = mha_linear_create(&linear, &config);
    CHECK(status == MHA_ERR_DTYPE, "%s", mha_status_string(status));
}

/* Without inputs there is no weight to look at: strides may be anything. */
static void weights_of_no_input(void)
{
    const mha_linear_config config = {
        .size = sizeof config, .outputs = 3, .weight = {.out_stride = PTRDIFF_MAX}};
    float y[3] = {1.0f, 1.0f, 1.0f};
    mha_linear *linear;
    CHECK(mha_linear_create(&linear, &config) == MHA_OK, "create");
    CHECK(mha_linear_run(linear, 1, NULL, MHA_F32, 0, y, MHA_F32, 3, NULL, 0, NULL) == MHA_OK,
          "run");
    CHECK(y[0] == 0.0f && y[1] == 0.0f && y[2] == 0.0f, "no inputs, no bias: 0");
    mha_linear_free(linear);
}

/* --------------------------------------------------------------- caches ----- */

enum { TOKENS = 20, D = 16 };

/* One head, TOKENS tokens; the values of token `bad`, if any, are NaN. */
static mha_cache *filled_cache(mha_dtype type, int bad, float x[TOKENS * D])
{
    float values[TOKENS * D];
    for (int n = 0; n < TOKENS * D; n++)
        x[n] = values[n] = sinf((float)n);
    for (int c = 0; bad >= 0 && c < D; c++)
        values[bad * D + c] = NAN;
    const mha_cache_config config = {.size = sizeof config,
                                     .sequences = 1,
                                     .capacity = 64,
                                     .G = 1,
                                     .D = D,
                                     .k_type = type,
                                     .v_type = type};
    const mha_view k = {x, 0, 0, D}, v = {values, 0, 0, D};
    mha_cache *cache;
    CHECK(mha_cache_create(&cache, &config) == MHA_OK, "create");
    CHECK(mha_cache_append(cache, 1, NULL, TOKENS, NULL, k, MHA_F32, v, MHA_F32) == MHA_OK,
          "append");
    return cache;
}

static int count_nan(const float *x, int count)
{
    int found = 0;
    for (int n = 0; n < count; n++)
        found += isnan(x[n]) != 0;
    return found;
}

/* Masks may have more columns than the cache can ever hold: the workspace knows. */
static void columns_beyond_the_capacity(void)
{
    enum { L = 200, H = 4 };
    static float q[H * L * D], o[H * L * D];
    float x[TOKENS * D];
    mha_cache *const cache = filled_cache(MHA_F32, -1, x);
    const mha_shape shape = {.B = 1, .H = H, .L = L, .S = 5000};
    for (int threads = 1; threads <= 4; threads += 3) {
        mha_pool *pool = NULL;
        CHECK(mha_pool_create(&pool, threads) == MHA_OK, "pool");
        guard_buffer work =
            guard_new(mha_cache_work_size(cache, &shape, NULL, threads), GUARD_AFTER);
        const mha_status status =
            mha_cache_attention(cache, NULL, &shape, mha_view_bhld(q, H, L, D),
                                mha_out_bhld(o, H, L, D), NULL, work.data, work.size, pool);
        CHECK(status == MHA_OK && guard_intact(&work), "%d threads: %s", threads,
              mha_status_string(status));
        guard_free(&work);
        mha_pool_free(pool);
    }
    mha_cache_free(cache);
}

/* A value that is not finite gives i8 a scale of NaN: no row that does not see it may notice. */
static void masked_values_of_any_type_stay_unseen(void)
{
    static const mha_dtype types[] = {MHA_F32, MHA_F16, MHA_BF16, MHA_I8};
    enum { BAD = 10 };
    for (int n = 0; n < 4; n++) {
        float x[TOKENS * D], o[TOKENS * D];
        uint8_t attend[TOKENS];
        memset(attend, 1, sizeof attend);
        attend[BAD] = 0;
        mha_cache *const cache = filled_cache(types[n], BAD, x);
        const mha_shape shape = {.B = 1, .H = 1, .L = TOKENS};
        const mha_options causal = {.size = sizeof causal, .flags = MHA_CAUSAL};
        const mha_options masked = {.size = sizeof masked, .attend_mask = {attend, 0, 0, 0}};
        const mha_view q = {x, 0, 0, D};
        const mha_out out = {o, 0, 0, D};
        CHECK(mha_cache_attention(cache, NULL, &shape, q, out, &causal, NULL, 0, NULL) == MHA_OK,
              "causal");
        CHECK(count_nan(o, BAD * D) == 0, "type %d: rows before the bad token", (int)types[n]);
        CHECK(count_nan(o + BAD * D, (TOKENS - BAD) * D) == (TOKENS - BAD) * D,
              "type %d: rows that see it", (int)types[n]);
        CHECK(mha_cache_attention(cache, NULL, &shape, q, out, &masked, NULL, 0, NULL) == MHA_OK,
              "masked");
        CHECK(count_nan(o, TOKENS * D) == 0, "type %d: masked", (int)types[n]);
        mha_cache_free(cache);
    }
}

/* --------------------------------------------------------------- layers ----- */

/* A layer that changes nothing: one head as wide as the input, identities as weights. */
static mha_layer *identity_layer(uint32_t flags)
{
    static float identity[D * D];
    for (int n = 0; n < D; n++)
        identity[n * D + n] = 1.0f;
    const mha_matrix one = mha_matrix_out_in(identity, MHA_F32, D);
    const mha_layer_config config = {.size = sizeof config, .flags = flags, .E = D, .H = 1};
    const mha_layer_weights weights = {
        .size = sizeof weights, .q = one, .k = one, .v = one, .o = one};
    mha_layer *layer;
    CHECK(mha_layer_create(&layer, &config, &weights) == MHA_OK, "create");
    return layer;
}

/* An attended NaN is one, however little weight it gets beside an extra key. */
static void extra_keys_hide_no_nan(void)
{
    mha_layer *const layer = identity_layer(MHA_LAYER_ZERO_ATTN);
    float query[D], key[D], value[D], y[D];
    for (int c = 0; c < D; c++) {
        query[c] = 100.0f;
        key[c] = -100.0f;
        value[c] = NAN;
    }
    const mha_layer_call call = {.size = sizeof call,
                                 .B = 1,
                                 .L = 1,
                                 .S = 1,
                                 .query = mha_view_ble(query, 1, D),
                                 .key = mha_view_ble(key, 1, D),
                                 .value = mha_view_ble(value, 1, D),
                                 .output = mha_out_ble(y, 1, D)};
    CHECK(mha_layer_run(layer, &call, NULL, 0, NULL) == MHA_OK, "run");
    CHECK(count_nan(y, D) == D, "the NaN is gone");
    mha_layer_free(layer);
}

/* Packed rows may begin anywhere: the same numbers as from row 0 on. */
static void packed_rows_begin_anywhere(void)
{
    enum { SKIPPED = 7, ROWS = 5 };
    float x[(SKIPPED + ROWS) * D], y[2][(SKIPPED + ROWS) * D] = {{0}};
    float lse[2][SKIPPED + ROWS] = {{0}};
    int32_t documents[SKIPPED + ROWS];
    mha_layer *const layer = identity_layer(0);
    for (int n = 0; n < (SKIPPED + ROWS) * D; n++)
        x[n] = n < SKIPPED * D ? NAN : cosf((float)n);
    for (int n = 0; n < SKIPPED + ROWS; n++)
        documents[n] = n < SKIPPED ? -1 : n % 2;
    for (int packed = 0; packed < 2; packed++) {
        const int skip = packed ? 0 : SKIPPED;
        const int64_t starts[] = {SKIPPED - skip, SKIPPED - skip + 2, SKIPPED - skip + ROWS};
        const mha_options options = {.size = sizeof options,
                                     .flags = MHA_CAUSAL,
                                     .q_starts = starts,
                                     .k_starts = starts,
                                     .q_documents = documents + skip,
                                     .k_documents = documents + skip,
                                     .lse = {lse[packed] + skip, 0, 0, 1}};
        const mha_layer_call call = {.size = sizeof call,
                                     .B = 2,
                                     .L = 3,
                                     .query = {x + skip * D, 0, 0, D},
                                     .output = {y[packed] + skip * D, 0, 0, D},
                                     .options = &options};
        const mha_status status = mha_layer_run(layer, &call, NULL, 0, NULL);
        CHECK(status == MHA_OK, "%s", mha_status_string(status));
    }
    CHECK(memcmp(y[0] + SKIPPED * D, y[1] + SKIPPED * D, sizeof(float) * ROWS * D) == 0, "output");
    CHECK(memcmp(lse[0] + SKIPPED, lse[1] + SKIPPED, sizeof(float) * ROWS) == 0, "log-sum-exp");
    mha_layer_free(layer);
}

/* The first row may be so far away that nothing but a broadcast reaches it. */
static void packed_rows_far_away(void)
{
    const int64_t q_starts[] = {0, 2}, k_starts[] = {INT64_C(1) << 47, (INT64_C(1) << 47) + 3};
    float x[2 * D], y[2 * D];
    for (int n = 0; n < 2 * D; n++)
        x[n] = (float)n;
    mha_layer *const layer = identity_layer(0);
    const mha_options options = {
        .size = sizeof options, .q_starts = q_starts, .k_starts = k_starts};
    const mha_layer_call call = {.size = sizeof call,
                                 .B = 1,
                                 .L = 2,
                                 .S = 3,
                                 .query = {x, 0, 0, D},
                                 .key = {x, 0, 0, 0},
                                 .output = {y, 0, 0, D},
                                 .options = &options};
    const mha_status status = mha_layer_run(layer, &call, NULL, 0, NULL);
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
    for (int n = 0; n < 2 * D; n++)
        CHECK(fabsf(y[n] - x[n % D]) < 1e-5f, "element %d: %g", n, (double)y[n]);
    mha_layer_free(layer);
}

/* A step knows its positions: an option that says otherwise is refused for every kind of cache. */
static void steps_take_no_other_position(void)
{
    static const mha_position wrong[] = {MHA_POSITION_TOP_LEFT, MHA_POSITION_OFFSET};
    float x[TOKENS * D], y[D] = {0};
    mha_layer *const layer = identity_layer(0);
    mha_cache *const cache = filled_cache(MHA_F32, -1, x);
    for (int n = 0; n < 2; n++) {
        const mha_options options = {
            .size = sizeof options, .flags = MHA_CAUSAL, .position = wrong[n]};
        const mha_layer_call call = {.size = sizeof call,
                                     .B = 1,
                                     .L = 1,
                                     .query = mha_view_ble(x, 1, D),
                                     .output = mha_out_ble(y, 1, D),
                                     .cache = cache,
                                     .options = &options};
        const mha_status status = mha_layer_run(layer, &call, NULL, 0, NULL);
        CHECK(status == MHA_ERR_POSITION, "%s", mha_status_string(status));
        CHECK(mha_cache_length(cache, 0) == TOKENS && y[0] == 0.0f, "something was done");
    }
    mha_cache_free(cache);
    mha_layer_free(layer);
}

/* What a layer says of itself has its defaults filled in. */
static void defaults_are_filled_in(void)
{
    static const float weight[4 * 4];
    const mha_matrix w = mha_matrix_out_in(weight, MHA_F32, 4);
    const mha_layer_config config = {
        .size = sizeof config, .E = 4, .H = 1, .key_width = 3, .rope = {.pairs = MHA_ROPE_HALVES}};
    const mha_layer_weights weights = {.size = sizeof weights, .q = w, .k = w, .v = w, .o = w};
    mha_layer *layer;
    CHECK(mha_layer_create(&layer, &config, &weights) == MHA_OK, "create");
    const mha_layer_config got = mha_layer_get_config(layer);
    CHECK(got.value_width == 3 && got.rope.width == 4 && got.rope.base == 10000.0,
          "value_width %td, rope %td, %g", got.value_width, got.rope.width, got.rope.base);
    mha_layer_free(layer);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(starts_beyond_all_memory);
    RUN(an_endless_workspace_over_the_output);
    RUN(more_batches_than_sequences);
    RUN(weights_of_no_type);
    RUN(weights_of_no_input);
    RUN(columns_beyond_the_capacity);
    RUN(masked_values_of_any_type_stay_unseen);
    RUN(extra_keys_hide_no_nan);
    RUN(packed_rows_begin_anywhere);
    RUN(packed_rows_far_away);
    RUN(steps_take_no_other_position);
    RUN(defaults_are_filled_in);
    return test_end();
}
