/* SPDX-License-Identifier: MIT */
/*
 * The steps of a decoder (decoder.h). Each reads a list of pieces and writes another one. Bytes
 * stay as they are, even if a character is incomplete: it may end in a later token.
 */
#include "text/decoder.h"

#include "base/array.h"
#include "base/utf8.h"
#include "format/json_reader.h"
#include "text/characters.h"

#include <stdlib.h>
#include <string.h>

void decoder_step_free(decoder_step *step)
{
    pattern_free(step->pattern);
    free(step->content);
    *step = (decoder_step){0};
}

void piece_list_end(piece_list *list)
{
    size_t *const ends =
        list->failed ? NULL
                     : mhai_array_grow(list->ends, &list->room, list->count + 1, sizeof *ends);
    list->failed |= !ends || list->text.failed;
    if (!ends)
        return;
    list->ends = ends;
    ends[list->count++] = list->text.length;
}

void piece_list_free(piece_list *list)
{
    text_buffer_free(&list->text);
    free(list->ends);
    *list = (piece_list){0};
}

typedef struct bytes {
    const char *text;
    size_t length;
} bytes;

static bytes piece_at(const piece_list *list, size_t n)
{
    const size_t begin = n ? list->ends[n - 1] : 0;
    return (bytes){list->text.bytes ? list->text.bytes + begin : "", list->ends[n] - begin};
}

static bool begins_with(bytes text, const char *prefix, size_t length)
{
    return length > 0 && text.length >= length && memcmp(text.text, prefix, length) == 0;
}

/* Writes a text with every `old` replaced. */
static void put_replaced(text_buffer *to, bytes text, const char *old, const char *new)
{
    const size_t length = strlen(old);
    for (size_t at = 0; at < text.length;) {
        if (begins_with((bytes){text.text + at, text.length - at}, old, length)) {
            text_buffer_add_string(to, new);
            at += length;
        } else {
            text_buffer_add(to, text.text + at++, 1);
        }
    }
}

/* ------------------------------------------------------------- WordPiece ----- */

/* The replacements are made one after another, as each sees the results of those before it. */
static void put_cleaned(text_buffer *to, bytes text)
{
    static const char *const rules[][2] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                           {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                           {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                           {" 've", "'ve"}, {" 're", "'re"}};
    text_buffer from = {0};
    text_buffer_add(&from, text.text, text.length);
    for (size_t n = 0; n < sizeof rules / sizeof rules[0] && !from.failed; n++) {
        text_buffer next = {0};
        if (!from.bytes || !strstr(from.bytes, rules[n][0]))
            continue;
        put_replaced(&next, (bytes){from.bytes, from.length}, rules[n][0], rules[n][1]);
        text_buffer_free(&from);
        from = next;
    }
    if (from.failed)
        to->failed = true;
    else
        text_buffer_add(to, from.bytes, from.length);
    text_buffer_free(&from);
}

static void decode_wordpiece(const decoder_step *step, const piece_list *from, piece_list *to)
{
    const size_t prefix = strlen(step->content);
    for (size_t n = 0; n < from->count; n++) {
        bytes piece = piece_at(from, n);
        text_buffer text = {0};
        if (n && begins_with(piece, step->content, prefix))
            piece = (bytes){piece.text + prefix, piece.length - prefix};
        else if (n)
            text_buffer_add(&text, " ", 1);
        text_buffer_add(&text, piece.text, piece.length);
        if (text.failed)
            to->failed = true;
        else if (step->cleanup)
            put_cleaned(&to->text, (bytes){text.bytes, text.length});
        else
            text_buffer_add(&to->text, text.bytes, text.length);
        text_buffer_free(&text);
        piece_list_end(to);
    }
}

/* ----------------------------------------------------------------- bytes ----- */

/* Whether all characters of a piece stand for bytes. */
static bool is_byte_level(bytes piece)
{
    uint32_t c;
    for (size_t at = 0, count; at < piece.length; at += count) {
        count = utf8_decode(piece.text + at, piece.length - at, &c);
        if (count == 0 || character_byte(c) < 0)
            return false;
    }
    return true;
}

/* The result is one piece. */
static void decode_byte_level(const piece_list *from, piece_list *to)
{
    for (size_t n = 0; n < from->count; n++) {
        const bytes piece = piece_at(from, n);
        if (!is_byte_level(piece)) {
            text_buffer_add(&to->text, piece.text, piece.length);
            continue;
        }
        uint32_t c = 0;
        for (size_t at = 0; at < piece.length;) {
            at += utf8_decode(piece.text + at, piece.length - at, &c);
            const char byte = (char)character_byte(c);
            text_buffer_add(&to->text, &byte, 1);
        }
    }
    piece_list_end(to);
}

static int digit(char c)
{
    return c >= '0' && c <= '9'                     ? c - '0'
           : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                    : -1;
}

/* The byte of a piece such as "<0x41>"; -1 if it is another one. */
static int fallback_byte(bytes piece)
{
    if (piece.length != 6 || memcmp(piece.text, "<0x", 3) != 0 || piece.text[5] != '>')
        return -1;
    const int high = digit(piece.text[3]), low = digit(piece.text[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Neighbouring bytes become one piece. */
static void decode_byte_fallback(const piece_list *from, piece_list *to)
{
    for (size_t n = 0; n < from->count; n++) {
        const bytes piece = piece_at(from, n);
        const int byte = fallback_byte(piece);
        if (byte < 0) {
            text_buffer_add(&to->text, piece.text, piece.length);
        } else {
            const char c = (char)byte;
            text_buffer_add(&to->text, &c, 1);
            if (n + 1 < from->count && fallback_byte(piece_at(from, n + 1)) >= 0)
                continue;
        }
        piece_list_end(to);
    }
}

/* ---------------------------------------------------------------- others ----- */

static void decode_metaspace(const decoder_step *step, const piece_list *from, piece_list *to)
{
    for (size_t n = 0; n < from->count; n++) {
        const bytes piece = piece_at(from, n);
        for (size_t at = 0, count; at < piece.length; at += count) {
            uint32_t c = 0;
            count = utf8_decode(piece.text + at, piece.length - at, &c);
            const bool space = count && c == step->character;
            count += count == 0;
            if (!space)
                text_buffer_add(&to->text, piece.text + at, count);
            else if (n || !step->drop_first)
                text_buffer_add(&to->text, " ", 1);
        }
        piece_list_end(to);
    }
}

static void decode_strip(const decoder_step *step, const piece_list *from, piece_list *to)
{
    char content[4];
    const size_t length = utf8_encode(content, step->character);
    for (size_t n = 0; n < from->count; n++) {
        bytes piece = piece_at(from, n);
        for (size_t k = 0; k < step->start && begins_with(piece, content, length); k++)
            piece = (bytes){piece.text + length, piece.length - length};
        for (size_t k = 0; k < step->stop && piece.length >= length &&
                           memcmp(piece.text + piece.length - length, content, length) == 0;
             k++)
            piece.length -= length;
        text_buffer_add(&to->text, piece.text, piece.length);
        piece_list_end(to);
    }
}

/* Bytes that are not UTF-8 are not searched. */
static mha_status decode_replace(const decoder_step *step, const piece_list *from, piece_list *to)
{
    pattern_scratch *const scratch = pattern_scratch_create();
    if (!scratch)
        return MHA_ERR_MEMORY;
    mha_status status = MHA_OK;
    for (size_t n = 0; n < from->count && status == MHA_OK; n++) {
        const bytes piece = piece_at(from, n);
        size_t done = 0;
        if (mhai_utf8_valid(piece.text, piece.length)) {
            pattern_search s =
                pattern_search_begin(step->pattern, scratch, piece.text, piece.length);
            while (pattern_search_next(&s)) {
                text_buffer_add(&to->text, piece.text + done, s.begin - done);
                text_buffer_add_string(&to->text, step->content);
                done = s.end;
            }
            status = s.status;
        }
        text_buffer_add(&to->text, piece.text + done, piece.length - done);
        piece_list_end(to);
    }
    pattern_scratch_free(scratch);
    return status;
}

static void decode_bpe(const decoder_step *step, const piece_list *from, piece_list *to)
{
    for (size_t n = 0; n < from->count; n++) {
        put_replaced(&to->text, piece_at(from, n), step->content, n + 1 < from->count ? " " : "");
        piece_list_end(to);
    }
}

static void join(const piece_list *from, const char *between, piece_list *to)
{
    for (size_t n = 0; n < from->count; n++) {
        const bytes piece = piece_at(from, n);
        if (n)
            text_buffer_add_string(&to->text, between);
        text_buffer_add(&to->text, piece.text, piece.length);
    }
    piece_list_end(to);
}

static mha_status apply_one(const decoder_step *step, const piece_list *from, piece_list *to)
{
    switch (step->kind) {
    case DECODE_WORDPIECE:
        decode_wordpiece(step, from, to);
        break;
    case DECODE_BYTE_LEVEL:
        decode_byte_level(from, to);
        break;
    case DECODE_METASPACE:
        decode_metaspace(step, from, to);
        break;
    case DECODE_BYTE_FALLBACK:
        decode_byte_fallback(from, to);
        break;
    case DECODE_FUSE:
        join(from, "", to);
        break;
    case DECODE_STRIP:
        decode_strip(step, from, to);
        break;
    case DECODE_REPLACE:
        return decode_replace(step, from, to);
    case DECODE_BPE:
        decode_bpe(step, from, to);
        break;
    case DECODE_SPACES:
        join(from, " ", to);
        break;
    }
    return MHA_OK;
}

mha_status decoder_apply(const decoder_step *steps, size_t count, piece_list *pieces,
                         piece_list *next)
{
    mha_status status = MHA_OK;
    for (size_t n = 0; n < count && status == MHA_OK; n++) {
        next->count = next->text.length = 0;
        status = apply_one(&steps[n], pieces, next);
        const piece_list old = *pieces;
        *pieces = *next;
        *next = old;
        if (pieces->failed || pieces->text.failed)
            status = MHA_ERR_MEMORY;
    }
    return status;
}
