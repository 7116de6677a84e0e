/* SPDX-License-Identifier: MIT */
/* A text and its capture with tokens joined to whole words, for display (see head_join.h). */
#ifndef HEADS_WHOLE_WORDS_H
#define HEADS_WHOLE_WORDS_H

#include "heads/subject.h"

/* Joins the weights of all kinds, rows of cross-attention by the words that they say; queries,
 * keys, values and outputs, which are those of tokens, are freed. False: out of memory, and the
 * capture is partly joined. */
bool capture_join_words(capture *capture);

/* The words of a text; `from` must outlive it. */
typedef struct whole_words {
    subject_text text;
    char *letters; /* of all words */
} whole_words;

/* False: out of memory. whole_words_free() either way. */
bool whole_words_make(whole_words *words, const subject_text *from);
void whole_words_free(whole_words *words);

#endif
