/* SPDX-License-Identifier: MIT */
/* Numbers in place of trained weights: the same on every machine, in [-size, size). */
#ifndef EXAMPLES_NUMBERS_H
#define EXAMPLES_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

static inline void numbers(float *data, size_t count, uint32_t seed, float size)
{
    uint32_t state = seed * 2654435769u;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        data[i] = size * ((float)(state >> 8) * 0x1p-23f - 1.0f);
    }
}

#endif
