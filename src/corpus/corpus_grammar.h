/* SPDX-License-Identifier: MIT */
/*
 * A derivation: what a sentence says, before it is said in either language.
 *
 *      sentence   [question] clause [conjunction clause]
 *      clause     subject verb [object] [to recipient] [adverbs] [preposition place]
 *      phrase     pronoun, or determiner [number] adjectives noun [relative clause]
 *
 * All zero is a legal start. Clauses lie in one array and name each other by index, so that a
 * derivation can be copied.
 */
#ifndef CORPUS_GRAMMAR_H
#define CORPUS_GRAMMAR_H

#include <stdbool.h>

#include "corpus/lexicon.h"

enum { CORPUS_CLAUSES_MAX = 6 };

typedef enum corpus_tense { TENSE_PRESENT, TENSE_PAST, TENSE_FUTURE } corpus_tense;

typedef struct corpus_phrase {
    lexicon_pronoun_id pronoun; /* if PRONOUN_NONE, the rest counts */
    const lexicon_noun *noun;   /* NULL: no phrase at all */
    lexicon_determiner_id determiner;
    int number; /* 0: none is said */
    bool plural;
    const lexicon_adjective *adjectives[2];
    int relative; /* index of a clause; 0: none */
} corpus_phrase;

/* What a clause leaves out because it stands before it. */
typedef enum corpus_gap { GAP_NONE, GAP_SUBJECT, GAP_OBJECT } corpus_gap;

typedef struct corpus_clause {
    corpus_gap gap; /* of a relative clause, or GAP_SUBJECT for a question with "who" */
    corpus_phrase subject;
    const lexicon_verb *verb; /* NULL: to be */
    const lexicon_adjective *predicate;
    corpus_tense tense;
    bool negative; /* with "not"; `often` may say "never" */
    const lexicon_adverb *often, *how, *when;
    corpus_phrase object, recipient;
    const lexicon_preposition *preposition;
    corpus_phrase place;
} corpus_clause;

enum { CLAUSE_MAIN = 0, CLAUSE_SECOND = 1, CLAUSE_RELATIVE = 2 };

typedef struct corpus_derivation {
    lexicon_question question;
    const lexicon_conjunction *conjunction; /* NULL: one clause */
    corpus_clause clauses[CORPUS_CLAUSES_MAX];
    int relatives; /* how many clauses from CLAUSE_RELATIVE on */
} corpus_derivation;

/* What verbs and adjectives agree with. */
typedef struct corpus_agreement {
    lexicon_person person;
    bool feminine, plural;
} corpus_agreement;

/* Speakers (i, you, we) are masculine. NULL is "who". */
corpus_agreement corpus_agreement_of(const corpus_derivation *derivation,
                                     const corpus_phrase *phrase);

/* Which pronoun would stand for a phrase: he, she, it or they. */
lexicon_pronoun_id corpus_pronoun_for(const corpus_phrase *phrase);

/* The one noun phrase of the main clause, or of its relative clauses, that a third-person pronoun
 * can stand for; NULL if there is none or more than one. */
const corpus_phrase *corpus_antecedent(const corpus_derivation *derivation,
                                       lexicon_pronoun_id pronoun);

/* A clause as it is meant: who does it, to whom. NULL where there is nobody, or "who". */
const corpus_phrase *corpus_subject(const corpus_derivation *derivation, int clause);
const corpus_phrase *corpus_object(const corpus_derivation *derivation, int clause);

/* The phrase that a relative clause belongs to; NULL for another clause. */
const corpus_phrase *corpus_head(const corpus_derivation *derivation, int clause);

/* Whether clause `index` is part of the sentence. */
bool corpus_has_clause(const corpus_derivation *derivation, int index);

#endif
