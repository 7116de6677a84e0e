/* SPDX-License-Identifier: MIT */
/* A small translator with random parameters, and sentences for it. */
#ifndef MHA_TINY_MODEL_H
#define MHA_TINY_MODEL_H

#include "model/translator.h"

/* 32 wide, 4 heads, 2 layers a side, 20 and 24 words, 12 positions. */
transformer_config tiny_config(void);

/* The same with the words of the corpus, as it can be saved. */
transformer_config tiny_corpus_config(void);

/* As transformer_init(), but no bias is 0 and no norm 1, what the layers add counts for more than
 * the last word, and the end is likely. For free(). */
float *tiny_values(const transformer_config *config, uint64_t seed);

enum { TINY_SENTENCES = 40 };

/* Sentences of all lengths that fit, the empty one included. */
typedef struct tiny_sentences {
    int words[TINY_SENTENCES][CORPUS_TOKENS_MAX];
    int lengths[TINY_SENTENCES];
    const int *sources[TINY_SENTENCES];
} tiny_sentences;
void tiny_sentences_fill(tiny_sentences *s, const transformer_config *config, uint64_t seed);

#endif
