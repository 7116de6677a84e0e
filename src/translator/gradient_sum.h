/* SPDX-License-Identifier: MIT */
/*
 * The sum of the gradients of the micro-batches of a step, along one binary tree: node n of a level
 * is the sum of nodes 2n and 2n + 1 of the level below; a last node without a partner rises alone.
 * So several processes that each have some of the micro-batches can add them with the same bits.
 */
#ifndef TRANSLATOR_GRADIENT_SUM_H
#define TRANSLATOR_GRADIENT_SUM_H

#include <mha/mha.h>

#include <stdbool.h>

enum { GRADIENT_LEVELS_MAX = 16 };

typedef struct gradient_sum {
    size_t count;
    float
        *levels[GRADIENT_LEVELS_MAX]; /* a node of each level, which waits for its right partner */
    bool waits[GRADIENT_LEVELS_MAX];
} gradient_sum;

/* For arrays of `count` numbers and up to `leaves` of them, at most 2^GRADIENT_LEVELS_MAX. One leaf
 * needs no memory. Returns false if out of memory; gradient_sum_free() is then still needed. */
bool gradient_sum_init(gradient_sum *sum, size_t count, int leaves);
void gradient_sum_free(gradient_sum *sum);

/* Begins a new sum. */
void gradient_sum_begin(gradient_sum *sum);

/* Adds leaf number `leaf`; leaves come in order, from 0. The array is exchanged for another one of
 * the same size, of any content. */
void gradient_sum_add(gradient_sum *sum, int leaf, float **data, mha_pool *pool);

/* Exchanges the array for the sum. There must be a leaf. */
void gradient_sum_finish(gradient_sum *sum, float **data, mha_pool *pool);

#endif
