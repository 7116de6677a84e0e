/* SPDX-License-Identifier: MIT */
/*
 * Signs that a translation may be wrong, which need no second opinion: the model itself gave its
 * words low probabilities, or a number of the source is not in it.
 */
#ifndef HEADS_UNSURE_TRANSLATION_H
#define HEADS_UNSURE_TRANSLATION_H

#include <stdbool.h>

/* A translation whose confidence is lower is shown as unsure. */
#define UNSURE_CONFIDENCE 0.35

enum { LOST_NUMBER_MAX = 32 };

/* Finds the first number of `source` with two or more digits, written in digits, that `target`
 * lacks. Returns false, with an empty text, if there is none. Separators between digits do not
 * count: 1,250 is the same as 1250 and 1 250, and 7:30 the same as 7 h 30. Numbers in words are not
 * read, so that "vingt" for 20 counts as lost. */
bool unsure_lost_number(const char *source, const char *target, char number[LOST_NUMBER_MAX]);

#endif
