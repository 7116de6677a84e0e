/* SPDX-License-Identifier: MIT */
/* Classes of characters, as the library "tokenizers" has them. */
#ifndef TEXT_CHARACTERS_H
#define TEXT_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool character_is_space(uint32_t c);       /* White_Space */
bool character_is_punctuation(uint32_t c); /* category P and the ASCII symbols */
bool character_is_numeric(uint32_t c);     /* category N */
bool character_is_nonspacing(uint32_t c);  /* category Mn */
bool character_is_mark(uint32_t c);        /* category M */
bool character_is_removed(uint32_t c);     /* by BERT: controls, formats, U+FFFD; not white space */
bool character_is_chinese(uint32_t c);     /* by BERT */

/* The lower case of a character: one or two characters. */
size_t character_lower(uint32_t c, uint32_t lower[2]);

/* The 256 characters that stand for bytes in a byte-level vocabulary, and back: -1 if a character
 * is none of them. */
uint32_t byte_character(unsigned char byte);
int character_byte(uint32_t c);

#endif
