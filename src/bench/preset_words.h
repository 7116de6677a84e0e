/* SPDX-License-Identifier: MIT */
#ifndef BENCH_PRESET_WORDS_H
#define BENCH_PRESET_WORDS_H

#include "bench/bench_case.h"

enum { PRESET_WORDS_MAX = 8 };

/*
 * What there is to measure of a preset: its projections with 512 and 2048 rows and with one, a
 * whole layer, and for a decoder a step of decoding. Returns how many words, up to
 * PRESET_WORDS_MAX; 0, with a message, for a name that is none.
 */
int preset_words(const char *name, bench_case_word *words, char *message, size_t size);

#endif
