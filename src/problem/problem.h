/* SPDX-License-Identifier: MIT */
/*
 * A problem: a call of mha_attention() with all its memory and the numbers in it.
 *
 *      problem_word   what is asked, exactly: "b2h8g2l100d64:causal:bf16" (problem_word.h)
 *      problem_spec   what is asked, in part at random: extents and types, features, a seed
 *      problem        the call, which owns every buffer. Every buffer has exactly the size it
 *                     needs; gaps between elements are NaN in inputs, a known pattern in outputs
 *
 * Everything follows from the word or the spec: the same one gives the same problem everywhere.
 * A word gives contiguous tensors and normal numbers, as benchmarks need them.
 */
#ifndef PROBLEM_H
#define PROBLEM_H

#include <stdbool.h>
#include <stdint.h>

#include "problem/attention_call.h"
#include "problem/problem_spec.h"
#include "problem/problem_word.h"
#include "problem/tensor.h"

typedef enum tensor_id {
    TENSOR_Q,
    TENSOR_K,
    TENSOR_V,
    TENSOR_ATTEND,
    TENSOR_IGNORE,
    TENSOR_ADD,
    TENSOR_BIAS,
    TENSOR_O, /* from here on outputs */
    TENSOR_LSE,
    TENSOR_WEIGHTS,
    TENSOR_COUNT
} tensor_id;

/* What outputs are filled with before a run. */
enum { PROBLEM_UNTOUCHED = 0xa5 };

typedef struct problem {
    problem_spec spec; /* of a problem that was made from a word: without features */
    problem_word word; /* the exact part, drawn from the spec or given */
    attention_call call;
    tensor tensors[TENSOR_COUNT];  /* memory NULL: not part of the call */
    struct problem_block *blocks;  /* all memory, as a list */
    char message[256];             /* of the library */
    char name[WORD_TEXT_MAX + 64]; /* word, seed and features */
} problem;

/* --------------------------------------------------------------- making ----- */

/* On failure `p` is empty and `message` says why. */
bool problem_create(problem *p, const problem_word *word, uint64_t seed, char *message,
                    size_t size);
bool problem_build(problem *p, const problem_spec *spec, char *message, size_t size);

/* A problem with the extents, types and numbers of the word, but no tensor, which
 * problem_tensor() makes, and nothing else that needs memory. */
void problem_begin(problem *p, const problem_spec *spec, const problem_word *word);

void problem_free(problem *p);

/* The same problem in f64, log-sum-exp always requested. Lengths, masks and lists stay those of
 * `p`, which must live longer. False if out of memory. */
bool problem_twin(problem *twin, const problem *p);

/* The same numbers in other strides. Small arrays stay those of `p`, which must live longer. */
bool problem_relayout(problem *copy, const problem *p, uint64_t seed);

/* --------------------------------------------------------------- memory ----- */

/* Exactly `bytes` bytes in the kind of memory of the problem, freed with it; NULL if there are
 * none. */
void *problem_alloc(problem *p, size_t bytes);

/* Gives the problem a tensor, all of it gap so far: contiguous, or in a random layout if `layout`
 * is given; axes (bits 0 to 2) in `share` get extent 1 and stride 0. */
bool problem_tensor(problem *p, tensor_id id, size_t element, const ptrdiff_t n[4], rng *layout,
                    unsigned share);

/* Points the call at the tensors that the problem has. */
void problem_connect(problem *p);

mha_dtype problem_type(const problem *p, tensor_id id);
double problem_get(const problem *p, tensor_id id, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i,
                   ptrdiff_t j);
void problem_set(problem *p, tensor_id id, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j,
                 double value);
/* Sets every element. */
void problem_set_all(problem *p, tensor_id id, double value);

/* -------------------------------------------------------------- running ----- */

/* Sets all outputs back to PROBLEM_UNTOUCHED bytes. */
void problem_reset(problem *p);

/* mha_attention() on a call. */
mha_status call_run(const attention_call *call, mha_pool *pool);

/* The same on the problem, through a plan and a workspace of exactly the size it asks for. The
 * workspace is in the kind of memory of the problem and is freed after the run. */
mha_status problem_run_plan(problem *p, mha_pool *pool);

/* How many bytes were written outside the results: gaps, and rows past a query length. */
size_t problem_touched(const problem *p, tensor_id id);

#endif
