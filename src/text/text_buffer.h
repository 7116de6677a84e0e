/* SPDX-License-Identifier: MIT */
/* Bytes that grow, for texts that are written piece by piece. */
#ifndef TEXT_TEXT_BUFFER_H
#define TEXT_TEXT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct text_buffer {
    char *bytes; /* always terminated, or NULL if nothing was added */
    size_t length, room;
    bool failed; /* out of memory; later calls do nothing */
} text_buffer;

void text_buffer_add(text_buffer *buffer, const char *bytes, size_t length);
void text_buffer_add_string(text_buffer *buffer, const char *text);
void text_buffer_add_character(text_buffer *buffer, uint32_t c);
void text_buffer_free(text_buffer *buffer);

/* A copy, which the caller frees; NULL: out of memory. */
char *text_copy(const char *text);

#endif
