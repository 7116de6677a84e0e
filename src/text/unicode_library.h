/* SPDX-License-Identifier: MIT */
/*
 * What is taken from utf8proc: lower case, normal forms and grapheme clusters of single characters.
 * A build without utf8proc or PCRE2 has libraries_none.c instead of this and of pattern.c; it opens
 * no tokenizer.
 */
#ifndef TEXT_UNICODE_LIBRARY_H
#define TEXT_UNICODE_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

/* Does this build have PCRE2 and utf8proc? */
bool text_libraries_present(void);

uint32_t unicode_lower(uint32_t c);
int unicode_combining_class(uint32_t c);

/* The characters that `c` decomposes into, itself if it does not; returns their number. */
enum { UNICODE_PARTS_MAX = 32 };
int unicode_decompose(uint32_t c, bool compatible, uint32_t parts[UNICODE_PARTS_MAX]);

/* The character that two become, or 0. */
uint32_t unicode_compose(uint32_t a, uint32_t b);

/* Does a cluster end between two characters? *state is 0 at the beginning of a cluster. */
bool unicode_grapheme_ends(uint32_t before, uint32_t after, int32_t *state);

#endif
