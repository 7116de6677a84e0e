/* SPDX-License-Identifier: MIT */
/*
 * A problem: all that one call of mha_attention() takes, with memory and numbers in it.
 *
 * The word says what is asked; the style says how it lies in memory and which numbers fill it.
 * An all-zero style gives contiguous tensors and normal numbers, as benchmarks want them; the
 * random cases use everything.
 */
#ifndef PROBLEM_H
#define PROBLEM_H

#include <stdbool.h>
#include <stdint.h>

#include <mha/mha.h>

#include "problem/problem_word.h"
#include "problem/tensor.h"

typedef enum problem_values {
    VALUES_NORMAL,
    VALUES_SAME_SIGN,  /* keys nearly equal, all values near 1 */
    VALUES_ALTERNATING /* keys nearly equal, values near +1 and -1 in turn: sums cancel */
} problem_values;

typedef struct problem_style {
    uint64_t seed;
    double logit_scale; /* the scores' magnitude with the default scale; 0: 1 */
    problem_values values;
    bool strided;     /* gaps, shared and backward axes, odd alignment */
    bool lengths;     /* random lengths of their own in every batch */
    bool offsets;     /* one offset a batch (with position = offset) */
    bool ignore_mask; /* a mask of the other polarity too */
    bool broadcast;   /* masks and biases vary over random axes, not over those of the word */
    bool minus_inf;   /* some elements of additive mask and bias are -inf */
    bool poison;      /* keys and values nobody attends to are NaN */
    int mask_block;   /* whole blocks of so many keys are masked; 0: none */
    mha_dtype add_type, bias_type, weights_type;
    bool choose_heads, choose_rows; /* weights of some heads and rows only */
} problem_style;

enum { PROBLEM_ARRAYS = 16 };

typedef struct problem {
    mha_shape shape;
    mha_options options; /* complete; its pointers lead into this problem */
    tensor q, k, v, o, lse, weights, add_mask, bias;
    void *arrays[PROBLEM_ARRAYS]; /* owned */
    int array_count;
} problem;

/* Outputs hold PROBLEM_UNTOUCHED bytes. On failure `p` is empty and `message` says why. */
enum { PROBLEM_UNTOUCHED = 0xa5 };
bool problem_create(problem *p, const problem_word *word, const problem_style *style, char *message,
                    size_t size);

/* The same problem in f64, log-sum-exp always asked for. Lengths, masks and lists stay those of
 * `p`, which must live longer. */
bool problem_twin(problem *twin, const problem *p);

void problem_free(problem *p);

/* Set all outputs back to PROBLEM_UNTOUCHED bytes. */
void problem_reset(problem *p);

/* mha_attention() on the problem. */
mha_status problem_attend(problem *p, mha_pool *pool);

/* The same through a plan and a workspace made for this one call. */
mha_status problem_attend_planned(problem *p, mha_pool *pool);

#endif
