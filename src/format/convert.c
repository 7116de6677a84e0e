/* SPDX-License-Identifier: MIT */
/*
 * f16 and bf16 by integer arithmetic on the bits of an f32:
 *
 *      f32    1 sign, 8 exponent (bias 127), 23 fraction bits
 *      f16    1 sign, 5 exponent (bias  15), 10 fraction bits
 *      bf16   1 sign, 8 exponent (bias 127),  7 fraction bits: the upper half of an f32
 *
 * Adding half of the last kept bit, minus one if that bit is even, and then truncating rounds to
 * nearest with ties to even. A carry out of the fraction correctly increments the exponent.
 */
#include "format/convert.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

uint16_t convert_f32_to_f16(float x)
{
    const uint32_t bits = bits_of(x);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) /* NaN: a quiet one, whatever its payload was */
        return (uint16_t)(sign | 0x7e00u);
    /* From 65520 on, halfway between the largest f16 and 2^16, rounding gives infinity. */
    if (magnitude >= 0x477ff000u)
        return (uint16_t)(sign | 0x7c00u);
    /* Below 2^-14 an f16 is subnormal, a multiple of 2^-24. Scaling by a power of two is exact, so
     * rintf() rounds only once. */
    if (magnitude < 0x38800000u)
        return (uint16_t)(sign | (uint32_t)rintf(float_of(magnitude) * 0x1p24f));
    magnitude += 0xfffu + ((magnitude >> 13) & 1u);
    return (uint16_t)(sign | ((magnitude - 0x38000000u) >> 13));
}

uint16_t convert_f32_to_bf16(float x)
{
    const uint32_t bits = bits_of(x);
    /* The quiet bit keeps a NaN whose upper fraction bits are 0 from becoming infinity. */
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((bits >> 16) | 0x40u);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float convert_f16_to_f32(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    const uint32_t exponent = (bits >> 10) & 0x1fu;
    const uint32_t fraction = bits & 0x3ffu;
    if (exponent == 0)
        return float_of(sign | bits_of((float)fraction * 0x1p-24f));
    if (exponent == 31)
        return float_of(sign | 0x7f800000u | (fraction << 13));
    return float_of(sign | ((exponent + 112u) << 23) | (fraction << 13));
}

float convert_bf16_to_f32(uint16_t bits)
{
    return float_of((uint32_t)bits << 16);
}

double element_load(mha_dtype type, const void *data, ptrdiff_t index)
{
    switch (type) {
    case MHA_F32:
        return (double)((const float *)data)[index];
    case MHA_F16:
        return (double)convert_f16_to_f32(((const uint16_t *)data)[index]);
    case MHA_BF16:
        return (double)convert_bf16_to_f32(((const uint16_t *)data)[index]);
    case MHA_F64:
        return ((const double *)data)[index];
    case MHA_I8:
        return (double)((const int8_t *)data)[index];
    default:
        return (double)NAN;
    }
}

void element_store(mha_dtype type, void *data, ptrdiff_t index, double value)
{
    switch (type) {
    case MHA_F32:
        ((float *)data)[index] = (float)value;
        break;
    case MHA_F16:
        ((uint16_t *)data)[index] = convert_f32_to_f16((float)value);
        break;
    case MHA_BF16:
        ((uint16_t *)data)[index] = convert_f32_to_bf16((float)value);
        break;
    case MHA_F64:
        ((double *)data)[index] = value;
        break;
    case MHA_I8:
        ((int8_t *)data)[index] = (int8_t)fmin(fmax(rint(value), -127.0), 127.0);
        break;
    default:
        break;
    }
}

const char *dtype_name(mha_dtype type)
{
    switch (type) {
    case MHA_F32:
        return "f32";
    case MHA_F16:
        return "f16";
    case MHA_BF16:
        return "bf16";
    case MHA_F64:
        return "f64";
    case MHA_I8:
        return "i8";
    case MHA_Q8_0:
        return "q8_0";
    case MHA_Q4_0:
        return "q4_0";
    case MHA_Q4_1:
        return "q4_1";
    case MHA_Q4_K:
        return "q4_k";
    case MHA_Q5_K:
        return "q5_k";
    case MHA_Q6_K:
        return "q6_k";
    case MHA_AS_GIVEN:
        break;
    }
    return "?";
}
