/* SPDX-License-Identifier: MIT */
/*
 * The first step of SentencePiece: rules of replacement, spaces at the edges and between words, and
 * the added space. Each byte of the result remembers where it came from, which gives tokens their
 * offsets.
 */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/sentencepiece_parts.h"

/* Makes room for `count` more bytes, and for one more: the origin of the end. */
static void make_room(normalized_text *to, size_t count)
{
    const size_t needed = to->length + count + 1;
    if (to->failed || needed <= to->room)
        return;
    const size_t room = needed * 2;
    char *const text = realloc(to->text, room);
    if (text != NULL)
        to->text = text;
    size_t *const origins = realloc(to->origins, room * sizeof *origins);
    if (origins != NULL)
        to->origins = origins;
    if (text != NULL && origins != NULL)
        to->room = room;
    else
        to->failed = true;
}

static void append(normalized_text *to, const char *bytes, size_t count, size_t origin)
{
    make_room(to, count);
    if (to->failed)
        return;
    for (size_t n = 0; n < count; n++) {
        to->text[to->length + n] = bytes[n];
        to->origins[to->length + n] = origin;
    }
    to->length += count;
}

static void append_space(const sentencepiece *sp, normalized_text *to, size_t origin)
{
    if (sp->model.escapes_spaces)
        append(to, SPACE_SYMBOL, SPACE_SYMBOL_BYTES, origin);
    else
        append(to, " ", 1, origin);
}

/* What the beginning of a text is replaced by: a user's symbol by itself, else what the longest
 * rule says, else one character by itself, else (invalid UTF-8) by U+FFFD. */
static replacement replace_beginning(const sentencepiece *sp, const char *text, size_t length)
{
    const size_t symbol = piece_trie_longest(&sp->user_symbols, text, length);
    if (symbol > 0)
        return (replacement){symbol, text, symbol};
    if (sp->model.rules != NULL) {
        const replacement by = precompiled_longest(sp->model.rules, text, length);
        if (by.matched > 0)
            return by;
    }
    uint32_t c;
    const size_t bytes = utf8_decode(text, length, &c);
    return bytes > 0 ? (replacement){bytes, text, bytes} : (replacement){1, "\xef\xbf\xbd", 3};
}

static size_t skip_leading_spaces(const sentencepiece *sp, const char *text, size_t length)
{
    size_t at = 0;
    while (at < length) {
        const replacement by = replace_beginning(sp, text + at, length - at);
        if (by.length != 1 || by.text[0] != ' ')
            break;
        at += by.matched;
    }
    return at;
}

static void append_replacement(const sentencepiece *sp, normalized_text *to, replacement by,
                               size_t origin)
{
    for (size_t n = 0; n < by.length; n++) {
        if (by.text[n] == ' ')
            append_space(sp, to, origin);
        else
            append(to, by.text + n, 1, origin);
    }
}

/* Removes spaces at the end. Returns where what is left ends in the original text. */
static size_t drop_trailing_spaces(const sentencepiece *sp, normalized_text *to, size_t end)
{
    const char *const space = sp->model.escapes_spaces ? SPACE_SYMBOL : " ";
    const size_t bytes = strlen(space);
    while (to->length >= bytes && memcmp(to->text + to->length - bytes, space, bytes) == 0) {
        to->length -= bytes;
        end = to->origins[to->length];
    }
    return end;
}

normalized_text sentencepiece_normalize(const sentencepiece *sp, const char *text, size_t length)
{
    const sentencepiece_model *const model = &sp->model;
    normalized_text to = {0};
    size_t at = model->removes_extra_spaces ? skip_leading_spaces(sp, text, length) : 0;
    if (at == length)
        return to;
    if (model->adds_space && !model->space_is_suffix)
        append_space(sp, &to, at);
    bool after_space = model->removes_extra_spaces;
    while (at < length && !to.failed) {
        const replacement whole = replace_beginning(sp, text + at, length - at);
        replacement by = whole;
        for (; after_space && by.length > 0 && by.text[0] == ' '; by.length--)
            by.text++;
        append_replacement(sp, &to, by, at);
        if (by.length > 0)
            after_space = model->removes_extra_spaces && by.text[by.length - 1] == ' ';
        at += whole.matched;
    }
    if (model->removes_extra_spaces && !to.failed)
        at = drop_trailing_spaces(sp, &to, at);
    if (model->adds_space && model->space_is_suffix)
        append_space(sp, &to, at);
    append(&to, "", 1, at);
    to.length -= !to.failed;
    return to;
}

void normalized_text_free(normalized_text *normalized)
{
    free(normalized->text);
    free(normalized->origins);
}
