/* SPDX-License-Identifier: MIT */
/*
 * Turns a derivation into a pair. Both sides are written by corpus_english.c and corpus_french.c;
 * here the French tokens are elided and contracted, which removes tokens and so moves positions,
 * and the roles are collected.
 */
#include "corpus/corpus_build.h"

#include <string.h>

const char *corpus_role_name(corpus_role_kind kind)
{
    static const char *const names[ROLE_KINDS] = {
        [ROLE_SUBJECT_VERB] = "subject-verb",
        [ROLE_VERB_OBJECT] = "verb-object",
        [ROLE_DETERMINER_NOUN] = "determiner-noun",
        [ROLE_ADJECTIVE_NOUN] = "adjective-noun",
        [ROLE_PRONOUN_ANTECEDENT] = "pronoun-antecedent",
        [ROLE_RELATIVE_ANTECEDENT] = "relative-antecedent",
    };
    return names[kind];
}

/* ------------------------------------------ elision and contraction -------- */

/* The contraction of de or à with the article after it; NULL for other words. */
static const char *contraction(const french_token *first, const french_token *second)
{
    if (!second->article)
        return NULL;
    const bool plural = strcmp(second->text, "les") == 0;
    if (!plural && strcmp(second->text, "le") != 0)
        return NULL;
    if (strcmp(first->text, "de") == 0)
        return plural ? "des" : "du";
    if (strcmp(first->text, "à") == 0)
        return plural ? "aux" : "au";
    return NULL;
}

/* Goes from right to left, since the form of a word depends on the next one. The text of a
 * contracted article becomes NULL; keep_french() drops it. */
static void join_french(corpus_builder *b)
{
    for (int n = b->french_count - 2; n >= 0; n--) {
        french_token *token = &b->french[n], *next = &b->french[n + 1];
        if (token->before_vowel != NULL && lexicon_begins_with_vowel(next->text))
            token->text = token->before_vowel;
        const char *contracted = contraction(token, next);
        if (contracted == NULL)
            continue;
        token->text = contracted;
        token->sources |= next->sources;
        next->text = NULL;
    }
}

/* Copies the remaining tokens. moved[n] is the final position of token n, or of the token that it
 * was contracted into. */
static void keep_french(const corpus_builder *b, int moved[CORPUS_TOKENS_MAX])
{
    corpus_sentence *french = &b->pair->side[CORPUS_FRENCH];
    for (int n = 0; n < b->french_count; n++) {
        if (b->french[n].text != NULL) {
            b->pair->sources[french->count] = b->french[n].sources;
            french->tokens[french->count++] = b->french[n].text;
        }
        moved[n] = french->count - 1;
    }
}

static void move(int *position, const int moved[CORPUS_TOKENS_MAX])
{
    if (*position >= 0)
        *position = moved[*position];
}

static void move_phrase(phrase_places *at, const int moved[CORPUS_TOKENS_MAX])
{
    move(&at->head[CORPUS_FRENCH], moved);
    move(&at->determiner[CORPUS_FRENCH], moved);
    move(&at->adjectives[0][CORPUS_FRENCH], moved);
    move(&at->adjectives[1][CORPUS_FRENCH], moved);
    move(&at->relative[CORPUS_FRENCH], moved);
}

static void move_clause(clause_places *at, const int moved[CORPUS_TOKENS_MAX])
{
    move_phrase(&at->subject, moved);
    move_phrase(&at->object, moved);
    move_phrase(&at->recipient, moved);
    move_phrase(&at->place, moved);
    move(&at->main[CORPUS_FRENCH], moved);
    move(&at->predicate[CORPUS_FRENCH], moved);
}

/* --------------------------------------------------------------- roles ----- */

/* Adds a role, unless one of its words does not occur in English. */
static void add_role(corpus_builder *b, corpus_role_kind kind, const int first[CORPUS_SIDES],
                     const int second[CORPUS_SIDES])
{
    corpus_pair *pair = b->pair;
    if (first[CORPUS_ENGLISH] < 0 || second[CORPUS_ENGLISH] < 0)
        return;
    if (pair->role_count == CORPUS_ROLES_MAX) {
        b->full = true;
        return;
    }
    corpus_role *role = &pair->roles[pair->role_count++];
    role->kind = kind;
    for (int side = 0; side < CORPUS_SIDES; side++) {
        role->first[side] = first[side];
        role->second[side] = second[side];
    }
}

/* The recorded positions of a phrase of the derivation. */
static const phrase_places *places_of(const corpus_builder *b, const corpus_phrase *phrase)
{
    for (int n = 0; n < CORPUS_CLAUSES_MAX; n++) {
        const corpus_clause *clause = &b->derivation->clauses[n];
        const clause_places *at = &b->places[n];
        if (phrase == &clause->subject)
            return &at->subject;
        if (phrase == &clause->object)
            return &at->object;
        if (phrase == &clause->recipient)
            return &at->recipient;
        if (phrase == &clause->place)
            return &at->place;
    }
    return NULL;
}

/* Only a pronoun of the second clause has an antecedent, in the main clause. In "he saw a man", the
 * pronoun and the noun are two persons. */
static void add_phrase_roles(corpus_builder *b, const corpus_phrase *phrase, int index)
{
    const phrase_places *at = places_of(b, phrase);
    if (phrase->noun != NULL) {
        add_role(b, ROLE_DETERMINER_NOUN, at->determiner, at->head);
        add_role(b, ROLE_ADJECTIVE_NOUN, at->adjectives[0], at->head);
        add_role(b, ROLE_ADJECTIVE_NOUN, at->adjectives[1], at->head);
        add_role(b, ROLE_RELATIVE_ANTECEDENT, at->relative, at->head);
        return;
    }
    const corpus_phrase *antecedent = corpus_antecedent(b->derivation, phrase->pronoun);
    if (antecedent != NULL && index == CLAUSE_SECOND)
        add_role(b, ROLE_PRONOUN_ANTECEDENT, at->head, places_of(b, antecedent)->head);
}

static void add_verb_roles(corpus_builder *b, int index)
{
    const clause_places *at = &b->places[index];
    const corpus_phrase *subject = corpus_subject(b->derivation, index);
    const corpus_phrase *object = corpus_object(b->derivation, index);
    /* "Who" is the first token on both sides. */
    static const int who[CORPUS_SIDES] = {0, 0};
    const int *head = subject == NULL ? who : places_of(b, subject)->head;
    add_role(b, ROLE_SUBJECT_VERB, head, at->main);
    if (object != NULL)
        add_role(b, ROLE_VERB_OBJECT, at->main, places_of(b, object)->head);
    add_role(b, ROLE_ADJECTIVE_NOUN, at->predicate, head);
}

static void add_roles(corpus_builder *b)
{
    for (int n = 0; n < CORPUS_CLAUSES_MAX; n++) {
        const corpus_clause *clause = &b->derivation->clauses[n];
        if (!corpus_has_clause(b->derivation, n))
            continue;
        add_verb_roles(b, n);
        add_phrase_roles(b, &clause->subject, n);
        add_phrase_roles(b, &clause->object, n);
        add_phrase_roles(b, &clause->recipient, n);
        add_phrase_roles(b, &clause->place, n);
    }
}

/* --------------------------------------------------------------- build ----- */

bool corpus_build(const corpus_derivation *derivation, corpus_pair *pair)
{
    corpus_builder builder = {.derivation = derivation, .pair = pair};
    int moved[CORPUS_TOKENS_MAX];
    memset(builder.places, -1, sizeof builder.places);
    pair->side[CORPUS_ENGLISH].count = pair->side[CORPUS_FRENCH].count = pair->role_count = 0;
    if (corpus_fault(derivation) != NULL)
        return false;
    corpus_write_english(&builder);
    corpus_write_french(&builder);
    if (builder.full)
        return false;
    join_french(&builder);
    keep_french(&builder, moved);
    for (int n = 0; n < CORPUS_CLAUSES_MAX; n++)
        move_clause(&builder.places[n], moved);
    add_roles(&builder);
    return !builder.full;
}
