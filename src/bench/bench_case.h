/* SPDX-License-Identifier: MIT */
/*
 * What a benchmark can run, behind one interface: the operator, its backward pass, a linear
 * product, a layer, a step of decoding, attention over a cache, training or translation, or a
 * matrix product of OpenBLAS.
 *
 *      bench_case.c             creates the case that a word describes
 *      bench_case_problem.c     the operator
 *      bench_case_gradients.c   its backward pass
 *      bench_case_linear.c      linear products, by the library and by OpenBLAS
 *      bench_case_layer.c       layers, steps of decoding, attention over a cache
 *      bench_case_model.c       the translator: training and translation
 */
#ifndef BENCH_CASE_H
#define BENCH_CASE_H

#include <stdbool.h>
#include <stddef.h>

#include <mha/mha.h>

#include "bench/peak.h"
#include "problem/layer_word.h"
#include "problem/problem_word.h"

/* A problem word or a layer word. */
typedef struct bench_case_word {
    bool is_layer;
    problem_word problem;
    layer_word layer;
} bench_case_word;

/* Returns false, with a message, if the text is neither. */
bool bench_case_word_parse(bench_case_word *word, const char *text, char *message, size_t size);

typedef struct bench_case {
    char word[WORD_TEXT_MAX]; /* in canonical form */
    int threads;
    bool memory_bound; /* its bytes are compared with the bandwidth, not its flops with the peak */
    peak_kind peak;    /* which peak its flops are compared with */
    double flops, bytes; /* needed by one run */
    size_t work_size;
    int copies;         /* of its inputs, which runs use in turn; if bound by memory, so many that
                           they do not fit into the caches */
    const void *memory; /* the copies, to measure the bandwidth on; NULL if not accessible */
    size_t memory_size;
    double quiet; /* seconds for which its threads keep spinning after a run */

    void *body;
    mha_status (*run)(void *body);
    void (*free)(void *body);
} bench_case;

/* Allocates everything a run needs, and runs once to see that the library accepts it. t=N in the
 * word overrides `threads`. On failure the case is empty and `message` gives the reason. */
bool bench_case_create(bench_case *bench, const bench_case_word *word, int threads, char *message,
                       size_t size);
void bench_case_free(bench_case *bench);

/* ------------------------------------------ for the files of this room ----- */

/* Many times the size of a core's share of the caches. */
#define BENCH_CASE_BYTES ((size_t)256 << 20)

/* The number of copies of `bytes` bytes each that fill BENCH_CASE_BYTES. */
int bench_case_copies(double bytes);

/* Allocates aligned memory, in huge pages where the system has them, as the library does. It is
 * filled with zeros, or with normally distributed numbers times `scale`. The caller frees it; NULL
 * if out of memory. */
void *bench_case_memory(size_t size);
float *bench_case_numbers(double count, float scale);

/* Returns whether the status is MHA_OK; else writes the word, the status and the library's own
 * message `why` into `message`. */
bool bench_case_accepted(const bench_case *bench, mha_status status, const char *why, char *message,
                         size_t size);

/* Calls prepare(body, threads) while `options` collects the library's message, and reports as
 * bench_case_accepted() does. */
bool bench_case_prepare(const bench_case *bench, mha_options *options,
                        mha_status (*prepare)(void *body, int threads), char *message, size_t size);

/* Each fills in a case whose `threads` are set, and for layer words also word, flops, bytes, copies
 * and memory_bound. On failure they return false; the caller frees what was made so far. */

bool bench_case_problem(bench_case *bench, const problem_word *word, char *message, size_t size);
bool bench_case_gradients(bench_case *bench, const problem_word *word, char *message, size_t size);
bool bench_case_linear(bench_case *bench, const layer_word *word, char *message, size_t size);
bool bench_case_openblas(bench_case *bench, const layer_word *word, char *message, size_t size);
bool bench_case_layer(bench_case *bench, const layer_word *word, char *message, size_t size);
bool bench_case_model(bench_case *bench, const layer_word *word, char *message, size_t size);

#endif
