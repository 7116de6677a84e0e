/* SPDX-License-Identifier: MIT */
/* Numbers in memory <-> double, independent of the conversions of the library. */
#ifndef PROBLEM_NUMBER_H
#define PROBLEM_NUMBER_H

#include <stddef.h>

#include <mha/mha.h>

double number_get(mha_dtype type, const void *data, ptrdiff_t index);

/* `count` numbers from `index` on. */
void number_get_row(mha_dtype type, const void *data, ptrdiff_t index, ptrdiff_t count, double *to);

/* Rounds to nearest even; overflows to infinity. */
void number_set(mha_dtype type, void *data, ptrdiff_t index, double value);

/* `value` as it reads back after number_set(). */
double number_round(mha_dtype type, double value);

/* Distance between neighbouring numbers of a type around `value`, and the largest finite one. */
double number_spacing(mha_dtype type, double value);
double number_largest(mha_dtype type);

#endif
