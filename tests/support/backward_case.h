/* SPDX-License-Identifier: MIT */
/*
 * Cases of the backward pass: a forward case that has been run, and its gradients, which are a case
 * of the same shape themselves: tensor TENSOR_Q of `gradients` is d_q, TENSOR_BIAS is d_bias, and
 * so on. TENSOR_O and TENSOR_LSE are d_o and d_lse, the given ones; all others are outputs, in
 * exact memory, with gaps that hold a pattern. d_bias and d_add_mask are summed over axes of their
 * own.
 */
#ifndef MHA_TEST_BACKWARD_CASE_H
#define MHA_TEST_BACKWARD_CASE_H

#include "support/backward_oracle.h"
#include "support/problems.h"

typedef struct backward_case {
    problem *forward, *gradients;
    mha_gradients call;
} backward_case;

/* Features beside those of cases.h. */
enum { BACKWARD_GATES = 1 << 24, BACKWARD_DROPOUT = 1 << 25 };

/* Give a case that has been built the gates and the dropout that its features ask for. */
void backward_add_training(problem *c);

/* What comes out: which gradient goes into which tensor. */
enum { BACKWARD_TENSORS = 5 };
typedef struct backward_output {
    tensor_id tensor;
    gradient_id gradient;
    const char *name;
} backward_output;
extern const backward_output backward_outputs[BACKWARD_TENSORS];

/* A random spec that has a backward pass: not f64, with a log-sum-exp, without weights. */
problem_spec backward_spec(uint64_t seed, double cost);

/* Runs the forward pass and draws d_o, perhaps d_lse, and layouts from the seed of the spec. Every
 * gradient that exists is requested. */
backward_case *backward_case_new(const problem_spec *spec);
void backward_case_free(backward_case *x);

/* The same numbers in other strides. Shares the small arrays of `original`, which must live on. */
backward_case *backward_case_relayout(const backward_case *original, uint64_t seed);

/* The same problem for the oracle. */
backward_problem backward_problem_of(const backward_case *x);

/* Fill all outputs with the pattern of unwritten memory. */
void backward_clear(backward_case *x);

/* backward_clear() and mha_attention_backward(), with a workspace of exactly the required size in
 * memory of the case, or without one; checks the status. */
void backward_run(backward_case *x, bool workspace, mha_pool *pool);

/* The bytes of all outputs one after another, to be freed; *size of them. Or only those of the
 * numbers of heads, which have no strides. */
unsigned char *backward_bytes(const backward_case *x, size_t *size);
unsigned char *backward_arrays(const backward_case *x, size_t *size);

/* Where rows of the tensor start, if it is packed. */
const int64_t *backward_starts(const backward_case *x, tensor_id id);

/*
 * A gradient as it lies in a tensor, packed or with axes of extent 1: elements that fall on the
 * same place are summed. In f32 if `narrow`.
 */
gradient gradient_fold(const gradient *g, const tensor *t, const int64_t *starts, bool narrow);

/* Check that nothing was written but the elements of the gradients. */
void backward_check_untouched(const backward_case *x);

#endif
