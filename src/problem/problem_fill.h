/* SPDX-License-Identifier: MIT */
/* The numbers in a problem. Used by problem_build.c only. */
#ifndef PROBLEM_FILL_H
#define PROBLEM_FILL_H

#include "base/rng.h"
#include "problem/problem.h"

/* A boolean mask in which `percent` of the keys are attended. */
void fill_bool_percent(problem *p, tensor_id id, int percent, rng *random);

/* A boolean mask at random: runs of attended and masked keys of any length, or single keys between
 * whole blocks that are masked. */
void fill_bool_random(problem *p, tensor_id id, rng *random);

/* Normal numbers everywhere. */
void fill_normal(problem *p, tensor_id id, double deviation, rng *random);

/* -inf in runs of keys, or in single ones. */
void fill_minus_infinity(problem *p, tensor_id id, rng *random);

/* q, k and v. */
void fill_inputs(problem *p, rng *random);

#endif
