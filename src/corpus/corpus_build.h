/* SPDX-License-Identifier: MIT */
/*
 * Private: a sentence pair under construction. corpus_english.c writes the English tokens and
 * records the position of every part of the derivation. corpus_french.c writes the French tokens,
 * each with the English positions it translates. corpus_build.c derives the roles from the recorded
 * positions.
 */
#ifndef CORPUS_BUILD_H
#define CORPUS_BUILD_H

#include "corpus/corpus.h"

/* Token positions of the parts of a phrase; -1 for parts that do not occur. */
typedef struct phrase_places {
    int head[CORPUS_SIDES], determiner[CORPUS_SIDES], adjectives[2][CORPUS_SIDES];
    int number, relative[CORPUS_SIDES];
} phrase_places;

typedef struct clause_places {
    phrase_places subject, object, recipient, place;
    int main[CORPUS_SIDES], predicate[CORPUS_SIDES];                      /* main: the main verb */
    int auxiliary, negation, particle, often, how, when, to, preposition; /* in English */
} clause_places;

/* A French token before elision and contraction. */
typedef struct french_token {
    const char *text, *before_vowel; /* before_vowel: the elided form, or NULL */
    uint64_t sources;
    bool article; /* le, les: contracts with de and à */
} french_token;

typedef struct corpus_builder {
    const corpus_derivation *derivation;
    corpus_pair *pair;
    clause_places places[CORPUS_CLAUSES_MAX];
    int question, conjunction, mark; /* in English */
    french_token french[CORPUS_TOKENS_MAX];
    int french_count;
    bool full; /* there were too many tokens or roles */
} corpus_builder;

void corpus_write_english(corpus_builder *builder);

/* Records positions in builder->french; corpus_build.c later moves them to final positions. */
void corpus_write_french(corpus_builder *builder);

#endif
