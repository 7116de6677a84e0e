/* SPDX-License-Identifier: MIT */
/* A sentence pair that a training has changed, with memory of its own. */
#ifndef TRANSLATOR_PAIR_BUFFER_H
#define TRANSLATOR_PAIR_BUFFER_H

#include "translator/pair_file.h"

enum { PAIR_BUFFER_MAX = 1024 }; /* bytes of a side; longer pairs are not changed */

typedef struct pair_buffer {
    char text[TRANSFORMER_SIDES][PAIR_BUFFER_MAX];
    size_t length[TRANSFORMER_SIDES];
} pair_buffer;

/* Appends to a side. Returns false, with the side as it was, if there is no room. */
bool pair_buffer_append(pair_buffer *buffer, int side, const char *text, size_t length);

/* The content, which is valid as long as the buffer; `line` is where the pair came from. */
pair_text pair_buffer_text(const pair_buffer *buffer, int64_t line);

#endif
