/* SPDX-License-Identifier: MIT */
/*
 * What a benchmark runs, behind one face: an operator's problem, its backward pass, a linear, a
 * layer, a step of decoding, attention over a cache, or the openblas's matrix product.
 *
 *      bench_case.c             which of them a word means
 *      bench_case_problem.c     the operator
 *      bench_case_gradients.c   its backward pass
 *      bench_case_linear.c      linears, and OpenBLAS in their place
 *      bench_case_layer.c       layers, steps, caches
 *      bench_case_model.c       the translator: training and translation
 */
#ifndef BENCH_CASE_H
#define BENCH_CASE_H

#include <stdbool.h>
#include <stddef.h>

#include <mha/mha.h>

#include "problem/layer_word.h"
#include "problem/problem_word.h"

/* A problem word or a layer word. */
typedef struct bench_case_word {
    bool is_layer;
    problem_word problem;
    layer_word layer;
} bench_case_word;

bool bench_case_word_parse(bench_case_word *word, const char *text, char *message, size_t size);

typedef struct bench_case {
    char word[WORD_TEXT_MAX]; /* canonical */
    int threads;
    bool memory_bound;   /* judged by its bytes, not by its flops */
    double flops, bytes; /* needed by one run */
    size_t work_size;
    int copies;         /* runs take one after another; bound by memory: more than caches hold */
    const void *memory; /* what it reads, to measure the bandwidth with; NULL: not to be had */
    size_t memory_size;
    double quiet; /* seconds its threads go on spinning after a run */

    void *body;
    mha_status (*run)(void *body);
    void (*free)(void *body);
} bench_case;

/* Everything a run needs, made once, and one run to see that the library takes it. t=N in the word
 * wins over `threads`. On failure the bench_case is empty and `message` says why. */
bool bench_case_create(bench_case *s, const bench_case_word *word, int threads, char *message,
                       size_t size);
void bench_case_free(bench_case *s);

/* ------------------------------------------- for the subject_*.c only ----- */

/* Many times the caches of any core's share. */
#define BENCH_CASE_BYTES ((size_t)256 << 20)

/* Copies of `bytes` bytes each that fill more memory than caches hold. */
int bench_case_copies(double bytes);

/* Aligned memory, in large pages where the system has them (as the library takes its own), filled
 * with zeros or with normal numbers times `scale`; NULL: there is none. */
void *bench_case_memory(size_t size);
float *bench_case_numbers(double count, float scale);

bool bench_case_problem(bench_case *s, const problem_word *word, char *message, size_t size);
bool bench_case_gradients(bench_case *s, const problem_word *word, char *message, size_t size);
bool bench_case_linear(bench_case *s, const layer_word *word, char *message, size_t size);
bool bench_case_openblas(bench_case *s, const layer_word *word, char *message, size_t size);
bool bench_case_layer(bench_case *s, const layer_word *word, char *message, size_t size);
bool bench_case_model(bench_case *s, const layer_word *word, char *message, size_t size);

#endif
