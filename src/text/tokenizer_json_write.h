/* SPDX-License-Identifier: MIT */
/*
 * Writes the tokenizer.json of a learned vocabulary: byte pair encoding with byte fallback. A text
 * is brought to the normal form NFC, gets a space in front, and its spaces become U+2581. A regular
 * expression divides it into words, which no merge crosses. Tokens are followed by "</s>".
 *
 * Decoding returns the text in NFC, except that U+2581 becomes a space.
 */
#ifndef TEXT_TOKENIZER_JSON_WRITE_H
#define TEXT_TOKENIZER_JSON_WRITE_H

#include "text/bpe_merges.h"

/* The first ids of a learned vocabulary. */
enum {
    LEARNED_END = 0,     /* "</s>" */
    LEARNED_UNKNOWN = 1, /* "<unk>", which no text contains: there is a piece for each byte */
    LEARNED_PAD = 2,     /* "<pad>", with which a decoder also starts */
    LEARNED_BYTES = 3,   /* "<0x00>" to "<0xFF>" */
    LEARNED_CHARACTERS = LEARNED_BYTES + 256,
    LEARNED_MIN =
        LEARNED_CHARACTERS + 1 /* the smallest vocabulary: LEARNED_SPACE is always a piece */
};

/* Stands for a space. */
enum { LEARNED_SPACE = 0x2581 };

/* The vocabulary of these pieces alone; NULL: out of memory. */
vocabulary *learned_vocabulary_begin(void);

/* The text, which the caller frees; NULL: out of memory. */
char *tokenizer_json_write(const vocabulary *v, const bpe_pair_list *merges, size_t *length);

#endif
