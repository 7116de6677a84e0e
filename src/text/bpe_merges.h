/* SPDX-License-Identifier: MIT */
/* Finds the merges of byte pair encoding: the most frequent pair of neighbouring pieces becomes a
 * piece of its own, again and again. */
#ifndef TEXT_BPE_MERGES_H
#define TEXT_BPE_MERGES_H

#include "text/vocabulary.h"
#include "text/word_counts.h"

#include <mha/mha.h>

/* Pieces never get longer than this, whatever the words are. */
enum { BPE_PIECE_CHARACTERS_MAX = 32 };

/* Of all distinct words together. */
#define BPE_MERGE_CHARACTERS_MAX (UINT32_MAX / 4)

typedef struct bpe_pair {
    int32_t left, right; /* ids */
} bpe_pair;

typedef struct bpe_pair_list {
    bpe_pair *pairs;
    size_t count, room;
} bpe_pair_list;

typedef struct bpe_merge_limits {
    int32_t vocabulary_size; /* no more pieces than this */
    uint64_t pair_count;     /* pairs that occur less often are not merged; at least 1 */
} bpe_merge_limits;

/*
 * Appends the merges, in order, to an empty list and the new pieces to the vocabulary, which has
 * all characters that are pieces. `character_pieces[c]` is the id of character c, or -1: such a
 * character is merged with none. Of pairs with equal counts, the one whose left piece has the lower
 * id is merged first, and then the one whose right piece has; nothing depends on the order of the
 * words.
 *
 * Time is O(n log n) in the characters of the distinct words. MHA_ERR_LENGTH: more than
 * BPE_MERGE_CHARACTERS_MAX of them.
 */
mha_status bpe_find_merges(const word_counts *words, const int32_t *character_pieces,
                           const bpe_merge_limits *limits, vocabulary *v, bpe_pair_list *merges);
void bpe_pair_list_free(bpe_pair_list *list);

#endif
