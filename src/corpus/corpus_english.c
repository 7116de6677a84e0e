/* SPDX-License-Identifier: MIT */
/* Writes the English side of a pair and records the position of every part: word order, auxiliaries
 * (do-support, will), agreement of the verb, and "a" or "an". */
#include "corpus/corpus_build.h"

#include <string.h>

/* Appends a word and returns its position. An "a" before it becomes "an" if needed. */
static int put(corpus_builder *b, const char *word)
{
    corpus_sentence *english = &b->pair->side[CORPUS_ENGLISH];
    if (english->count == CORPUS_TOKENS_MAX) {
        b->full = true;
        return -1;
    }
    if (english->count > 0 && strcmp(english->tokens[english->count - 1], "a") == 0 &&
        strchr("aeiou", word[0]) != NULL)
        english->tokens[english->count - 1] = "an";
    english->tokens[english->count] = word;
    return english->count++;
}

static void write_clause(corpus_builder *b, int index);

static void write_determiner(corpus_builder *b, const corpus_phrase *phrase, phrase_places *at,
                             bool negated)
{
    if (phrase->determiner == DETERMINER_NONE)
        return;
    const char *word = lexicon_determiners[phrase->determiner].english[phrase->plural];
    if (phrase->determiner == DETERMINER_A && phrase->plural && negated)
        word = "any";
    at->determiner[CORPUS_ENGLISH] = put(b, word);
}

static void write_relative(corpus_builder *b, const corpus_phrase *phrase, phrase_places *at)
{
    const corpus_clause *clause = &b->derivation->clauses[phrase->relative];
    const bool person = (phrase->noun->kinds & KIND_PERSON) != 0;
    at->relative[CORPUS_ENGLISH] = put(b, clause->gap == GAP_SUBJECT && person ? "who" : "that");
    write_clause(b, phrase->relative);
}

/* `negated`: this is the object of a clause with not or never, where "some" becomes "any". */
static void write_noun_phrase(corpus_builder *b, const corpus_phrase *phrase, phrase_places *at,
                              bool negated)
{
    write_determiner(b, phrase, at, negated);
    if (phrase->number != 0)
        at->number = put(b, lexicon_numbers[phrase->number][CORPUS_ENGLISH]);
    if (phrase->determiner == DETERMINER_NONE)
        at->determiner[CORPUS_ENGLISH] = at->number;
    for (int n = 0; n < 2; n++)
        if (phrase->adjectives[n] != NULL)
            at->adjectives[n][CORPUS_ENGLISH] = put(b, phrase->adjectives[n]->english);
    at->head[CORPUS_ENGLISH] = put(b, phrase->noun->english[phrase->plural]);
    if (phrase->relative != 0)
        write_relative(b, phrase, at);
}

static void write_subject(corpus_builder *b, int index)
{
    const corpus_clause *clause = &b->derivation->clauses[index];
    phrase_places *at = &b->places[index].subject;
    if (clause->subject.pronoun != PRONOUN_NONE)
        at->head[CORPUS_ENGLISH] = put(b, lexicon_pronouns[clause->subject.pronoun].subject);
    else
        write_noun_phrase(b, &clause->subject, at, false);
}

/* An object or recipient, if there is one. */
static void write_object(corpus_builder *b, const corpus_phrase *phrase, phrase_places *at,
                         bool negated)
{
    if (phrase->pronoun != PRONOUN_NONE)
        at->head[CORPUS_ENGLISH] = put(b, lexicon_pronouns[phrase->pronoun].object);
    else if (phrase->noun != NULL)
        write_noun_phrase(b, phrase, at, negated);
}

static void write_objects(corpus_builder *b, const corpus_clause *clause, clause_places *at)
{
    const bool never = clause->often != NULL && clause->often->kind == ADVERB_NEVER;
    if (clause->shifted)
        write_object(b, &clause->recipient, &at->recipient, false);
    write_object(b, &clause->object, &at->object, clause->negative || never);
    if (clause->shifted || corpus_phrase_or_null(&clause->recipient) == NULL)
        return;
    at->to = put(b, "to");
    write_object(b, &clause->recipient, &at->recipient, false);
}

static void write_rest(corpus_builder *b, const corpus_clause *clause, clause_places *at)
{
    write_objects(b, clause, at);
    if (clause->how != NULL)
        at->how = put(b, clause->how->english);
    if (clause->preposition != NULL) {
        at->preposition = put(b, clause->preposition->english[0]);
        for (int n = 1; n < 3 && clause->preposition->english[n] != NULL; n++)
            put(b, clause->preposition->english[n]);
        write_noun_phrase(b, &clause->place, &at->place, false);
    }
    if (clause->when != NULL)
        at->when = put(b, clause->when->english);
}

/* The auxiliary that carries tense and person: will, do, does, did, or a form of "to be". NULL if
 * the verb itself carries them. */
static const char *auxiliary(const corpus_clause *clause, lexicon_person person, bool inverted)
{
    if (clause->tense == TENSE_FUTURE)
        return "will";
    if (clause->verb == NULL || clause->progressive)
        return clause->tense == TENSE_PAST ? lexicon_be.english_past[person]
                                           : lexicon_be.english_present[person];
    if (!clause->negative && !inverted)
        return NULL;
    if (clause->tense == TENSE_PAST)
        return "did";
    return person == PERSON_IT ? "does" : "do";
}

static void write_predicate(corpus_builder *b, const corpus_clause *clause, clause_places *at)
{
    at->main[CORPUS_ENGLISH] = clause->tense == TENSE_FUTURE ? put(b, "be") : at->auxiliary;
    at->predicate[CORPUS_ENGLISH] = put(b, clause->predicate->english);
}

static void write_verb(corpus_builder *b, const corpus_clause *clause, clause_places *at,
                       lexicon_person person)
{
    const bool finite = at->auxiliary < 0;
    lexicon_verb_form form = clause->progressive ? VERB_ING : VERB_BASE;
    if (finite && clause->tense == TENSE_PAST)
        form = VERB_PAST;
    else if (finite && person == PERSON_IT)
        form = VERB_THIRD_PERSON;
    at->main[CORPUS_ENGLISH] = put(b, clause->verb->english[form]);
    if (clause->verb->particle != NULL)
        at->particle = put(b, clause->verb->particle);
}

static void write_after_subject(corpus_builder *b, int index, lexicon_person person)
{
    const corpus_clause *clause = &b->derivation->clauses[index];
    clause_places *at = &b->places[index];
    if (clause->negative)
        at->negation = put(b, "not");
    /* "is often tired", but "will often be tired". */
    if (clause->often != NULL)
        at->often = put(b, clause->often->english);
    if (clause->verb == NULL)
        write_predicate(b, clause, at);
    else
        write_verb(b, clause, at, person);
    write_rest(b, clause, at);
}

/* In a question the auxiliary comes before the subject, except in questions with "who". */
static void write_clause(corpus_builder *b, int index)
{
    const corpus_clause *clause = &b->derivation->clauses[index];
    const corpus_phrase *subject = corpus_subject(b->derivation, index);
    const lexicon_person person = corpus_agreement_of(b->derivation, subject).person;
    const bool inverted =
        index == CLAUSE_MAIN && b->derivation->question != QUESTION_NONE && subject != NULL;
    const char *word = auxiliary(clause, person, inverted);
    if (!inverted && clause->gap != GAP_SUBJECT)
        write_subject(b, index);
    if (word != NULL)
        b->places[index].auxiliary = put(b, word);
    if (inverted)
        write_subject(b, index);
    write_after_subject(b, index, person);
}

void corpus_write_english(corpus_builder *b)
{
    const char *question = lexicon_question_words[b->derivation->question][CORPUS_ENGLISH];
    if (question != NULL)
        b->question = put(b, question);
    write_clause(b, CLAUSE_MAIN);
    if (b->derivation->conjunction != NULL) {
        b->conjunction = put(b, b->derivation->conjunction->english);
        write_clause(b, CLAUSE_SECOND);
    }
    if (b->derivation->question != QUESTION_NONE)
        b->mark = put(b, "?");
}
