/* SPDX-License-Identifier: MIT */
/* Decoders: steps from the pieces of tokens to text. */
#ifndef TEXT_DECODER_H
#define TEXT_DECODER_H

#include "text/pattern.h"
#include "text/text_buffer.h"

typedef enum decoder_kind {
    DECODE_WORDPIECE,
    DECODE_BYTE_LEVEL,
    DECODE_METASPACE,
    DECODE_BYTE_FALLBACK,
    DECODE_FUSE,
    DECODE_STRIP,
    DECODE_REPLACE,
    DECODE_BPE,   /* with a suffix at the end of words */
    DECODE_SPACES /* no decoder: pieces with spaces between them */
} decoder_kind;

typedef struct decoder_step {
    decoder_kind kind;
    bool cleanup;       /* WORDPIECE: no spaces before punctuation */
    bool drop_first;    /* METASPACE: the first piece does not begin with a space */
    uint32_t character; /* METASPACE, STRIP */
    size_t start, stop; /* STRIP: at most so many characters at the ends of each piece */
    char *content;      /* WORDPIECE: prefix; BPE: suffix; REPLACE: what is written */
    pattern *pattern;   /* REPLACE */
} decoder_step;

void decoder_step_free(decoder_step *step);

/* A list of pieces: piece n is the bytes [ends[n - 1], ends[n]). */
typedef struct piece_list {
    text_buffer text;
    size_t *ends;
    size_t count, room;
    bool failed;
} piece_list;

void piece_list_end(piece_list *list); /* what was added to `text` becomes a piece */
void piece_list_free(piece_list *list);

/* Applies the steps one after another. `pieces` and `next` are both changed; the result, to be
 * joined without spaces, is in `pieces`. */
mha_status decoder_apply(const decoder_step *steps, size_t count, piece_list *pieces,
                         piece_list *next);

#endif
