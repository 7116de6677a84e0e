/* SPDX-License-Identifier: MIT */
/*
 * The order in which a training sees its pairs. In every epoch all pairs are shuffled, sorted by
 * length, cut into batches of about the same number of target tokens, and the batches are shuffled:
 *
 *      pairs --shuffle--> --sort by lengths--> | batch | batch | ... | --shuffle--> steps
 *
 * Sorting puts sentences of similar length into one batch. Since the sorted lengths are the same in
 * every epoch, so is the number of batches, and the batch of a step follows from seed and step.
 */
#ifndef TRANSLATOR_PAIR_ORDER_H
#define TRANSLATOR_PAIR_ORDER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pair_order pair_order;

/* Lengths of `pairs` > 0 pairs in tokens, both sides. A batch has at most `tokens` target tokens,
 * or one pair. Returns NULL if out of memory. */
pair_order *pair_order_create(const int *source, const int *target, int64_t pairs, int tokens,
                              uint64_t seed);
void pair_order_free(pair_order *order);

/* Batches of an epoch. */
int64_t pair_order_batches(const pair_order *order);

/* The pairs of a step, counted through all epochs; valid until the next call. NULL: out of memory.
 */
const int32_t *pair_order_step(pair_order *order, int64_t step, int *count);

#endif
