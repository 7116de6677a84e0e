/* SPDX-License-Identifier: MIT */
/*
 * Finds parts of speech: function words by lists, then by the role that a word has in its sentence
 * ("her" is a determiner where it has a noun), then by the tables of the lexicon.
 */
#include "corpus/part_of_speech.h"

#include <string.h>

#include "corpus/lexicon.h"

const char *corpus_part_name(corpus_part part)
{
    static const char *const names[PART_COUNT] = {
        [PART_NOUN] = "noun",
        [PART_VERB] = "verb",
        [PART_AUXILIARY] = "auxiliary",
        [PART_PRONOUN] = "pronoun",
        [PART_DETERMINER] = "determiner",
        [PART_NUMBER] = "number",
        [PART_ADJECTIVE] = "adjective",
        [PART_ADVERB] = "adverb",
        [PART_NEGATION] = "negation",
        [PART_PREPOSITION] = "preposition",
        [PART_CONJUNCTION] = "conjunction",
        [PART_RELATIVE] = "relative",
        [PART_QUESTION] = "question",
    };
    return names[part];
}

static bool is(const char *word, const char *other)
{
    return other != NULL && strcmp(word, other) == 0;
}

static bool is_in(const char *word, const char *const *list, int count)
{
    for (int n = 0; n < count; n++)
        if (is(word, list[n]))
            return true;
    return false;
}

/* ------------------------------------------------------- function words ----- */

static bool is_auxiliary(const char *word)
{
    static const char *const rest[] = {"be", "do", "does", "did", "will"};
    return is_in(word, rest, 5) || is_in(word, lexicon_be.english_present, PERSON_COUNT) ||
           is_in(word, lexicon_be.english_past, PERSON_COUNT);
}

static bool is_question_word(const char *word)
{
    for (int n = 0; n < QUESTION_COUNT; n++)
        if (is(word, lexicon_question_words[n][0]))
            return true;
    return false;
}

static bool is_negation(const char *word)
{
    for (int n = 0; n < lexicon_adverb_count; n++)
        if (lexicon_adverbs[n].kind == ADVERB_NEVER && is(word, lexicon_adverbs[n].english))
            return true;
    return is(word, "not");
}

static bool is_determiner(const char *word)
{
    for (int n = 0; n < DETERMINER_COUNT; n++)
        if (is_in(word, lexicon_determiners[n].english, 2))
            return true;
    return is(word, "an") || is(word, "any");
}

static bool is_pronoun(const char *word)
{
    for (int n = 0; n < PRONOUN_COUNT; n++)
        if (is(word, lexicon_pronouns[n].subject) || is(word, lexicon_pronouns[n].object))
            return true;
    return false;
}

static bool is_number(const char *word)
{
    for (int n = NUMBER_FIRST; n <= NUMBER_LAST; n++)
        if (is(word, lexicon_numbers[n][0]))
            return true;
    return false;
}

static bool is_conjunction(const char *word)
{
    for (int n = 0; n < LEXICON_CONJUNCTIONS; n++)
        if (is(word, lexicon_conjunctions[n].english))
            return true;
    return false;
}

static bool is_preposition(const char *word)
{
    for (int n = 0; n < LEXICON_PREPOSITIONS; n++)
        if (is_in(word, lexicon_prepositions[n].english, 3))
            return true;
    for (int n = 0; n < lexicon_verb_count; n++)
        if (is(word, lexicon_verbs[n].particle))
            return true;
    return is(word, "to");
}

/* -------------------------------------------------------- content words ----- */

static bool is_noun(const char *word)
{
    for (int n = 0; n < lexicon_noun_count; n++)
        if (is_in(word, lexicon_nouns[n].english, 2))
            return true;
    return false;
}

static bool is_adjective(const char *word)
{
    for (int n = 0; n < lexicon_adjective_count; n++)
        if (is(word, lexicon_adjectives[n].english))
            return true;
    return false;
}

static bool is_adverb(const char *word)
{
    for (int n = 0; n < lexicon_adverb_count; n++)
        if (is(word, lexicon_adverbs[n].english))
            return true;
    return false;
}

static bool is_verb(const char *word)
{
    for (int n = 0; n < lexicon_verb_count; n++)
        if (is_in(word, lexicon_verbs[n].english, VERB_FORMS))
            return true;
    return false;
}

/* ------------------------------------------------------------------ roles ----- */

/* What the roles of the sentence say of a word; PART_COUNT: nothing. */
static corpus_part part_of_role(const corpus_pair *pair, int n)
{
    for (int k = 0; k < pair->role_count; k++) {
        const corpus_role *const role = &pair->roles[k];
        const bool first = role->first[CORPUS_ENGLISH] == n;
        const bool second = role->second[CORPUS_ENGLISH] == n;
        if (first && role->kind == ROLE_DETERMINER_NOUN)
            return PART_DETERMINER;
        if (first && role->kind == ROLE_ADJECTIVE_NOUN)
            return PART_ADJECTIVE;
        if (first && role->kind == ROLE_RELATIVE_ANTECEDENT)
            return PART_RELATIVE;
        if ((second && role->kind == ROLE_SUBJECT_VERB) ||
            (first && role->kind == ROLE_VERB_OBJECT))
            return PART_VERB;
    }
    return PART_COUNT;
}

corpus_part corpus_part_of(const corpus_pair *pair, int n)
{
    static const struct {
        bool (*has)(const char *word);
        corpus_part part;
    } tables[] = {
        {is_pronoun, PART_PRONOUN},
        {is_determiner, PART_DETERMINER},
        {is_number, PART_NUMBER},
        {is_conjunction, PART_CONJUNCTION},
        {is_preposition, PART_PREPOSITION},
        {is_adverb, PART_ADVERB},
        {is_noun, PART_NOUN},
        {is_adjective, PART_ADJECTIVE},
        {is_verb, PART_VERB},
    };
    const char *const word = pair->side[CORPUS_ENGLISH].tokens[n];
    if (is(word, "?") || (n == 0 && is_question_word(word)))
        return PART_QUESTION;
    if (is_auxiliary(word))
        return PART_AUXILIARY;
    if (is_negation(word))
        return PART_NEGATION;
    const corpus_part role = part_of_role(pair, n);
    if (role != PART_COUNT && !(role == PART_DETERMINER && is_number(word)))
        return role;
    if (is(word, "that") || is(word, "who"))
        return PART_RELATIVE;
    for (size_t k = 0; k < sizeof tables / sizeof tables[0]; k++)
        if (tables[k].has(word))
            return tables[k].part;
    return PART_COUNT;
}
