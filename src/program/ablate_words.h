/* SPDX-License-Identifier: MIT */
/* mha ablate --words: what source words matter, of one text or by part of speech. */
#ifndef PROGRAM_ABLATE_WORDS_H
#define PROGRAM_ABLATE_WORDS_H

#include "program/heads_setup.h"

typedef struct ablate_words_request {
    const heads_setup *setup; /* opened */
    const char *text;         /* NULL: sentences of the corpus, by part of speech */
    const char *target;       /* the translation of the text; NULL: the model's own */
    const char *svg;          /* NULL: none */
    bool as_json;
} ablate_words_request;

/* Measures and prints. Returns the exit code. */
int ablate_words(const ablate_words_request *request);

#endif
