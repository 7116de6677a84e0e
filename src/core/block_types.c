/* SPDX-License-Identifier: MIT */
/*
 * The block types: rows of them as f32, and rows of f32 in the three simple ones. In a file
 *
 *      Q8_0    f16 d           32 bytes                                w = d q
 *      Q4_0    f16 d           32 x 4 bits                             w = d (q - 8)
 *      Q4_1    f16 d, m        32 x 4 bits                             w = d q + m
 *      Q4_K    f16 d, m        8 x 6 bits s, 8 x 6 bits t, 256 x 4     w = d s q - m t
 *      Q5_K    f16 d, m        8 x 6 bits s, 8 x 6 bits t, 256 x 5     w = d s q - m t
 *      Q6_K    256 x 6 bits, 16 bytes s, f16 d                         w = d s (q - 32)
 *
 * where s and t belong to 32 weights, in Q6_K to 16. linear_blocks.c packs them into panels.
 */
#include "core/block_types.h"

#include <math.h>
#include <string.h>

#include "core/internal.h"

/* -------------------------------------------------------------- extents ----- */

ptrdiff_t mhai_block_length(mha_dtype type)
{
    return mhai_is_block(type) ? mhak_block_inputs(mhai_block_number(type)) : 1;
}

size_t mhai_block_bytes(mha_dtype type)
{
    static const size_t bytes[MHAK_BLOCK_TYPES] = {34, 18, 20, 144, 176, 210};
    return mhai_is_block(type) ? bytes[mhai_block_number(type)] : mha_dtype_size(type);
}

size_t mha_row_bytes(mha_dtype type, ptrdiff_t count)
{
    const ptrdiff_t length = mhai_block_length(type);
    size_t bytes;
    if (count < 0 || count % length != 0 ||
        __builtin_mul_overflow((size_t)(count / length), mhai_block_bytes(type), &bytes))
        return 0;
    return bytes;
}

/* ------------------------------------------------------------- unpacking ----- */

static uint16_t read_u16(const uint8_t *p)
{
    uint16_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* Low halves of `count` bytes to `low`, high halves to `high`. */
static void read_halves(const uint8_t *bytes, int count, uint8_t *low, uint8_t *high)
{
    for (int n = 0; n < count; n++) {
        low[n] = bytes[n] & 15;
        high[n] = bytes[n] >> 4;
    }
}

static void read_q8_0(const uint8_t *block, mhai_unit *unit)
{
    unit->heads[0] = read_u16(block);
    for (int n = 0; n < 32; n++)
        unit->q[n] = block[2 + n] ^ 0x80; /* adds 128 to a signed byte */
}

/* Six bits each of eight scales and eight minimums: four of both in the first eight bytes; the low
 * four bits of the others in the last four bytes, their high two bits above the first eight. */
static void read_six_bits(const uint8_t *s, mhai_unit *unit)
{
    for (int g = 0; g < 4; g++) {
        unit->scales[g][0] = s[g] & 63;
        unit->scales[g][1] = s[g + 4] & 63;
        unit->scales[g + 4][0] = (uint8_t)((s[g + 8] & 15) | s[g] >> 6 << 4);
        unit->scales[g + 4][1] = (uint8_t)(s[g + 8] >> 4 | s[g + 4] >> 6 << 4);
    }
}

static void read_q4_k(const uint8_t *block, mhai_unit *unit)
{
    unit->heads[0] = read_u16(block);
    unit->heads[1] = read_u16(block + 2);
    read_six_bits(block + 4, unit);
    for (int n = 0; n < 4; n++)
        read_halves(block + 16 + 32 * n, 32, unit->q + 64 * n, unit->q + 64 * n + 32);
}

static void read_q5_k(const uint8_t *block, mhai_unit *unit)
{
    const uint8_t *const fifth = block + 16;
    unit->heads[0] = read_u16(block);
    unit->heads[1] = read_u16(block + 2);
    read_six_bits(block + 4, unit);
    for (int n = 0; n < 4; n++)
        read_halves(block + 48 + 32 * n, 32, unit->q + 64 * n, unit->q + 64 * n + 32);
    for (int g = 0; g < 8; g++)
        for (int n = 0; n < 32; n++)
            unit->q[32 * g + n] |= (uint8_t)((fifth[n] >> g & 1) << 4);
}

static void read_q6_k(const uint8_t *block, mhai_unit *unit)
{
    for (int h = 0; h < 2; h++) {
        const uint8_t *const low = block + 64 * h, *const high = block + 128 + 32 * h;
        uint8_t *const q = unit->q + 128 * h;
        read_halves(low, 64, q, q + 64);
        for (int g = 0; g < 4; g++)
            for (int n = 0; n < 32; n++)
                q[32 * g + n] |= (uint8_t)((high[n] >> 2 * g & 3) << 4);
    }
    memcpy(unit->scales, block + 192, sizeof unit->scales);
    unit->heads[0] = read_u16(block + 208);
}

void mhai_block_read(mha_dtype type, const void *block, mhai_unit *unit)
{
    const uint8_t *const from = block;
    switch (mhai_block_number(type)) {
    case MHAK_Q8_0:
        read_q8_0(from, unit);
        break;
    case MHAK_Q4_0:
        unit->heads[0] = read_u16(from);
        read_halves(from + 2, 16, unit->q, unit->q + 16);
        break;
    case MHAK_Q4_1:
        unit->heads[0] = read_u16(from);
        unit->heads[1] = read_u16(from + 2);
        read_halves(from + 4, 16, unit->q, unit->q + 16);
        break;
    case MHAK_Q4_K:
        read_q4_k(from, unit);
        break;
    case MHAK_Q5_K:
        read_q5_k(from, unit);
        break;
    default:
        read_q6_k(from, unit);
        break;
    }
}

/* ---------------------------------------------------------------- to f32 ----- */

static float half(const uint16_t *bits)
{
    return (float)mhai_element_read(bits, MHA_F16, 0);
}

static void unit_to_f32(int block, const mhai_unit *unit, float *to)
{
    const float d = half(&unit->heads[0]);
    const float least = mhak_has_minimum(block) ? half(&unit->heads[1]) : 0.0f;
    const int shared = mhak_scale_inputs(block), bias = mhak_bias(block);
    for (int c = 0; c < mhak_block_inputs(block); c += shared) {
        const uint8_t *const scales = unit->scales[c / MHAK_BLOCK_GROUP];
        float scale = d, minimum = least;
        if (block == MHAK_Q4_K || block == MHAK_Q5_K) {
            scale = d * (float)scales[0];
            minimum = -(least * (float)scales[1]);
        } else if (block == MHAK_Q6_K) {
            scale = d * (float)(int8_t)scales[c / shared % 2];
        }
        for (int n = c; n < c + shared; n++) {
            const float product = (float)(unit->q[n] - bias) * scale;
            to[n] = mhak_has_minimum(block) ? product + minimum : product;
        }
    }
}

void mhai_blocks_to_f32(mha_dtype type, const void *row, ptrdiff_t count, float *to)
{
    const ptrdiff_t length = mhai_block_length(type), bytes = (ptrdiff_t)mhai_block_bytes(type);
    for (ptrdiff_t n = 0; n < count / length; n++) {
        mhai_unit unit;
        mhai_block_read(type, (const char *)row + n * bytes, &unit);
        unit_to_f32(mhai_block_number(type), &unit, to + n * length);
    }
}

mha_status mha_row_to_f32(mha_dtype type, const void *row, ptrdiff_t count, float *to)
{
    enum { PART = 1 << 20 };
    const mhak_table *kernels;
    if (count < 0 || count % mhai_block_length(type) != 0)
        return MHA_ERR_SHAPE;
    if (type == MHA_F64 || type == MHA_I8 || mhai_block_bytes(type) == 0)
        return MHA_ERR_DTYPE;
    if (count > 0 && (!row || !to))
        return MHA_ERR_NULL;
    if (mhai_is_block(type)) {
        mhai_blocks_to_f32(type, row, count, to);
        return MHA_OK;
    }
    if ((uintptr_t)row % mha_dtype_size(type))
        return MHA_ERR_ALIGN;
    const mha_status status = mhai_kernels(&kernels);
    for (ptrdiff_t n = 0; !status && n < count; n += PART)
        kernels->load_row[type](mhai_at(row, type, n), (int)mhai_min(PART, count - n), 1.0f,
                                to + n);
    return status;
}

/* -------------------------------------------------------------- from f32 ----- */

/* The least, the largest, and the number with the largest magnitude, the first of several; all are
 * NaN if a number is not finite. */
typedef struct extremes {
    float least, most, widest;
} extremes;

static extremes extremes_of(const float *x, int count)
{
    extremes e = {x[0], x[0], x[0]};
    for (int n = 0; n < count; n++) {
        if (!isfinite(x[n]))
            return (extremes){NAN, NAN, NAN};
        e.least = x[n] < e.least ? x[n] : e.least;
        e.most = x[n] > e.most ? x[n] : e.most;
        e.widest = fabsf(x[n]) > fabsf(e.widest) ? x[n] : e.widest;
    }
    return e;
}

static void write_half(uint8_t *to, float x)
{
    uint16_t bits;
    mhai_element_write(&bits, MHA_F16, 0, (double)x);
    memcpy(to, &bits, sizeof bits);
}

/* 1 / x; 0 where x or the result is not finite, which stores zeros. */
static float inverse(float x)
{
    return isfinite(x) && isfinite(1.0f / x) ? 1.0f / x : 0.0f;
}

/* Numbers 0 to 15 in halves of bytes: number n and n + 16 share a byte. */
static void write_halves(uint8_t *to, const uint8_t q[32])
{
    for (int n = 0; n < 16; n++)
        to[n] = (uint8_t)(q[n] | q[n + 16] << 4);
}

static uint8_t bounded(float x)
{
    return (uint8_t)(x < 0.0f ? 0.0f : x > 15.0f ? 15.0f : x);
}

static void write_q8_0(const float *x, uint8_t *block)
{
    const float d = fabsf(extremes_of(x, 32).widest) / 127.0f, factor = inverse(d);
    write_half(block, d);
    for (int n = 0; n < 32; n++)
        block[2 + n] = (uint8_t)(int8_t)(factor != 0.0f ? roundf(x[n] * factor) : 0.0f);
}

static void write_q4_0(const float *x, uint8_t *block)
{
    const float d = extremes_of(x, 32).widest / -8.0f, factor = inverse(d);
    uint8_t q[32];
    write_half(block, d);
    for (int n = 0; n < 32; n++)
        q[n] = factor != 0.0f ? bounded(x[n] * factor + 8.5f) : 8;
    write_halves(block + 2, q);
}

static void write_q4_1(const float *x, uint8_t *block)
{
    const extremes e = extremes_of(x, 32);
    const float d = (e.most - e.least) / 15.0f, factor = inverse(d);
    uint8_t q[32];
    write_half(block, d);
    write_half(block + 2, e.least);
    for (int n = 0; n < 32; n++)
        q[n] = factor != 0.0f ? bounded((x[n] - e.least) * factor + 0.5f) : 0;
    write_halves(block + 4, q);
}

void mhai_blocks_from_f32(mha_dtype type, const float *x, ptrdiff_t count, void *row)
{
    uint8_t *block = row;
    for (ptrdiff_t n = 0; n < count; n += MHAK_BLOCK_GROUP, block += mhai_block_bytes(type)) {
        if (type == MHA_Q8_0)
            write_q8_0(x + n, block);
        else if (type == MHA_Q4_0)
            write_q4_0(x + n, block);
        else
            write_q4_1(x + n, block);
    }
}

mha_status mha_row_from_f32(mha_dtype type, const float *from, ptrdiff_t count, void *row)
{
    if (!mhai_can_quantize(type))
        return MHA_ERR_DTYPE;
    if (count < 0 || count % mhai_block_length(type) != 0)
        return MHA_ERR_SHAPE;
    if (count > 0 && (!from || !row))
        return MHA_ERR_NULL;
    mhai_blocks_from_f32(type, from, count, row);
    return MHA_OK;
}
