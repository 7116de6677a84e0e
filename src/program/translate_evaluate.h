/* SPDX-License-Identifier: MIT */
#ifndef PROGRAM_TRANSLATE_EVALUATE_H
#define PROGRAM_TRANSLATE_EVALUATE_H

#include "translator/translator.h"

typedef struct evaluation {
    const translator *model;
    mha_pool *pool;
    translation_options options;
    corpus_split split;
    uint64_t seed;
    int64_t count;
    bool as_json, errors; /* errors: print the sentences that are wrong */
} evaluation;

/* Translates sentences of the corpus and compares with the grammar. Returns an exit code. */
int translate_evaluate(const evaluation *e);

#endif
