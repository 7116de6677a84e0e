/* SPDX-License-Identifier: MIT */
/*
 * Sentence pairs for measuring a training on files: token numbers at random, with the lengths that
 * short sentences of everyday language have as subwords.
 */
#ifndef BENCH_PAIRS_H
#define BENCH_PAIRS_H

#include "translator/training_data.h"

typedef struct bench_pairs bench_pairs;

/* `count` pairs of numbers below `words`, the same in every run: 8 tokens of the source and 9.5 of
 * the target in the mean, most of them 4 to 16. Frequent tokens have small numbers. Returns NULL if
 * out of memory. */
bench_pairs *bench_pairs_create(int count, int words);
void bench_pairs_free(bench_pairs *pairs);

/* All of them as one batch, for batch_free(); NULL if out of memory. */
batch *bench_pairs_batch(const bench_pairs *pairs);

/* The data of a training whose every step has this batch. */
training_data *bench_pairs_data(bench_pairs *pairs);

#endif
