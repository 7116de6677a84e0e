/* SPDX-License-Identifier: MIT */
/*
 * Speed as a share of what the machine can do at that moment.
 *
 * Every round measures the peak, the bench_case and the peak again, for one bench_case after
 * another. The peak of a round is the median of these two and of those of the rounds beside it: one
 * disturbed measurement of the peak must not flatter a round, nor a lucky one spoil it. A
 * bench_case bound by memory is judged by the bytes it needs against the read bandwidth, and takes
 * a fresh copy of what it reads in every run, out of more memory than caches hold; the bandwidth is
 * that of reading the same copies, or as much memory. Every other bench_case is judged by the flops
 * it needs against the peak of fused multiply-adds.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>

#include "bench/bench_case.h"
#include "bench/peak.h"

enum { ROUNDS_DEFAULT = 15, ROUNDS_MAX = 10000 };

/* Subjects whose runs take seconds get fewer rounds: as many as fit in MEASURE_SECONDS, but not
 * fewer than ROUNDS_LEAST. */
enum { ROUNDS_LEAST = 5, MEASURE_SECONDS = 120 };

typedef struct measure_round {
    double seconds;       /* of one run */
    double before, after; /* peak around it, flops or bytes a second */
    double peak;          /* what counts: see above */
    double share;         /* needed work / seconds / peak */
} measure_round;

typedef struct measure_case {
    bench_case what;
    int rounds;
    measure_round *round;
    peak_meter meter;
    const void *memory; /* the bandwidth is measured on */
    size_t memory_size;
    void *own_memory; /* NULL: the bench_case's */
    int repeats;      /* runs in a round */
    double seconds;   /* of a round, about */
} measure_case;

/* Everything a run needs, made once. On failure the bench_case is empty and `message` says why. */
bool measure_create(measure_case *s, const bench_case_word *word, int threads, int rounds,
                    char *message, size_t size);
void measure_free(measure_case *s);

/* Rounds over all bench cases together, so that they meet the same weather. False, with a message,
 * if the library refuses a run. */
bool measure_run(measure_case *const *cases, int count, char *message, size_t size);

/* The q-quantile of `count` values, at least one, 0 <= q <= 1; sorts them. */
double measure_quantile(double *values, int count, double q);

typedef struct measure_summary {
    double upper, median, best; /* of the share; upper: the 75th percentile */
    double peak;                /* median, flops or bytes a second */
    double seconds;             /* of a run at the upper quartile of speed */
} measure_summary;

measure_summary measure_summarise(const measure_case *s);

#endif
