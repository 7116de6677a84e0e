/* SPDX-License-Identifier: MIT */
/*
 * Speed as a share of what the machine can do at that moment.
 *
 * Every round measures the peak, the subject and the peak again, for one subject after another.
 * The peak of a round is the median of these two and of those of the rounds beside it: one
 * disturbed measurement of the peak must not flatter a round, nor a lucky one spoil it. A subject
 * bound by memory (few flops a byte) is judged by the bytes it needs against the read bandwidth,
 * and takes a fresh copy of its keys and values in every run, out of more memory than caches hold;
 * the bandwidth is that of reading the same copies. Every other subject is judged by the flops it
 * needs against the peak of fused multiply-adds.
 */
#ifndef CLI_MEASURE_H
#define CLI_MEASURE_H

#include <stdbool.h>

#include "peak.h"
#include "problem.h"
#include "word.h"

enum { ROUNDS_DEFAULT = 15, ROUNDS_MAX = 10000 };

typedef struct measure_round {
    double seconds;       /* of one run */
    double before, after; /* peak around it, flops or bytes a second */
    double peak;          /* what counts: see above */
    double share;         /* needed work / seconds / peak */
} measure_round;

typedef struct measure_subject {
    char word[WORD_TEXT_MAX]; /* canonical */
    int threads;
    bool memory_bound;
    double flops, bytes; /* needed by one run */
    size_t work_size;
    int rounds;
    measure_round *round;

    problem p;
    mha_plan *plan;
    mha_pool *pool;
    void *work;
    peak_meter meter;
    char *arena; /* copies of k and v, one pair after another; NULL: not bound by memory */
    size_t arena_size, k_size, copy_size;
    int copies, next_copy;
    int repeats; /* runs in a round */
} measure_subject;

/* Everything a run needs, made once. t=N in the word wins over `threads`. On failure the subject
 * is empty and `message` says why. */
bool measure_create(measure_subject *s, const problem_word *word, int threads, int rounds,
                    char *message, size_t size);
void measure_free(measure_subject *s);

/* Rounds over all subjects together, so that they meet the same weather. False, with a message, if
 * the library refuses a run. */
bool measure_run(measure_subject *const *subjects, int count, char *message, size_t size);

/* The q-quantile of `count` values, at least one, 0 <= q <= 1; sorts them. */
double measure_quantile(double *values, int count, double q);

typedef struct measure_summary {
    double upper, median, best; /* of the share; upper: the 75th percentile */
    double peak;                /* median, flops or bytes a second */
    double seconds;             /* of a run at the upper quartile of speed */
} measure_summary;

measure_summary measure_summarise(const measure_subject *s);

#endif
