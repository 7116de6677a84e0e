/* SPDX-License-Identifier: MIT */
/*
 * A sentence whose words are separated by spaces, also punctuation, as files of alignments have
 * them ("the houses , both"), and the text that a model reads for it ("the houses, both"), in which
 * every word has a place.
 *
 * A space of the file is left out
 *      before  , . ) ] } … 's 'll n't and the like, and before ; : ! ? if the side is not elided
 *      after   ( [ { and a word that ends with an apostrophe: l' d' qu'
 * A side is elided if at least one word in a hundred ends with an apostrophe, as in French, where
 * ; : ! ? have a space before them.
 */
#ifndef HEADS_GIVEN_WORDS_H
#define HEADS_GIVEN_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "heads/subject.h"

/* Counts the words of a line, and those that end with an apostrophe. */
typedef struct elision_count {
    long words, elided;
} elision_count;
void elision_count_add(elision_count *count, const char *line, size_t length);
bool elision_count_holds(const elision_count *count);

typedef struct given_words {
    int count;
    int *begins, *ends; /* [count] bytes of `text` */
    char *text;         /* what the model reads, terminated */
} given_words;

/* False: out of memory. given_words_free() either way. */
bool given_words_make(given_words *words, const char *line, size_t length, bool elided);
void given_words_free(given_words *words);

/* The words [first, end) that a token stands for; none for a mark. A token of several words counts
 * for each of them, one that is only a space for the word after it. */
typedef struct token_words {
    int first, end;
} token_words;

/* to[side->count]. The side was read from words->text. */
void given_words_of_tokens(const given_words *words, const subject_side *side, token_words *to);

#endif
