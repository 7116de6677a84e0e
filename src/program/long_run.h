/* SPDX-License-Identifier: MIT */
/* What commands that compute for minutes or hours have in common: an orderly end after a signal,
 * and the time that is left. */
#ifndef PROGRAM_LONG_RUN_H
#define PROGRAM_LONG_RUN_H

#include <signal.h>
#include <stdbool.h>

enum { LONG_RUN_SIGNALS = 2 };

/* How the signals acted before. */
typedef struct long_run {
    struct sigaction before[LONG_RUN_SIGNALS];
} long_run;

/* From now on SIGINT and SIGTERM only set what long_run_signal() returns; one that comes more than
 * a second after the first ends the program at once. long_run_end() restores what was before. */
void long_run_begin(long_run *run);
void long_run_end(const long_run *run);

/* The number of the signal that was met since long_run_begin(), or 0. */
int long_run_signal(void);

/* Prints on stderr how to continue: the same command line, quoted for a shell, with --resume after
 * it if `add` is set. */
void long_run_say_resume(int argc, char **argv, bool add);

/* "40 s left", "12 min left", "3.5 h left". */
void long_run_time_left(double seconds, char text[32]);

#endif
