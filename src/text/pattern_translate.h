/* SPDX-License-Identifier: MIT */
/* From the regular expressions of tokenizer files to those of PCRE2. */
#ifndef TEXT_PATTERN_TRANSLATE_H
#define TEXT_PATTERN_TRANSLATE_H

#include "text/text_buffer.h"

/* Appends the translation. Returns NULL, or what the pattern has that cannot be translated. */
const char *pattern_translate(const char *text, bool literal, text_buffer *to);

#endif
