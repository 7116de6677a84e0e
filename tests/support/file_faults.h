/* SPDX-License-Identifier: MIT */
/*
 * Makes calls on files fail on request, as faults.h does for memory. A test program that uses this
 * is linked with file_faults.c and
 *
 *      -Wl,--wrap=open,--wrap=read,--wrap=pread,--wrap=write,--wrap=fsync,--wrap=close
 *      -Wl,--wrap=rename,--wrap=mmap
 *
 * so that the n-th call fails: that one alone, or all from there on.
 */
#ifndef MHA_FILE_FAULTS_H
#define MHA_FILE_FAULTS_H

#include <stdbool.h>

/* Starts counting, and makes call `fail_at` fail, and all later ones with `for_ever`; 0: none
 * fails. With `slow`, files are read and written a few bytes at a time, with interruptions. */
void file_faults_arm(int fail_at, bool for_ever, bool slow);
void file_faults_disarm(void);

/* The number of calls since file_faults_arm(), and of files that were not closed. */
int file_faults_calls(void);
int file_faults_left(void);

/* Whether a call failed that something depends on. Nothing does on closing what was only read, nor
 * on mapping a file, which can be read instead. */
bool file_faults_lost(void);

/* Lets files not be mapped, whether calls are counted or not. */
void file_faults_refuse_maps(bool refuse);

#endif
