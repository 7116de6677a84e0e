/* SPDX-License-Identifier: MIT */
/*
 * Cases of a layer's backward pass: a layer_case whose call keeps a tape, and memory for every
 * gradient there is, in exact blocks with gaps that hold a pattern. d_output, perhaps d_lse,
 * strides and orientations are drawn from the seed of the spec. What must not be read is NaN: rows
 * past a length of inputs, d_output and d_lse. After the forward pass the tape can only be read.
 */
#ifndef MHA_TEST_LAYER_BACKWARD_CASE_H
#define MHA_TEST_LAYER_BACKWARD_CASE_H

#include "support/backward_case.h"
#include "support/layer_backward_oracle.h"
#include "support/layer_case.h"

/* What comes out: one gradient for each part, but two for the scores. */
enum { OUT_ADD_MASK = PARTS, LAYER_OUTPUTS };

typedef struct layer_back {
    layer_case *c;
    guard_buffer tape;
    problem *memory; /* TENSOR_Q is d_query, TENSOR_O d_output, TENSOR_BIAS d_bias, and so on */
    mha_layer_gradients call;
    struct {
        float *data;
        size_t bytes; /* of the whole block */
        unsigned char *block;
    } out[LAYER_OUTPUTS];
    problem *kept[2]; /* of a case in another layout: what it was made from */
} layer_back;

/* The spec's options may have BACKWARD_GATES and BACKWARD_DROPOUT. Every gradient is requested. */
layer_back *layer_back_new(const layer_spec *spec);
void layer_back_free(layer_back *x);

/* The same numbers in other strides, matrices transposed. Shares the small arrays of `original`,
 * which must live on. */
layer_back *layer_back_relayout(const layer_back *original, uint64_t seed);

/* layer_spec_random() with those two options now and then. */
layer_spec layer_back_spec(uint64_t seed);

/* Fill all outputs with a pattern. */
void layer_back_clear(layer_back *x);

/* The forward pass, with its tape; after it the tape is sealed. */
void layer_back_forward(layer_back *x, mha_pool *pool);

/* layer_back_clear() and the backward pass, in a workspace of exactly the required size between
 * guard pages, or without one; checks the status. */
void layer_back_run(layer_back *x, bool workspace, mha_pool *pool);

/* Ask for the gradients whose bits are in `wanted`, and no others. */
void layer_back_want(layer_back *x, unsigned wanted);

/* A gradient's element and what it must be. */
typedef struct layer_element {
    float *at;
    num want;
} layer_element;

/* All elements of output n, with the oracle's answer summed over axes that they share; to be freed.
 * *count 0: the case has no such output. */
layer_element *layer_back_elements(const layer_back *x, const layer_numbers *want, int n,
                                   ptrdiff_t *count);

/* The oracle's answer. */
layer_numbers layer_back_oracle(const layer_back *x);

/* d_output [B][L][output_width] and d_lse [B][H][L] as the oracle wants them, to be freed; NULL
 * where there is no d_lse. */
num *layer_back_d_output(const layer_back *x);
num *layer_back_d_lse(const layer_back *x);

/* Check that nothing was written but the elements. Overwrites them. */
void layer_back_check_untouched(layer_back *x, const layer_numbers *shape);

/* The bytes of all outputs one after another, to be freed. */
unsigned char *layer_back_bytes(const layer_back *x, size_t *size);

/* The name of an output. */
const char *layer_output_name(int n);

#endif
