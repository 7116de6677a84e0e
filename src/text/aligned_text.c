/* SPDX-License-Identifier: MIT */
/* Texts that know where their bytes came from, and their splits (aligned_text.h). */
#include "text/aligned_text.h"

#include "base/array.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

static bool grow(aligned_text *t, size_t more)
{
    if (t->failed)
        return false;
    char *const text = mhai_array_grow(t->text, &t->text_room, t->length + more, 1);
    if (text)
        t->text = text;
    span *const spans =
        text ? mhai_array_grow(t->spans, &t->span_room, t->length + more, sizeof *spans) : NULL;
    if (spans)
        t->spans = spans;
    t->failed = !text || !spans;
    return !t->failed;
}

void aligned_put(aligned_text *to, uint32_t c, span from)
{
    if (!grow(to, 4))
        return;
    const size_t bytes = utf8_encode(to->text + to->length, c);
    for (size_t n = 0; n < bytes; n++)
        to->spans[to->length++] = from;
}

void aligned_copy(aligned_text *to, const aligned_text *from, size_t begin, size_t end)
{
    const size_t count = end - begin;
    if (count == 0 || !grow(to, count))
        return;
    memcpy(to->text + to->length, from->text + begin, count);
    memcpy(to->spans + to->length, from->spans + begin, count * sizeof *to->spans);
    to->length += count;
}

/* The bytes of the longest beginning of a character that is no whole character: at least 1. A byte
 * continues it if some bytes after it would complete the character. */
static size_t broken_bytes(const char *text, size_t length)
{
    char whole[5] = {text[0], '\x80', '\x80', '\x80', '\x80'};
    size_t kept = 1;
    for (uint32_t c; kept < 3 && kept < length; kept++) {
        whole[kept] = text[kept];
        if (utf8_decode(whole, 4, &c) <= kept + 1)
            break;
    }
    return kept;
}

void aligned_begin(aligned_text *to, const char *text, size_t length)
{
    aligned_clear(to);
    grow(to, length);
    for (size_t at = 0; at < length && !to->failed;) {
        uint32_t c;
        size_t bytes = utf8_decode(text + at, length - at, &c);
        if (bytes == 0) {
            bytes = broken_bytes(text + at, length - at);
            c = 0xfffd;
        }
        aligned_put(to, c, (span){(uint32_t)at, (uint32_t)(at + bytes)});
        at += bytes;
    }
}

void aligned_clear(aligned_text *text)
{
    text->length = 0;
}

void aligned_free(aligned_text *text)
{
    free(text->text);
    free(text->spans);
    *text = (aligned_text){0};
}

uint32_t aligned_character(const aligned_text *text, size_t at, size_t *bytes)
{
    uint32_t c = 0xfffd;
    const size_t count = utf8_decode(text->text + at, text->length - at, &c);
    *bytes = count ? count : 1;
    return c;
}

/* ---------------------------------------------------------------- splits ----- */

void split_list_add(split_list *list, split part)
{
    split *const splits =
        list->failed ? NULL
                     : mhai_array_grow(list->splits, &list->room, list->count + 1, sizeof *splits);
    if (!splits) {
        list->failed = true;
        return;
    }
    list->splits = splits;
    splits[list->count++] = part;
}

void split_list_free(split_list *list)
{
    free(list->splits);
    *list = (split_list){0};
}

split split_of(const aligned_text *text, size_t begin, size_t end)
{
    split part = {.begin = begin, .end = end, .id = -1};
    if (begin < end)
        part.origin = (span){text->spans[begin].begin, text->spans[end - 1].end};
    return part;
}

/* ------------------------------------------------------------- transform ----- */

transform transform_begin(const aligned_text *from, const split *part, aligned_text *to)
{
    return (transform){from, part->begin, part->begin, part->end, part->origin.begin, to};
}

void transform_put(transform *t, uint32_t c, ptrdiff_t change)
{
    span from = {t->origin, t->origin};
    if (change > 0) {
        if (t->at > t->begin)
            from = t->from->spans[t->at - 1];
    } else {
        if (t->at < t->end)
            from = t->from->spans[t->at];
        for (ptrdiff_t n = 0; n >= change && t->at < t->end; n--) {
            size_t bytes;
            aligned_character(t->from, t->at, &bytes);
            t->at += bytes;
        }
    }
    aligned_put(t->to, c, from);
}
