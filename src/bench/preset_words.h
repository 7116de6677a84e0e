/* SPDX-License-Identifier: MIT */
/* The words that "mha bench --preset NAME" measures. */
#ifndef BENCH_PRESET_WORDS_H
#define BENCH_PRESET_WORDS_H

#include "bench/bench_case.h"

enum { PRESET_WORDS_MAX = 8 };

/*
 * Lists the words of a preset: its projections with 512, 2048 and 1 rows, a whole layer, and for a
 * decoder a step of decoding. Returns their number, at most PRESET_WORDS_MAX; 0, with a message, if
 * there is no such preset.
 */
int preset_words(const char *name, bench_case_word *words, char *message, size_t size);

#endif
