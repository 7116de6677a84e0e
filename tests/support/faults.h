/* SPDX-License-Identifier: MIT */
/*
 * Memory and threads that fail when a test says so. A program that uses this is linked against the
 * static library with faults.c and
 *
 *      -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc
 *      -Wl,--wrap=posix_memalign,--wrap=free,--wrap=pthread_create,--wrap=pthread_join
 *
 * so that the n-th request can be refused: once, or from then on.
 */
#ifndef MHA_TEST_FAULTS_H
#define MHA_TEST_FAULTS_H

#include <stdbool.h>

typedef enum resource { MEMORY, THREAD, RESOURCES } resource;

/* From here on, count, and refuse request `fail_at` of `kind`; 0 refuses none. */
void faults_arm(resource kind, int fail_at, bool for_ever);
void faults_disarm(void);

/* Requests since faults_arm(). */
int faults_requests(resource kind);

/* Blocks that were not freed, threads that were not joined. */
int faults_left(resource kind);

#endif
