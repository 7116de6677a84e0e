/* SPDX-License-Identifier: MIT */
/* Random numbers: SplitMix64. The same seed gives the same numbers on every machine and compiler.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rng {
    uint64_t state;
} rng;

static inline uint64_t rng_next(rng *r)
{
    uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* An independent generator for item `index` of the series `seed`. */
static inline rng rng_for(uint64_t seed, uint64_t index)
{
    rng first = {seed};
    rng second = {rng_next(&first) ^ (index * UINT64_C(0xd1342543de82ef95))};
    rng_next(&second);
    return second;
}

/* In [0, n), n > 0. */
static inline int64_t rng_below(rng *r, int64_t n)
{
    return (int64_t)(rng_next(r) % (uint64_t)n);
}

/* In [low, high], both included. */
static inline int64_t rng_between(rng *r, int64_t low, int64_t high)
{
    return low + rng_below(r, high - low + 1);
}

/* True in `percent` of 100 calls. */
static inline bool rng_chance(rng *r, int percent)
{
    return rng_below(r, 100) < percent;
}

/* In [0, 1). */
static inline double rng_unit(rng *r)
{
    return (double)(rng_next(r) >> 11) * 0x1p-53;
}

/* Roughly normal, mean 0 and variance 1: twelve uniform numbers, four from each draw. */
static inline double rng_normal(rng *r)
{
    double sum = 0.0;
    for (int draw = 0; draw < 3; draw++) {
        const uint64_t bits = rng_next(r);
        for (int part = 0; part < 4; part++)
            sum += (double)((bits >> (16 * part)) & 0xffff) * 0x1p-16;
    }
    return sum - 6.0;
}

#endif
