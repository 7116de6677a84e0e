/* SPDX-License-Identifier: MIT */
/* WordPiece (wordpiece.h). The length of a word is limited, so the search is too. */
#include "text/wordpiece.h"

#include <string.h>

static bool is_inside(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

static size_t count_characters(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t n = 0; n < length; n++)
        count += !is_inside(text[n]);
    return count;
}

/* The longest piece at `begin`, and where it ends; -1 if there is none. `buffer` has the prefix and
 * after it, for a word that has begun, the rest of the word. */
static int32_t longest_piece(const wordpiece *model, const vocabulary *v, const char *text,
                             size_t length, size_t fixed, size_t *piece_length)
{
    size_t end = length < model->longest_piece ? length : model->longest_piece;
    while (end < length && end > 0 && is_inside(text[end]))
        end--;
    while (end > fixed) {
        const int32_t id = vocab_find_model(v, text, end);
        if (id >= 0) {
            *piece_length = end;
            return id;
        }
        do
            end--;
        while (end > fixed && is_inside(text[end]));
    }
    return -1;
}

void wordpiece_encode(const wordpiece *model, const vocabulary *v, const char *word, size_t length,
                      text_buffer *buffer, token_list *list)
{
    const ptrdiff_t before = list->count;
    const size_t prefix = strlen(model->prefix);
    bool known =
        length <= 4 * model->longest_word && count_characters(word, length) <= model->longest_word;
    for (size_t at = 0; known && at < length;) {
        const size_t fixed = at ? prefix : 0;
        size_t piece = 0;
        const char *text = word + at;
        if (fixed) {
            buffer->length = 0;
            text_buffer_add(buffer, model->prefix, prefix);
            text_buffer_add(buffer, word + at, length - at);
            list->failed |= buffer->failed;
            text = buffer->bytes;
        }
        if (list->failed)
            return;
        const int32_t id = longest_piece(model, v, text, length - at + fixed, fixed, &piece);
        known = id >= 0;
        if (known) {
            token_list_add(list, id, at ? MHA_TOKEN_CONTINUES : 0, at, at + piece - fixed);
            at += piece - fixed;
        }
    }
    if (!known) {
        list->count = before;
        token_list_add(list, model->unknown, MHA_TOKEN_UNKNOWN, 0, length);
    }
}
