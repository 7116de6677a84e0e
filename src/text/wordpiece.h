/* SPDX-License-Identifier: MIT */
/* WordPiece: from left to right, the longest piece that the vocabulary has. */
#ifndef TEXT_WORDPIECE_H
#define TEXT_WORDPIECE_H

#include "text/piece_trie.h"
#include "text/token_list.h"

enum { WORDPIECE_CHARACTERS_MAX = 4096 };

typedef struct wordpiece {
    int32_t unknown;
    size_t longest_word; /* characters; longer words are unknown */
    piece_trie trie;
    int32_t inside; /* the node of the prefix of pieces inside of a word; -1: there are none */
} wordpiece;

/* Takes the pieces of a vocabulary that are the model's own; pieces inside of a word begin with
 * `prefix`, "##". False: out of memory. */
bool wordpiece_create(wordpiece *model, const vocabulary *v, const char *prefix);
void wordpiece_free(wordpiece *model);

/* Appends the tokens of a word, with their bytes of it; one unknown token if it cannot be divided.
 */
void wordpiece_encode(const wordpiece *model, const char *word, size_t length, token_list *list);

#endif
