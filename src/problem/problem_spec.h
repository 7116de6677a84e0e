/* SPDX-License-Identifier: MIT */
/*
 * Problems in part at random. A feature is an option of the library, or a way to lay out memory or
 * choose numbers; its details are drawn from the seed. `mha verify` and the tests draw from the
 * same generator.
 */
#ifndef PROBLEM_SPEC_H
#define PROBLEM_SPEC_H

#include <stdint.h>

#include <mha/mha.h>

#include "problem/problem_word.h"

enum {
    FEATURE_CAUSAL = 1 << 0,
    FEATURE_WINDOW = 1 << 1,
    FEATURE_ATTEND = 1 << 2,
    FEATURE_IGNORE = 1 << 3,
    FEATURE_ADD = 1 << 4,  /* additive mask: numbers and -inf */
    FEATURE_BIAS = 1 << 5, /* bias: numbers, and -inf in one of three cases */
    FEATURE_ALIBI = 1 << 6,
    FEATURE_SINKS = 1 << 7,
    FEATURE_SOFTCAP = 1 << 8,
    FEATURE_Q_LENGTHS = 1 << 9,
    FEATURE_K_LENGTHS = 1 << 10,
    FEATURE_PACKED = 1 << 11,
    FEATURE_DOCUMENTS = 1 << 12,
    FEATURE_SCALE = 1 << 13,
    FEATURE_OFFSET = 1 << 14, /* any position; else unset where legal, else bottom right */
    FEATURE_LSE = 1 << 15,
    FEATURE_WEIGHTS = 1 << 16,       /* any mode, type, heads and rows */
    FEATURE_PLAIN_WEIGHTS = 1 << 17, /* softmax, f32 (f64), all heads and rows */
    FEATURE_STRIDES = 1 << 18,       /* any order of axes, gaps, negative strides; else [B,H,L,D] */
    FEATURE_BROADCAST = 1 << 19,     /* stride 0 here and there, in masks and in inputs */
    FEATURE_MASK_TYPES = 1 << 20,    /* additive masks of any type; else f32 (f64) */
    FEATURE_POISON = 1 << 21,        /* NaN in every key and value that no query attends to */
    FEATURE_STATISTICS = 1 << 22,
    FEATURE_NATIVE = 1 << 23, /* native arithmetic */

    FEATURE_MASKS = FEATURE_CAUSAL | FEATURE_WINDOW | FEATURE_ATTEND | FEATURE_IGNORE |
                    FEATURE_ADD | FEATURE_BIAS | FEATURE_K_LENGTHS | FEATURE_DOCUMENTS,
    FEATURE_OUTPUTS = FEATURE_LSE | FEATURE_PLAIN_WEIGHTS,
    FEATURE_EVERYTHING = (1 << 22) - 1 - FEATURE_PLAIN_WEIGHTS
};

typedef enum problem_values {
    VALUES_NORMAL,
    VALUES_SAME_SIGN,  /* keys nearly equal, all values near 1 */
    VALUES_ALTERNATING /* keys nearly equal, values near +1 and -1 in turn: sums cancel */
} problem_values;

/* Another kind of memory than the heap: `take` returns `bytes` bytes, or NULL, and sets what `give`
 * frees them by. */
typedef struct problem_memory {
    void *(*take)(size_t bytes, void **handle);
    void (*give)(void *handle);
} problem_memory;

typedef struct problem_spec {
    mha_shape shape; /* G = 0 and Dv = 0 are passed to the library as they are */
    unsigned features;
    uint64_t seed;
    double logits; /* standard deviation of the scores; 0: 1 */
    problem_values values;
    const problem_memory *memory; /* NULL: heap */
} problem_spec;

/* A spec drawn at random: every feature but statistics and native arithmetic, types and layouts,
 * extents from 1 up to a cost of about `cost` = B*H*L*S*(D+Dv). */
problem_spec problem_spec_random(uint64_t seed, double cost);

/* The same, small and not f64, with just these features and perhaps FEATURE_STRIDES. */
problem_spec problem_spec_with(uint64_t seed, unsigned features);

/* Case `index` of the series `seed` of `mha verify`: extents may be 0, statistics may be requested,
 * and some are all bf16 in native arithmetic. */
problem_spec problem_spec_case(uint64_t seed, uint64_t index);

/* What the word of a problem is: all details of features that a word can express. */
problem_word problem_spec_word(const problem_spec *spec);

#endif
