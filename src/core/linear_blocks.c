/* SPDX-License-Identifier: MIT */
/*
 * Weights of block types in panels (kernels/block_layout.h), one block of one output at a time:
 * for linear.c, which packs them, and for layer_prune.c, which copies them from linear to linear.
 */
#include "core/linear.h"

#include <string.h>

/* Where the parts of one block of the output in this column begin. */
static char *unit_at(const mha_linear *linear, ptrdiff_t column, ptrdiff_t number)
{
    const int block = mhai_block_number(linear->stored);
    const ptrdiff_t nr = linear->kernels->nr;
    const ptrdiff_t units = linear->inputs / mhak_block_inputs(block);
    return (char *)linear->weights + (column / nr * units + number) * mhak_unit_bytes(block) * nr;
}

static void put_word(char *words, ptrdiff_t index, uint32_t word)
{
    memcpy(words + index * 4, &word, sizeof word);
}

static uint32_t get_word(const char *words, ptrdiff_t index)
{
    uint32_t word;
    memcpy(&word, words + index * 4, sizeof word);
    return word;
}

/* Four numbers, cut to some of their bits, as the bytes of a word. */
static uint32_t quad_of(const uint8_t q[4], int shift, unsigned mask)
{
    uint32_t word = 0;
    for (int b = 0; b < 4; b++)
        word |= ((uint32_t)q[b] >> shift & mask) << 8 * b;
    return word;
}

/* Bits of a word back into four numbers. */
static void add_quad(uint8_t q[4], uint32_t word, int shift, unsigned mask)
{
    for (int b = 0; b < 4; b++)
        q[b] |= (uint8_t)((word >> 8 * b & mask) << shift);
}

/* High bits of a number and where those of a quad are: in which word, from which bit of its
 * bytes. */
typedef struct high_bits {
    unsigned mask;
    int word, first;
} high_bits;

static high_bits high_of(int block, int quad)
{
    if (block == MHAK_Q5_K)
        return (high_bits){1, 0, quad};
    if (block == MHAK_Q6_K)
        return (high_bits){3, quad / 4, quad % 4 * 2};
    return (high_bits){0, 0, 0};
}

static void put_group(int block, ptrdiff_t nr, ptrdiff_t lane, const uint8_t *scales,
                      const uint8_t *q, char *group)
{
    char *const low = group + mhak_scale_bytes(block) * nr;
    char *const high = low + mhak_low_bytes(block) * nr;
    uint32_t lows[MHAK_BLOCK_QUADS] = {0}, highs[2] = {0};
    for (int s = 0; s < mhak_scale_bytes(block); s++)
        group[s * nr + lane] = (char)scales[s];
    for (int k = 0; k < MHAK_BLOCK_QUADS; k++) {
        const high_bits bits = high_of(block, k);
        if (block == MHAK_Q8_0)
            lows[k] = quad_of(q + 4 * k, 0, 255);
        else
            lows[k / 2] |= quad_of(q + 4 * k, 0, 15) << k % 2 * 4;
        highs[bits.word] |= quad_of(q + 4 * k, 4, bits.mask) << bits.first;
    }
    for (int i = 0; i < mhak_low_bytes(block) / 4; i++)
        put_word(low, i * nr + lane, lows[i]);
    for (int i = 0; i < mhak_high_bytes(block) / 4; i++)
        put_word(high, i * nr + lane, highs[i]);
}

static void get_group(int block, ptrdiff_t nr, ptrdiff_t lane, const char *group, uint8_t *scales,
                      uint8_t *q)
{
    const char *const low = group + mhak_scale_bytes(block) * nr;
    const char *const high = low + mhak_low_bytes(block) * nr;
    for (int s = 0; s < mhak_scale_bytes(block); s++)
        scales[s] = (uint8_t)group[s * nr + lane];
    for (int k = 0; k < MHAK_BLOCK_QUADS; k++) {
        const high_bits bits = high_of(block, k);
        if (block == MHAK_Q8_0)
            add_quad(q + 4 * k, get_word(low, k * nr + lane), 0, 255);
        else
            add_quad(q + 4 * k, get_word(low, k / 2 * nr + lane) >> k % 2 * 4, 0, 15);
        if (bits.mask)
            add_quad(q + 4 * k, get_word(high, bits.word * nr + lane) >> bits.first, 4, bits.mask);
    }
}

void mhai_linear_put_block(const mha_linear *linear, ptrdiff_t column, ptrdiff_t number,
                           const mhai_unit *unit)
{
    const int block = mhai_block_number(linear->stored);
    const ptrdiff_t nr = linear->kernels->nr, lane = column % nr;
    char *at = unit_at(linear, column, number);
    for (int h = 0; h < mhak_head_bytes(block) / 2; h++)
        memcpy(at + (h * nr + lane) * 2, &unit->heads[h], 2);
    at += mhak_head_bytes(block) * nr;
    for (int g = 0; g < mhak_block_inputs(block) / MHAK_BLOCK_GROUP; g++) {
        put_group(block, nr, lane, unit->scales[g], unit->q + g * MHAK_BLOCK_GROUP, at);
        at += mhak_group_bytes(block) * nr;
    }
}

void mhai_linear_get_block(const mha_linear *linear, ptrdiff_t column, ptrdiff_t number,
                           mhai_unit *unit)
{
    const int block = mhai_block_number(linear->stored);
    const ptrdiff_t nr = linear->kernels->nr, lane = column % nr;
    const char *at = unit_at(linear, column, number);
    memset(unit, 0, sizeof *unit);
    for (int h = 0; h < mhak_head_bytes(block) / 2; h++)
        memcpy(&unit->heads[h], at + (h * nr + lane) * 2, 2);
    at += mhak_head_bytes(block) * nr;
    for (int g = 0; g < mhak_block_inputs(block) / MHAK_BLOCK_GROUP; g++) {
        get_group(block, nr, lane, at, unit->scales[g], unit->q + g * MHAK_BLOCK_GROUP);
        at += mhak_group_bytes(block) * nr;
    }
}

void mhai_linear_put_row(const mha_linear *linear, ptrdiff_t column, const void *row)
{
    const ptrdiff_t bytes = (ptrdiff_t)mhai_block_bytes(linear->stored);
    for (ptrdiff_t n = 0; n < linear->inputs / mhai_block_length(linear->stored); n++) {
        mhai_unit unit;
        mhai_block_read(linear->stored, (const char *)row + n * bytes, &unit);
        mhai_linear_put_block(linear, column, n, &unit);
    }
}
