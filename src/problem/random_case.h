/* SPDX-License-Identifier: MIT */
#ifndef PROBLEM_RANDOM_CASE_H
#define PROBLEM_RANDOM_CASE_H

#include <stdint.h>

#include "problem/problem.h"
#include "problem/problem_word.h"

/* Case `index` of the series `seed`: any mixture of extents, types, layouts, masks and outputs the
 * library accepts, small enough that thousands can be checked. The same on every machine. */
void random_case(uint64_t seed, uint64_t index, problem_word *word, problem_style *style);

#endif
