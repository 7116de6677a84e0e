/* SPDX-License-Identifier: MIT */
/*
 * Makes memory allocation and thread creation fail on request. A test program that uses this is
 * linked with the static library, faults.c and
 *
 *      -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc
 *      -Wl,--wrap=posix_memalign,--wrap=free,--wrap=pthread_create,--wrap=pthread_join
 *
 * so that the n-th request fails: that one alone, or all from there on.
 */
#ifndef MHA_TEST_FAULTS_H
#define MHA_TEST_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum resource { MEMORY, THREAD, RESOURCES } resource;

/* Starts counting, and makes request `fail_at` of `kind` fail; 0: none fails. */
void faults_arm(resource kind, int fail_at, bool for_ever);
void faults_disarm(void);

/* The number of requests since faults_arm(). */
int faults_requests(resource kind);

/* The number of blocks that were not freed, or threads that were not joined. */
int faults_left(resource kind);

/* The most bytes that were allocated at once since faults_arm(). */
size_t faults_peak(void);

#endif
