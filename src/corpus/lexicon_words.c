/* SPDX-License-Identifier: MIT */
/* Adjectives, adverbs, prepositions, determiners, pronouns, conjunctions, question words and
 * numbers; and the rule which French words cause elision. */
#include "corpus/lexicon_parts.h"

#include <stddef.h>
#include <string.h>

/* Forms of a stem: masculine, feminine, and both in the plural. */
#define REGULAR(stem)                       \
    {                                       \
        stem, stem "e", stem "s", stem "es" \
    }
#define IN_E(stem)                     \
    {                                  \
        stem, stem, stem "s", stem "s" \
    }
#define IN_X(stem)                                \
    {                                             \
        stem "x", stem "se", stem "x", stem "ses" \
    }

const lexicon_adjective lexicon_adjectives[] = {
    {"beautiful",
     {"beau", "belle", "beaux", "belles"},
     "bel",
     RANK_OPINION,
     P | A | O | T | V | L | N},
    {"good", {"bon", "bonne", "bons", "bonnes"}, NULL, RANK_OPINION, P | F | T},
    {"bad", {"mauvais", "mauvaise", "mauvais", "mauvaises"}, NULL, RANK_OPINION, F | T},
    {"big", REGULAR("grand"), NULL, RANK_SIZE, A | O | V | L | N},
    {"small", REGULAR("petit"), NULL, RANK_SIZE, P | A | F | O | V | L | N},
    {"old", {"vieux", "vieille", "vieux", "vieilles"}, "vieil", RANK_SIZE, P | A | O | T | V | L},
    {"young", IN_E("jeune"), NULL, RANK_SIZE, P | A},
    {"new", {"nouveau", "nouvelle", "nouveaux", "nouvelles"}, "nouvel", RANK_SIZE, O | T | V | L},
    {"quick", IN_E("rapide"), NULL, RANK_QUALITY, P | A | V},
    {"tired", REGULAR("fatigué"), NULL, RANK_QUALITY, P | A},
    {"happy", IN_X("heureu"), NULL, RANK_QUALITY, P | A},
    {"sad", IN_E("triste"), NULL, RANK_QUALITY, P | A | T},
    {"expensive", {"cher", "chère", "chers", "chères"}, NULL, RANK_QUALITY, F | O | V},
    {"clever", REGULAR("intelligent"), NULL, RANK_QUALITY, P | A},
    {"famous", IN_E("célèbre"), NULL, RANK_QUALITY, P | T | L},
    {"strange", IN_E("étrange"), NULL, RANK_QUALITY, P | A | O | T | L},
    {"jealous", IN_X("jalou"), NULL, RANK_QUALITY, P | A},
    {"kind", {"gentil", "gentille", "gentils", "gentilles"}, NULL, RANK_QUALITY, P},
    {"lazy", IN_X("paresseu"), NULL, RANK_QUALITY, P | A},
    {"dangerous", IN_X("dangereu"), NULL, RANK_QUALITY, A | L},
    {"empty", IN_E("vide"), NULL, RANK_QUALITY, V | L},
    {"red", IN_E("rouge"), NULL, RANK_COLOUR, F | O | V},
    {"green", REGULAR("vert"), NULL, RANK_COLOUR, F | O | V},
    {"blue", REGULAR("bleu"), NULL, RANK_COLOUR, O | V},
    {"black", REGULAR("noir"), NULL, RANK_COLOUR, A | O | V},
    {"white", {"blanc", "blanche", "blancs", "blanches"}, NULL, RANK_COLOUR, A | O | V},
    {"brown", REGULAR("brun"), NULL, RANK_COLOUR, A | O | V},
    {"grey", {"gris", "grise", "gris", "grises"}, NULL, RANK_COLOUR, A | O | V},
};
const int lexicon_adjective_count = sizeof lexicon_adjectives / sizeof lexicon_adjectives[0];

const lexicon_adverb lexicon_adverbs[] = {
    {"often", "souvent", ADVERB_OFTEN, IN_PAST | IN_PRESENT | IN_FUTURE},
    {"always", "toujours", ADVERB_OFTEN, IN_PAST | IN_PRESENT | IN_FUTURE},
    {"sometimes", "parfois", ADVERB_SOMETIMES, IN_PAST | IN_PRESENT | IN_FUTURE},
    {"rarely", "rarement", ADVERB_SOMETIMES, IN_PAST | IN_PRESENT | IN_FUTURE},
    {"never", "jamais", ADVERB_NEVER, IN_PAST | IN_PRESENT | IN_FUTURE},
    {"slowly", "lentement", ADVERB_HOW, IN_PAST | IN_PRESENT | IN_FUTURE},
    {"quickly", "rapidement", ADVERB_HOW, IN_PAST | IN_PRESENT | IN_FUTURE},
    {"carefully", "prudemment", ADVERB_HOW, IN_PAST | IN_PRESENT | IN_FUTURE},
    {"here", "ici", ADVERB_HOW, IN_PAST | IN_PRESENT | IN_FUTURE},
    {"outside", "dehors", ADVERB_HOW, IN_PAST | IN_PRESENT | IN_FUTURE},
    {"yesterday", "hier", ADVERB_WHEN, IN_PAST},
    {"now", "maintenant", ADVERB_WHEN, IN_PRESENT},
    {"today", "aujourd'hui", ADVERB_WHEN, IN_PAST | IN_PRESENT | IN_FUTURE},
    {"tomorrow", "demain", ADVERB_WHEN, IN_FUTURE},
};
const int lexicon_adverb_count = sizeof lexicon_adverbs / sizeof lexicon_adverbs[0];

const lexicon_preposition lexicon_prepositions[LEXICON_PREPOSITIONS] = {
    {{"in", "front", "of"}, {"devant"}, P | L | N},
    {{"in"}, {"dans"}, KIND_INSIDE},
    {{"on"}, {"sur"}, KIND_SURFACE},
    {{"under"}, {"sous"}, KIND_SHELTER},
    {{"near"}, {"près", "de"}, P | L | N},
    {{"next", "to"}, {"à", "côté", "de"}, P | A | L | N},
    {{"with"}, {"avec"}, P | A},
};

const lexicon_determiner lexicon_determiners[DETERMINER_COUNT] = {
    [DETERMINER_THE] = {{"the", "the"}, {"le", "la", "les"}, {"l'", "l'"}},
    [DETERMINER_A] = {{"a", "some"}, {"un", "une", "des"}, {NULL}},
    [DETERMINER_THIS] = {{"this", "these"}, {"ce", "cette", "ces"}, {"cet"}},
    [DETERMINER_MY] = {{"my", "my"}, {"mon", "ma", "mes"}, {NULL, "mon"}},
    [DETERMINER_YOUR] = {{"your", "your"}, {"ton", "ta", "tes"}, {NULL, "ton"}},
    [DETERMINER_HIS] = {{"his", "his"}, {"son", "sa", "ses"}, {NULL, "son"}},
    [DETERMINER_HER] = {{"her", "her"}, {"son", "sa", "ses"}, {NULL, "son"}},
    [DETERMINER_OUR] = {{"our", "our"}, {"notre", "notre", "nos"}, {NULL}},
    [DETERMINER_THEIR] = {{"their", "their"}, {"leur", "leur", "leurs"}, {NULL}},
    [DETERMINER_EVERY] = {{"every", NULL}, {"chaque", "chaque", NULL}, {NULL}},
    [DETERMINER_MANY] = {{NULL, "many"}, {NULL, NULL, "beaucoup"}, {NULL}},
};

const lexicon_pronoun lexicon_pronouns[PRONOUN_COUNT] = {
    [PRONOUN_I] = {"i", "me", PERSON_I},
    [PRONOUN_YOU] = {"you", "you", PERSON_YOU},
    [PRONOUN_WE] = {"we", "us", PERSON_WE},
    [PRONOUN_HE] = {"he", "him", PERSON_IT},
    [PRONOUN_SHE] = {"she", "her", PERSON_IT},
    [PRONOUN_IT] = {"it", "it", PERSON_IT},
    [PRONOUN_THEY] = {"they", "them", PERSON_THEY},
};

const char *const lexicon_reflexive[PERSON_COUNT] = {"me", "te", "se", "nous", "se"};
const char *const lexicon_reflexive_vowel[PERSON_COUNT] = {"m'", "t'", "s'", NULL, "s'"};
const char *const lexicon_french_speakers[PERSON_COUNT] = {"je", "tu", NULL, "nous", NULL};
const char *const lexicon_french_subjects[4] = {"il", "elle", "ils", "elles"};
const char *const lexicon_french_objects[4] = {"le", "la", "les", "les"};
const char *const lexicon_french_recipients[4] = {"lui", "lui", "leur", "leur"};

/* "when" does not join clauses in the future, since English uses the present after it. */
const lexicon_conjunction lexicon_conjunctions[LEXICON_CONJUNCTIONS] = {
    {"because", {"parce", "que"}, IN_PAST | IN_PRESENT | IN_FUTURE},
    {"and", {"et"}, IN_PAST | IN_PRESENT | IN_FUTURE},
    {"but", {"mais"}, IN_PAST | IN_PRESENT | IN_FUTURE},
    {"when", {"quand"}, IN_PAST | IN_PRESENT},
};

const char *const lexicon_question_words[QUESTION_COUNT][2] = {
    [QUESTION_WHO] = {"who", "qui"},
    [QUESTION_WHERE] = {"where", "où"},
    [QUESTION_WHEN] = {"when", "quand"},
    [QUESTION_WHY] = {"why", "pourquoi"},
};

const char *const lexicon_numbers[NUMBER_LAST + 1][2] = {
    [2] = {"two", "deux"},   [3] = {"three", "trois"}, [4] = {"four", "quatre"},
    [5] = {"five", "cinq"},  [6] = {"six", "six"},     [7] = {"seven", "sept"},
    [8] = {"eight", "huit"}, [9] = {"nine", "neuf"},   [10] = {"ten", "dix"},
};

/* Words with an aspirated h, which prevents elision. */
static bool has_aspirated_h(const char *word)
{
    static const char *const stems[] = {"hache", "haricot", "hérisson", "héros", "hibou", "huit"};
    for (size_t n = 0; n < sizeof stems / sizeof stems[0]; n++)
        if (strncmp(word, stems[n], strlen(stems[n])) == 0)
            return true;
    return false;
}

bool lexicon_begins_with_vowel(const char *french)
{
    static const char *const accented[] = {"â", "é", "è", "ê", "î", "ô", "œ"};
    if (french[0] == 'h')
        return !has_aspirated_h(french);
    for (size_t n = 0; n < sizeof accented / sizeof accented[0]; n++)
        if (strncmp(french, accented[n], strlen(accented[n])) == 0)
            return true;
    return french[0] != '\0' && strchr("aeiou", french[0]) != NULL;
}
