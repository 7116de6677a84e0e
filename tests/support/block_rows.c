/* SPDX-License-Identifier: MIT */
/* Random weights of block types (block_rows.h). */
#include "support/block_rows.h"

#include "support/test.h"

#include <stdlib.h>

const mha_dtype block_types[BLOCK_TYPES] = {MHA_Q8_0, MHA_Q4_0, MHA_Q4_1,
                                            MHA_Q4_K, MHA_Q5_K, MHA_Q6_K};

ptrdiff_t block_length(mha_dtype type)
{
    return type <= MHA_Q4_1 ? 32 : 256;
}

void *block_memory(size_t bytes)
{
    void *const memory = malloc(bytes + 1);
    if (!memory)
        abort();
    return memory;
}

/* Random bytes with usual scales. */
uint8_t *block_rows_random(mha_dtype type, ptrdiff_t outputs, ptrdiff_t inputs, uint64_t seed)
{
    test_random random = {seed};
    const size_t row = mha_row_bytes(type, inputs), bytes = (size_t)outputs * row;
    const size_t block = mha_row_bytes(type, block_length(type));
    uint8_t *const rows = block_memory(bytes);
    for (size_t n = 0; n < bytes; n++)
        rows[n] = (uint8_t)test_random_u64(&random);
    for (size_t at = 0; at < bytes; at += block) {
        const int scale = 0x1c00 + (int)test_random_below(&random, 0x400);
        const int minimum = type == MHA_Q4_1 ? 0xa800 : 0x2800;
        uint8_t *const head = rows + at + (type == MHA_Q6_K ? 208 : 0);
        head[0] = (uint8_t)scale;
        head[1] = (uint8_t)(scale >> 8);
        if (type == MHA_Q4_1 || type == MHA_Q4_K || type == MHA_Q5_K) {
            head[2] = 0;
            head[3] = (uint8_t)(minimum >> 8);
        }
    }
    return rows;
}

float *block_rows_f32(mha_dtype type, const uint8_t *rows, ptrdiff_t outputs, ptrdiff_t inputs)
{
    float *const wide = block_memory(sizeof(float) * (size_t)(outputs * inputs));
    const size_t row = mha_row_bytes(type, inputs);
    for (ptrdiff_t n = 0; n < outputs; n++)
        CHECK(mha_row_to_f32(type, rows + (size_t)n * row, inputs, wide + n * inputs) == MHA_OK,
              "row");
    return wide;
}

float *random_numbers(ptrdiff_t count, uint64_t seed)
{
    test_random random = {seed};
    float *const x = block_memory(sizeof(float) * (size_t)count);
    for (ptrdiff_t n = 0; n < count; n++)
        x[n] = test_random_normal(&random);
    return x;
}
