/* SPDX-License-Identifier: MIT */
/* Parts of speech of English words, as the grammar uses them in a sentence. */
#ifndef CORPUS_PART_OF_SPEECH_H
#define CORPUS_PART_OF_SPEECH_H

#include "corpus/corpus.h"

typedef enum corpus_part {
    PART_NOUN,
    PART_VERB,      /* a main verb, whose form has the tense unless an auxiliary has it */
    PART_AUXILIARY, /* be, do and will in all forms, "be" also as the only verb */
    PART_PRONOUN,
    PART_DETERMINER,
    PART_NUMBER,
    PART_ADJECTIVE,
    PART_ADVERB,
    PART_NEGATION,    /* not, never */
    PART_PREPOSITION, /* also the particle of a verb: look at, run away */
    PART_CONJUNCTION,
    PART_RELATIVE, /* that, who */
    PART_QUESTION, /* who, where, when, why at the beginning of a question, and "?" */
    PART_COUNT
} corpus_part;

/* "noun", "verb" and so on. */
const char *corpus_part_name(corpus_part part);

/* The part of speech of English token `n` of a pair of the grammar; PART_COUNT: not a word of the
 * lexicon. A word that can be several is what its role in this sentence says. */
corpus_part corpus_part_of(const corpus_pair *pair, int n);

#endif
