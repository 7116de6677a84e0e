/* SPDX-License-Identifier: MIT */
/*
 * People type more than one sentence into a line, but the lines of a file of pairs mostly have one.
 * A translator that has seen only such lines drops a second sentence or mixes it into the first. So
 * a training joins some pairs with another one, on both sides alike:
 *
 *      Hello.          How are you?           ->   Hello. How are you?
 *      Bonjour.        Comment allez-vous ?   ->   Bonjour. Comment allez-vous ?
 */
#ifndef TRANSLATOR_JOINED_PAIR_H
#define TRANSLATOR_JOINED_PAIR_H

#include "translator/pair_buffer.h"

/* Both pairs, with a space between them. Returns false if the first does not end with a final mark
 * on both sides (bare_pair.h), or if the result would be too long. `joined` must not be the memory
 * of one of the pairs. */
bool joined_pair_make(const pair_text *first, const pair_text *second, pair_buffer *joined);

#endif
