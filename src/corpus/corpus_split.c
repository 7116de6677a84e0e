/* SPDX-License-Identifier: MIT */
/* The combinations of words that a sentence contains, and the split that each belongs to. */
#include <stddef.h>

#include "corpus/corpus.h"

const char *corpus_split_name(corpus_split split)
{
    static const char *const names[CORPUS_SPLITS] = {"train", "valid", "test"};
    return names[split];
}

typedef struct collector {
    corpus_combination *list;
    int count;
} collector;

static void add(collector *c, corpus_role_kind kind, const char *first, const char *second)
{
    if (c->count < CORPUS_COMBINATIONS_MAX)
        c->list[c->count++] = (corpus_combination){kind, first, second};
}

/* The noun of a phrase, or the noun that its pronoun refers to; NULL if there is none. */
static const char *noun_of(const corpus_derivation *d, int clause, const corpus_phrase *phrase)
{
    if (phrase != NULL && phrase->noun == NULL && clause == CLAUSE_SECOND)
        phrase = corpus_antecedent(d, phrase->pronoun);
    return phrase == NULL || phrase->noun == NULL ? NULL : phrase->noun->english[0];
}

static void add_adjectives(collector *c, const corpus_phrase *phrase)
{
    for (int n = 0; n < 2; n++)
        if (phrase->adjectives[n] != NULL)
            add(c, ROLE_ADJECTIVE_NOUN, phrase->adjectives[n]->english, phrase->noun->english[0]);
}

static void add_clause(collector *c, const corpus_derivation *d, int index)
{
    const corpus_clause *clause = &d->clauses[index];
    const char *subject = noun_of(d, index, corpus_subject(d, index));
    const char *object = noun_of(d, index, corpus_object(d, index));
    if (subject != NULL && clause->verb != NULL)
        add(c, ROLE_SUBJECT_VERB, subject, clause->verb->name);
    if (subject != NULL && clause->predicate != NULL)
        add(c, ROLE_ADJECTIVE_NOUN, clause->predicate->english, subject);
    if (object != NULL && clause->verb != NULL)
        add(c, ROLE_VERB_OBJECT, clause->verb->name, object);
    add_adjectives(c, &clause->subject);
    add_adjectives(c, &clause->object);
    add_adjectives(c, &clause->recipient);
    add_adjectives(c, &clause->place);
}

int corpus_combinations(const corpus_derivation *derivation,
                        corpus_combination list[CORPUS_COMBINATIONS_MAX])
{
    collector c = {.list = list};
    for (int n = 0; n < CORPUS_CLAUSES_MAX; n++)
        if (corpus_has_clause(derivation, n))
            add_clause(&c, derivation, n);
    return c.count;
}

uint64_t corpus_hash(uint64_t start, const char *text)
{
    do {
        start = (start ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    } while (*text++ != '\0');
    return start;
}

corpus_split corpus_combination_split(const corpus_combination *combination)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) + (uint64_t)combination->kind;
    hash = corpus_hash(corpus_hash(hash, combination->first), combination->second);
    /* The low bits of FNV-1a are mixed the least. */
    const int percent = (int)((hash >> 32) % 100);
    if (percent < 8)
        return CORPUS_TEST;
    return percent < 12 ? CORPUS_VALID : CORPUS_TRAIN;
}
