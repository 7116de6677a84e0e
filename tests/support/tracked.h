/* SPDX-License-Identifier: MIT */
/*
 * A number three times over, for oracles that are plain loops:
 *
 *      x   what it is, in double precision
 *      f   what the same loops make of it in f32: the naive result
 *      v   the variance that roundings to f32 give it, in units of u^2, u = 2^-24, if each of them
 *          errs by u of its result and independently of the others
 *
 * x says what is right, f and v how far an honest f32 computation may be away from it: f by
 * example, which may be lucky, and v by expectation, which cannot be.
 */
#ifndef MHA_TEST_NUM_H
#define MHA_TEST_NUM_H

#include <math.h>

typedef struct num {
    double x, v;
    float f;
} num;

static inline num num_exact(double x)
{
    return (num){x, 0, (float)x};
}

/* A constant that f32 cannot hold. */
static inline num num_rounded(double x)
{
    return (num){x, x * x, (float)x};
}

static inline num num_add(num a, num b)
{
    const double x = a.x + b.x;
    return (num){x, a.v + b.v + x * x, a.f + b.f};
}

static inline num num_minus(num a)
{
    return (num){-a.x, a.v, -a.f};
}

static inline num num_sub(num a, num b)
{
    return num_add(a, num_minus(b));
}

static inline num num_mul(num a, num b)
{
    const double x = a.x * b.x;
    return (num){x, a.x * a.x * b.v + b.x * b.x * a.v + x * x, a.f * b.f};
}

/* sum + a * b. */
static inline num num_fma(num sum, num a, num b)
{
    return num_add(sum, num_mul(a, b));
}

static inline num num_div(num a, num b)
{
    const double x = a.x / b.x;
    return (num){x, (a.v + x * x * b.v) / (b.x * b.x) + x * x, a.f / b.f};
}

static inline num num_sqrt(num a)
{
    const double x = sqrt(a.x);
    return (num){x, a.v / (4 * a.x) + x * x, sqrtf(a.f)};
}

static inline num num_exp(num a)
{
    const double x = exp(a.x);
    return (num){x, x * x * (a.v + 1), expf(a.f)};
}

static inline num num_log(num a)
{
    const double x = log(a.x);
    return (num){x, a.v / (a.x * a.x) + x * x, logf(a.f)};
}

/* tanh in f32 may be twice as far away. */
static inline num num_tanh(num a)
{
    const double x = tanh(a.x), slope = 1 - x * x;
    return (num){x, slope * slope * a.v + 4 * x * x, tanhf(a.f)};
}

#endif
