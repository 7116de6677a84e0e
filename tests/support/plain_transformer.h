/* SPDX-License-Identifier: MIT */
/*
 * A plain implementation of the transformer of transformer.h in double, one word at a time, without
 * the library. Tests compare the translator with it.
 */
#ifndef MHA_PLAIN_TRANSFORMER_H
#define MHA_PLAIN_TRANSFORMER_H

#include "translator/transformer.h"

typedef struct plain_transformer {
    transformer_config config;
    transformer_map map;
    const float *values;
} plain_transformer;

/* values: those of transformer_map. */
plain_transformer plain_transformer_new(const transformer_config *config, const float *values);

/*
 * Computes, for a source sentence (WORD_END included) and the words the decoder has read
 * (WORD_BEGIN included), the log-probabilities [read][words] of the next word after each of them,
 * and the cross-attention weights [layers][heads][read][source].
 */
void plain_transformer_run(const plain_transformer *t, const int *source, int source_count,
                           const int *words, int read, double *log_probabilities, double *weights);

#endif
