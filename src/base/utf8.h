/* SPDX-License-Identifier: MIT */
/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * Decodes the character at `text`, of which `length` > 0 bytes may be read. Returns its length in
 * bytes, or 0 if the bytes are not UTF-8. Bytes are read one after another and none after one that
 * does not fit, so a text that ends with a zero byte may be given any `length`.
 */
size_t utf8_decode(const char *text, size_t length, uint32_t *c);

/* Writes the character, at most 4 bytes, and returns their number. */
size_t utf8_encode(char *to, uint32_t c);

#endif
