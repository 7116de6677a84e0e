/* SPDX-License-Identifier: MIT */
#ifndef PROGRAM_BENCH_TABLE_H
#define PROGRAM_BENCH_TABLE_H

#include <stdbool.h>

/* The project's own table: every case with what it is to reach. `names` chooses sections; none:
 * all of them. Returns an exit code; a goal that is missed is no failure. */
int bench_table(char *const *names, int count, int rounds, int threads, bool as_json);

#endif
