/* SPDX-License-Identifier: MIT */
#ifndef CLI_BENCH_TABLE_H
#define CLI_BENCH_TABLE_H

#include <stdbool.h>

/* The project's own table: every case with what it is to reach. Returns an exit code; a goal that
 * is missed is no failure. */
int bench_table(int rounds, int threads, bool as_json);

#endif
