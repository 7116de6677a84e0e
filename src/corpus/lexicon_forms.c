/* SPDX-License-Identifier: MIT */
/* Visits every word form of a language, table by table; the vocabulary is made from this. */
#include "corpus/lexicon.h"

#include <stddef.h>

typedef struct visitor {
    void (*visit)(void *context, const char *word);
    void *context;
} visitor;

static void word(const visitor *v, const char *text)
{
    if (text != NULL)
        v->visit(v->context, text);
}

static void words(const visitor *v, const char *const *list, int count)
{
    for (int n = 0; n < count; n++)
        word(v, list[n]);
}

/* Function words that the grammar writes itself and that are in no table. */
static const char *const english_rest[] = {"an",  "any",  "that", "who", "do", "does",
                                           "did", "will", "not",  "be",  "?"};
static const char *const french_rest[] = {"l'",  "j'",  "ne",  "n'",     "pas", "de",
                                          "d'",  "du",  "des", "à",      "au",  "aux",
                                          "que", "qu'", "qui", "est-ce", "?"};

/* A participle that never agrees with anything has one form only. */
static int participle_forms(const lexicon_verb *verb)
{
    const bool agrees =
        verb->auxiliary != WITH_AVOIR || verb->frame == FRAME_DIRECT || verb->frame == FRAME_GIVE;
    return agrees ? 4 : 1;
}

/* Language 0 is English, 1 is French, here and below. */
static void each_verb(const visitor *v, int language)
{
    for (int n = 0; n < lexicon_verb_count; n++) {
        const lexicon_verb *verb = &lexicon_verbs[n];
        if (language == 0) {
            words(v, verb->english, VERB_FORMS);
            word(v, verb->particle);
            continue;
        }
        words(v, verb->present, PERSON_COUNT);
        words(v, verb->future, PERSON_COUNT);
        words(v, verb->imperfect, PERSON_COUNT);
        words(v, verb->participle, participle_forms(verb));
    }
    if (language == 0) {
        words(v, lexicon_be.english_present, PERSON_COUNT);
        words(v, lexicon_be.english_past, PERSON_COUNT);
        return;
    }
    words(v, lexicon_be.present, PERSON_COUNT);
    words(v, lexicon_be.imperfect, PERSON_COUNT);
    words(v, lexicon_be.future, PERSON_COUNT);
}

static void each_noun_and_adjective(const visitor *v, int language)
{
    for (int n = 0; n < lexicon_noun_count; n++)
        words(v, language == 0 ? lexicon_nouns[n].english : lexicon_nouns[n].french, 2);
    for (int n = 0; n < lexicon_adjective_count; n++) {
        const lexicon_adjective *adjective = &lexicon_adjectives[n];
        words(v, language == 0 ? &adjective->english : adjective->french, language == 0 ? 1 : 4);
        if (language == 1)
            word(v, adjective->before_vowel);
    }
}

static void each_pronoun(const visitor *v, int language)
{
    if (language == 0) {
        for (int n = 0; n < PRONOUN_COUNT; n++) {
            word(v, lexicon_pronouns[n].subject);
            word(v, lexicon_pronouns[n].object);
        }
        return;
    }
    words(v, lexicon_reflexive, PERSON_COUNT);
    words(v, lexicon_reflexive_vowel, PERSON_COUNT);
    words(v, lexicon_french_speakers, PERSON_COUNT);
    words(v, lexicon_french_subjects, 4);
    words(v, lexicon_french_objects, 4);
    words(v, lexicon_french_recipients, 4);
}

static void each_small_word(const visitor *v, int language)
{
    for (int n = 0; n < lexicon_adverb_count; n++)
        word(v, language == 0 ? lexicon_adverbs[n].english : lexicon_adverbs[n].french);
    for (int n = 0; n < LEXICON_PREPOSITIONS; n++)
        words(v, language == 0 ? lexicon_prepositions[n].english : lexicon_prepositions[n].french,
              3);
    for (int n = 0; n < DETERMINER_COUNT; n++) {
        words(v, language == 0 ? lexicon_determiners[n].english : lexicon_determiners[n].french,
              language == 0 ? 2 : 3);
        if (language == 1)
            words(v, lexicon_determiners[n].before_vowel, 2);
    }
    for (int n = 0; n < LEXICON_CONJUNCTIONS; n++)
        words(v, language == 0 ? &lexicon_conjunctions[n].english : lexicon_conjunctions[n].french,
              language == 0 ? 1 : 2);
    for (int n = 0; n < QUESTION_COUNT; n++)
        word(v, lexicon_question_words[n][language]);
    for (int n = NUMBER_FIRST; n <= NUMBER_LAST; n++)
        word(v, lexicon_numbers[n][language]);
}

void lexicon_each_word(int language, void (*visit)(void *context, const char *word), void *context)
{
    const visitor v = {visit, context};
    each_noun_and_adjective(&v, language);
    each_verb(&v, language);
    each_pronoun(&v, language);
    each_small_word(&v, language);
    if (language == 0)
        words(&v, english_rest, sizeof english_rest / sizeof english_rest[0]);
    else
        words(&v, french_rest, sizeof french_rest / sizeof french_rest[0]);
}
