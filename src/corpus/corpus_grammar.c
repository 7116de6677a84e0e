/* SPDX-License-Identifier: MIT */
/* Questions about a derivation that both languages need: subject and object of a clause, the noun
 * that a pronoun refers to, person, gender and number; and whether its pronouns are clear. */
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

/* Where a relative clause is: its clause and phrase. */
typedef struct home {
    int clause;
    const corpus_phrase *phrase;
} home;

static home find_home(const corpus_derivation *derivation, int relative)
{
    for (int n = 0; n < CORPUS_CLAUSES_MAX && relative >= CLAUSE_RELATIVE; n++)
        for (int k = 0; k < PHRASES && corpus_has_clause(derivation, n); k++)
            if (phrase_of(&derivation->clauses[n], k)->relative == relative)
                return (home){n, phrase_of(&derivation->clauses[n], k)};
    return (home){CLAUSE_MAIN, NULL};
}

const corpus_phrase *corpus_head(const corpus_derivation *derivation, int clause)
{
    return find_home(derivation, clause).phrase;
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

static search search_main(const corpus_derivation *derivation, lexicon_pronoun_id pronoun)
{
    search s = {.pronoun = pronoun};
    search_clause(derivation, CLAUSE_MAIN, &s);
    return s;
}

const corpus_phrase *corpus_antecedent(const corpus_derivation *derivation,
                                       lexicon_pronoun_id pronoun)
{
    const search s = search_main(derivation, pronoun);
    return s.count == 1 ? s.found : NULL;
}

int corpus_candidates(const corpus_derivation *derivation, lexicon_pronoun_id pronoun)
{
    return search_main(derivation, pronoun).count;
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

const corpus_phrase *corpus_phrase_or_null(const corpus_phrase *phrase)
{
    return phrase->noun != NULL || phrase->pronoun != PRONOUN_NONE ? phrase : NULL;
}

const corpus_phrase *corpus_subject(const corpus_derivation *derivation, int clause)
{
    const corpus_clause *c = &derivation->clauses[clause];
    return c->gap == GAP_SUBJECT ? corpus_head(derivation, clause)
                                 : corpus_phrase_or_null(&c->subject);
}

const corpus_phrase *corpus_object(const corpus_derivation *derivation, int clause)
{
    const corpus_clause *c = &derivation->clauses[clause];
    return c->gap == GAP_OBJECT ? corpus_head(derivation, clause)
                                : corpus_phrase_or_null(&c->object);
}

/* -------------------------------------------------------------- pronouns --- */

bool corpus_is_speaker(lexicon_pronoun_id pronoun)
{
    return pronoun == PRONOUN_I || pronoun == PRONOUN_YOU || pronoun == PRONOUN_WE;
}

/* Whether clause `index` is the second one, or a relative clause in it. */
static bool is_in_second(const corpus_derivation *derivation, int index)
{
    while (index >= CLAUSE_RELATIVE)
        index = find_home(derivation, index).clause;
    return index == CLAUSE_SECOND;
}

/* It and they may refer to a noun of the main clause only from the second clause, and then to one
 * alone; elsewhere they stand for something masculine. */
static bool is_clear(const corpus_derivation *derivation, int index, lexicon_pronoun_id pronoun)
{
    if (pronoun != PRONOUN_IT && pronoun != PRONOUN_THEY)
        return true;
    if (index == CLAUSE_SECOND)
        return corpus_candidates(derivation, pronoun) <= 1;
    return !is_in_second(derivation, index);
}

/* I and me, we and me, you and you: English would say myself, which the language lacks. */
static bool are_one_person(lexicon_pronoun_id a, lexicon_pronoun_id b)
{
    return corpus_is_speaker(a) && corpus_is_speaker(b) && (a == PRONOUN_YOU) == (b == PRONOUN_YOU);
}

static const char *clause_fault(const corpus_derivation *derivation, int index)
{
    enum { COUNT = 3 };
    const corpus_clause *const c = &derivation->clauses[index];
    const lexicon_pronoun_id pronouns[COUNT] = {c->subject.pronoun, c->object.pronoun,
                                                c->recipient.pronoun};
    for (int n = 0; n < COUNT; n++) {
        if (!is_clear(derivation, index, pronouns[n]))
            return "\"it\" or \"they\" does not refer to exactly one noun";
        for (int k = 0; k < n; k++) {
            if (are_one_person(pronouns[n], pronouns[k]))
                return "two pronouns are the same person";
            if (index == CLAUSE_SECOND && pronouns[n] == pronouns[k] && pronouns[n] != PRONOUN_NONE)
                return "two equal pronouns follow a clause that one of them may refer to";
        }
    }
    if (c->recipient.pronoun != PRONOUN_NONE && corpus_is_speaker(c->object.pronoun))
        return "\"me\", \"you\" or \"us\" is given to a pronoun";
    if (c->shifted && c->object.pronoun != PRONOUN_NONE)
        return "a pronoun is the second of two objects, instead of the first with \"to\"";
    return NULL;
}

const char *corpus_fault(const corpus_derivation *derivation)
{
    for (int n = 0; n < CORPUS_CLAUSES_MAX; n++) {
        const char *const fault =
            corpus_has_clause(derivation, n) ? clause_fault(derivation, n) : NULL;
        if (fault != NULL)
            return fault;
    }
    return NULL;
}
