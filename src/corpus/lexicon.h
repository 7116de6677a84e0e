/* SPDX-License-Identifier: MIT */
/*
 * The words of the corpus in English and French, with the features that the grammar needs. All
 * tables are constant. Together with a few function words in lexicon_forms.c they contain every
 * word form of both languages.
 *
 *      lexicon_nouns.c   lexicon_verbs.c   lexicon_words.c (adjectives and all other words)
 */
#ifndef CORPUS_LEXICON_H
#define CORPUS_LEXICON_H

#include <stdbool.h>
#include <stddef.h>

/* Kinds of nouns. They decide which adjectives, verbs and prepositions go with a noun. */
enum {
    KIND_PERSON = 1 << 0,
    KIND_ANIMAL = 1 << 1,
    KIND_FOOD = 1 << 2,
    KIND_OBJECT = 1 << 3,
    KIND_TEXT = 1 << 4,
    KIND_VEHICLE = 1 << 5,
    KIND_PLACE = 1 << 6,
    KIND_NATURE = 1 << 7,
    KIND_INSIDE = 1 << 8,   /* goes with "in" */
    KIND_SURFACE = 1 << 9,  /* goes with "on" */
    KIND_SHELTER = 1 << 10, /* goes with "under" */
    KIND_OPENS = 1 << 11,   /* can be opened */
    KIND_WRITTEN = 1 << 12, /* can be written */
    KIND_ANY = (1 << 13) - 1
};

/* The index of a French form by gender and number: masculine, feminine, and both in the plural. */
static inline int lexicon_form(bool feminine, bool plural)
{
    return (plural ? 2 : 0) + (feminine ? 1 : 0);
}

typedef struct lexicon_noun {
    const char *english[2], *french[2]; /* singular, plural */
    bool feminine;                      /* in French; for persons in English too */
    unsigned kinds;
} lexicon_noun;

/* English adjectives are in the order of their ranks, at most one of each rank. In French the first
 * two ranks precede the noun; the others follow it in the opposite order. */
typedef enum lexicon_rank { RANK_OPINION, RANK_SIZE, RANK_QUALITY, RANK_COLOUR } lexicon_rank;

typedef struct lexicon_adjective {
    const char *english;
    const char *french[4];    /* by lexicon_form() */
    const char *before_vowel; /* masculine singular if it differs (bel, vieil), or NULL */
    lexicon_rank rank;
    unsigned kinds; /* the kinds of nouns it goes with */
} lexicon_adjective;

typedef enum lexicon_person {
    PERSON_I,
    PERSON_YOU,
    PERSON_IT,
    PERSON_WE,
    PERSON_THEY,
    PERSON_COUNT
} lexicon_person;

typedef enum lexicon_auxiliary { WITH_AVOIR, WITH_ETRE, REFLEXIVE } lexicon_auxiliary;

typedef enum lexicon_frame {
    FRAME_ALONE,  /* no object */
    FRAME_DIRECT, /* a direct object */
    FRAME_TO,     /* a person after to, in French à; as a pronoun it precedes the verb: lui */
    FRAME_A,      /* an object after a preposition, in French à */
    FRAME_DE,     /* the same with de */
    FRAME_GIVE    /* a direct object, and a person after to or before it, in French à */
} lexicon_frame;

/* The forms of an English verb. Those that are not used in the progressive have no VERB_ING. */
typedef enum lexicon_verb_form {
    VERB_BASE,
    VERB_THIRD_PERSON,
    VERB_PAST,
    VERB_ING,
    VERB_FORMS
} lexicon_verb_form;

typedef struct lexicon_verb {
    const char *name;                /* base and particle, so that "run" and "run away" differ */
    const char *english[VERB_FORMS]; /* by lexicon_verb_form */
    const char *particle;            /* as in run away, look at; or its preposition; or NULL */
    const char *present[PERSON_COUNT], *future[PERSON_COUNT];
    const char *imperfect[PERSON_COUNT]; /* the past of states and of the progressive, or NULL */
    const char *participle[4]; /* the past of events, by lexicon_form(); NULL for states */
    lexicon_auxiliary auxiliary;
    lexicon_frame frame;
    unsigned subjects, objects; /* kinds of nouns */
} lexicon_verb;

/* Whether a verb is a state (love, know), whose past is the imperfect, or an event. */
static inline bool lexicon_is_state(const lexicon_verb *verb)
{
    return verb->participle[0] == NULL;
}

/* "is", "are", ... in English; être in French. */
typedef struct lexicon_copula {
    const char *english_present[PERSON_COUNT], *english_past[PERSON_COUNT];
    const char *present[PERSON_COUNT], *imperfect[PERSON_COUNT], *future[PERSON_COUNT];
} lexicon_copula;

typedef enum lexicon_adverb_kind {
    ADVERB_OFTEN,
    ADVERB_SOMETIMES, /* in the position of "often", but not after "not" */
    ADVERB_NEVER,
    ADVERB_HOW,
    ADVERB_WHEN
} lexicon_adverb_kind;

enum { IN_PAST = 1, IN_PRESENT = 2, IN_FUTURE = 4 };

typedef struct lexicon_adverb {
    const char *english, *french;
    lexicon_adverb_kind kind;
    unsigned tenses; /* the tenses it goes with */
} lexicon_adverb;

/* Up to three words per language. A French one that ends in "de" contracts with the article. */
typedef struct lexicon_preposition {
    const char *english[3], *french[3];
    unsigned kinds;
} lexicon_preposition;

typedef enum lexicon_determiner_id {
    DETERMINER_NONE, /* a number alone */
    DETERMINER_THE,
    DETERMINER_A, /* plural: some */
    DETERMINER_THIS,
    DETERMINER_MY,
    DETERMINER_YOUR,
    DETERMINER_HIS,
    DETERMINER_HER,
    DETERMINER_OUR,
    DETERMINER_THEIR,
    DETERMINER_EVERY, /* singular only */
    DETERMINER_MANY,  /* plural only */
    DETERMINER_COUNT
} lexicon_determiner_id;

typedef struct lexicon_determiner {
    const char *english[2];      /* singular, plural; NULL if there is none */
    const char *french[3];       /* masculine, feminine, plural */
    const char *before_vowel[2]; /* masculine, feminine, if they differ; or NULL */
} lexicon_determiner;

typedef enum lexicon_pronoun_id {
    PRONOUN_NONE,
    PRONOUN_I,
    PRONOUN_YOU,
    PRONOUN_WE,
    PRONOUN_HE,
    PRONOUN_SHE,
    PRONOUN_IT,
    PRONOUN_THEY,
    PRONOUN_COUNT
} lexicon_pronoun_id;

/* French pronouns of the third person depend on the gender of the noun they refer to; they are in
 * lexicon_french_subjects, lexicon_french_objects and lexicon_french_recipients. */
typedef struct lexicon_pronoun {
    const char *subject, *object; /* English */
    lexicon_person person;
} lexicon_pronoun;

typedef struct lexicon_conjunction {
    const char *english;
    const char *french[2];
    unsigned tenses; /* the tenses of the clauses it joins */
} lexicon_conjunction;

typedef enum lexicon_question {
    QUESTION_NONE,
    QUESTION_WHETHER, /* yes or no */
    QUESTION_WHO,     /* asks for the subject */
    QUESTION_WHERE,
    QUESTION_WHEN,
    QUESTION_WHY,
    QUESTION_COUNT
} lexicon_question;

enum {
    NUMBER_FIRST = 2,
    NUMBER_LAST = 10,
    LEXICON_PREPOSITIONS = 7,
    LEXICON_CONJUNCTIONS = 4,
};

extern const lexicon_noun lexicon_nouns[];
extern const int lexicon_noun_count;
extern const lexicon_adjective lexicon_adjectives[];
extern const int lexicon_adjective_count;
extern const lexicon_verb lexicon_verbs[];
extern const int lexicon_verb_count;
extern const lexicon_adverb lexicon_adverbs[];
extern const int lexicon_adverb_count;

extern const lexicon_copula lexicon_be;
/* The present of avoir, the auxiliary of the past tense; also the verb "have" of the table. */
extern const char *const lexicon_avoir[PERSON_COUNT];
/* me te se nous se, and m' t' s' before a vowel. Me, te and nous are also objects. */
extern const char *const lexicon_reflexive[PERSON_COUNT];
extern const char *const lexicon_reflexive_vowel[PERSON_COUNT];
/* je tu nous, and by form il elle ils elles; le la les les; lui lui leur leur. */
extern const char *const lexicon_french_speakers[PERSON_COUNT];
extern const char *const lexicon_french_recipients[4];
extern const char *const lexicon_french_subjects[4], *const lexicon_french_objects[4];

extern const lexicon_preposition lexicon_prepositions[LEXICON_PREPOSITIONS];
extern const lexicon_determiner lexicon_determiners[DETERMINER_COUNT];
extern const lexicon_pronoun lexicon_pronouns[PRONOUN_COUNT];
extern const lexicon_conjunction lexicon_conjunctions[LEXICON_CONJUNCTIONS];
/* Of who, where, when and why: English, French. */
extern const char *const lexicon_question_words[QUESTION_COUNT][2];
/* From two to ten: English, French. */
extern const char *const lexicon_numbers[NUMBER_LAST + 1][2];

/* Whether a word begins with a vowel or a silent h, so that the word before it is elided. */
bool lexicon_begins_with_vowel(const char *french);

/* Calls visit() with every word of English (0) or French (1), some of them more than once. */
void lexicon_each_word(int language, void (*visit)(void *context, const char *word), void *context);

#endif
