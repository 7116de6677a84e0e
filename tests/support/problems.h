/* SPDX-License-Identifier: MIT */
/*
 * Problems of src/problem in tests: made and run with a check of the status, results compared with
 * the oracle. A failure names the problem by its word, seed and features: `mha verify --case WORD`
 * repeats one without features, MHA_TEST_SEED=<seed> makes another one the first of its test.
 */
#ifndef MHA_TEST_PROBLEMS_H
#define MHA_TEST_PROBLEMS_H

#include "problem/compare.h"
#include "problem/number.h"
#include "problem/oracle.h"
#include "problem/problem.h"
#include "problem/problem_masks.h"
#include "problem/problem_slices.h"
#include "support/guard.h"
#include "support/test.h"

/* Ends the program if out of memory: a test has nothing else to do then. */
problem *problem_new(const problem_spec *spec);

/* The problem that a word names. */
problem *problem_new_word(const char *text, uint64_t seed);

/* A problem without tensors, for those that problem_tensor() makes. */
problem *problem_new_bare(const problem_spec *spec);

/* The same numbers in other strides. Small arrays stay those of `original`, which must live on. */
problem *problem_new_layout(const problem *original, uint64_t seed);

void problem_delete(problem *p);

/* Clears the outputs and runs the call, alone or by plan; checks the status. */
void problem_run(problem *p, mha_pool *pool);
void problem_run_planned(problem *p, mha_pool *pool);

/* Checks that all outputs are what the oracle says, with E <= limit, and that nothing else was
 * written. Returns the largest E. */
double problem_expect(const problem *p, double limit);

/* The second half of that: gaps and rows past a query length still hold the pattern. */
void problem_expect_untouched(const problem *p);

/* The outputs as they are now. */
snapshot snapshot_of(const problem *p);

/* mha_attention() on a slice; checks the status. */
void slice_run(const slice *s, mha_pool *pool);

#endif
