/* SPDX-License-Identifier: MIT */
/* Bytes that grow (text_buffer.h). */
#include "text/text_buffer.h"

#include "base/array.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

void text_buffer_add(text_buffer *buffer, const char *bytes, size_t length)
{
    char *const grown = buffer->failed ? NULL
                                       : mhai_array_grow(buffer->bytes, &buffer->room,
                                                         buffer->length + length + 1, 1);
    if (!grown) {
        buffer->failed = true;
        return;
    }
    buffer->bytes = grown;
    if (length)
        memcpy(grown + buffer->length, bytes, length);
    buffer->length += length;
    grown[buffer->length] = '\0';
}

void text_buffer_add_string(text_buffer *buffer, const char *text)
{
    text_buffer_add(buffer, text, strlen(text));
}

void text_buffer_add_character(text_buffer *buffer, uint32_t c)
{
    char bytes[4];
    text_buffer_add(buffer, bytes, utf8_encode(bytes, c));
}

void text_buffer_free(text_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (text_buffer){0};
}

char *text_copy(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *const copy = malloc(size);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}
