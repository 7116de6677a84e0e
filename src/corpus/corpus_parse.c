/* SPDX-License-Identifier: MIT */
/*
 * Parses English text into a derivation by recursive descent. The parser is lenient about word
 * forms ("the cat sleep"); afterwards the sentence is built again from the derivation, and every
 * token must be the same. So agreement need not be checked here, and messages can name the right
 * form.
 *
 * The functions read_*() advance past what they recognise and return false if a required part is
 * missing.
 */
#include <stdio.h>
#include <string.h>

#include "corpus/corpus.h"

typedef struct reader {
    const corpus_sentence *sentence;
    int at, end;
    corpus_derivation *derivation;
} reader;

static const char *peek(const reader *r)
{
    return r->at < r->end ? r->sentence->tokens[r->at] : "";
}

static bool accept(reader *r, const char *word)
{
    if (word == NULL || strcmp(peek(r), word) != 0)
        return false;
    r->at++;
    return true;
}

static bool read_clause(reader *r, int index);
static bool read_verb_phrase(reader *r, int index);

/* ------------------------------------------------------------- phrases ----- */

static bool read_number(reader *r, corpus_phrase *phrase)
{
    for (int n = NUMBER_FIRST; n <= NUMBER_LAST; n++)
        if (accept(r, lexicon_numbers[n][CORPUS_ENGLISH])) {
            phrase->number = n;
            return true;
        }
    return false;
}

static bool read_determiner(reader *r, corpus_phrase *phrase)
{
    if (accept(r, "an") || accept(r, "any")) {
        phrase->determiner = DETERMINER_A;
        return true;
    }
    for (int n = DETERMINER_THE; n < DETERMINER_COUNT; n++)
        if (accept(r, lexicon_determiners[n].english[0]) ||
            accept(r, lexicon_determiners[n].english[1])) {
            phrase->determiner = (lexicon_determiner_id)n;
            return true;
        }
    return false;
}

static const lexicon_adjective *read_adjective(reader *r)
{
    for (int n = 0; n < lexicon_adjective_count; n++)
        if (accept(r, lexicon_adjectives[n].english))
            return &lexicon_adjectives[n];
    return NULL;
}

static bool read_noun(reader *r, corpus_phrase *phrase)
{
    for (int n = 0; n < lexicon_noun_count; n++)
        for (int plural = 0; plural < 2; plural++)
            if (accept(r, lexicon_nouns[n].english[plural])) {
                phrase->noun = &lexicon_nouns[n];
                phrase->plural = plural == 1;
                return true;
            }
    return false;
}

/* Whether a subject follows, which decides what a relative clause leaves out. */
static bool begins_subject(const reader *r)
{
    reader ahead = *r;
    corpus_phrase phrase;
    if (read_determiner(&ahead, &phrase) || read_number(&ahead, &phrase))
        return true;
    for (int n = PRONOUN_I; n < PRONOUN_COUNT; n++)
        if (strcmp(peek(r), lexicon_pronouns[n].subject) == 0)
            return true;
    return false;
}

static bool read_relative(reader *r, corpus_phrase *phrase)
{
    if (!accept(r, "that") && !accept(r, "who"))
        return true;
    const int index = CLAUSE_RELATIVE + r->derivation->relatives;
    if (index == CORPUS_CLAUSES_MAX)
        return false;
    r->derivation->relatives++;
    phrase->relative = index;
    corpus_clause *clause = &r->derivation->clauses[index];
    clause->gap = begins_subject(r) ? GAP_OBJECT : GAP_SUBJECT;
    return clause->gap == GAP_OBJECT ? read_clause(r, index) : read_verb_phrase(r, index);
}

/* Refuses "two cat", "many cat" and "every cats". */
static bool is_countable(const corpus_phrase *phrase)
{
    if (phrase->number != 0 && !phrase->plural)
        return false;
    return phrase->determiner == DETERMINER_NONE ||
           lexicon_determiners[phrase->determiner].english[phrase->plural] != NULL;
}

static bool read_noun_phrase(reader *r, corpus_phrase *phrase)
{
    const bool determined = read_determiner(r, phrase);
    const bool counted = read_number(r, phrase);
    if (!determined && !counted)
        return false;
    for (int n = 0; n < 2; n++)
        phrase->adjectives[n] = read_adjective(r);
    return read_noun(r, phrase) && is_countable(phrase) && read_relative(r, phrase);
}

static bool read_subject(reader *r, corpus_phrase *phrase)
{
    for (int n = PRONOUN_I; n < PRONOUN_COUNT; n++)
        if (accept(r, lexicon_pronouns[n].subject)) {
            phrase->pronoun = (lexicon_pronoun_id)n;
            return true;
        }
    return read_noun_phrase(r, phrase);
}

static bool read_object_pronoun(reader *r, corpus_phrase *phrase)
{
    for (int n = PRONOUN_I; n < PRONOUN_COUNT; n++)
        if (accept(r, lexicon_pronouns[n].object)) {
            phrase->pronoun = (lexicon_pronoun_id)n;
            return true;
        }
    return false;
}

/* A place to which the parser can return, with everything that was known there. */
typedef struct bookmark {
    reader at;
    corpus_derivation derivation;
} bookmark;

static bookmark mark(const reader *r)
{
    return (bookmark){*r, *r->derivation};
}

static void go_back(reader *r, const bookmark *start)
{
    *r = start->at;
    *r->derivation = start->derivation;
}

/* "her" may be a determiner or a pronoun: it is a pronoun if no noun phrase can be read. The error
 * is reported where the noun phrase ended. */
static bool read_object(reader *r, corpus_phrase *phrase)
{
    const bookmark start = mark(r);
    if (read_noun_phrase(r, phrase))
        return true;
    const int reached = r->at;
    go_back(r, &start);
    if (read_object_pronoun(r, phrase))
        return true;
    r->at = reached;
    return false;
}

/* --------------------------------------------------------------- verbs ----- */

static const lexicon_adverb *read_adverb(reader *r, lexicon_adverb_kind kind)
{
    for (int n = 0; n < lexicon_adverb_count; n++)
        if (lexicon_adverbs[n].kind == kind && accept(r, lexicon_adverbs[n].english))
            return &lexicon_adverbs[n];
    return NULL;
}

/* Accepts all words of a list of `count`, which NULL may end early, or none of them. */
static bool accept_all(reader *r, const char *const *words, int count)
{
    const int start = r->at;
    for (int n = 0; n < count && words[n] != NULL; n++)
        if (!accept(r, words[n])) {
            r->at = start;
            return false;
        }
    return true;
}

/* A verb in one of the forms [first, last]. Verbs with a particle are tried first: "ran away" is
 * not "ran". */
static bool read_main_verb(reader *r, corpus_clause *clause, lexicon_verb_form first,
                           lexicon_verb_form last)
{
    for (int pass = 0; pass < 2; pass++)
        for (int n = 0; n < lexicon_verb_count; n++)
            for (int form = (int)first; form <= (int)last; form++) {
                const lexicon_verb *verb = &lexicon_verbs[n];
                const char *const words[] = {verb->english[form], verb->particle};
                if ((verb->particle == NULL) != (pass == 1) || words[0] == NULL ||
                    !accept_all(r, words, 2))
                    continue;
                clause->verb = verb;
                clause->progressive = form == VERB_ING;
                if (form == VERB_PAST)
                    clause->tense = TENSE_PAST;
                return true;
            }
    return false;
}

static bool read_person(reader *r, corpus_phrase *phrase, bool as_pronoun)
{
    if (as_pronoun)
        return read_object_pronoun(r, phrase);
    return read_noun_phrase(r, phrase) && (phrase->noun->kinds & KIND_PERSON) != 0;
}

/* One way to read what follows "give": the first object a pronoun or not, and either "a book to the
 * boy" or "the boy a book". A relative clause may have left out the book. */
static bool read_given(reader *r, corpus_clause *clause, bool shifted, bool as_pronoun)
{
    const bool gap = clause->gap == GAP_OBJECT;
    clause->shifted = shifted;
    if (shifted)
        return read_person(r, &clause->recipient, as_pronoun) &&
               (gap || read_noun_phrase(r, &clause->object));
    if (!gap && !(as_pronoun ? read_object_pronoun(r, &clause->object)
                             : read_noun_phrase(r, &clause->object)))
        return false;
    return accept(r, "to") && read_object(r, &clause->recipient);
}

/* All ways are tried: "her two books" may be one object or two. The error is reported where the
 * longest of them ended. */
static bool read_give(reader *r, corpus_clause *clause)
{
    const bookmark start = mark(r);
    int reached = r->at;
    for (int way = 0; way < 4; way++) {
        if (read_given(r, clause, way >= 2, way % 2 == 1))
            return true;
        reached = r->at > reached ? r->at : reached;
        go_back(r, &start);
    }
    r->at = reached;
    return false;
}

static bool read_objects(reader *r, corpus_clause *clause)
{
    switch (clause->verb->frame) {
    case FRAME_ALONE:
        return clause->gap != GAP_OBJECT;
    case FRAME_DIRECT:
        return clause->gap == GAP_OBJECT || read_object(r, &clause->object);
    case FRAME_TO:
        return clause->gap != GAP_OBJECT && read_object(r, &clause->object);
    case FRAME_GIVE:
        return read_give(r, clause);
    default:
        return clause->gap != GAP_OBJECT && read_noun_phrase(r, &clause->object);
    }
}

static bool read_place(reader *r, corpus_clause *clause)
{
    for (int n = 0; n < LEXICON_PREPOSITIONS; n++)
        if (accept_all(r, lexicon_prepositions[n].english, 3)) {
            clause->preposition = &lexicon_prepositions[n];
            return read_noun_phrase(r, &clause->place);
        }
    return true;
}

/* Whether an auxiliary was read, and whether it was a form of "to be". */
typedef struct read_auxiliary {
    bool found, copula;
} read_auxiliary;

/* Reads an auxiliary, which determines the tense. */
static read_auxiliary read_aux(reader *r, corpus_clause *clause)
{
    static const char *const plain[] = {"do", "does", "did", "will"};
    static const corpus_tense tenses[] = {TENSE_PRESENT, TENSE_PRESENT, TENSE_PAST, TENSE_FUTURE};
    for (int n = 0; n < 4; n++)
        if (accept(r, plain[n])) {
            clause->tense = tenses[n];
            return (read_auxiliary){.found = true};
        }
    for (int person = 0; person < PERSON_COUNT; person++) {
        const bool past = accept(r, lexicon_be.english_past[person]);
        if (past || accept(r, lexicon_be.english_present[person])) {
            clause->tense = past ? TENSE_PAST : TENSE_PRESENT;
            return (read_auxiliary){.found = true, .copula = true};
        }
    }
    return (read_auxiliary){.found = false};
}

static bool read_after_auxiliary(reader *r, corpus_clause *clause, read_auxiliary auxiliary)
{
    clause->negative = accept(r, "not");
    for (int kind = ADVERB_OFTEN; kind <= ADVERB_NEVER && clause->often == NULL; kind++)
        if (kind == ADVERB_OFTEN || !clause->negative)
            clause->often = read_adverb(r, (lexicon_adverb_kind)kind);
    const bool progressive = auxiliary.copula && read_main_verb(r, clause, VERB_ING, VERB_ING);
    if (!progressive && (auxiliary.copula || accept(r, "be"))) {
        clause->predicate = read_adjective(r);
        if (clause->predicate == NULL)
            return false;
    } else if (!progressive &&
               !read_main_verb(r, clause, VERB_BASE, auxiliary.found ? VERB_BASE : VERB_PAST)) {
        return false;
    }
    if (clause->verb != NULL && !read_objects(r, clause))
        return false;
    clause->how = read_adverb(r, ADVERB_HOW);
    if (!read_place(r, clause))
        return false;
    clause->when = read_adverb(r, ADVERB_WHEN);
    return true;
}

static bool read_verb_phrase(reader *r, int index)
{
    corpus_clause *clause = &r->derivation->clauses[index];
    const read_auxiliary auxiliary = read_aux(r, clause);
    return read_after_auxiliary(r, clause, auxiliary);
}

static bool read_clause(reader *r, int index)
{
    return read_subject(r, &r->derivation->clauses[index].subject) && read_verb_phrase(r, index);
}

/* ----------------------------------------------------------- sentences ----- */

static bool read_question(reader *r)
{
    corpus_derivation *d = r->derivation;
    corpus_clause *clause = &d->clauses[CLAUSE_MAIN];
    d->question = QUESTION_WHETHER;
    for (int n = QUESTION_WHO; n < QUESTION_COUNT; n++)
        if (accept(r, lexicon_question_words[n][CORPUS_ENGLISH]))
            d->question = (lexicon_question)n;
    if (d->question == QUESTION_WHO) {
        clause->gap = GAP_SUBJECT;
        return read_verb_phrase(r, CLAUSE_MAIN);
    }
    const read_auxiliary auxiliary = read_aux(r, clause);
    return auxiliary.found && read_subject(r, &clause->subject) &&
           read_after_auxiliary(r, clause, auxiliary);
}

static bool read_sentence(reader *r)
{
    if (r->end > 0 && strcmp(r->sentence->tokens[r->end - 1], "?") == 0) {
        r->end--;
        return read_question(r);
    }
    if (!read_clause(r, CLAUSE_MAIN))
        return false;
    for (int n = 0; n < LEXICON_CONJUNCTIONS; n++)
        if (accept(r, lexicon_conjunctions[n].english)) {
            r->derivation->conjunction = &lexicon_conjunctions[n];
            return read_clause(r, CLAUSE_SECOND);
        }
    return true;
}

static bool refuse(char message[CORPUS_MESSAGE_MAX], const char *text, const char *word)
{
    snprintf(message, CORPUS_MESSAGE_MAX, "%s%s%.40s%s", text, *word ? " \"" : "", word,
             *word ? "\"" : "");
    return false;
}

/* Checks that the sentence built from the derivation is the one that was read. */
static bool compare(const corpus_sentence *read, const corpus_sentence *built,
                    char message[CORPUS_MESSAGE_MAX])
{
    for (int n = 0; n < read->count && n < built->count; n++)
        if (strcmp(read->tokens[n], built->tokens[n]) != 0) {
            snprintf(message, CORPUS_MESSAGE_MAX, "\"%.40s\" should be \"%.40s\"", read->tokens[n],
                     built->tokens[n]);
            return false;
        }
    return read->count == built->count || refuse(message, "words are missing or too many", "");
}

bool corpus_translate(const char *english, corpus_pair *pair, corpus_derivation *derivation,
                      char message[CORPUS_MESSAGE_MAX])
{
    char buffer[CORPUS_TEXT_MAX];
    corpus_sentence sentence;
    corpus_derivation own = {.relatives = 0};
    corpus_derivation *d = derivation == NULL ? &own : derivation;
    *d = (corpus_derivation){.relatives = 0};
    message[0] = '\0';
    if (!corpus_tokenise(CORPUS_ENGLISH, english, buffer, &sentence))
        return refuse(message, "the sentence is too long", "");
    reader r = {.sentence = &sentence, .end = sentence.count, .derivation = d};
    if (!read_sentence(&r) || r.at != r.end)
        return refuse(message, r.at < r.end ? "unexpected word" : "the sentence is incomplete",
                      peek(&r));
    const char *const fault = corpus_fault(d);
    if (fault != NULL || !corpus_build(d, pair))
        return refuse(message, fault != NULL ? fault : "the sentence is too long", "");
    return compare(&sentence, &pair->side[CORPUS_ENGLISH], message);
}
