/* SPDX-License-Identifier: MIT */
/*
 * Layers with all their memory, made from a short description, as cases.h does for the operator.
 *
 *      layer_spec    what is wanted: configuration, extents, parts, options, types, seed
 *      layer_case    the layer, its weights and one call of it. The options, their masks and the
 *                    outputs they ask for come from a problem, whose q, k, v and o are the
 *                    query, key and value inputs and the output: rows of one head as wide as a row
 *
 * Rows past the lengths are NaN, so reading them spoils an output. Weights are whole steps of
 * what i8 can hold, so that every stored type can be held to the same bound.
 */
#ifndef MHA_TEST_LAYER_CASE_H
#define MHA_TEST_LAYER_CASE_H

#include "support/layer_oracle.h"
#include "support/problems.h"

enum {
    LAYER_CROSS = 1 << 0, /* a key input of its own; else self-attention */
    LAYER_VALUE = 1 << 1, /* a value input of its own */
    LAYER_SEQUENCE_FIRST = 1 << 2,
    LAYER_IN_OUT = 1 << 3, /* matrices [inputs, outputs] */
    LAYER_Q_BIAS = 1 << 4,
    LAYER_K_BIAS = 1 << 5,
    LAYER_V_BIAS = 1 << 6,
    LAYER_O_BIAS = 1 << 7,
    LAYER_EXTRA = 1 << 8,
    LAYER_Q_NORM = 1 << 9,
    LAYER_K_NORM = 1 << 10,
    LAYER_Q_NORM_BIAS = 1 << 11,
    LAYER_K_NORM_BIAS = 1 << 12,
    LAYER_POSITIONS = 1 << 13,
    LAYER_FREQUENCIES = 1 << 14,
    LAYER_EVERYTHING = (1 << 15) - 1,

    LAYER_BIASES = LAYER_Q_BIAS | LAYER_K_BIAS | LAYER_V_BIAS | LAYER_O_BIAS
};

typedef struct layer_spec {
    uint64_t seed;
    mha_layer_config config;
    ptrdiff_t B, L, S; /* S only with LAYER_CROSS or LAYER_VALUE */
    unsigned parts;    /* LAYER_... */
    unsigned options;  /* CASE_... of cases.h; LSE and WEIGHTS among them */
    mha_dtype weight_type, input_type, output_type;
    const problem_memory *memory;
} layer_spec;

typedef struct layer_case {
    layer_spec spec;
    layer_problem p; /* its call and options are those of `memory` */
    problem *memory;
    mha_layer *layer;
} layer_case;

/* Drawn at random: everything a layer can have, sizes of at most a few dozen. */
layer_spec layer_spec_random(uint64_t seed);

/* E 24, 4 heads on 2, widths 6 and 5, 2 batches of 5 and 7 rows, every bias, f32. */
layer_spec layer_spec_small(unsigned parts, unsigned options);

/* `p` points into the case: do not copy it. */
layer_case *layer_case_new(const layer_spec *spec);
void layer_case_free(layer_case *c);

/* Clear the outputs and run the call, with a workspace of exactly the required size between guard
 * pages; checks the status. */
void layer_case_run(layer_case *c, mha_pool *pool);

/* Compare with the oracle, and look that nothing else was written. */
double layer_case_check(layer_case *c, double limit);

/* What the case is, for messages. Points to a static buffer. */
const char *layer_case_name(const layer_case *c);

#endif
