/* SPDX-License-Identifier: MIT */
/*
 * What this machine can do at best, measured in this process: fused multiply-adds in registers,
 * and reads of memory. A benchmark measures them right before and after the work it judges, since
 * clocks and neighbours change from one moment to the next.
 */
#ifndef BENCH_PEAK_H
#define BENCH_PEAK_H

#include <stdbool.h>
#include <stddef.h>

enum { PEAK_MAX_THREADS = 256 };

typedef struct peak_meter {
    const char *isa; /* as mha_isa_name() */
    int threads;
    long fma_iterations; /* of one thread in one measurement */
    int streams;         /* best way to read: places at once in the memory of one thread */
    int prefetch;        /* bytes ahead; 0: none */
} peak_meter;

/* A meter for `threads` threads (PEAK_MAX_THREADS at most) that takes about `seconds` for one
 * measurement. */
peak_meter peak_create(const char *isa, int threads, double seconds);

/* Flops a second of all threads together, in f32. 0 if threads cannot be had. */
double peak_flops(const peak_meter *meter);

/* Try several ways of reading `size` bytes at `memory` and keep the fastest for peak_bytes(). */
void peak_calibrate_reads(peak_meter *meter, const void *memory, size_t size);

/* Bytes a second of all threads together, each reading its part of the memory once. `memory` is
 * aligned to 64 bytes. 0 if threads cannot be had. */
double peak_bytes(const peak_meter *meter, const void *memory, size_t size);

#endif
