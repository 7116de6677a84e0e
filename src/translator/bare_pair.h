/* SPDX-License-Identifier: MIT */
/*
 * People type "I love you" as often as "I love you.", but the pairs of a file mostly end with a
 * mark. A translator that has seen no bare sentence takes a missing mark for a missing sentence and
 * says it twice. So a training leaves out the final marks of some pairs, on both sides alike:
 *
 *      I love you.     ->   I love you
 *      Je t'aime.      ->   Je t'aime
 *      Who is there?   ->   Who is there
 *      Qui est là ?    ->   Qui est là
 */
#ifndef TRANSLATOR_BARE_PAIR_H
#define TRANSLATOR_BARE_PAIR_H

#include "translator/pair_file.h"

/* Shortens both sides by a final ".", "!" or "?" and the spaces before it, also non-breaking ones.
 * Returns false, with the pair as it was, unless both sides end with such a mark after a letter or
 * digit; the last point of "..." and of "p.m." is no such mark. */
bool bare_pair_make(pair_text *pair);

#endif
