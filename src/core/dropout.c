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
    return (mhak_drop){call->options.dropout_seed, (uint32_t)b, (uint32_t)h,
                       mhai_drop_threshold(&call->options)};
}

bool mhai_drop_keeps(const mhak_drop *drop, ptrdiff_t i, ptrdiff_t j)
{
    uint32_t x[4] = {(uint32_t)(j / 8), (uint32_t)i, drop->head, drop->batch};
    philox(x, (uint32_t)drop->seed, (uint32_t)(drop->seed >> 32));
    const uint32_t word = x[j % 8 / 2];
    return (j % 2 ? word >> 16 : word & 0xffffu) >= drop->threshold;
}
