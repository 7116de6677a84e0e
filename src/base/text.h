/* SPDX-License-Identifier: MIT */
/* UTF-8 text in columns of a terminal, for any locale. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum { TEXT_WORD_BYTES = 64 };

/* U+FFFD, printed instead of bytes that are not text. */
#define TEXT_REPLACEMENT "\xef\xbf\xbd"

/* Length in bytes of the character at `text`, and its code point; 1 and 0xfffd for an invalid byte.
 */
size_t text_decode(const char *text, uint32_t *c);

/* One word of a sentence, safe to print: no control characters, valid UTF-8, not too wide. */
typedef struct text_word {
    char bytes[TEXT_WORD_BYTES];
    int columns; /* width on a terminal */
    int letters; /* letters, each with its marks */
} text_word;

/* Splits a sentence at white space into at most `limit` words of at most `columns` columns; longer
 * ones end in "~". What cannot be printed becomes U+FFFD, which is part of no word: a "?" might be
 * taken for a part of the sentence. Returns the number of words of the sentence, which may be more
 * than `limit`. */
int text_split(const char *sentence, text_word *words, int limit, int columns);

/* Length in bytes of letter `index` of a word, with its marks, and where it begins; 0 past the
 * end. */
size_t text_letter(const text_word *word, int index, const char **begin);

/* Columns a letter takes: 1 or 2. */
int text_letter_columns(const char *letter);

#endif
