/* SPDX-License-Identifier: MIT */
/*
 * Measures speed as a share of what the machine can do at the same moment.
 *
 * Every round measures the peak, one bench case, and the peak again, for all cases in turn. The
 * peak of a round is the median of these two and of those of the neighbouring rounds, so that a
 * single disturbed measurement of the peak does not distort a round. For a case that is bound by
 * memory, the bytes it needs are compared with the read bandwidth. It uses another copy of its
 * inputs in every run, from more memory than the caches hold, and the bandwidth is measured on the
 * same copies or on as much memory. For every other case the flops it needs are compared with the
 * peak of fused multiply-adds.
 *
 * Work and peak of one thread are measured in CPU time, those of several threads in the time that
 * passes (peak_seconds() says why).
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>

#include "bench/bench_case.h"
#include "bench/peak.h"

enum { ROUNDS_DEFAULT = 15, ROUNDS_MAX = 10000 };

/* Cases whose runs take seconds get fewer rounds: as many as fit in MEASURE_SECONDS, but at least
 * ROUNDS_LEAST. */
enum { ROUNDS_LEAST = 5, MEASURE_SECONDS = 120 };

typedef struct measure_round {
    double seconds;       /* of one run */
    double before, after; /* peaks before and after it, flops or bytes per second */
    double peak;          /* the peak of the round, see above */
    double share;         /* needed work / seconds / peak */
} measure_round;

typedef struct measure_case {
    bench_case what;
    int rounds;
    measure_round *round;
    peak_meter meter;
    const void *memory; /* to measure the bandwidth on; NULL: the peak of flops is measured */
    size_t memory_size;
    void *own_memory; /* the same if it was allocated here; NULL: it belongs to the case */
    int repeats;      /* runs per round */
    double seconds;   /* approximate time of a round */
} measure_case;

/* Creates a case, its peak meter and its rounds. On failure it is empty and `message` gives the
 * reason. */
bool measure_create(measure_case *c, const bench_case_word *word, int threads, int rounds,
                    char *message, size_t size);
void measure_free(measure_case *c);

/* Measures all cases in interleaved rounds, so that they see the same state of the machine. Returns
 * false, with a message, if a run fails. */
bool measure_run(measure_case *const *cases, int count, char *message, size_t size);

/* The q-quantile of `count` >= 1 values, 0 <= q <= 1. Sorts the values. */
double measure_quantile(double *values, int count, double q);

typedef struct measure_summary {
    double upper, median, best; /* of the share; upper is the 75th percentile */
    double peak;                /* the median, flops or bytes per second */
    double seconds;             /* the 25th percentile of the seconds of a run */
} measure_summary;

/* The clock of a case: "cpu" or "wall". */
const char *measure_clock(const measure_case *c);

measure_summary measure_summarise(const measure_case *c);

#endif
