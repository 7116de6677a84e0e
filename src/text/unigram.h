/* SPDX-License-Identifier: MIT */
/*
 * The unigram model: of all ways to write a text as pieces, the one with the largest sum of scores.
 *
 * The two libraries that define it differ, so there are two ways to create one:
 *
 *                          unigram_create            unigram_create_sentencepiece
 *      defined by          tokenizers                sentencepiece
 *      pieces              all                       neither marks nor bytes nor unused ones
 *      sums                f64                       rounded to f32
 *      unknown text        one token for a run of    one token per character
 *                          characters, or bytes
 */
#ifndef TEXT_UNIGRAM_H
#define TEXT_UNIGRAM_H

#include "text/token_list.h"
#include "text/vocabulary.h"

typedef struct unigram unigram;

/* `unknown_id` may be -1: text without a piece then gives no token. With byte_fallback it gives
 * the tokens "<0x00>" .. "<0xFF>" of its bytes, if the vocabulary has all that it needs. The
 * vocabulary must stay as it is until unigram_free(). NULL: out of memory. */
unigram *unigram_create(const vocabulary *v, int32_t unknown_id, bool byte_fallback);
unigram *unigram_create_sentencepiece(const vocabulary *v, int32_t unknown_id);
void unigram_free(unigram *model);

/* Appends the tokens of a text, with their bytes of `normalized`. Time is proportional to the
 * length of the text times the length of the longest piece. */
void unigram_encode(const unigram *model, const char *normalized, size_t length, token_list *list);

/* The id of the piece of a byte; -1 if there is none. */
int32_t vocab_byte_id(const vocabulary *v, unsigned char byte);

/* The bytes of the character that the text begins with, by its first byte, and at most `length` >
 * 0: how SentencePiece steps through a text. */
size_t character_length(const char *text, size_t length);

#endif
