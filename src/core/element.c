/* SPDX-License-Identifier: MIT */
/* Numbers in and out of storage without kernels: single elements, slowly, and rows of i8. */
#include "core/internal.h"

#include <math.h>
#include <string.h>

static double read_half(uint16_t h)
{
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    double x = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    if (exponent == 31)
        x = fraction ? (double)NAN : (double)INFINITY;
    return h & 0x8000 ? -x : x;
}

static double read_bfloat(uint16_t h)
{
    const uint32_t bits = (uint32_t)h << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

double mhai_element_read(const void *data, mha_dtype type, ptrdiff_t index)
{
    switch (type) {
    case MHA_F16:
        return read_half(((const uint16_t *)data)[index]);
    case MHA_BF16:
        return read_bfloat(((const uint16_t *)data)[index]);
    case MHA_F64:
        return ((const double *)data)[index];
    case MHA_I8:
        return ((const int8_t *)data)[index];
    default:
        return (double)((const float *)data)[index];
    }
}

/* Rounds x to `digits` binary digits (and no finer than 2^lowest), ties to even. */
static double round_to(double x, int digits, int lowest)
{
    int exponent;
    if (x == 0 || !isfinite(x))
        return x;
    frexp(x, &exponent);
    const int unit = exponent - digits > lowest ? exponent - digits : lowest;
    return ldexp(nearbyint(ldexp(x, -unit)), unit);
}

static uint16_t write_half(double x)
{
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x))
        return 0x7e00;
    const double magnitude = fabs(round_to(x, 11, -24));
    if (magnitude >= 65536.0)
        return sign | 0x7c00;
    if (magnitude < 0x1p-14)
        return sign | (uint16_t)ldexp(magnitude, 24);
    int exponent;
    const double fraction = frexp(magnitude, &exponent);
    const int bits = ((exponent + 14) << 10) + (int)ldexp(fraction, 11) - 1024;
    return (uint16_t)(sign | bits);
}

static uint16_t write_bfloat(double x)
{
    const float rounded = (float)round_to(x, 8, -133);
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    return (uint16_t)(isnan(x) ? 0x7fc0 : bits >> 16);
}

void mhai_element_write(void *data, mha_dtype type, ptrdiff_t index, double x)
{
    switch (type) {
    case MHA_F16:
        ((uint16_t *)data)[index] = write_half(x);
        break;
    case MHA_BF16:
        ((uint16_t *)data)[index] = write_bfloat(x);
        break;
    case MHA_F64:
        ((double *)data)[index] = x;
        break;
    case MHA_I8:
        ((int8_t *)data)[index] = (int8_t)x;
        break;
    default:
        ((float *)data)[index] = (float)x;
        break;
    }
}

/* The largest magnitude in a row; NaN if a number is not finite. Magnitudes are compared as the
 * integers that their bits are; numbers that are not finite are the largest. */
static float most_of(const float *x, ptrdiff_t count)
{
    const int32_t infinite = 0x7f800000;
    int32_t most = 0;
    for (ptrdiff_t c = 0; c < count; c++) {
        int32_t bits;
        memcpy(&bits, &x[c], sizeof bits);
        bits &= INT32_MAX;
        most = bits > most ? bits : most;
    }
    float magnitude;
    memcpy(&magnitude, &most, sizeof magnitude);
    return most < infinite ? magnitude : NAN;
}

float mhai_quantize_row(const float *x, ptrdiff_t count, int8_t *stored)
{
    const float scale = most_of(x, count) / 127.0f;
    if (!(scale > 0.0f)) {
        memset(stored, 0, (size_t)count);
        return scale;
    }
    /* Adding and subtracting it leaves the nearest integer, since floats there are 1 apart. */
    const float whole = 0x1.8p23f;
    for (ptrdiff_t c = 0; c < count; c++) {
        const float ratio = x[c] / scale;
        const float bounded = ratio > 127.0f ? 127.0f : ratio < -127.0f ? -127.0f : ratio;
        stored[c] = (int8_t)(int)(bounded + whole - whole);
    }
    return scale;
}

void mhai_copy_strided(mha_dtype type, void *to, ptrdiff_t to_step, const void *from,
                       ptrdiff_t from_step, ptrdiff_t count)
{
    switch (mha_dtype_size(type)) {
    case 4:
        for (ptrdiff_t n = 0; n < count; n++)
            ((float *)to)[n * to_step] = ((const float *)from)[n * from_step];
        break;
    case 2:
        for (ptrdiff_t n = 0; n < count; n++)
            ((uint16_t *)to)[n * to_step] = ((const uint16_t *)from)[n * from_step];
        break;
    default:
        for (ptrdiff_t n = 0; n < count; n++)
            ((int8_t *)to)[n * to_step] = ((const int8_t *)from)[n * from_step];
        break;
    }
}
