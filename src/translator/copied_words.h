/* SPDX-License-Identifier: MIT */
/*
 * Names and numbers that stand on both sides of a pair are copied by a translator, not translated.
 * To make it learn that for names and numbers it has never seen, a training replaces some of them,
 * on both sides alike, by random ones:
 *
 *      Tom was born in 1990.     ->   Trelasky was born in 1990.
 *      Tom est né en 1990.       ->   Trelasky est né en 1990.
 *
 * A name is a word of at least three letters that begins with a capital of ASCII; its replacement
 * begins with a vowel if it does, so that French elisions stay right. A number is a run of digits
 * other than 0 and 1; its replacement has as many digits.
 *
 * Few sentences have numbers that are written with digits on both sides. So that digits are learnt
 * too, some of the names that begin with a consonant are replaced by a number of up to six digits.
 */
#ifndef TRANSLATOR_COPIED_WORDS_H
#define TRANSLATOR_COPIED_WORDS_H

#include "base/rng.h"
#include "translator/pair_buffer.h"

/* Replaces one name or number wherever it stands in the pair; a name by a number with probability
 * `numbers`. Returns false if the pair has none, or if the result would be too long. */
bool copied_words_replace(const pair_text *pair, double numbers, rng *r, pair_buffer *changed);

#endif
