/* SPDX-License-Identifier: MIT */
/*
 * A derivation: the structure and words of a sentence, independent of the language.
 *
 *      sentence   [question] clause [conjunction clause]
 *      clause     subject verb [object] [to recipient] [adverbs] [preposition place]
 *                 subject verb [recipient] [object] ...     a clause with `shifted`
 *      phrase     pronoun, or determiner [number] adjectives noun [relative clause]
 *
 * A derivation starts as all zeros. Clauses are in one array and refer to each other by index, so
 * that a derivation can be copied.
 */
#ifndef CORPUS_GRAMMAR_H
#define CORPUS_GRAMMAR_H

#include <stdbool.h>

#include "corpus/lexicon.h"

enum { CORPUS_CLAUSES_MAX = 6 };

typedef enum corpus_tense { TENSE_PRESENT, TENSE_PAST, TENSE_FUTURE } corpus_tense;

typedef struct corpus_phrase {
    lexicon_pronoun_id pronoun; /* the other fields are used only if it is PRONOUN_NONE */
    const lexicon_noun *noun;   /* NULL: there is no phrase */
    lexicon_determiner_id determiner;
    int number; /* 2 to 10, or 0 for none */
    bool plural;
    const lexicon_adjective *adjectives[2];
    int relative; /* index of a clause; 0: none */
} corpus_phrase;

/* The part that a clause leaves out because it precedes the clause. */
typedef enum corpus_gap { GAP_NONE, GAP_SUBJECT, GAP_OBJECT } corpus_gap;

typedef struct corpus_clause {
    corpus_gap gap; /* in a relative clause; GAP_SUBJECT in a question with "who" */
    corpus_phrase subject;
    const lexicon_verb *verb; /* NULL: to be */
    const lexicon_adjective *predicate;
    corpus_tense tense;
    bool progressive; /* is sleeping, was sleeping; not in the future */
    bool negative;    /* with "not"; "never" is in `often` */
    const lexicon_adverb *often, *how, *when;
    corpus_phrase object, recipient;
    bool shifted; /* the recipient is before the object, without "to": gives the boy a book */
    const lexicon_preposition *preposition;
    corpus_phrase place;
} corpus_clause;

enum { CLAUSE_MAIN = 0, CLAUSE_SECOND = 1, CLAUSE_RELATIVE = 2 };

typedef struct corpus_derivation {
    lexicon_question question;
    const lexicon_conjunction *conjunction; /* NULL: one clause */
    corpus_clause clauses[CORPUS_CLAUSES_MAX];
    int relatives; /* number of clauses from CLAUSE_RELATIVE on */
} corpus_derivation;

/* The features that verbs and adjectives agree with. */
typedef struct corpus_agreement {
    lexicon_person person;
    bool feminine, plural;
} corpus_agreement;

/* The agreement of a phrase; NULL stands for "who". I, you and we count as masculine. */
corpus_agreement corpus_agreement_of(const corpus_derivation *derivation,
                                     const corpus_phrase *phrase);

/* The pronoun that refers to a noun phrase: he, she, it or they. */
lexicon_pronoun_id corpus_pronoun_for(const corpus_phrase *phrase);

/* The noun phrase of the main clause, or of its relative clauses, that a third-person pronoun of
 * the second clause refers to; NULL if there is none or more than one. */
const corpus_phrase *corpus_antecedent(const corpus_derivation *derivation,
                                       lexicon_pronoun_id pronoun);

/* What it could refer to there: nouns, and equal pronouns. */
int corpus_candidates(const corpus_derivation *derivation, lexicon_pronoun_id pronoun);

/* The logical subject and object of a clause, also where a relative clause leaves them out. NULL if
 * there is none, or for "who". */
const corpus_phrase *corpus_subject(const corpus_derivation *derivation, int clause);
const corpus_phrase *corpus_object(const corpus_derivation *derivation, int clause);

/* The phrase that a relative clause belongs to; NULL for other clauses. */
const corpus_phrase *corpus_head(const corpus_derivation *derivation, int clause);

/* NULL for a phrase that is not there. */
const corpus_phrase *corpus_phrase_or_null(const corpus_phrase *phrase);

/* Whether a pronoun is I, you or we, as subject or object. */
bool corpus_is_speaker(lexicon_pronoun_id pronoun);

/* Why a derivation is not a sentence of the language; NULL if it is one. */
const char *corpus_fault(const corpus_derivation *derivation);

/* Whether clause `index` is part of the sentence. */
bool corpus_has_clause(const corpus_derivation *derivation, int index);

#endif
