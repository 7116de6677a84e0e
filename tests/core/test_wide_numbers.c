/* SPDX-License-Identifier: MIT */
/* Arrays of int64_t, whose numbers and alignment are other than those of ptrdiff_t where pointers
 * have 32 bits. */
#include "support/test.h"

#include <mha/mha.h>

#include <string.h>

enum { BATCHES = 2, ROWS = 3, WIDTH = 4, COUNT = BATCHES * ROWS * WIDTH };

/* Causal self-attention with a window of 3 keys to the left, at the offsets of the batches. */
static mha_status attend(const float *x, float *y, const int64_t *offsets, const int64_t *lengths)
{
    const mha_shape shape = {.B = BATCHES, .H = 1, .L = ROWS, .S = ROWS, .D = WIDTH};
    const mha_options options = {.size = sizeof options,
                                 .flags = MHA_CAUSAL | MHA_WINDOW,
                                 .position = MHA_POSITION_OFFSET,
                                 .offsets = offsets,
                                 .window_left = 3,
                                 .window_right = 0,
                                 .k_lengths = lengths};
    const mha_view in = mha_view_bhld(x, 1, ROWS, WIDTH);
    return mha_attention(&shape, in, in, in, mha_out_bhld(y, 1, ROWS, WIDTH), &options, NULL);
}

/* An offset of which only the low 32 bits are small rules out every key. */
static void far_offsets_see_nothing(void)
{
    static const int64_t far[] = {(int64_t)1 << 40, -((int64_t)1 << 40), (int64_t)1 << 32,
                                  INT64_MAX, INT64_MIN};
    float x[COUNT], y[COUNT];
    for (int n = 0; n < COUNT; n++)
        x[n] = 1;
    for (size_t n = 0; n < sizeof far / sizeof far[0]; n++) {
        const int64_t offsets[BATCHES] = {far[n], 0};
        memset(y, 0xff, sizeof y);
        CHECK(attend(x, y, offsets, NULL) == MHA_OK, "offset %lld", (long long)far[n]);
        for (int e = 0; e < COUNT; e++)
            CHECK(y[e] == (e < COUNT / BATCHES ? 0 : 1), "offset %lld: element %d is %g",
                  (long long)far[n], e, (double)y[e]);
    }
}

/* An array that starts as far from a multiple of 16 as the compiler may put one. */
static void least_alignment_is_enough(void)
{
    _Alignas(16) char room[16 + 2 * BATCHES * sizeof(int64_t)] = {0};
    int64_t *const offsets = (int64_t *)(void *)(room + _Alignof(int64_t));
    int64_t *const lengths = offsets + BATCHES;
    float x[COUNT] = {0}, y[COUNT];
    lengths[0] = lengths[1] = ROWS;
    CHECK(attend(x, y, offsets, lengths) == MHA_OK, "aligned to %d", (int)_Alignof(int64_t));
    const int64_t *const odd = (const int64_t *)(const void *)(room + 2);
    CHECK(attend(x, y, odd, lengths) == MHA_ERR_ALIGN, "offsets at an odd address");
    CHECK(attend(x, y, offsets, odd) == MHA_ERR_ALIGN, "lengths at an odd address");
}

/* Numbers of sequences are not cut to 32 bits before they are compared. */
static void far_sequences_are_refused(void)
{
    const mha_cache_config config = {
        .size = sizeof config, .sequences = 2, .capacity = ROWS, .G = 1, .D = WIDTH};
    const mha_shape shape = {.B = 1, .H = 1, .L = 1, .D = WIDTH};
    const int64_t far = (int64_t)1 << 32, parents[] = {0, far}, lengths[] = {far, 1};
    float x[COUNT] = {0}, y[COUNT];
    const mha_view row = mha_view_bhld(x, 1, 1, WIDTH);
    mha_cache *cache;
    CHECK(mha_cache_create(&cache, &config) == MHA_OK, "cache");
    CHECK(mha_cache_append(cache, 1, &far, 1, NULL, row, MHA_F32, row, MHA_F32) == MHA_ERR_SEQUENCE,
          "append");
    CHECK(mha_cache_append(cache, 2, NULL, 1, lengths, row, MHA_F32, row, MHA_F32) != MHA_OK,
          "length");
    CHECK(mha_cache_attention(cache, &far, &shape, row, mha_out_bhld(y, 1, 1, WIDTH), NULL, NULL, 0,
                              NULL) == MHA_ERR_SEQUENCE,
          "attention");
    CHECK(mha_cache_reorder(cache, parents) == MHA_ERR_SEQUENCE, "reorder");
    mha_cache_free(cache);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(far_offsets_see_nothing);
    RUN(least_alignment_is_enough);
    RUN(far_sequences_are_refused);
    return test_end();
}
