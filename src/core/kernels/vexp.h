/* SPDX-License-Identifier: MIT */
/*
 * Exponential and hyperbolic tangent, lane by lane.
 *
 * vexp(x) for -inf <= x <= 88, with a table where lookups are cheap (VEXP_STEPS is defined), else
 * without:
 *      x log2(e) STEPS = STEPS n + i + f, |f| <= 1/2;   exp(x) = 2^n 2^(i/STEPS) (1 + f q(f))
 *      q of degree 2, or 5 where STEPS is 1
 *
 * Error at most 1.75 + |x|/4 units in the last place (1 + |x|/4 without a table, 1 + 5|x|/4 without
 * fused multiply-add) for results of at least 2^-126. The error grows with |x| because log2(e) is
 * rounded, but smaller weights matter less to the softmax. Below 2^-126 the result is within 2^-126
 * of the exact one, and 0 for x < -88.1. test_exp checks this, with MHA_TEST_EXHAUSTIVE=1 over
 * every float. exp(0) is exactly 1, exp(-inf) is 0, NaN stays NaN.
 */
#ifndef MHAK_VEXP_H
#define MHAK_VEXP_H

#include "core/kernels/simd.h"

/* 1.5 * 2^23 + 127: adding it rounds to an integer n and leaves n + 127 in the low bits. */
#define VEXP_MAGIC 12583039.0f
#define VEXP_LOG2E 0x1.715476p+0f

/* Split x; returns q(f) and sets *rest to f and *power to 2^n (0 for n = -127). */
INLINE vf vexp_split(vf x, vf *power, vf *rest)
{
    /* -88 gives n = -127. vmax keeps a NaN, as its second argument. */
    const vf clamped = vmax(vset1(-88.0f), x);
    const vf shifted = vfma(clamped, vset1(VEXP_LOG2E), vset1(VEXP_MAGIC));
    const vf f = vfma(clamped, vset1(VEXP_LOG2E), vset1(VEXP_MAGIC) - shifted);
    vf q = vfma(vset1(0x1.41785cp-13f), f, vset1(0x1.5f0958p-10f));
    q = vfma(q, f, vset1(0x1.3b2dd4p-7f));
    q = vfma(q, f, vset1(0x1.c6af7ap-5f));
    q = vfma(q, f, vset1(0x1.ebfbdcp-3f));
    q = vfma(q, f, vset1(0x1.62e430p-1f));
    *power = (vf)((vi)shifted << 23);
    *rest = f;
    return q;
}

#define EACH for (int n = 0; n < count; n++)

#if defined(VEXP_STEPS)

/* 1.5 * 2^23: adding it rounds to an integer. */
#define VEXP_ROUND 12582912.0f
#define VEXP_SCALE (VEXP_STEPS * VEXP_LOG2E)
/* 2^(f/STEPS) = 1 + f (c1 + f (c2 + f c3)): the Taylor series, with the omitted f^4 term folded
 * into f^2. */
#define VEXP_C1 (0.693147180559945309 / VEXP_STEPS)
#define VEXP_C2 (VEXP_C1 * VEXP_C1 / 2 * (1 + 0.01726 * VEXP_C1 * VEXP_C1))
#define VEXP_C3 (VEXP_C1 * VEXP_C1 * VEXP_C1 / 6)

/* The bits of 2^(i/STEPS), less those that i contributes when it is added to the exponent. */
static const int32_t vexp_table[VEXP_STEPS] = {
    0x3f800000, 0x3f7daac3, 0x3f7b95c2, 0x3f79c3d3, 0x3f7837f0, 0x3f76f532, 0x3f75fed7, 0x3f75583f,
    0x3f7504f3, 0x3f7508a4, 0x3f75672a, 0x3f76248c, 0x3f7744fd, 0x3f78ccdf, 0x3f7ac0c7, 0x3f7d257d};

/* 2^(k/STEPS). */
INLINE vf vpower(vi k)
{
    /* Unsigned: for NaN and beyond 88 the sum may be any number. */
    return (vf)((vu)vlook(vload_i32(vexp_table), k) + ((vu)k << 19));
}

/* exp of `count` vectors at once (a constant), step by step for all of them: each is a long
 * chain of dependent instructions, and the processor looks only so far ahead for others to
 * fill the gaps. */
INLINE void vexp_all(vf *x, const int count)
{
    /* -127 log(2) gives n = -127, i = 0, whose power is 0. vmax keeps a NaN, as its second. */
    vf shifted[EXP_BATCH], q[EXP_BATCH];
    EACH x[n] = vmax(vset1(-0x1.601e68p+6f), x[n]);
    EACH shifted[n] = vfma(x[n], vset1(VEXP_SCALE), vset1(VEXP_ROUND));
    EACH x[n] = vfma(x[n], vset1(VEXP_SCALE), vset1(VEXP_ROUND) - shifted[n]);
    EACH q[n] = vfma(vset1((float)VEXP_C3), x[n], vset1((float)VEXP_C2));
    EACH q[n] = vfma(q[n], x[n], vset1((float)VEXP_C1));
    EACH q[n] = vfma(q[n], x[n], vset1(1.0f));
    EACH x[n] = q[n] * vpower((vi)shifted[n]);
}

#else

INLINE void vexp_all(vf *x, const int count)
{
    static const float coefficients[] = {0x1.5f0958p-10f, 0x1.3b2dd4p-7f, 0x1.c6af7ap-5f,
                                         0x1.ebfbdcp-3f,  0x1.62e430p-1f, 1.0f};
    vf shifted[EXP_BATCH], q[EXP_BATCH];
    EACH x[n] = vmax(vset1(-88.0f), x[n]);
    EACH shifted[n] = vfma(x[n], vset1(VEXP_LOG2E), vset1(VEXP_MAGIC));
    EACH x[n] = vfma(x[n], vset1(VEXP_LOG2E), vset1(VEXP_MAGIC) - shifted[n]);
    EACH q[n] = vset1(0x1.41785cp-13f);
    for (int c = 0; c < 6; c++)
        EACH q[n] = vfma(q[n], x[n], vset1(coefficients[c]));
    EACH x[n] = q[n] * (vf)((vi)shifted[n] << 23);
}

#endif
#undef EACH

INLINE vf vexp(vf x)
{
    vexp_all(&x, 1);
    return x;
}

INLINE void vexp_many(vf x[EXP_BATCH])
{
    vexp_all(x, EXP_BATCH);
}

/*
 * tanh(x) = -m / (2 + m) with m = exp(-2|x|) - 1, which keeps its relative accuracy near 0.
 * Error at most 4 units in the last place; tanh(+-inf) = +-1, NaN stays NaN.
 */
INLINE vf vtanh(vf x)
{
    const vi sign = (vi)x & INT32_MIN;
    const vf magnitude = (vf)((vi)x & INT32_MAX);
    vf power, f;
    const vf q = vexp_split(magnitude * vset1(-2.0f), &power, &f);
    const vf m = vfma(power, q * f, power - vset1(1.0f));
    return (vf)((vi)(-m / (vset1(2.0f) + m)) | sign);
}

#endif
