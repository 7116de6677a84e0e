/* SPDX-License-Identifier: MIT */
/*
 * Makes random derivations. Words are combined by kind (a lake cannot be eaten), and only sentences
 * with one reading are made: no adverb follows a relative clause, and a pronoun can refer to one
 * noun only. corpus_generate() draws derivations until one is sensible and of the right split.
 *
 * The order of the random draws defines the corpus: any change here changes every sentence, and
 * with them the shipped model's training and test data.
 */
#include <stddef.h>

#include "base/rng.h"
#include "corpus/corpus.h"

/* -------------------------------------------------------------- choices ---- */

/* Chooses among the items 0..count-1 for which fits(item, wanted) holds, all equally likely.
 * Returns -1 if there is none. */
static int choose(rng *r, int count, bool (*fits)(int item, unsigned wanted), unsigned wanted)
{
    int found = 0;
    for (int n = 0; n < count; n++)
        found += fits(n, wanted);
    if (found == 0)
        return -1;
    int skip = (int)rng_below(r, found);
    for (int n = 0; n < count; n++)
        if (fits(n, wanted) && skip-- == 0)
            return n;
    return -1;
}

static bool noun_fits(int item, unsigned kinds)
{
    return (lexicon_nouns[item].kinds & kinds) != 0;
}

static const lexicon_noun *choose_noun(rng *r, unsigned kinds)
{
    return &lexicon_nouns[choose(r, lexicon_noun_count, noun_fits, kinds)];
}

static bool verb_fits(int item, unsigned subjects)
{
    return (lexicon_verbs[item].subjects & subjects) != 0;
}

static const lexicon_verb *choose_verb(rng *r, unsigned subjects)
{
    const int n = choose(r, lexicon_verb_count, verb_fits, subjects);
    return n < 0 ? NULL : &lexicon_verbs[n];
}

/* For adjectives, `wanted` is a set of kinds of nouns, shifted, and a set of ranks. */
enum { RANK_BITS = 4 };

static bool adjective_fits(int item, unsigned wanted)
{
    const lexicon_adjective *adjective = &lexicon_adjectives[item];
    return (adjective->kinds & (wanted >> RANK_BITS)) != 0 &&
           (wanted & (1u << adjective->rank)) != 0;
}

static const lexicon_adjective *choose_adjective(rng *r, unsigned kinds, unsigned ranks)
{
    const int n = choose(r, lexicon_adjective_count, adjective_fits, (kinds << RANK_BITS) | ranks);
    return n < 0 ? NULL : &lexicon_adjectives[n];
}

/* For adverbs, `wanted` is a kind of adverb, shifted, and a set of tenses. */
static bool adverb_fits(int item, unsigned wanted)
{
    const lexicon_adverb *adverb = &lexicon_adverbs[item];
    return adverb->kind == (lexicon_adverb_kind)(wanted >> 3) && (adverb->tenses & wanted & 7) != 0;
}

static unsigned tense_bit(corpus_tense tense)
{
    static const unsigned bits[] = {
        [TENSE_PRESENT] = IN_PRESENT, [TENSE_PAST] = IN_PAST, [TENSE_FUTURE] = IN_FUTURE};
    return bits[tense];
}

static const lexicon_adverb *choose_adverb(rng *r, lexicon_adverb_kind kind, corpus_tense tense)
{
    const unsigned wanted = ((unsigned)kind << 3) | tense_bit(tense);
    return &lexicon_adverbs[choose(r, lexicon_adverb_count, adverb_fits, wanted)];
}

/* -------------------------------------------------------------- phrases ---- */

static lexicon_determiner_id choose_determiner(rng *r, bool plural)
{
    static const lexicon_determiner_id owners[] = {DETERMINER_MY,  DETERMINER_YOUR,
                                                   DETERMINER_HIS, DETERMINER_HER,
                                                   DETERMINER_OUR, DETERMINER_THEIR};
    const int64_t draw = rng_below(r, 100);
    if (draw < 48)
        return DETERMINER_THE;
    if (draw < 68)
        return DETERMINER_A;
    if (draw < 76)
        return DETERMINER_THIS;
    if (draw < 94)
        return owners[rng_below(r, 6)];
    if (!plural)
        return DETERMINER_EVERY;
    return draw < 96 ? DETERMINER_MANY : DETERMINER_NONE;
}

/* Numbers are for "two cats" and "the two cats", but not for "some two cats". */
static void choose_count(rng *r, corpus_phrase *phrase)
{
    phrase->plural = rng_chance(r, 35);
    phrase->determiner = choose_determiner(r, phrase->plural);
    const bool counted = phrase->determiner == DETERMINER_NONE ||
                         (phrase->plural && phrase->determiner != DETERMINER_A &&
                          phrase->determiner != DETERMINER_MANY && rng_chance(r, 15));
    phrase->number = counted ? (int)rng_between(r, NUMBER_FIRST, NUMBER_LAST) : 0;
}

/* A second adjective has a higher rank than the first, so that the English order is right. */
static void choose_adjectives(rng *r, corpus_phrase *phrase, int percent)
{
    if (!rng_chance(r, percent))
        return;
    const unsigned kinds = phrase->noun->kinds;
    phrase->adjectives[0] = choose_adjective(r, kinds, 15);
    if (phrase->adjectives[0] == NULL || !rng_chance(r, 25))
        return;
    const unsigned later = 15u & ~((2u << phrase->adjectives[0]->rank) - 1u);
    phrase->adjectives[1] = choose_adjective(r, kinds, later);
}

static void make_phrase(rng *r, corpus_phrase *phrase, unsigned kinds, int adjective_percent)
{
    phrase->noun = choose_noun(r, kinds);
    choose_count(r, phrase);
    choose_adjectives(r, phrase, adjective_percent);
}

/* -------------------------------------------------------------- clauses ---- */

/* Pronouns for an object of these kinds: persons are I, you, we, he, she or they, things are it or
 * they. */
static lexicon_pronoun_id choose_object_pronoun(rng *r, unsigned kinds)
{
    static const lexicon_pronoun_id persons[] = {PRONOUN_I,  PRONOUN_YOU, PRONOUN_WE,
                                                 PRONOUN_HE, PRONOUN_SHE, PRONOUN_THEY};
    const bool person = (kinds & KIND_PERSON) != 0, thing = (kinds & ~(unsigned)KIND_PERSON) != 0;
    if (person && (!thing || rng_chance(r, 75)))
        return persons[rng_below(r, 6)];
    return rng_chance(r, 65) ? PRONOUN_IT : PRONOUN_THEY;
}

/* Whether an object of a verb can be a pronoun, which precedes the verb in French. */
static bool takes_pronoun(const corpus_clause *clause)
{
    return clause->verb != NULL && clause->gap != GAP_OBJECT &&
           (clause->verb->frame == FRAME_DIRECT || clause->verb->frame == FRAME_TO ||
            clause->verb->frame == FRAME_GIVE);
}

/* A pronoun cannot be the second of two objects. */
static bool may_shift(const corpus_clause *clause)
{
    return clause->verb->frame == FRAME_GIVE && clause->object.pronoun == PRONOUN_NONE;
}

static void make_objects(rng *r, corpus_clause *clause)
{
    const unsigned kinds = clause->verb->objects;
    if (takes_pronoun(clause) && rng_chance(r, clause->verb->frame == FRAME_GIVE ? 35 : 22))
        clause->object.pronoun = choose_object_pronoun(r, kinds);
    else if (clause->gap != GAP_OBJECT && clause->verb->frame != FRAME_ALONE)
        make_phrase(r, &clause->object, kinds, 35);
    if (clause->verb->frame != FRAME_GIVE)
        return;
    if (rng_chance(r, 45))
        clause->recipient.pronoun = choose_object_pronoun(r, KIND_PERSON);
    else
        make_phrase(r, &clause->recipient, KIND_PERSON, 15);
    clause->shifted = may_shift(clause) && rng_chance(r, 50);
}

static bool is_event(const corpus_clause *clause)
{
    return clause->verb != NULL && !lexicon_is_state(clause->verb);
}

static void make_place(rng *r, corpus_clause *clause)
{
    clause->preposition = &lexicon_prepositions[rng_below(r, LEXICON_PREPOSITIONS)];
    make_phrase(r, &clause->place, clause->preposition->kinds, 15);
}

/* Adds adverbs; a `rich` clause may get an adverb of manner or a place too. */
static void make_adverbs(rng *r, corpus_clause *clause, bool rich)
{
    const bool free = is_event(clause) &&
                      (clause->verb->frame == FRAME_ALONE || clause->verb->frame == FRAME_DIRECT);
    if (rich && free && rng_chance(r, 16))
        clause->how = choose_adverb(r, ADVERB_HOW, clause->tense);
    else if (rich && free && rng_chance(r, 20))
        make_place(r, clause);
    if (rng_chance(r, 22))
        clause->when = choose_adverb(r, ADVERB_WHEN, clause->tense);
}

static lexicon_adverb_kind choose_often(rng *r, bool negative, bool may_negate)
{
    if (negative)
        return ADVERB_OFTEN;
    if (may_negate && rng_chance(r, 25))
        return ADVERB_NEVER;
    return rng_chance(r, 50) ? ADVERB_OFTEN : ADVERB_SOMETIMES;
}

/* A clause about "every ..." is not negated: it would have two readings. */
static void make_polarity(rng *r, corpus_clause *clause, bool may_negate)
{
    if (clause->subject.determiner == DETERMINER_EVERY)
        may_negate = false;
    clause->negative = may_negate && rng_chance(r, 18);
    if (rng_chance(r, 14))
        clause->often =
            choose_adverb(r, choose_often(r, clause->negative, may_negate), clause->tense);
}

/* Whether a relative clause with this verb can leave out its object. */
static bool may_lack_object(const lexicon_verb *verb)
{
    return verb != NULL && (verb->frame == FRAME_DIRECT || verb->frame == FRAME_GIVE);
}

/* Chooses a verb, or "to be" with an adjective, for a subject of these kinds, and the objects. */
static void make_verb(rng *r, corpus_clause *clause, unsigned subjects)
{
    const bool state = clause->gap != GAP_OBJECT && rng_chance(r, 18);
    clause->verb = state ? NULL : choose_verb(r, subjects);
    while (clause->gap == GAP_OBJECT && !may_lack_object(clause->verb))
        clause->verb = choose_verb(r, subjects);
    if (clause->verb == NULL) {
        clause->predicate = choose_adjective(r, subjects, 15);
        return;
    }
    clause->progressive = clause->verb->english[VERB_ING] != NULL &&
                          clause->tense != TENSE_FUTURE && rng_chance(r, 30);
    make_objects(r, clause);
}

static lexicon_pronoun_id choose_speaker(rng *r)
{
    static const lexicon_pronoun_id speakers[] = {
        PRONOUN_I,  PRONOUN_I,  PRONOUN_I,   PRONOUN_YOU, PRONOUN_YOU,  PRONOUN_WE,   PRONOUN_WE,
        PRONOUN_HE, PRONOUN_HE, PRONOUN_SHE, PRONOUN_SHE, PRONOUN_THEY, PRONOUN_THEY, PRONOUN_IT};
    return speakers[rng_below(r, 14)];
}

/* The kinds of the subject of a clause, as far as they are known. */
static unsigned subject_kinds(const corpus_derivation *d, int index)
{
    const corpus_phrase *subject = corpus_subject(d, index);
    const unsigned alone =
        subject != NULL && subject->pronoun == PRONOUN_IT ? KIND_ANIMAL : KIND_PERSON;
    if (subject != NULL && subject->noun == NULL)
        subject = corpus_antecedent(d, subject->pronoun);
    return subject == NULL || subject->noun == NULL ? alone : subject->noun->kinds;
}

/* Adds a relative clause to a phrase: "who sleeps", "that i saw". */
static void make_relative(rng *r, corpus_derivation *d, corpus_phrase *phrase, corpus_tense tense)
{
    const int index = CLAUSE_RELATIVE + d->relatives++;
    corpus_clause *clause = &d->clauses[index];
    phrase->relative = index;
    clause->tense = rng_chance(r, 60) ? TENSE_PAST : tense;
    clause->gap = rng_chance(r, 50) ? GAP_SUBJECT : GAP_OBJECT;
    if (clause->gap == GAP_SUBJECT) {
        make_verb(r, clause, phrase->noun->kinds);
    } else {
        if (rng_chance(r, 50))
            clause->subject.pronoun = choose_speaker(r);
        else
            make_phrase(r, &clause->subject, KIND_PERSON | KIND_ANIMAL, 0);
        make_verb(r, clause, subject_kinds(d, index));
    }
    make_polarity(r, clause, rng_chance(r, 50));
    make_adverbs(r, clause, false);
}

/* Whether a phrase, or the noun that its pronoun refers to, has one of these kinds. */
static bool phrase_fits(const corpus_derivation *d, int index, const corpus_phrase *phrase,
                        unsigned kinds)
{
    if (phrase != NULL && phrase->noun == NULL && index == CLAUSE_SECOND)
        phrase = corpus_antecedent(d, phrase->pronoun);
    return phrase == NULL || phrase->noun == NULL || (phrase->noun->kinds & kinds) != 0;
}

/* Whether a verb goes with its subject and objects. Choices are made one after another, so that a
 * relative clause may not go with its noun, or a pronoun with the noun it refers to. */
static bool verb_goes_with(const corpus_derivation *d, int index)
{
    const corpus_clause *clause = &d->clauses[index];
    if (clause->verb == NULL)
        return clause->predicate != NULL;
    return phrase_fits(d, index, corpus_subject(d, index), clause->verb->subjects) &&
           phrase_fits(d, index, corpus_object(d, index), clause->verb->objects) &&
           phrase_fits(d, index, &clause->recipient, KIND_PERSON);
}

static void make_main_subject(rng *r, corpus_clause *clause)
{
    if (rng_chance(r, 32)) {
        clause->subject.pronoun = choose_speaker(r);
        return;
    }
    /* Mostly persons and animals, which have more verbs. */
    const unsigned kinds = rng_chance(r, 80) ? KIND_PERSON | KIND_ANIMAL : KIND_ANY;
    make_phrase(r, &clause->subject, kinds, 45);
}

static void make_main(rng *r, corpus_derivation *d)
{
    corpus_clause *clause = &d->clauses[CLAUSE_MAIN];
    if (d->question == QUESTION_WHO)
        clause->gap = GAP_SUBJECT;
    else
        make_main_subject(r, clause);
    make_verb(r, clause, subject_kinds(d, CLAUSE_MAIN));
    make_polarity(r, clause, d->question == QUESTION_NONE || d->question == QUESTION_WHO);
    const bool direct =
        clause->verb != NULL && clause->verb->frame == FRAME_DIRECT && clause->object.noun != NULL;
    if (clause->subject.noun != NULL && rng_chance(r, 18))
        make_relative(r, d, &clause->subject, clause->tense);
    if (direct && d->relatives == 0 && rng_chance(r, 14))
        make_relative(r, d, &clause->object, clause->tense);
    if (clause->object.relative == 0)
        make_adverbs(r, clause, d->relatives == 0);
}

/* ----------------------------------------------------- the second clause --- */

/* Chooses one of he, she, it, they that has one noun in the main clause and is not `taken`. */
static lexicon_pronoun_id choose_pronoun(rng *r, const corpus_derivation *d,
                                         lexicon_pronoun_id taken)
{
    const int start = (int)rng_below(r, 4);
    for (int n = 0; n < 4; n++) {
        const lexicon_pronoun_id pronoun = (lexicon_pronoun_id)(PRONOUN_HE + (start + n) % 4);
        if (pronoun != taken && corpus_antecedent(d, pronoun) != NULL)
            return pronoun;
    }
    return PRONOUN_NONE;
}

static void make_second_subject(rng *r, const corpus_derivation *d, corpus_clause *clause)
{
    const int64_t draw = rng_below(r, 100);
    if (draw < 65)
        clause->subject.pronoun = choose_pronoun(r, d, PRONOUN_NONE);
    else if (draw < 85)
        clause->subject.pronoun = choose_speaker(r);
    if (clause->subject.pronoun == PRONOUN_NONE)
        make_phrase(r, &clause->subject, KIND_PERSON | KIND_ANIMAL, 20);
}

/* Makes an object or recipient refer to a noun of the main clause, if there is one of these kinds.
 */
static void refer_back(rng *r, const corpus_derivation *d, corpus_phrase *phrase, unsigned kinds)
{
    const lexicon_pronoun_id pronoun =
        choose_pronoun(r, d, d->clauses[CLAUSE_SECOND].subject.pronoun);
    const corpus_phrase *antecedent = corpus_antecedent(d, pronoun);
    if (antecedent != NULL && (antecedent->noun->kinds & kinds) != 0)
        *phrase = (corpus_phrase){.pronoun = pronoun};
}

static void make_second_objects(rng *r, const corpus_derivation *d, corpus_clause *clause)
{
    if (!takes_pronoun(clause))
        return;
    if (rng_chance(r, 65))
        refer_back(r, d, &clause->object, clause->verb->objects);
    if (clause->verb->frame == FRAME_GIVE && rng_chance(r, 50))
        refer_back(r, d, &clause->recipient, KIND_PERSON);
    clause->shifted = clause->shifted && may_shift(clause);
}

static void make_second(rng *r, corpus_derivation *d)
{
    corpus_clause *clause = &d->clauses[CLAUSE_SECOND];
    d->conjunction = &lexicon_conjunctions[rng_below(r, LEXICON_CONJUNCTIONS)];
    clause->tense = d->clauses[CLAUSE_MAIN].tense;
    make_second_subject(r, d, clause);
    make_verb(r, clause, subject_kinds(d, CLAUSE_SECOND));
    make_second_objects(r, d, clause);
    make_polarity(r, clause, true);
    make_adverbs(r, clause, false);
}

/* ------------------------------------------------------------- sentences --- */

static corpus_tense choose_tense(rng *r)
{
    const int64_t draw = rng_below(r, 100);
    if (draw < 42)
        return TENSE_PAST;
    return draw < 78 ? TENSE_PRESENT : TENSE_FUTURE;
}

static lexicon_question choose_question(rng *r)
{
    if (!rng_chance(r, 16))
        return QUESTION_NONE;
    return (lexicon_question)rng_between(r, QUESTION_WHETHER, QUESTION_COUNT - 1);
}

static void make_derivation(rng *r, corpus_derivation *d)
{
    *d = (corpus_derivation){.question = choose_question(r)};
    d->clauses[CLAUSE_MAIN].tense = choose_tense(r);
    make_main(r, d);
    if (d->question == QUESTION_NONE && rng_chance(r, 30))
        make_second(r, d);
}

static bool question_makes_sense(const corpus_derivation *d)
{
    const corpus_clause *main = &d->clauses[CLAUSE_MAIN];
    const bool goes =
        main->verb != NULL && (main->verb->frame == FRAME_A || main->verb->frame == FRAME_DE);
    if (d->question == QUESTION_WHERE)
        return is_event(main) && !goes && main->how == NULL && main->preposition == NULL;
    return d->question != QUESTION_WHEN || main->when == NULL;
}

/* Refuses sentences such as "The cake fell because it fell." */
static bool repeats_itself(const corpus_derivation *d)
{
    const corpus_clause *main = &d->clauses[CLAUSE_MAIN], *second = &d->clauses[CLAUSE_SECOND];
    return d->conjunction != NULL && main->verb == second->verb &&
           main->predicate == second->predicate;
}

static bool makes_sense(const corpus_derivation *d)
{
    for (int n = 0; n < CORPUS_CLAUSES_MAX; n++)
        if (corpus_has_clause(d, n) && !verb_goes_with(d, n))
            return false;
    if (d->conjunction != NULL &&
        (d->conjunction->tenses & tense_bit(d->clauses[CLAUSE_MAIN].tense)) == 0)
        return false;
    return !repeats_itself(d) && question_makes_sense(d);
}

/* Whether the combinations of a sentence allow it in this split; see corpus_generate(). */
static bool is_of_split(const corpus_derivation *d, corpus_split split)
{
    corpus_combination list[CORPUS_COMBINATIONS_MAX];
    const int count = corpus_combinations(d, list);
    int found[CORPUS_SPLITS] = {0};
    for (int n = 0; n < count; n++)
        found[corpus_combination_split(&list[n])]++;
    for (int other = CORPUS_VALID; other < CORPUS_SPLITS; other++)
        if ((found[other] > 0) != (other == (int)split))
            return false;
    return true;
}

void corpus_generate(uint64_t seed, corpus_split split, uint64_t index, corpus_pair *pair,
                     corpus_derivation *derivation)
{
    rng r = rng_for(seed + (uint64_t)split * UINT64_C(0x9fb21c651e98df25), index);
    corpus_derivation own = {.relatives = 0};
    corpus_derivation *d = derivation == NULL ? &own : derivation;
    do
        make_derivation(&r, d);
    while (!makes_sense(d) || !is_of_split(d, split) || !corpus_build(d, pair) ||
           pair->side[CORPUS_ENGLISH].count > CORPUS_ENGLISH_MAX);
}
