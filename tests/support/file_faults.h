/* SPDX-License-Identifier: MIT */
/*
 * Files that fail when a test says so, as faults.h does it for memory. A program that uses this is
 * linked with file_faults.c and
 *
 *      -Wl,--wrap=open,--wrap=read,--wrap=pread,--wrap=write,--wrap=fsync,--wrap=close
 *      -Wl,--wrap=rename
 *
 * so that the n-th call about a file can be refused.
 */
#ifndef MHA_FILE_FAULTS_H
#define MHA_FILE_FAULTS_H

#include <stdbool.h>

/* From here on, count, and refuse call `fail_at`; 0 refuses none. `slow` files are read and written
 * a few bytes at a time, and interrupted. */
void file_faults_arm(int fail_at, bool slow);
void file_faults_disarm(void);

/* Calls since file_faults_arm(), and files that were not closed. */
int file_faults_calls(void);
int file_faults_left(void);

#endif
