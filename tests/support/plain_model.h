/* SPDX-License-Identifier: MIT */
/*
 * What a model must compute for one sequence, as plain loops in double precision over a description
 * and a binding. It is written from the formulas alone and calls nothing of the library.
 */
#ifndef MHA_TEST_PLAIN_MODEL_H
#define MHA_TEST_PLAIN_MODEL_H

#include "model/binding.h"

typedef struct plain_input {
    const int32_t *ids, *segments, *source;
    ptrdiff_t count, source_count;
    const float *pixels;
} plain_input;

typedef struct plain_result {
    ptrdiff_t rows;
    double *hidden, *source_hidden; /* [rows][width] */
    double *logits;                 /* [rows][vocabulary]; NULL: none */
    double *streams;                /* [layers + 1][rows][width] */
    double *pooled, *labels;        /* NULL: none */
} plain_result;

plain_result plain_model_run(const model_files *files, const plain_input *input);
void plain_result_free(plain_result *result);

#endif
