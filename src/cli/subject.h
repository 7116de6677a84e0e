/* SPDX-License-Identifier: MIT */
/*
 * What a benchmark runs, behind one face: an operator's problem, its backward pass, a linear, a
 * layer, a step of decoding, attention over a cache, or the opponent's matrix product.
 *
 *      subject.c             which of them a word means
 *      subject_problem.c     the operator
 *      subject_gradients.c   its backward pass
 *      subject_linear.c      linears, and OpenBLAS in their place
 *      subject_layer.c       layers, steps, caches
 *      subject_model.c       the translator: training and translation
 */
#ifndef CLI_SUBJECT_H
#define CLI_SUBJECT_H

#include <stdbool.h>
#include <stddef.h>

#include <mha/mha.h>

#include "layer_word.h"
#include "word.h"

/* A problem word or a layer word. */
typedef struct subject_word {
    bool is_layer;
    problem_word problem;
    layer_word layer;
} subject_word;

bool subject_word_parse(subject_word *word, const char *text, char *message, size_t size);

typedef struct subject {
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
} subject;

/* Everything a run needs, made once, and one run to see that the library takes it. t=N in the word
 * wins over `threads`. On failure the subject is empty and `message` says why. */
bool subject_create(subject *s, const subject_word *word, int threads, char *message, size_t size);
void subject_free(subject *s);

/* ------------------------------------------- for the subject_*.c only ----- */

/* Many times the caches of any core's share. */
#define SUBJECT_BYTES ((size_t)256 << 20)

/* Copies of `bytes` bytes each that fill more memory than caches hold. */
int subject_copies(double bytes);

/* Aligned memory, in large pages where the system has them (as the library takes its own), filled
 * with zeros or with normal numbers times `scale`; NULL: there is none. */
void *subject_memory(size_t size);
float *subject_numbers(double count, float scale);

bool subject_problem(subject *s, const problem_word *word, char *message, size_t size);
bool subject_gradients(subject *s, const problem_word *word, char *message, size_t size);
bool subject_linear(subject *s, const layer_word *word, char *message, size_t size);
bool subject_openblas(subject *s, const layer_word *word, char *message, size_t size);
bool subject_layer(subject *s, const layer_word *word, char *message, size_t size);
bool subject_model(subject *s, const layer_word *word, char *message, size_t size);

#endif
