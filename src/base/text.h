/* SPDX-License-Identifier: MIT */
/* UTF-8 text in columns of a terminal, whatever the locale. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum { TEXT_WORD_BYTES = 64 };

/* U+FFFD, for what is no text. */
#define TEXT_REPLACEMENT "\xef\xbf\xbd"

/* Bytes of the character at `text`, and its number; 1 and 0xfffd for bytes that are none. */
size_t text_decode(const char *text, uint32_t *c);

/* One word of a sentence, safe to print: no control characters, valid UTF-8, not too wide. */
typedef struct text_word {
    char bytes[TEXT_WORD_BYTES];
    int columns; /* width on a terminal */
    int letters; /* letters with all their marks */
} text_word;

/* Cuts a sentence at white space into at most `limit` words of at most `columns` columns; longer
 * ones end in "~". What cannot be printed becomes U+FFFD, which no language has a word of: a sign
 * such as "?" might be taken for what was said. Returns how many words the sentence has, which may
 * be more than `limit`. */
int text_split(const char *sentence, text_word *words, int limit, int columns);

/* Length in bytes of letter `index` of a word, with its marks, and where it begins; 0 past the
 * end. */
size_t text_letter(const text_word *word, int index, const char **begin);

/* Columns a letter takes: 1 or 2. */
int text_letter_columns(const char *letter);

#endif
