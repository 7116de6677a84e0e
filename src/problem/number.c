/* SPDX-License-Identifier: MIT */
/*
 * f32, f16, bf16 and f64 read and written as double. Only the arithmetic of double and the layout
 * of the formats is used, so that the oracle also checks the conversions of the library.
 */
#include "problem/number.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    int digits, lowest; /* bits of the significand, exponent of the smallest normal number */
    double largest;
} formats[] = {
    [MHA_F32] = {24, -126, (double)FLT_MAX},
    [MHA_F16] = {11, -14, 65504.0},
    [MHA_BF16] = {8, -126, 0x1.FEp127},
    [MHA_F64] = {53, -1022, DBL_MAX},
};

double number_largest(mha_dtype type)
{
    return formats[type].largest;
}

double number_spacing(mha_dtype type, double value)
{
    const int lowest = formats[type].lowest;
    const int exponent = value == 0.0 ? lowest : ilogb(value);
    return ldexp(1.0, (exponent > lowest ? exponent : lowest) - (formats[type].digits - 1));
}

double number_round(mha_dtype type, double value)
{
    if (type == MHA_F64 || !isfinite(value) || value == 0.0)
        return value;
    const double step = number_spacing(type, value);
    const double rounded = nearbyint(value / step) * step;
    return fabs(rounded) > formats[type].largest ? copysign((double)INFINITY, value) : rounded;
}

/* The exponent of a normal number moves by 1023 - 15, its fraction by 52 - 10 bits. */
static double decode_f16(uint16_t bits)
{
    const uint64_t exponent = bits >> 10 & 31u, fraction = bits & 1023u;
    const double sign = bits >> 15 ? -1.0 : 1.0;
    if (exponent == 31)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * (double)fraction * 0x1p-24;
    const uint64_t wide = (exponent + 1008) << 52 | fraction << 42;
    double value;
    memcpy(&value, &wide, sizeof value);
    return sign * value;
}

static uint16_t encode_f16(double value)
{
    const double rounded = fabs(number_round(MHA_F16, value));
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value))
        return 0x7e00;
    if (isinf(rounded))
        return (uint16_t)(sign | 0x7c00);
    if (rounded < 0x1p-14)
        return (uint16_t)(sign | (uint16_t)(rounded * 0x1p24));
    int exponent;
    const double fraction = frexp(rounded, &exponent);
    return (uint16_t)(sign | ((exponent + 14) << 10) | (int)(fraction * 2048 - 1024));
}

static double decode_bf16(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

static uint16_t encode_bf16(double value)
{
    if (isnan(value))
        return 0x7fc0;
    const float rounded = (float)number_round(MHA_BF16, value);
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    return (uint16_t)(bits >> 16);
}

double number_get(mha_dtype type, const void *data, ptrdiff_t index)
{
    switch (type) {
    case MHA_F32:
        return (double)((const float *)data)[index];
    case MHA_F16:
        return decode_f16(((const uint16_t *)data)[index]);
    case MHA_BF16:
        return decode_bf16(((const uint16_t *)data)[index]);
    case MHA_F64:
        return ((const double *)data)[index];
    default:
        break;
    }
    abort();
}

void number_get_row(mha_dtype type, const void *data, ptrdiff_t index, ptrdiff_t count, double *to)
{
    if (type == MHA_F32)
        for (ptrdiff_t n = 0; n < count; n++)
            to[n] = (double)((const float *)data)[index + n];
    else
        for (ptrdiff_t n = 0; n < count; n++)
            to[n] = number_get(type, data, index + n);
}

void number_set(mha_dtype type, void *data, ptrdiff_t index, double value)
{
    switch (type) {
    case MHA_F32:
        ((float *)data)[index] = (float)value;
        return;
    case MHA_F16:
        ((uint16_t *)data)[index] = encode_f16(value);
        return;
    case MHA_BF16:
        ((uint16_t *)data)[index] = encode_bf16(value);
        return;
    case MHA_F64:
        ((double *)data)[index] = value;
        return;
    default:
        break;
    }
    abort();
}
