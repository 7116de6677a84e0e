/* SPDX-License-Identifier: MIT */
/*
 * Exponential and hyperbolic tangent, lane by lane.
 *
 * vexp(x) for -inf <= x <= 88:
 *      x = n ln 2 + r, |r| <= ln 2 / 2;   exp(x) = 2^n (1 + r q(r)),  q of degree 5
 * Error at most 1 unit in the last place (1.2 without fused multiply-add) for results of at least
 * 2^-126; below that the result is within 2^-126 of the truth and 0 for x < -87.7. test_exp checks
 * this, over every float in its soak.
 * exp(0) is exactly 1, exp(-inf) is 0, NaN stays NaN.
 */
#ifndef MHAK_VEXP_H
#define MHAK_VEXP_H

#include "simd.h"

/* 1.5 * 2^23 + 127: adding it rounds to an integer n and leaves n + 127 in the low bits. */
#define VEXP_MAGIC 12583039.0f

/* Split x; returns q(r) and sets *rest to r and *power to 2^n (0 for n = -127). */
INLINE vf vexp_split(vf x, vf *power, vf *rest)
{
    /* -88 gives n = -127. vmax keeps a NaN, as its second argument. */
    const vf clamped = vmax(vset1(-88.0f), x);
    const vf shifted = vfma(clamped, vset1(0x1.715476p+0f), vset1(VEXP_MAGIC));
    const vf n = shifted - vset1(VEXP_MAGIC);
    /* ln 2 in two parts; the first has 9 trailing zeros, so n times it is exact. */
    const vf r0 = vfma(n, vset1(-0x1.62e400p-1f), clamped);
    const vf r = vfma(n, vset1(-0x1.7f7d1cp-20f), r0);
    vf q = vfma(vset1(0x1.6a4d46p-10f), r, vset1(0x1.12398cp-7f));
    q = vfma(q, r, vset1(0x1.5558b0p-5f));
    q = vfma(q, r, vset1(0x1.555492p-3f));
    q = vfma(q, r, vset1(0x1.fffffcp-2f));
    q = vfma(q, r, vset1(1.0f));
    *power = (vf)((vi)shifted << 23);
    *rest = r;
    return q;
}

INLINE vf vexp(vf x)
{
    vf power, r;
    const vf q = vexp_split(x, &power, &r);
    return vfma(q, r, vset1(1.0f)) * power;
}

/*
 * tanh(x) = -m / (2 + m) with m = exp(-2|x|) - 1, which keeps its relative accuracy near 0.
 * Error at most 4 units in the last place; tanh(+-inf) = +-1, NaN stays NaN.
 */
INLINE vf vtanh(vf x)
{
    const vi sign = (vi)x & INT32_MIN;
    const vf magnitude = (vf)((vi)x & INT32_MAX);
    vf power, r;
    const vf q = vexp_split(magnitude * vset1(-2.0f), &power, &r);
    const vf m = vfma(power, q * r, power - vset1(1.0f));
    return (vf)((vi)(-m / (vset1(2.0f) + m)) | sign);
}

#endif
