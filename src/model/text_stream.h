/* SPDX-License-Identifier: MIT */
/*
 * The text of tokens that are generated one after another, in pieces that are complete in UTF-8,
 * held back where a stop text may have begun.
 */
#ifndef MODEL_TEXT_STREAM_H
#define MODEL_TEXT_STREAM_H

#include <mha/mha_model.h>

#include <stdbool.h>

typedef struct text_stream {
    const mha_tokenizer *tokenizer; /* NULL: there is no text */
    const char *const *stops;
    ptrdiff_t stop_count;
    ptrdiff_t prefix, read; /* tokens [prefix, read) have text that is known */
    char *text;             /* terminated */
    size_t length, room, sent, searched;
    bool stopped; /* a stop text was found, and cut off */
} text_stream;

/* Tokens ids[0 .. context) come before the text; a few of them are decoded with it, since spaces
 * between words depend on them. */
void text_stream_begin(text_stream *stream, const mha_tokenizer *tokenizer, ptrdiff_t context,
                       const char *const *stops, ptrdiff_t stop_count);

/* ids has one more token than before, `count` with the context; `last`: no more will follow. */
mha_status text_stream_add(text_stream *stream, const int32_t *ids, ptrdiff_t count, bool last);

/* The next piece that can be given out; it is counted as sent. */
const char *text_stream_take(text_stream *stream, bool last, size_t *length);

void text_stream_free(text_stream *stream);

#endif
