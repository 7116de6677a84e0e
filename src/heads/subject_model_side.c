/* SPDX-License-Identifier: MIT */
/*
 * The tokens of one side of a text as they are shown. The words of tokens are made printable: a
 * token may be half of a character, or a line break.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "format/json_reader.h"
#include "heads/subject_model_parts.h"

bool model_out_of_memory(char *message)
{
    snprintf(message, SUBJECT_MESSAGE_MAX, "out of memory");
    return false;
}

/* ----------------------------------------------------------------- words ----- */

/* Copies a text without control characters: they become their pictures of Unicode, or spaces. */
void model_copy_printable(char *to, size_t room, const char *from, bool pictures)
{
    size_t used = 0;
    while (*from != '\0') {
        uint32_t c;
        const size_t length = text_decode(from, &c);
        char picture[4] = {' ', '\0', '\0', '\0'};
        const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
        if (control && pictures && c < 0x20)
            memcpy(picture, (char[]){(char)0xe2, (char)0x90, (char)(0x80 + c), '\0'}, 4);
        const char *const shown = control ? picture : from;
        const size_t size = control ? strlen(picture) : length;
        if (used + size + 1 > room)
            break;
        memcpy(to + used, shown, size);
        used += size;
        from += length;
    }
    to[used] = '\0';
}

static bool has_replacement(const char *text)
{
    return strstr(text, "\xef\xbf\xbd") != NULL;
}

/* The decoded text of tokens without the space before it. False: it is empty or has a part of a
 * character, and `room` is unchanged. */
static bool show_text(const mha_tokenizer *tokenizer, const int32_t *ids, int count,
                      char room[SUBJECT_WORD_MAX])
{
    char *text = NULL;
    size_t length;
    if (mha_tokenizer_decode(tokenizer, ids, count, 0, &text, &length) != MHA_OK)
        return false;
    const char *const shown = text[0] == ' ' && length > 1 ? text + 1 : text;
    const bool fine = length > 0 && strlen(text) == length && mhai_utf8_valid(text, length) &&
                      !has_replacement(shown);
    if (fine)
        model_copy_printable(room, SUBJECT_WORD_MAX, shown, true);
    mha_text_free(text);
    return fine;
}

/* The word of a token. The decoded text of a token is what a reader expects; where it is empty or
 * no whole character, the entry of the vocabulary is shown. */
void model_show_word(const mha_tokenizer *tokenizer, int32_t id, char room[SUBJECT_WORD_MAX])
{
    const char *const piece = mha_tokenizer_piece(tokenizer, id);
    const bool special = mha_tokenizer_flags(tokenizer, id) & MHA_TOKEN_SPECIAL;
    snprintf(room, SUBJECT_WORD_MAX, "%d", (int)id);
    if (piece)
        model_copy_printable(room, SUBJECT_WORD_MAX, piece, true);
    if (!special && piece && strncmp(piece, "##", 2) != 0)
        show_text(tokenizer, &id, 1, room);
}

/* ----------------------------------------------------------------- sides ----- */

bool model_side_make(model_side *m, int count, char *message)
{
    const size_t size = (size_t)count + 1;
    m->side = (subject_side){.words = calloc(size, sizeof *m->side.words),
                             .numbers = calloc(size, sizeof *m->side.numbers),
                             .marks = calloc(size, sizeof *m->side.marks),
                             .continues = calloc(size, sizeof *m->side.continues),
                             .wholes = calloc(size, sizeof *m->side.wholes)};
    m->ids = calloc(size, sizeof *m->ids);
    m->room = calloc(size, sizeof *m->room);
    return (m->side.words && m->side.numbers && m->side.marks && m->side.continues &&
            m->side.wholes && m->ids && m->room) ||
           model_out_of_memory(message);
}

/* Room for places in the text. */
bool model_side_places(model_side *m, int count, char *message)
{
    m->side.begins = calloc((size_t)count + 1, sizeof *m->side.begins);
    m->side.ends = calloc((size_t)count + 1, sizeof *m->side.ends);
    return (m->side.begins && m->side.ends) || model_out_of_memory(message);
}

void model_side_free(model_side *m)
{
    free((void *)m->side.words);
    free(m->side.numbers);
    free(m->side.marks);
    free(m->side.continues);
    free((void *)m->side.wholes);
    free(m->side.begins);
    free(m->side.ends);
    free(m->ids);
    free(m->room);
    free(m->whole_room);
}

void model_side_add(model_side *m, const mha_tokenizer *tokenizer, int32_t id, bool continues)
{
    const int n = m->side.count++;
    const bool mark = mha_tokenizer_flags(tokenizer, id) & MHA_TOKEN_SPECIAL;
    m->ids[n] = id;
    m->side.numbers[n] = id;
    m->side.marks[n] = mark;
    m->side.continues[n] = n > 0 && !mark && !m->side.marks[n - 1] && continues;
    model_show_word(tokenizer, id, m->room[n]);
    m->side.words[n] = m->room[n];
}

/* Whole words: those of several tokens are decoded together, so that a character which is cut into
 * bytes is shown. */
bool model_side_join(model_side *m, const mha_tokenizer *tokenizer, char *message)
{
    const subject_side *const side = &m->side;
    m->whole_room = calloc((size_t)side->count + 1, sizeof *m->whole_room);
    if (!m->whole_room)
        return model_out_of_memory(message);
    for (int first = 0, end; first < side->count; first = end) {
        end = first + 1;
        while (end < side->count && side->continues[end])
            end++;
        m->side.wholes[first] = m->room[first];
        if (end - first > 1)
            m->side.wholes[first] =
                show_text(tokenizer, m->ids + first, end - first, m->whole_room[first])
                    ? m->whole_room[first]
                    : NULL;
    }
    return true;
}

/* ------------------------------------------------------------- continues ----- */

/* Whether an entry of a vocabulary continues a word, where the text around it is not known. */
static bool piece_continues(const mha_tokenizer *tokenizer, int32_t id)
{
    static const char *const begins[] = {"\xe2\x96\x81", "\xc4\xa0"}; /* SentencePiece, bytes */
    const char *const piece = mha_tokenizer_piece(tokenizer, id);
    if (strcmp(mha_tokenizer_kind(tokenizer), "WordPiece") == 0)
        return piece && strncmp(piece, "##", 2) == 0;
    for (int n = 0; piece && n < 2; n++)
        if (strncmp(piece, begins[n], strlen(begins[n])) == 0)
            return false;
    return true;
}

/* Bytes of the text of the first `count` tokens; -1: it ends in the middle of a character, or out
 * of memory. */
static ptrdiff_t text_bytes(const mha_tokenizer *tokenizer, const int32_t *ids, ptrdiff_t count)
{
    static const char replacement[] = "\xef\xbf\xbd";
    char *text = NULL;
    size_t length;
    if (mha_tokenizer_decode(tokenizer, ids, count, 0, &text, &length) != MHA_OK)
        return -1;
    const bool cut = length >= 3 && memcmp(text + length - 3, replacement, 3) == 0;
    mha_text_free(text);
    return cut ? -1 : (ptrdiff_t)length;
}

/* Whether a word of the text begins at one of the bytes [from, to). */
static bool word_begins(const mha_tokens *words, ptrdiff_t from, ptrdiff_t to)
{
    for (ptrdiff_t n = 0; n < words->count; n++)
        if (!(words->tokens[n].flags & MHA_TOKEN_CONTINUES) &&
            (ptrdiff_t)words->tokens[n].begin >= from && (ptrdiff_t)words->tokens[n].begin < to)
            return true;
    return false;
}

void model_continues(const mha_tokenizer *tokenizer, const int32_t *ids, ptrdiff_t count,
                     bool *continues)
{
    mha_tokens words;
    char *text = NULL;
    size_t length;
    ptrdiff_t first = 0, from = 0; /* the first token of a character, and its place */
    for (ptrdiff_t n = 0; n < count; n++)
        continues[n] = piece_continues(tokenizer, ids[n]);
    if (mha_tokenizer_decode(tokenizer, ids, count, 0, &text, &length) != MHA_OK)
        return;
    const mha_status status = mha_tokenizer_encode(tokenizer, text, length, MHA_TEXT_PLAIN, &words);
    mha_text_free(text);
    for (ptrdiff_t n = 0; status == MHA_OK && n < count; n++) {
        const ptrdiff_t to = text_bytes(tokenizer, ids, n + 1);
        continues[n] = true;
        if (to < 0)
            continue;
        continues[first] = !word_begins(&words, from, to);
        first = n + 1;
        from = to;
    }
    if (status == MHA_OK)
        mha_tokens_free(&words);
}
