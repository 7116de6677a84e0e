/* SPDX-License-Identifier: MIT */
/*
 * Sentence pairs as a model reads them: packed one behind another, so that short sentences cost no
 * more than their words.
 */
#ifndef MODEL_BATCH_H
#define MODEL_BATCH_H

#include "corpus/corpus.h"
#include "model/transformer.h"

typedef struct batch {
    int pairs;
    int64_t *starts[TRANSFORMER_SIDES]; /* [pairs + 1] rows */
    ptrdiff_t rows[TRANSFORMER_SIDES];
    int longest[TRANSFORMER_SIDES];    /* rows of the longest sentence */
    int *words[TRANSFORMER_SIDES];     /* [rows] what encoder and decoder read */
    int *positions[TRANSFORMER_SIDES]; /* [rows] 0 for the first word of a sentence */
    int *expected;                     /* [rows of the target] what the decoder is to say */
} batch;

/* Numbers of the corpus's words: those of its vocabularies behind the special ones. */
typedef struct word_numbers {
    corpus_vocabulary side[CORPUS_SIDES];
} word_numbers;
void word_numbers_fill(word_numbers *numbers);

/* A pair in word numbers, without special ones at the ends. */
typedef struct numbered_pair {
    int words[CORPUS_SIDES][CORPUS_TOKENS_MAX], count[CORPUS_SIDES];
} numbered_pair;

/* Pairs of any words. NULL: no memory. */
batch *batch_pack(const numbered_pair *pairs, int count);

/* Sentences of a split by number. `unknown` as in training_config. NULL: no memory. */
batch *batch_create(const word_numbers *numbers, uint64_t seed, corpus_split split,
                    const uint64_t *indices, int pairs, double unknown);
void batch_free(batch *batch);

#endif
