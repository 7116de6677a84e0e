/* SPDX-License-Identifier: MIT */
/* The parameters of dropout for a head, and dropout of single weights in plain C, for the reference
 * path and for extra keys. */
#include "core/internal.h"

enum { ROUNDS = 7 };

static void philox(uint32_t x[4], uint32_t key0, uint32_t key1)
{
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t a = (uint64_t)x[0] * 0xd2511f53u, b = (uint64_t)x[2] * 0xcd9e8d57u;
        x[0] = (uint32_t)(b >> 32) ^ x[1] ^ key0;
        x[1] = (uint32_t)b;
        x[2] = (uint32_t)(a >> 32) ^ x[3] ^ key1;
        x[3] = (uint32_t)a;
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
}

mhak_drop mhai_drop_of(const mhai_call *call, ptrdiff_t b, ptrdiff_t h)
{
    const mha_options *const o = &call->options;
    return (mhak_drop){o->dropout_seed, (uint32_t)(b + o->dropout_first[0]),
                       (uint32_t)(h + o->dropout_first[1]), mhai_drop_threshold(o)};
}

/* Keys are counted from a key that need not begin a block: two blocks are then shifted together. */
void mhai_drop_bits(const mhak_table *kernels, const mhai_call *call, const mhak_drop *drop,
                    ptrdiff_t i, ptrdiff_t block, uint32_t keep[MHAK_WORDS])
{
    const int64_t first = call->options.dropout_first[3];
    const uint32_t row = (uint32_t)(i + call->options.dropout_first[2]);
    const uint32_t number = (uint32_t)(block + first / MHAK_BLOCK);
    const int words = (int)(first % MHAK_BLOCK / 32), shift = (int)(first % 32);
    uint32_t both[2 * MHAK_WORDS + 1] = {0};
    kernels->drop_bits(drop, row, number, words + shift > 0 ? both : keep);
    if (words + shift == 0)
        return;
    kernels->drop_bits(drop, row, number + 1, both + MHAK_WORDS);
    for (int n = 0; n < MHAK_WORDS; n++) {
        const uint64_t pair = (uint64_t)both[n + words + 1] << 32 | both[n + words];
        keep[n] = (uint32_t)(pair >> shift);
    }
}

bool mhai_drop_keeps(const mhak_drop *drop, ptrdiff_t i, ptrdiff_t j)
{
    uint32_t x[4] = {(uint32_t)(j / 8), (uint32_t)i, drop->head, drop->batch};
    philox(x, (uint32_t)drop->seed, (uint32_t)(drop->seed >> 32));
    const uint32_t word = x[j % 8 / 2];
    return (j % 2 ? word >> 16 : word & 0xffffu) >= drop->threshold;
}
