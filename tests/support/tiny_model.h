/* SPDX-License-Identifier: MIT */
/* A small translator with random parameters, and sentences for it. */
#ifndef MHA_TINY_MODEL_H
#define MHA_TINY_MODEL_H

#include "translator/translator.h"

/* Width 32, 4 heads, 2 + 2 layers, 20 and 24 words, 12 positions. */
transformer_config tiny_config(void);

/* The same with the words of the corpus, so that it can be saved. */
transformer_config tiny_corpus_config(void);

/* As transformer_init(), but no bias is 0 and no norm is 1, the layers matter more than the last
 * word, and WORD_END is likely. The caller frees them. */
float *tiny_values(const transformer_config *config, uint64_t seed);

enum { TINY_SENTENCES = 40 };

/* Sentences of all possible lengths, including the empty one. */
typedef struct tiny_sentences {
    int words[TINY_SENTENCES][CORPUS_TOKENS_MAX];
    int lengths[TINY_SENTENCES];
    const int *sources[TINY_SENTENCES];
} tiny_sentences;
void tiny_sentences_fill(tiny_sentences *s, const transformer_config *config, uint64_t seed);

#endif
