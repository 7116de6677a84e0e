/* SPDX-License-Identifier: MIT */
/* Reading words token by token, with messages that say what is wrong, where, and what was probably
 * meant. Every function that can fail returns false after it has written the message. */
#ifndef PROBLEM_WORD_READER_H
#define PROBLEM_WORD_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORD_TEXT_MAX = 512, WORD_MESSAGE_MAX = 384, WORD_TOKEN_MAX = 64 };

/* Larger than any memory can hold, small enough for products of two in 64 bits. */
#if PTRDIFF_MAX > INT32_MAX
#define WORD_EXTENT_MAX ((ptrdiff_t)1 << 31)
#else
#define WORD_EXTENT_MAX PTRDIFF_MAX
#endif

typedef struct word_reader {
    const char *text, *rest;
    int at;                     /* where the token begins */
    char token[WORD_TOKEN_MAX]; /* empty: messages are about the whole word */
    char *message;
    size_t size;
} word_reader;

word_reader reader_begin(const char *text, char *message, size_t size);

/* The next token, up to a colon or the end. */
bool reader_next(word_reader *r);

/* Goes over a colon; false, without a message, at the end of the word. */
bool reader_more(word_reader *r);

bool reader_fail(word_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "unknown NOUN", with the nearest of `names` if there is one. */
bool reader_unknown(word_reader *r, const char *noun, const char *text, const char *const *names,
                    int count);

bool reader_number(word_reader *r, const char *value, int64_t low, int64_t high, int64_t *number);
bool reader_int(word_reader *r, const char *value, int low, int high, int *number);
bool reader_choice(word_reader *r, const char *value, const char *const *names, int count,
                   int *choice);

/* The token as extents: each of `letters` may stand before a number, for the extent of the same
 * place. seen[letter] says which were given, in earlier tokens too. */
bool reader_extents(word_reader *r, const char *letters, ptrdiff_t *const *extents, bool seen[128]);

/* Text that is printed piece by piece into a buffer: what does not fit is cut, and counted. */
typedef struct word_printer {
    char *text;
    size_t size, used;
} word_printer;

void printer_put(word_printer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
