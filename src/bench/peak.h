/* SPDX-License-Identifier: MIT */
/*
 * Measures the peak of this machine: multiply-adds in registers, and reads from memory. A
 * benchmark measures it right before and after the work it judges, since clock rates and the load
 * by other programs change from moment to moment.
 */
#ifndef BENCH_PEAK_H
#define BENCH_PEAK_H

#include <stdbool.h>
#include <stddef.h>

enum { PEAK_MAX_THREADS = 256 };

/* Which multiply-adds: of f32, or of native arithmetic. */
typedef enum peak_kind { PEAK_F32, PEAK_BF16, PEAK_I8 } peak_kind;

typedef struct peak_meter {
    const char *isa; /* as mha_isa_name() */
    peak_kind kind;  /* of an instruction set without instructions for it: those of f32 */
    int threads;
    bool cpu_time;       /* one thread: measured by the time it runs, not by the time that passes */
    long fma_iterations; /* per thread and measurement */
    int streams;         /* fastest way to read: positions read at once by one thread */
    int prefetch;        /* and how many bytes ahead to prefetch; 0: none */
} peak_meter;

/* The clock of a meter, and of the work that is compared with it: by the thread's own time, what
 * other programs take of a shared machine does not count. With several threads the time that passes
 * is measured, since it is their waiting for each other that matters. */
double peak_seconds(const peak_meter *meter);

/* A meter for `threads` threads (PEAK_MAX_THREADS at most) that takes about `seconds` for one
 * measurement. */
peak_meter peak_create(const char *isa, peak_kind kind, int threads, double seconds);

/* Multiplications and additions per second of all threads together. 0 if the threads cannot be
 * started. */
double peak_flops(const peak_meter *meter);

/* Tries several ways of reading `size` bytes at `memory` and keeps the fastest for peak_bytes(). */
void peak_calibrate_reads(peak_meter *meter, const void *memory, size_t size);

/* Bytes per second of all threads together, each reading its part of the memory once. `memory` is
 * aligned to 64 bytes. 0 if the threads cannot be started. */
double peak_bytes(const peak_meter *meter, const void *memory, size_t size);

#endif
