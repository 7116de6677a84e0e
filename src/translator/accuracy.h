/* SPDX-License-Identifier: MIT */
/* Counts the sentences of the corpus that a translator translates exactly, word for word. */
#ifndef TRANSLATOR_ACCURACY_H
#define TRANSLATOR_ACCURACY_H

#include "translator/translator.h"

/* Counts the exact translations of sentences [0, count) of a split. */
mha_status accuracy_measure(const translator *model, uint64_t seed, corpus_split split,
                            int64_t count, const translation_options *options, mha_pool *pool,
                            int64_t *right);

typedef struct accuracy {
    int64_t sentences, right;
    int64_t words, words_right; /* expected words (WORD_END included), and those in their place */
} accuracy;

/* A callback for every sentence. */
typedef struct accuracy_watch {
    void (*each)(void *context, const corpus_pair *pair, const translation *said, bool right);
    void *context;
} accuracy_watch;

/* Evaluates sentences [first, first + count) and adds to `sum`. `watch` may be NULL. */
mha_status accuracy_add(const translator *model, uint64_t seed, corpus_split split, int64_t first,
                        int64_t count, const translation_options *options, mha_pool *pool,
                        accuracy *sum, const accuracy_watch *watch);

#endif
