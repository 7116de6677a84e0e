/* SPDX-License-Identifier: MIT */
/* Private: one-letter names of the kinds of nouns, so that the tables of lexicon_nouns.c,
 * lexicon_verbs.c and lexicon_words.c stay readable. */
#ifndef CORPUS_LEXICON_PARTS_H
#define CORPUS_LEXICON_PARTS_H

#include "corpus/lexicon.h"

#define P KIND_PERSON
#define A KIND_ANIMAL
#define F KIND_FOOD
#define O KIND_OBJECT
#define T KIND_TEXT
#define V KIND_VEHICLE
#define L KIND_PLACE
#define N KIND_NATURE

#endif
