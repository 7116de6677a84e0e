/* SPDX-License-Identifier: MIT */
#ifndef PROGRAM_BENCH_TABLE_H
#define PROGRAM_BENCH_TABLE_H

#include <stdbool.h>

/* Measures and prints the project's own table: every case with its goal. `names` selects sections,
 * none selects all. Returns an exit code; a missed goal is no failure. */
int bench_table(char *const *names, int count, int rounds, int threads, bool as_json);

#endif
