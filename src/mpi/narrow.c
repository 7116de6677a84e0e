/* SPDX-License-Identifier: MIT */
/* f32 to f16 and bf16, to the nearest, ties to even, as libmha stores its outputs. */
#include "mpi/mpi_parts.h"

#include <string.h>

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static uint16_t to_bf16(float x)
{
    const uint32_t bits = bits_of(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* Shifts right by n and rounds. */
static uint32_t round_shift(uint32_t x, uint32_t n)
{
    const uint32_t half = 1u << (n - 1), rest = x & ((1u << n) - 1), whole = x >> n;
    return whole + (rest > half || (rest == half && (whole & 1u)));
}

static uint16_t to_f16(float x)
{
    const uint32_t bits = bits_of(x), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    if (magnitude >= 0x477ff000u) /* 65520 and more */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude >= 0x38800000u) /* normal: 2^-14 and more */
        return (uint16_t)(sign | round_shift(magnitude - 0x38000000u, 13));
    if (magnitude < 0x33000000u) /* below half of the smallest */
        return (uint16_t)sign;
    const uint32_t exponent = magnitude >> 23;
    return (uint16_t)(sign | round_shift((magnitude & 0x7fffffu) | 0x800000u, 126u - exponent));
}

void mhai_mpi_narrow(mha_dtype type, const float *from, ptrdiff_t count, void *to)
{
    if (type == MHA_F32)
        memcpy(to, from, sizeof *from * (size_t)count);
    for (ptrdiff_t n = 0; type != MHA_F32 && n < count; n++) {
        const uint16_t half = type == MHA_F16 ? to_f16(from[n]) : to_bf16(from[n]);
        memcpy((char *)to + n * (ptrdiff_t)sizeof half, &half, sizeof half);
    }
}
