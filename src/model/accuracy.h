/* SPDX-License-Identifier: MIT */
/* How many sentences of the corpus a translator translates exactly, word for word. */
#ifndef MODEL_ACCURACY_H
#define MODEL_ACCURACY_H

#include "model/translator.h"

/* Of sentences [0, count) of a split. */
mha_status accuracy_measure(const translator *model, uint64_t seed, corpus_split split,
                            int64_t count, const translation_options *options, mha_pool *pool,
                            int64_t *right);

typedef struct accuracy {
    int64_t sentences, right;
    int64_t words, words_right; /* of the expected ones, ends included, those said at their place */
} accuracy;

/* What is wanted to be known of each sentence. */
typedef struct accuracy_watch {
    void (*each)(void *context, const corpus_pair *pair, const translation *said, bool right);
    void *context;
} accuracy_watch;

/* The same of sentences [first, first + count), added to `sum`; watch may be NULL. */
mha_status accuracy_add(const translator *model, uint64_t seed, corpus_split split, int64_t first,
                        int64_t count, const translation_options *options, mha_pool *pool,
                        accuracy *sum, const accuracy_watch *watch);

#endif
