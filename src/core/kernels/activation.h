/* SPDX-License-Identifier: MIT */
/*
 * The activations of section 11 of mha.h, lane by lane. All but ReLU and tanh come from one
 * exponential of a number that is not positive, so that nothing overflows:
 *
 *      GELU(x) = max(x, 0) - t Phi(-t), t = |x|        Phi(-t) = exp(-t^2/2) P(t)/Q(t)
 *      x sigmoid(y) = (x or x e) / (1 + e)             e = exp(-|y|)
 *
 * Both keep their relative accuracy for large negative x, where the results are small. Infinite x
 * gives the limit, NaN stays NaN. test_activation checks the errors.
 */
#ifndef MHAK_ACTIVATION_H
#define MHAK_ACTIVATION_H

#include <float.h>

#include "core/kernels/vexp.h"

/* As in mha_activation. */
enum { ACT_NONE, ACT_RELU, ACT_GELU, ACT_GELU_TANH, ACT_GELU_QUICK, ACT_SILU, ACT_TANH };

/*
 * exp(unit * (x + rest)) for -88.03 <= unit * x <= 0 and |rest| below 2^-14; rest NULL: 0. The
 * unit is a constant, 1 or -1/2, and all others are scaled by it. The argument is reduced by a
 * multiple of log(2) in two parts, so that unlike in vexp the error does not grow with it: at most
 * 2 units in the last place for results of at least 2^-126. Smaller ones are as in vexp, and that
 * of VEXP_LEAST is 0.
 */
#define VEXP_LEAST (-0x1.601e68p+6f) /* -127 log(2) */

#if defined(VEXP_STEPS)
INLINE vf vexp_fine(const float unit, vf x, const vf *rest)
{
    const vf shifted = vfma(x, vset1(VEXP_SCALE * unit), vset1(VEXP_ROUND));
    const vf n = shifted - vset1(VEXP_ROUND);
    vf r = vfma(n, vset1(-0x1.62e43p-5f / unit), x);
    r = vfma(n, vset1(0x1.05c610cap-33f / unit), r);
    r = rest ? r + *rest : r;
    vf q = vfma(vset1(0x1.5555dcp-3f * unit * unit * unit), r, vset1(0x1.00022p-1f * unit * unit));
    q = vfma(q, r, vset1(unit));
    q = vfma(q, r, vset1(1.0f));
    return q * vpower((vi)shifted);
}
#else
INLINE vf vexp_fine(const float unit, vf x, const vf *rest)
{
    static const float coefficients[] = {0x1.123a0ap-7f, 0x1.5558f2p-5f, 0x1.555492p-3f,
                                         0x1.fffffcp-2f, 1.0f,           1.0f};
    const vf shifted = vfma(x, vset1(VEXP_LOG2E * unit), vset1(VEXP_MAGIC));
    const vf n = shifted - vset1(VEXP_MAGIC); /* times 0x1.62e4p-1 it is exact */
    vf r = vfma(n, vset1(-0x1.62e4p-1f / unit), x);
    r = vfma(n, vset1(-0x1.7f7d1cp-20f / unit), r);
    r = (rest ? r + *rest : r) * vset1(unit);
    vf q = vset1(0x1.6a23fp-10f);
    for (int c = 0; c < 6; c++)
        q = vfma(q, r, vset1(coefficients[c]));
    return q * (vf)((vi)shifted << 23);
}
#endif

/* What x * x, rounded to `square`, has lost. */
INLINE vf vsquare_lost(vf x, vf square)
{
#if defined(MHAK_ISA_C) || defined(MHAK_ISA_WASM) /* no fused multiply-add */
    const vf high = (vf)((vi)x & ~0xfff), low = x - high;
    return ((high * high - square) + vset1(2.0f) * high * low) + low * low;
#else
    return vfma(x, x, -square);
#endif
}

/* The Gaussian error linear unit, x Phi(x). P/Q is a minimax fit of exp(t^2/2) Phi(-t). */
INLINE vf vgelu(vf x)
{
    /* m = -t, not below the number whose exponential is 0: P and Q stay finite. */
    const vf m = vmax(vset1(-0x1.a8998p+3f), (vf)((vi)x | INT32_MIN));
    const vf square = m * m;
    const vf lost = vsquare_lost(m, square);
    const vf e = vexp_fine(-0.5f, square, &lost);
    vf p = vfma(vset1(0x1.ff7a0ep-9f), m, vset1(-0x1.40f722p-5f));
    p = vfma(p, m, vset1(0x1.6e65bap-3f));
    p = vfma(p, m, vset1(-0x1.baca7ep-2f));
    p = vfma(p, m, vset1(0.5f));
    vf q = vfma(vset1(-0x1.4083c4p-7f), m, vset1(0x1.924e56p-4f));
    q = vfma(q, m, vset1(-0x1.d50944p-2f));
    q = vfma(q, m, vset1(0x1.2f38a2p+0f));
    q = vfma(q, m, vset1(-0x1.a9a76ep+0f));
    q = vfma(q, m, vset1(1.0f));
    return vmax(vset1(0.0f), x) + m * p * e / q;
}

/* x sigmoid(y), where y has the sign of x. */
INLINE vf vsigmoid_times(vf x, vf y)
{
    const vf least = vmax(vset1(VEXP_LEAST), (vf)((vi)y | INT32_MIN));
    const vf e = vexp_fine(1.0f, least, NULL);
    const vf finite = vmax(vset1(-FLT_MAX), x); /* -inf times 0 would be NaN */
    return finite * vpick(vset1(0.0f), x, e, vset1(1.0f)) / (vset1(1.0f) + e);
}

INLINE vf vactivate(const int activation, vf x)
{
    switch (activation) {
    case ACT_RELU:
        return vmax(vset1(0.0f), x);
    case ACT_GELU:
        return vgelu(x);
    case ACT_GELU_TANH: /* (1 + tanh(z)) / 2 = sigmoid(2 z), z = sqrt(2/pi) (x + 0.044715 x^3) */
        return vsigmoid_times(x, x * vfma(x * x, vset1(0.0713548162726f), vset1(1.5957691216057f)));
    case ACT_GELU_QUICK:
        return vsigmoid_times(x, x * vset1(1.702f));
    case ACT_SILU:
        return vsigmoid_times(x, x);
    case ACT_TANH:
        return vtanh(x);
    default:
        return x;
    }
}

#endif
