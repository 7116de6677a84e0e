/* SPDX-License-Identifier: MIT */
/* The work that a call needs, whatever computes it. */
#ifndef PROBLEM_COST_H
#define PROBLEM_COST_H

#include "problem/attention_call.h"

/* Attended (query, key) pairs over all batches and heads. */
double call_pairs(const attention_call *call);

/* Operations: 2 * (D + Dv) for every attended pair. Where a mask takes single keys out of a row,
 * their neighbours in the same group of 16 count too if one of the group is attended, because no
 * vector machine can skip one lane. */
double call_flops(const attention_call *call);

/* The same for the backward pass, which has five products instead of two: scores again, gradients
 * of weights, of q, k and v. */
double call_backward_flops(const attention_call *call);

/* Bytes: every attended key and value once, every query and output once. */
double call_bytes(const attention_call *call);

#endif
