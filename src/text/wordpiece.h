/* SPDX-License-Identifier: MIT */
/* WordPiece: from left to right, the longest piece that the vocabulary has. */
#ifndef TEXT_WORDPIECE_H
#define TEXT_WORDPIECE_H

#include "text/text_buffer.h"
#include "text/token_list.h"
#include "text/vocabulary.h"

enum { WORDPIECE_CHARACTERS_MAX = 4096 };

typedef struct wordpiece {
    int32_t unknown;
    size_t longest_word;  /* characters; longer words are unknown */
    size_t longest_piece; /* bytes */
    char *prefix;         /* of pieces inside of a word: "##" */
} wordpiece;

/* Appends the tokens of a word, with their bytes of it; one unknown token if it cannot be divided.
 * `buffer` is room to work in. */
void wordpiece_encode(const wordpiece *model, const vocabulary *v, const char *word, size_t length,
                      text_buffer *buffer, token_list *list);

#endif
