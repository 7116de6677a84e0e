/* SPDX-License-Identifier: MIT */
/*
 * The transformer of transformer.h once more, plainly: in double precision, one word at a time,
 * without the library. What the translator does is compared with it.
 */
#ifndef MHA_PLAIN_TRANSFORMER_H
#define MHA_PLAIN_TRANSFORMER_H

#include "model/transformer.h"

typedef struct plain_transformer {
    transformer_config config;
    transformer_map map;
    const float *values;
} plain_transformer;

/* values: those of transformer_map. */
plain_transformer plain_transformer_new(const transformer_config *config, const float *values);

/*
 * What comes of a source sentence (WORD_END included) and the words the decoder has read
 * (WORD_BEGIN included): log-probabilities [read][words] of the word behind each of them, and
 * cross-attention weights [layers][heads][read][source].
 */
void plain_transformer_run(const plain_transformer *t, const int *source, int source_count,
                           const int *words, int read, double *log_probabilities, double *weights);

#endif
