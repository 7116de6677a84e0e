/* SPDX-License-Identifier: MIT */
/*
 * Arenas: packed weights lie side by side in few blocks of memory, no linear changes those of
 * another, and nothing is lost if memory runs out, see faults.h.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/work.h"
#include "mha/mha.h"
#include "support/faults.h"
#include "support/test.h"

enum { BLOCKS = 200, WIDTH = 96, INNER = 160, ROWS = 3 };

static float weights[WIDTH * INNER], x[ROWS * WIDTH];

/* Blocks of all sizes are aligned, and each keeps its own bytes. */
static void blocks_do_not_overlap(void)
{
    static const int64_t most[] = {100, 70000, 3 << 20, 9 << 20};
    unsigned char *blocks[BLOCKS];
    size_t sizes[BLOCKS];
    test_random random = {test_seed(1)};
    mha_arena *arena;
    CHECK(mha_arena_create(&arena) == MHA_OK, "arena");
    for (int n = 0; n < BLOCKS; n++) {
        sizes[n] = (size_t)test_random_below(&random, most[n % 10 == 9 ? 3 : n % 3]);
        blocks[n] = mhai_weights_take(arena, sizes[n]);
        if (!CHECK(blocks[n] && (uintptr_t)blocks[n] % MHAI_ALIGN == 0, "%zu bytes", sizes[n]))
            return;
        memset(blocks[n], n, sizes[n]);
    }
    for (int n = 0; n < BLOCKS; n++)
        for (size_t at = 0; at < sizes[n]; at += 1 + sizes[n] / 50)
            CHECK(blocks[n][at] == (unsigned char)n && blocks[n][sizes[n] - 1] == (unsigned char)n,
                  "block %d was overwritten", n);
    CHECK(!mhai_weights_take(arena, SIZE_MAX) && !mhai_weights_take(arena, SIZE_MAX - 100),
          "too large");
    mha_arena_free(arena);
}

static mha_status make_linear(mha_linear **linear, mha_arena *arena)
{
    const mha_linear_config config = {.size = sizeof config,
                                      .inputs = WIDTH,
                                      .outputs = INNER,
                                      .weight = mha_matrix_out_in(weights, MHA_F32, WIDTH),
                                      .arena = arena};
    return mha_linear_create(linear, &config);
}

static mha_status make_layer(mha_layer **layer, mha_arena *arena)
{
    const mha_matrix all = mha_matrix_out_in(weights, MHA_F32, WIDTH);
    const mha_layer_config config = {.size = sizeof config, .E = WIDTH, .H = 4, .arena = arena};
    const mha_layer_weights four = {.size = sizeof four, .q = all, .k = all, .v = all, .o = all};
    return mha_layer_create(layer, &config, &four);
}

static mha_status make_feed_forward(mha_feed_forward **ff, mha_arena *arena)
{
    const mha_feed_forward_config config = {.size = sizeof config,
                                            .inputs = WIDTH,
                                            .inner = INNER,
                                            .activation = MHA_ACTIVATION_SILU,
                                            .gated = 1,
                                            .gate = mha_matrix_out_in(weights, MHA_F32, WIDTH),
                                            .up = mha_matrix_in_out(weights, MHA_F32, INNER),
                                            .down = mha_matrix_out_in(weights, MHA_F32, INNER),
                                            .arena = arena};
    return mha_feed_forward_create(ff, &config);
}

/* One of each kind, and a layer without some heads. */
typedef struct parts {
    mha_arena *arena;
    mha_linear *linear;
    mha_layer *layer, *pruned;
    mha_feed_forward *ff;
} parts;

static mha_status parts_make(parts *p, bool alone)
{
    static const uint8_t keep[4] = {1, 0, 1, 1};
    mha_status status = alone ? MHA_OK : mha_arena_create(&p->arena);
    if (status || (status = make_linear(&p->linear, p->arena)) ||
        (status = make_layer(&p->layer, p->arena)) ||
        (status = mha_layer_prune_in(p->arena, &p->pruned, p->layer, keep, NULL, 0)))
        return status;
    return make_feed_forward(&p->ff, p->arena);
}

static void parts_free(parts *p)
{
    mha_arena_free(p->arena); /* before what is in it, which is allowed */
    mha_linear_free(p->linear);
    mha_layer_free(p->layer);
    mha_layer_free(p->pruned);
    mha_feed_forward_free(p->ff);
}

typedef struct results {
    float linear[ROWS * INNER], layer[ROWS * WIDTH], pruned[ROWS * WIDTH], ff[ROWS * WIDTH];
} results;

static void run_layer(const mha_layer *layer, float *y)
{
    const mha_layer_call call = {.size = sizeof call,
                                 .B = 1,
                                 .L = ROWS,
                                 .query = mha_view_ble(x, ROWS, WIDTH),
                                 .output = mha_out_ble(y, ROWS, WIDTH)};
    CHECK(mha_layer_run(layer, &call, NULL, 0, NULL) == MHA_OK, "layer");
}

static results run(const parts *p)
{
    results r;
    CHECK(mha_linear_run(p->linear, ROWS, x, MHA_F32, WIDTH, r.linear, MHA_F32, INNER, NULL, 0,
                         NULL) == MHA_OK,
          "linear");
    run_layer(p->layer, r.layer);
    run_layer(p->pruned, r.pruned);
    CHECK(mha_feed_forward_run(p->ff, ROWS, x, WIDTH, NULL, 0, r.ff, WIDTH, NULL, 0, NULL) ==
              MHA_OK,
          "feed-forward");
    return r;
}

/* The place of the weights changes no bit, also after others were created, freed and updated. */
static void results_do_not_depend_on_the_place(void)
{
    parts alone = {0}, together = {0};
    mha_linear *other = NULL;
    CHECK(parts_make(&alone, true) == MHA_OK && parts_make(&together, false) == MHA_OK, "parts");
    CHECK(make_linear(&other, together.arena) == MHA_OK, "another linear");
    mha_linear_free(other);
    const mha_matrix same = mha_matrix_out_in(weights, MHA_F32, WIDTH);
    const mha_layer_weights four = {
        .size = sizeof four, .q = same, .k = same, .v = same, .o = same};
    CHECK(mha_linear_update(together.linear, same, (mha_vector){0}) == MHA_OK &&
              mha_layer_update(together.layer, &four) == MHA_OK,
          "update");
    CHECK(make_linear(&other, together.arena) == MHA_OK, "another linear");
    const results a = run(&alone), b = run(&together);
    CHECK(memcmp(&a, &b, sizeof a) == 0, "other bits in an arena");
    CHECK(mha_layer_bytes(alone.layer) == mha_layer_bytes(together.layer), "bytes");
    CHECK(!mha_layer_get_config(together.layer).arena, "the configuration names the arena");
    mha_linear_free(other);
    parts_free(&alone);
    parts_free(&together);
}

/* Many small matrices are in one block, and freed linears leave only that. */
static void many_linears_share_memory(void)
{
#ifndef __SANITIZE_ADDRESS__
    mha_linear *linears[BLOCKS];
    int requests[2];
    for (int shared = 0; shared < 2; shared++) {
        mha_arena *arena = NULL;
        CHECK(!shared || mha_arena_create(&arena) == MHA_OK, "arena");
        faults_arm(MEMORY, 0, false);
        for (int n = 0; n < BLOCKS; n++)
            CHECK(make_linear(&linears[n], arena) == MHA_OK, "linear %d", n);
        requests[shared] = faults_requests(MEMORY);
        for (int n = 0; n < BLOCKS; n++)
            mha_linear_free(linears[n]);
        CHECK(faults_left(MEMORY) == shared, "%d blocks left", faults_left(MEMORY));
        faults_disarm();
        mha_arena_free(arena);
    }
    CHECK(requests[0] - requests[1] == BLOCKS - 1, "%d and %d requests", requests[0], requests[1]);
#endif
}

static void memory_may_fail_anywhere(void)
{
    for (int n = 1; n < 1000; n++) {
        parts p = {0};
        faults_arm(MEMORY, n, n % 2 == 0);
        const mha_status status = parts_make(&p, false);
        const int requests = faults_requests(MEMORY);
        parts_free(&p);
        const int left = faults_left(MEMORY);
        faults_disarm();
        CHECK(left == 0, "request %d: %d blocks are not freed", n, left);
        if (n > requests) {
            CHECK(status == MHA_OK, "%s", mha_status_string(status));
            return;
        }
        CHECK(status == MHA_ERR_MEMORY, "request %d of %d: %s", n, requests,
              mha_status_string(status));
    }
    CHECK(false, "no end");
}

static void small_mistakes(void)
{
    mha_linear *linear = NULL;
    CHECK(mha_arena_create(NULL) == MHA_ERR_NULL, "NULL");
    mha_arena_free(NULL);
    /* A program that was built before there were arenas. */
    const mha_linear_config old = {.size = offsetof(mha_linear_config, arena),
                                   .inputs = WIDTH,
                                   .outputs = INNER,
                                   .weight = mha_matrix_out_in(weights, MHA_F32, WIDTH),
                                   .arena = (mha_arena *)&linear};
    CHECK(mha_linear_create(&linear, &old) == MHA_OK, "an older config");
    mha_linear_free(linear);
}

int main(int argc, char **argv)
{
    test_random random = {7};
    test_begin(argc, argv);
    for (int n = 0; n < WIDTH * INNER; n++)
        weights[n] = 0.1f * test_random_normal(&random);
    for (int n = 0; n < ROWS * WIDTH; n++)
        x[n] = test_random_normal(&random);
    RUN(blocks_do_not_overlap);
    RUN(results_do_not_depend_on_the_place);
    RUN(many_linears_share_memory);
    RUN(memory_may_fail_anywhere);
    RUN(small_mistakes);
    return test_end();
}
