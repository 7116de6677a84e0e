/* SPDX-License-Identifier: MIT */
/* Who attends to whom in a problem, straight from the words of the public header, and the work
 * that follows from it. Written without a look at the library, which it checks. */
#ifndef PROBLEM_ATTENDS_H
#define PROBLEM_ATTENDS_H

#include <stdbool.h>
#include <stddef.h>

#include "problem/problem.h"

/* True number of queries and keys of a batch. */
ptrdiff_t problem_queries(const problem *p, ptrdiff_t b);
ptrdiff_t problem_keys(const problem *p, ptrdiff_t b);

/* The key position of query i of batch b is i + this. */
ptrdiff_t problem_offset(const problem *p, ptrdiff_t b);

/* Does query (b, h, i) see key j? i and j within the true lengths or not. */
bool problem_attends(const problem *p, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j);

/* Where an element lies in its block, packed or not; g counts key/value heads. */
ptrdiff_t problem_q_index(const problem *p, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t c);
ptrdiff_t problem_k_index(const problem *p, ptrdiff_t b, ptrdiff_t g, ptrdiff_t j, ptrdiff_t c);
ptrdiff_t problem_v_index(const problem *p, ptrdiff_t b, ptrdiff_t g, ptrdiff_t j, ptrdiff_t c);
ptrdiff_t problem_o_index(const problem *p, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t c);
ptrdiff_t problem_lse_index(const problem *p, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i);

/* Attended (query, key) pairs over all batches and heads. */
double problem_pairs(const problem *p);

/* Needed work: 2 * (D + Dv) for every attended pair. Where a mask cuts single keys out of a row,
 * their neighbours in the same group of 16 count too if one of the group is attended: no vector
 * machine can skip one lane. */
double problem_flops(const problem *p);

/* The same for the backward pass, which has five products instead of two: scores again, gradients
 * of weights, of q, k and v. */
double problem_backward_flops(const problem *p);

/* Needed traffic: every attended key and value once, every query and output once. */
double problem_bytes(const problem *p);

#endif
