/* SPDX-License-Identifier: MIT */
/*
 * A sentence under construction. English is written first and notes where every part of the
 * derivation stands; French is written next, each token with the English positions it comes from.
 * The places of both sides then give the roles.
 */
#ifndef CORPUS_BUILD_H
#define CORPUS_BUILD_H

#include "corpus/corpus.h"

/* Positions; -1 for what is not there. */
typedef struct phrase_places {
    int head[CORPUS_SIDES], determiner[CORPUS_SIDES], adjectives[2][CORPUS_SIDES];
    int number, relative[CORPUS_SIDES];
} phrase_places;

typedef struct clause_places {
    phrase_places subject, object, recipient, place;
    int main[CORPUS_SIDES], predicate[CORPUS_SIDES]; /* main: the verb with the meaning */
    int auxiliary, negation, particle, often, how, when, to, preposition; /* in English */
} clause_places;

/* A French token before elision and contraction. */
typedef struct french_token {
    const char *text, *before_vowel; /* the latter NULL where nothing changes */
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
    bool full; /* there were more tokens than fit */
} corpus_builder;

void corpus_write_english(corpus_builder *builder);

/* Leaves positions in builder->french in the places. */
void corpus_write_french(corpus_builder *builder);

#endif
