/* SPDX-License-Identifier: MIT */
/* The numbers in a problem. Used by problem.c only. */
#ifndef PROBLEM_FILL_H
#define PROBLEM_FILL_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "problem/problem.h"

/* A boolean mask of `count` bytes in rows of `row`: `percent` of the keys attended (50 if
 * negative). `ones`: non-zero means attended; else non-zero means masked. */
void fill_bool_mask(uint8_t *bytes, ptrdiff_t count, ptrdiff_t row, int percent, bool ones,
                    const problem_style *style, rng *random);

/* Normal numbers all over, with -inf among them if the style says so. */
void fill_additive(tensor *t, const problem_style *style, rng *random);

/* q, k and v up to their true lengths; then NaN into the keys nobody attends to, if the style says
 * so and nobody else may read them. */
void fill_inputs(problem *p, const problem_style *style, rng *random);

#endif
