/* SPDX-License-Identifier: MIT */
/*
 * See scan.h. Every pass is written once, in vectors of 16 floats, and compiled for several
 * instruction sets. There are no multiply-adds, and sums have an order of their own, so that all of
 * them give the same bits.
 */
#include "model/scan.h"

#include <mha/mha.h>

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { LANES = 16, CHUNK = 32 * LANES }; /* a chunk is summed in f32, chunks in f64 */

typedef float lanes_f __attribute__((vector_size(4 * LANES)));
typedef int32_t lanes_i __attribute__((vector_size(4 * LANES)));
typedef uint32_t lanes_u __attribute__((vector_size(4 * LANES)));
typedef float half_f __attribute__((vector_size(2 * LANES)));
typedef int32_t half_i __attribute__((vector_size(2 * LANES)));

/* Vectors are passed by address: by value their convention depends on the instruction set. */

INLINE void load(const float *x, ptrdiff_t count, lanes_f *to)
{
    if (count >= LANES) {
        memcpy(to, x, sizeof *to);
        return;
    }
    float some[LANES];
    for (int n = 0; n < LANES; n++)
        some[n] = n < count ? x[n] : -INFINITY;
    memcpy(to, some, sizeof *to);
}

/* The larger of both in every lane; that of `most` if x is NaN. */
INLINE void raise_lanes(lanes_f *most, const lanes_f *x)
{
    const lanes_i above = *x > *most;
    *most = (lanes_f)((above & (lanes_i)*x) | (~above & (lanes_i)*most));
}

INLINE float most_lane(const lanes_f *x)
{
    half_f halves[2];
    memcpy(halves, x, sizeof halves);
    const half_i above = halves[0] > halves[1];
    const half_f larger = (half_f)((above & (half_i)halves[0]) | (~above & (half_i)halves[1]));
    float most = larger[0];
    for (int n = 1; n < LANES / 2; n++)
        most = larger[n] > most ? larger[n] : most;
    return most;
}

INLINE float most_of(const float *x, ptrdiff_t count)
{
    lanes_f most[4], x4;
    for (int n = 0; n < 4; n++)
        most[n] = (lanes_f){0} - INFINITY;
    ptrdiff_t at = 0;
    for (; at + 4 * LANES <= count; at += 4 * LANES)
        for (int n = 0; n < 4; n++) {
            load(x + at + n * LANES, LANES, &x4);
            raise_lanes(&most[n], &x4);
        }
    for (; at < count; at += LANES) {
        load(x + at, count - at, &x4);
        raise_lanes(&most[0], &x4);
    }
    for (int n = 1; n < 4; n++)
        raise_lanes(&most[0], &most[n]);
    return most_lane(&most[0]);
}

/* exp(x) for x <= 0: 2^n times the series of the exponential of the rest, which is at most ln(2)/2
 * in size. 0 below -87, where numbers would be denormal. */
INLINE void exp_lanes(const lanes_f *at, lanes_f *to)
{
    const float ROUND = 12582912.0f; /* 1.5 * 2^23: the sum's last bits are a whole number */
    const float LN2_HIGH = 0.693359375f, LN2_LOW = -2.12194440e-4f;
    const lanes_f x = *at;
    const lanes_f sum = x * 1.44269504f + ROUND, n = sum - ROUND;
    const lanes_f rest = (x - n * LN2_HIGH) - n * LN2_LOW;
    lanes_f y = rest * (1.0f / 5040) + 1.0f / 720;
    y = y * rest + 1.0f / 120;
    y = y * rest + 1.0f / 24;
    y = y * rest + 1.0f / 6;
    y = y * rest + 0.5f;
    y = y * rest + 1.0f;
    y = y * rest + 1.0f;
    const lanes_u power = ((lanes_u)sum << 23) + 0x3f800000u;
    const lanes_i tiny = x < -87.0f;
    *to = (lanes_f)(~tiny & (lanes_i)(y * (lanes_f)power));
}

INLINE double sum_lanes(const lanes_f *x)
{
    double sums[4] = {0.0};
    for (int n = 0; n < LANES; n++)
        sums[n % 4] += (double)(*x)[n];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

INLINE double exp_sum_of(const float *x, ptrdiff_t count, float most)
{
    double total = 0.0;
    for (ptrdiff_t first = 0; first < count; first += CHUNK) {
        const ptrdiff_t last = first + CHUNK < count ? first + CHUNK : count;
        lanes_f sum = {0}, some, e;
        for (ptrdiff_t at = first; at < last; at += LANES) {
            load(x + at, last - at, &some);
            some = some - most;
            exp_lanes(&some, &e);
            sum += e;
        }
        total += sum_lanes(&sum);
    }
    return total;
}

INLINE ptrdiff_t above_of(const float *x, ptrdiff_t count, ptrdiff_t first, float limit)
{
    ptrdiff_t at = first;
    for (; at + SCAN_BLOCK <= count; at += SCAN_BLOCK) {
        lanes_f most = (lanes_f){0} - INFINITY, some;
        for (int n = 0; n < SCAN_BLOCK; n += LANES) {
            load(x + at + n, LANES, &some);
            raise_lanes(&most, &some);
        }
        if (most_lane(&most) > limit)
            return at;
    }
    return at < count ? at : count;
}

/* ------------------------------------------------------- instruction sets ----- */

typedef struct scanner {
    float (*most)(const float *x, ptrdiff_t count);
    double (*exp_sum)(const float *x, ptrdiff_t count, float most);
    ptrdiff_t (*above)(const float *x, ptrdiff_t count, ptrdiff_t first, float limit);
} scanner;

#define SCANNER(name, target)                                                              \
    target static float most_##name(const float *x, ptrdiff_t count)                       \
    {                                                                                      \
        return most_of(x, count);                                                          \
    }                                                                                      \
    target static double exp_sum_##name(const float *x, ptrdiff_t count, float most)       \
    {                                                                                      \
        return exp_sum_of(x, count, most);                                                 \
    }                                                                                      \
    target static ptrdiff_t above_##name(const float *x, ptrdiff_t count, ptrdiff_t first, \
                                         float limit)                                      \
    {                                                                                      \
        return above_of(x, count, first, limit);                                           \
    }                                                                                      \
    static const scanner scanner_##name = {most_##name, exp_sum_##name, above_##name};

SCANNER(plain, )

#if defined(__x86_64__)
SCANNER(avx2, __attribute__((target("avx2"))))
SCANNER(avx512, __attribute__((target("avx512f"))))

/* That of the library's own instruction set, so that MHA_ISA chooses here too. */
static const scanner *best(void)
{
    const char *const isa = mha_isa_base();
    return isa != NULL && strcmp(isa, "avx512") == 0 ? &scanner_avx512
           : isa != NULL && strcmp(isa, "avx2") == 0 ? &scanner_avx2
                                                     : &scanner_plain;
}
#else
static const scanner *best(void)
{
    return &scanner_plain;
}
#endif

float scan_most(const float *x, ptrdiff_t count)
{
    return best()->most(x, count);
}

double scan_exp_sum(const float *x, ptrdiff_t count, float most)
{
    return best()->exp_sum(x, count, most);
}

ptrdiff_t scan_above(const float *x, ptrdiff_t count, ptrdiff_t first, float limit)
{
    return best()->above(x, count, first, limit);
}
