/* SPDX-License-Identifier: MIT */
/*
 * Writes the French side of a pair: agreement, position of adjectives, tenses, negation, pronouns.
 * Every token is written with the set of English tokens that it translates, whose positions
 * corpus_english.c has recorded. Elision and contraction are done later in corpus_build.c; here a
 * token only gets its elided form in addition.
 */
#include "corpus/corpus_build.h"

#include <string.h>

/* Sets of English positions; the position -1 of a missing part gives the empty set. */
static uint64_t bit(int position)
{
    return position < 0 ? 0 : UINT64_C(1) << position;
}

static uint64_t bits(int first, int count)
{
    uint64_t set = 0;
    for (int n = 0; n < count; n++)
        set |= bit(first + n);
    return set;
}

static int put_token(corpus_builder *b, french_token token)
{
    if (b->french_count == CORPUS_TOKENS_MAX) {
        b->full = true;
        return -1;
    }
    b->french[b->french_count] = token;
    return b->french_count++;
}

static int put(corpus_builder *b, const char *text, uint64_t sources)
{
    return put_token(b, (french_token){.text = text, .sources = sources});
}

/* A word with another form before a vowel. */
static int put_elided(corpus_builder *b, const char *text, const char *elided, uint64_t sources)
{
    return put_token(b, (french_token){.text = text, .before_vowel = elided, .sources = sources});
}

static int put_de(corpus_builder *b, uint64_t sources)
{
    return put_elided(b, "de", "d'", sources);
}

static int put_que(corpus_builder *b, uint64_t sources)
{
    return put_elided(b, "que", "qu'", sources);
}

static void write_clause(corpus_builder *b, int index);

/* ------------------------------------------------------------- phrases ----- */

static bool stands_before(const lexicon_adjective *adjective)
{
    return adjective->rank == RANK_OPINION || adjective->rank == RANK_SIZE;
}

/* The context of a noun phrase, which can change its article. */
typedef enum phrase_context {
    AFTER_NOTHING,
    AFTER_NEGATION, /* a direct object: un, une, des become de */
    AFTER_DE        /* des disappears after the preposition de */
} phrase_context;

/* Whether un, une or des becomes de: after a negation, and in the plural before an adjective. */
static bool takes_de(const corpus_phrase *phrase, phrase_context context)
{
    if (phrase->determiner != DETERMINER_A)
        return false;
    if (context == AFTER_NEGATION)
        return true;
    bool before = false;
    for (int n = 0; n < 2; n++)
        before |= phrase->adjectives[n] != NULL && stands_before(phrase->adjectives[n]);
    return phrase->plural && before;
}

static int write_listed_determiner(corpus_builder *b, const corpus_phrase *phrase, uint64_t source)
{
    const lexicon_determiner *d = &lexicon_determiners[phrase->determiner];
    const bool feminine = phrase->noun->feminine;
    const french_token token = {
        .text = d->french[phrase->plural ? 2 : feminine],
        .before_vowel = phrase->plural ? NULL : d->before_vowel[feminine],
        .sources = source,
        .article = phrase->determiner == DETERMINER_THE && (phrase->plural || !feminine),
    };
    return put_token(b, token);
}

static int write_determiner(corpus_builder *b, const corpus_phrase *phrase, const phrase_places *at,
                            phrase_context context)
{
    const uint64_t source = bit(at->determiner[CORPUS_ENGLISH]);
    if (phrase->determiner == DETERMINER_A && phrase->plural && context == AFTER_DE) {
        b->french[b->french_count - 1].sources |= source;
        return b->french_count - 1;
    }
    if (takes_de(phrase, context))
        return put_de(b, source);
    const int position = write_listed_determiner(b, phrase, source);
    if (phrase->determiner == DETERMINER_MANY)
        put_de(b, source);
    return position;
}

static void write_adjective(corpus_builder *b, const corpus_phrase *phrase, int n,
                            phrase_places *at)
{
    const lexicon_adjective *adjective = phrase->adjectives[n];
    const int form = lexicon_form(phrase->noun->feminine, phrase->plural);
    at->adjectives[n][CORPUS_FRENCH] =
        put_elided(b, adjective->french[form], form == 0 ? adjective->before_vowel : NULL,
                   bit(at->adjectives[n][CORPUS_ENGLISH]));
}

static void write_relative(corpus_builder *b, const corpus_phrase *phrase, phrase_places *at)
{
    const corpus_clause *clause = &b->derivation->clauses[phrase->relative];
    const uint64_t source = bit(at->relative[CORPUS_ENGLISH]);
    at->relative[CORPUS_FRENCH] =
        clause->gap == GAP_SUBJECT ? put(b, "qui", source) : put_que(b, source);
    write_clause(b, phrase->relative);
}

/* Adjectives that follow the noun are in the opposite order of English. */
static void write_noun_phrase(corpus_builder *b, const corpus_phrase *phrase, phrase_places *at,
                              phrase_context context)
{
    if (phrase->determiner != DETERMINER_NONE)
        at->determiner[CORPUS_FRENCH] = write_determiner(b, phrase, at, context);
    if (phrase->number != 0) {
        const int number = put(b, lexicon_numbers[phrase->number][CORPUS_FRENCH], bit(at->number));
        if (phrase->determiner == DETERMINER_NONE)
            at->determiner[CORPUS_FRENCH] = number;
    }
    for (int n = 0; n < 2; n++)
        if (phrase->adjectives[n] != NULL && stands_before(phrase->adjectives[n]))
            write_adjective(b, phrase, n, at);
    at->head[CORPUS_FRENCH] =
        put(b, phrase->noun->french[phrase->plural], bit(at->head[CORPUS_ENGLISH]));
    for (int n = 1; n >= 0; n--)
        if (phrase->adjectives[n] != NULL && !stands_before(phrase->adjectives[n]))
            write_adjective(b, phrase, n, at);
    if (phrase->relative != 0)
        write_relative(b, phrase, at);
}

static void write_subject(corpus_builder *b, const corpus_phrase *phrase, phrase_places *at)
{
    if (phrase->pronoun == PRONOUN_NONE) {
        write_noun_phrase(b, phrase, at, AFTER_NOTHING);
        return;
    }
    const corpus_agreement a = corpus_agreement_of(b->derivation, phrase);
    const char *speaker = lexicon_french_speakers[a.person];
    const char *word =
        speaker != NULL ? speaker : lexicon_french_subjects[lexicon_form(a.feminine, a.plural)];
    at->head[CORPUS_FRENCH] =
        put_elided(b, word, a.person == PERSON_I ? "j'" : NULL, bit(at->head[CORPUS_ENGLISH]));
}

/* --------------------------------------------------------------- verbs ----- */

static bool says_never(const corpus_clause *clause)
{
    return clause->often != NULL && clause->often->kind == ADVERB_NEVER;
}

/* A pronoun before the verb: me, te, nous; le, la, les; or lui, leur if it is `dative`. */
static int put_clitic(corpus_builder *b, const corpus_phrase *phrase, bool dative, uint64_t sources)
{
    const corpus_agreement a = corpus_agreement_of(b->derivation, phrase);
    const int form = lexicon_form(a.feminine, a.plural);
    if (corpus_is_speaker(phrase->pronoun))
        return put_elided(b, lexicon_reflexive[a.person], lexicon_reflexive_vowel[a.person],
                          sources);
    if (dative)
        return put(b, lexicon_french_recipients[form], sources);
    return put_elided(b, lexicon_french_objects[form], a.plural ? NULL : "l'", sources);
}

static void write_object_pronoun(corpus_builder *b, const corpus_clause *clause, clause_places *at)
{
    const bool dative = clause->verb->frame == FRAME_TO;
    const uint64_t sources =
        bit(at->object.head[CORPUS_ENGLISH]) | (dative ? bit(at->particle) : 0);
    at->object.head[CORPUS_FRENCH] = put_clitic(b, &clause->object, dative, sources);
}

static void write_recipient_pronoun(corpus_builder *b, const corpus_clause *clause,
                                    clause_places *at)
{
    const uint64_t sources = bit(at->recipient.head[CORPUS_ENGLISH]) | bit(at->to);
    at->recipient.head[CORPUS_FRENCH] = put_clitic(b, &clause->recipient, true, sources);
}

/* Reflexive and object pronouns, which are before the verb in French: me le, te les, but le lui. */
static void write_pronouns_before_verb(corpus_builder *b, const corpus_clause *clause,
                                       clause_places *at, lexicon_person person)
{
    const bool has_object = clause->object.pronoun != PRONOUN_NONE;
    const bool has_recipient = clause->recipient.pronoun != PRONOUN_NONE;
    const bool first = has_recipient && corpus_is_speaker(clause->recipient.pronoun);
    if (clause->verb != NULL && clause->verb->auxiliary == REFLEXIVE)
        put_elided(b, lexicon_reflexive[person], lexicon_reflexive_vowel[person],
                   bit(at->main[CORPUS_ENGLISH]));
    if (first)
        write_recipient_pronoun(b, clause, at);
    if (has_object)
        write_object_pronoun(b, clause, at);
    if (has_recipient && !first)
        write_recipient_pronoun(b, clause, at);
}

static const char *simple_form(const corpus_clause *clause, lexicon_person person)
{
    const lexicon_verb *verb = clause->verb;
    switch (clause->tense) {
    case TENSE_PAST:
        return verb == NULL ? lexicon_be.imperfect[person] : verb->imperfect[person];
    case TENSE_FUTURE:
        return verb == NULL ? lexicon_be.future[person] : verb->future[person];
    default:
        return verb == NULL ? lexicon_be.present[person] : verb->present[person];
    }
}

/* The past of events is the passé composé; that of states, of the progressive and of "to be" is the
 * imperfect. */
static bool is_compound(const corpus_clause *clause)
{
    return clause->tense == TENSE_PAST && clause->verb != NULL && !clause->progressive &&
           !lexicon_is_state(clause->verb);
}

/* Whether the object follows à or de. */
static bool has_preposition(const lexicon_verb *verb)
{
    return verb->frame == FRAME_TO || verb->frame == FRAME_A || verb->frame == FRAME_DE;
}

/* The English positions of a verb. A particle belongs to it, unless it becomes a preposition in
 * French. */
static uint64_t verb_sources(const corpus_clause *clause, const clause_places *at)
{
    uint64_t set = bit(at->main[CORPUS_ENGLISH]);
    if (clause->verb != NULL && !has_preposition(clause->verb))
        set |= bit(at->particle);
    return set;
}

/* The verb itself, or in the passé composé its auxiliary. */
static void write_finite(corpus_builder *b, const corpus_clause *clause, clause_places *at,
                         lexicon_person person)
{
    const uint64_t auxiliary = bit(at->auxiliary);
    if (!is_compound(clause)) {
        at->main[CORPUS_FRENCH] =
            put(b, simple_form(clause, person), verb_sources(clause, at) | auxiliary);
        return;
    }
    const char *word =
        clause->verb->auxiliary == WITH_AVOIR ? lexicon_avoir[person] : lexicon_be.present[person];
    put(b, word, auxiliary != 0 ? auxiliary : bit(at->main[CORPUS_ENGLISH]));
}

/* With être the participle agrees with the subject. With avoir it agrees with an object that
 * precedes it: a pronoun, or the noun of a relative clause. */
static void write_participle(corpus_builder *b, int index, corpus_agreement subject)
{
    const corpus_clause *clause = &b->derivation->clauses[index];
    corpus_agreement a = {.feminine = false};
    if (clause->verb->auxiliary != WITH_AVOIR)
        a = subject;
    else if (clause->gap == GAP_OBJECT ||
             (clause->object.pronoun != PRONOUN_NONE && !has_preposition(clause->verb)))
        a = corpus_agreement_of(b->derivation, corpus_object(b->derivation, index));
    const char *word = clause->verb->participle[lexicon_form(a.feminine, a.plural)];
    b->places[index].main[CORPUS_FRENCH] = put(b, word, verb_sources(clause, &b->places[index]));
}

/* In this order: ne, pronouns, finite verb, pas, adverb of frequency, participle. */
static void write_verb(corpus_builder *b, int index, corpus_agreement subject)
{
    const corpus_clause *clause = &b->derivation->clauses[index];
    clause_places *at = &b->places[index];
    const bool never = says_never(clause);
    if (clause->negative || never)
        put_elided(b, "ne", "n'", bit(never ? at->often : at->negation));
    write_pronouns_before_verb(b, clause, at, subject.person);
    write_finite(b, clause, at, subject.person);
    if (clause->negative)
        put(b, "pas", bit(at->negation));
    if (clause->often != NULL)
        put(b, clause->often->french, bit(at->often));
    if (is_compound(clause))
        write_participle(b, index, subject);
}

/* --------------------------------------------------------------- rest ------ */

static void write_object(corpus_builder *b, const corpus_clause *clause, clause_places *at)
{
    if (clause->object.noun == NULL)
        return;
    phrase_context context = AFTER_NOTHING;
    if (clause->verb->frame == FRAME_A || clause->verb->frame == FRAME_TO) {
        put(b, "à", bit(at->particle));
    } else if (clause->verb->frame == FRAME_DE) {
        put_de(b, bit(at->particle));
        context = AFTER_DE;
    } else if (clause->negative || says_never(clause)) {
        context = AFTER_NEGATION;
    }
    write_noun_phrase(b, &clause->object, &at->object, context);
}

static void write_place(corpus_builder *b, const corpus_clause *clause, clause_places *at)
{
    const lexicon_preposition *preposition = clause->preposition;
    if (preposition == NULL)
        return;
    int words = 0;
    while (words < 3 && preposition->english[words] != NULL)
        words++;
    const uint64_t sources = bits(at->preposition, words);
    phrase_context context = AFTER_NOTHING;
    for (int n = 0; n < 3 && preposition->french[n] != NULL; n++) {
        if (strcmp(preposition->french[n], "de") != 0) {
            put(b, preposition->french[n], sources);
            continue;
        }
        put_de(b, sources);
        context = AFTER_DE;
    }
    write_noun_phrase(b, &clause->place, &at->place, context);
}

static void write_after_verb(corpus_builder *b, int index, corpus_agreement subject)
{
    const corpus_clause *clause = &b->derivation->clauses[index];
    clause_places *at = &b->places[index];
    if (clause->predicate != NULL)
        at->predicate[CORPUS_FRENCH] =
            put(b, clause->predicate->french[lexicon_form(subject.feminine, subject.plural)],
                bit(at->predicate[CORPUS_ENGLISH]));
    write_object(b, clause, at);
    if (clause->recipient.noun != NULL) {
        /* Without "to" it is the place of the recipient that says à. */
        put(b, "à", bit(clause->shifted ? at->recipient.head[CORPUS_ENGLISH] : at->to));
        write_noun_phrase(b, &clause->recipient, &at->recipient, AFTER_NOTHING);
    }
    if (clause->how != NULL)
        put(b, clause->how->french, bit(at->how));
    write_place(b, clause, at);
    if (clause->when != NULL)
        put(b, clause->when->french, bit(at->when));
}

static void write_clause(corpus_builder *b, int index)
{
    const corpus_clause *clause = &b->derivation->clauses[index];
    const corpus_agreement subject =
        corpus_agreement_of(b->derivation, corpus_subject(b->derivation, index));
    if (clause->gap != GAP_SUBJECT)
        write_subject(b, &clause->subject, &b->places[index].subject);
    write_verb(b, index, subject);
    write_after_verb(b, index, subject);
}

/* "Est-ce que" stands for the English auxiliary; "qui" needs none. */
static void write_question(corpus_builder *b)
{
    const lexicon_question question = b->derivation->question;
    const char *word = lexicon_question_words[question][CORPUS_FRENCH];
    if (word != NULL)
        put(b, word, bit(b->question));
    if (question == QUESTION_WHO)
        return;
    const uint64_t auxiliary = bit(b->places[CLAUSE_MAIN].auxiliary);
    put(b, "est-ce", auxiliary);
    put_que(b, auxiliary);
}

void corpus_write_french(corpus_builder *b)
{
    const lexicon_conjunction *conjunction = b->derivation->conjunction;
    if (b->derivation->question != QUESTION_NONE)
        write_question(b);
    write_clause(b, CLAUSE_MAIN);
    if (conjunction != NULL) {
        put(b, conjunction->french[0], bit(b->conjunction));
        if (conjunction->french[1] != NULL)
            put_que(b, bit(b->conjunction));
        write_clause(b, CLAUSE_SECOND);
    }
    if (b->derivation->question != QUESTION_NONE)
        put(b, "?", bit(b->mark));
}
