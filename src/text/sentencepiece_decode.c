/* SPDX-License-Identifier: MIT */
/*
 * Tokens to text (sentencepiece.h): U+2581 becomes a space, the space that was added in front is
 * removed, bytes are joined to characters, unknown tokens get their surface.
 */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/sentencepiece_parts.h"

typedef struct decoding {
    const sentencepiece *sp;
    const vocabulary *vocabulary;
    bool skip_marks;
    char *text;
    size_t length, room;
    char bytes[4]; /* of a character that is not complete so far */
    size_t byte_count;
    bool at_begin;   /* a leading space is still to be removed */
    bool space_seen; /* the piece before had it */
    bool failed;     /* out of memory */
} decoding;

static void append(decoding *d, const char *text, size_t length)
{
    if (!d->failed && d->room - d->length <= length) {
        const size_t room = (d->length + length + 1) * 2;
        char *const moved = realloc(d->text, room);
        d->failed = moved == NULL;
        if (moved != NULL) {
            d->text = moved;
            d->room = room;
        }
    }
    if (d->failed)
        return;
    memcpy(d->text + d->length, text, length);
    d->length += length;
    d->text[d->length] = '\0';
}

/* Writes U+FFFD for the first byte that waits. */
static void give_up_byte(decoding *d)
{
    append(d, "\xef\xbf\xbd", 3);
    d->byte_count--;
    memmove(d->bytes, d->bytes + 1, d->byte_count);
}

/* Writes the characters at the beginning of the bytes that wait. `more`: bytes may follow. */
static void write_bytes(decoding *d, bool more)
{
    while (d->byte_count > 0 && !d->failed) {
        uint32_t c;
        const size_t length = utf8_decode(d->bytes, d->byte_count, &c);
        if (length > 0) {
            append(d, d->bytes, length);
            d->byte_count -= length;
            memmove(d->bytes, d->bytes + length, d->byte_count);
        } else if (more && d->byte_count < sizeof d->bytes) {
            return;
        } else {
            give_up_byte(d);
        }
    }
}

static void add_byte(decoding *d, const char *piece)
{
    /* "<0x41>": checked when the model was read. */
    d->bytes[d->byte_count++] = (char)strtoul(piece + 3, NULL, 16);
    write_bytes(d, true);
}

static void add_piece(decoding *d, const char *piece, size_t length)
{
    const sentencepiece_model *const model = &d->sp->model;
    const char *const end = piece + length;
    d->space_seen = false;
    if (d->at_begin && (model->adds_space || model->removes_extra_spaces) &&
        length >= SPACE_SYMBOL_BYTES && memcmp(piece, SPACE_SYMBOL, SPACE_SYMBOL_BYTES) == 0) {
        piece += SPACE_SYMBOL_BYTES;
        d->space_seen = !model->removes_extra_spaces;
    }
    while (piece < end) {
        const char *const space = strstr(piece, SPACE_SYMBOL);
        append(d, piece, (size_t)((space != NULL ? space : end) - piece));
        if (space != NULL)
            append(d, " ", 1);
        piece = space != NULL ? space + SPACE_SYMBOL_BYTES : end;
    }
}

static void add_token(decoding *d, int32_t id)
{
    const unsigned flags = vocab_flags(d->vocabulary, id);
    size_t length = 0;
    const char *const piece = vocab_piece(d->vocabulary, id, &length);
    if (flags & PIECE_BYTE) {
        add_byte(d, piece);
        return;
    }
    write_bytes(d, false);
    if (d->space_seen || d->length > 0)
        d->at_begin = false;
    if (flags & (PIECE_SPECIAL | PIECE_UNKNOWN)) {
        const char *const surface = d->sp->model.unknown_surface;
        d->space_seen = false;
        if (flags & PIECE_UNKNOWN)
            append(d, surface, strlen(surface));
        else if (!d->skip_marks)
            append(d, piece, length);
        return;
    }
    add_piece(d, piece, length);
}

mha_status sentencepiece_decode(const sentencepiece *sp, const int32_t *ids, ptrdiff_t count,
                                bool skip_marks, char **text, size_t *length)
{
    decoding d = {.sp = sp,
                  .vocabulary = sentencepiece_vocabulary(sp),
                  .skip_marks = skip_marks,
                  .at_begin = true};
    *text = NULL;
    *length = 0;
    for (ptrdiff_t n = 0; n < count; n++) {
        if (vocab_piece(d.vocabulary, ids[n], NULL) == NULL)
            return MHA_ERR_INDEX;
    }
    append(&d, "", 0);
    for (ptrdiff_t n = 0; n < count && !d.failed; n++)
        add_token(&d, ids[n]);
    write_bytes(&d, false);
    if (d.failed) {
        free(d.text);
        return MHA_ERR_MEMORY;
    }
    *text = d.text;
    *length = d.length;
    return MHA_OK;
}
