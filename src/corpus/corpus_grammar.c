/* SPDX-License-Identifier: MIT */
/* Questions about a derivation that both languages need: subject and object of a clause, the noun
 * that a pronoun refers to, person, gender and number. */
#include "corpus/corpus_grammar.h"

#include <stddef.h>

enum { PHRASES = 4 };

static const corpus_phrase *phrase_of(const corpus_clause *clause, int n)
{
    const corpus_phrase *const phrases[PHRASES] = {&clause->subject, &clause->object,
                                                   &clause->recipient, &clause->place};
    return phrases[n];
}

bool corpus_has_clause(const corpus_derivation *derivation, int index)
{
    if (index == CLAUSE_SECOND)
        return derivation->conjunction != NULL;
    return index < CLAUSE_RELATIVE + derivation->relatives;
}

const corpus_phrase *corpus_head(const corpus_derivation *derivation, int clause)
{
    for (int n = 0; n < CORPUS_CLAUSES_MAX && clause >= CLAUSE_RELATIVE; n++)
        for (int k = 0; k < PHRASES && corpus_has_clause(derivation, n); k++)
            if (phrase_of(&derivation->clauses[n], k)->relative == clause)
                return phrase_of(&derivation->clauses[n], k);
    return NULL;
}

lexicon_pronoun_id corpus_pronoun_for(const corpus_phrase *phrase)
{
    if (phrase->plural)
        return PRONOUN_THEY;
    if ((phrase->noun->kinds & KIND_PERSON) == 0)
        return PRONOUN_IT;
    return phrase->noun->feminine ? PRONOUN_SHE : PRONOUN_HE;
}

/* The search for an antecedent: the last match and the number of candidates. */
typedef struct search {
    lexicon_pronoun_id pronoun;
    const corpus_phrase *found;
    int count;
} search;

static void search_clause(const corpus_derivation *derivation, int clause, search *s)
{
    for (int k = 0; k < PHRASES; k++) {
        const corpus_phrase *phrase = phrase_of(&derivation->clauses[clause], k);
        /* A pronoun of the same kind is a candidate too: "he saw the man because he ..." is
         * ambiguous. */
        s->count += phrase->pronoun == s->pronoun;
        if (phrase->noun == NULL)
            continue;
        if (corpus_pronoun_for(phrase) == s->pronoun) {
            s->found = phrase;
            s->count++;
        }
        if (phrase->relative != 0)
            search_clause(derivation, phrase->relative, s);
    }
}

const corpus_phrase *corpus_antecedent(const corpus_derivation *derivation,
                                       lexicon_pronoun_id pronoun)
{
    search s = {.pronoun = pronoun};
    search_clause(derivation, CLAUSE_MAIN, &s);
    return s.count == 1 ? s.found : NULL;
}

corpus_agreement corpus_agreement_of(const corpus_derivation *derivation,
                                     const corpus_phrase *phrase)
{
    corpus_agreement result = {.person = PERSON_IT};
    if (phrase == NULL)
        return result;
    if (phrase->noun != NULL) {
        result.feminine = phrase->noun->feminine;
        result.plural = phrase->plural;
        result.person = phrase->plural ? PERSON_THEY : PERSON_IT;
        return result;
    }
    result.person = lexicon_pronouns[phrase->pronoun].person;
    result.plural = result.person == PERSON_WE || result.person == PERSON_THEY;
    const corpus_phrase *antecedent = corpus_antecedent(derivation, phrase->pronoun);
    result.feminine =
        phrase->pronoun == PRONOUN_SHE || (antecedent != NULL && antecedent->noun->feminine);
    return result;
}

/* NULL for a phrase that is not there. */
static const corpus_phrase *phrase_or_null(const corpus_phrase *phrase)
{
    return phrase->noun != NULL || phrase->pronoun != PRONOUN_NONE ? phrase : NULL;
}

const corpus_phrase *corpus_subject(const corpus_derivation *derivation, int clause)
{
    const corpus_clause *c = &derivation->clauses[clause];
    return c->gap == GAP_SUBJECT ? corpus_head(derivation, clause) : phrase_or_null(&c->subject);
}

const corpus_phrase *corpus_object(const corpus_derivation *derivation, int clause)
{
    const corpus_clause *c = &derivation->clauses[clause];
    return c->gap == GAP_OBJECT ? corpus_head(derivation, clause) : phrase_or_null(&c->object);
}
