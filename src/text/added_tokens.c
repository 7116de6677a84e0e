/* SPDX-License-Identifier: MIT */
/*
 * Finds added tokens in a text. They are sorted by their bytes: at each place of the text the range
 * of tokens that still fit is narrowed byte by byte.
 */
#include "text/added_tokens.h"

#include "base/array.h"
#include "text/characters.h"

#include <stdlib.h>
#include <string.h>

bool added_tokens_add(added_tokens *list, const added_token *token)
{
    added_token *const tokens =
        mhai_array_grow(list->tokens, &list->room, list->count + 1, sizeof *tokens);
    if (!tokens)
        return false;
    list->tokens = tokens;
    char *const content = malloc(token->length + 1);
    if (!content)
        return false;
    memcpy(content, token->content, token->length);
    content[token->length] = '\0';
    tokens[list->count] = *token;
    tokens[list->count++].content = content;
    return true;
}

void added_tokens_free(added_tokens *list)
{
    for (size_t n = 0; n < list->count; n++)
        free(list->tokens[n].content);
    free(list->tokens);
    *list = (added_tokens){0};
}

/* Marks come before other tokens of the same content, and then the lower id. */
static int compare_tokens(const void *left, const void *right)
{
    const added_token *const a = left, *const b = right;
    const size_t shorter = a->length < b->length ? a->length : b->length;
    const int order = memcmp(a->content, b->content, shorter);
    if (order)
        return order;
    if (a->length != b->length)
        return a->length < b->length ? -1 : 1;
    if (a->special != b->special)
        return a->special ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

void added_tokens_sort(added_tokens *list)
{
    if (list->count)
        qsort(list->tokens, list->count, sizeof *list->tokens, compare_tokens);
    size_t n = 0;
    for (unsigned byte = 0; byte < 256; byte++) {
        list->first[byte] = (uint32_t)n;
        while (n < list->count && (unsigned char)list->tokens[n].content[0] == byte)
            n++;
    }
    list->first[256] = (uint32_t)n;
}

/* The byte of a token at a depth; -1 past its end. */
static int byte_at(const added_token *token, size_t depth)
{
    return depth < token->length ? (unsigned char)token->content[depth] : -1;
}

/* The first token in [low, high) whose byte is at least `byte`; they agree before `depth`. */
static size_t lower_bound(const added_tokens *list, size_t low, size_t high, size_t depth, int byte)
{
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (byte_at(&list->tokens[middle], depth) < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The longest token at the beginning of a text, or NULL. */
static const added_token *longest(const added_tokens *list, const char *text, size_t length)
{
    const unsigned char byte = (unsigned char)text[0];
    size_t low = list->first[byte], high = list->first[byte + 1];
    const added_token *found = NULL;
    for (size_t depth = 1; low < high; depth++) {
        if (list->tokens[low].length == depth)
            found = &list->tokens[low];
        if (depth >= length)
            break;
        low = lower_bound(list, low, high, depth, (unsigned char)text[depth]);
        high = lower_bound(list, low, high, depth, (unsigned char)text[depth] + 1);
    }
    return found;
}

/* --------------------------------------------------------------- a match ----- */

static size_t character_before(const aligned_text *text, size_t begin, size_t at)
{
    do
        at--;
    while (at > begin && ((unsigned char)text->text[at] & 0xc0) == 0x80);
    return at;
}

static bool is_word(const pattern *word, text_work *work, size_t at)
{
    size_t bytes;
    aligned_character(&work->text, at, &bytes);
    pattern_search s = pattern_search_begin(word, work->scratch, work->text.text + at, bytes);
    return pattern_search_next(&s);
}

static bool stands_alone(const pattern *word, text_work *work, const split *part, size_t begin,
                         size_t end)
{
    const bool before = begin > part->begin &&
                        is_word(word, work, character_before(&work->text, part->begin, begin));
    return !before && (end == part->end || !is_word(word, work, end));
}

/* Includes white space around a token, but not before `floor`. */
static void widen(const added_token *token, const aligned_text *text, const split *part,
                  size_t floor, size_t *begin, size_t *end)
{
    size_t bytes;
    while (token->left && *begin > floor) {
        const size_t before = character_before(text, part->begin, *begin);
        if (!character_is_space(aligned_character(text, before, &bytes)))
            break;
        *begin = before;
    }
    while (token->right && *end < part->end &&
           character_is_space(aligned_character(text, *end, &bytes)))
        *end += bytes;
}

static split token_split(const added_token *token, const aligned_text *text, size_t begin,
                         size_t end)
{
    split made = split_of(text, begin, end);
    size_t bytes;
    made.id = token->id;
    for (size_t at = begin; at < end && character_is_space(aligned_character(text, at, &bytes));
         at += bytes)
        made.leading++;
    for (size_t at = end; at > begin; made.trailing++) {
        at = character_before(text, begin, at);
        if (!character_is_space(aligned_character(text, at, &bytes)))
            break;
    }
    return made;
}

static void divide_part(const added_tokens *list, bool plain, const pattern *word,
                        const split *part, text_work *work)
{
    const aligned_text *const text = &work->text;
    size_t done = part->begin;
    for (size_t at = part->begin; list->count && at < part->end;) {
        const added_token *const found = longest(list, text->text + at, part->end - at);
        if (!found) {
            at++;
            continue;
        }
        size_t begin = at, end = at + found->length;
        at = end;
        if ((plain && found->special) ||
            (found->single_word && !stands_alone(word, work, part, begin, end)))
            continue;
        widen(found, text, part, done, &begin, &end);
        if (done < begin)
            split_list_add(&work->next_splits, split_of(text, done, begin));
        split_list_add(&work->next_splits, token_split(found, text, begin, end));
        done = end;
    }
    if (done < part->end)
        split_list_add(&work->next_splits, split_of(text, done, part->end));
}

mha_status added_tokens_divide(const added_tokens *list, bool plain, const pattern *word,
                               text_work *work)
{
    for (size_t n = 0; n < work->splits.count; n++) {
        const split part = work->splits.splits[n];
        if (part.id >= 0)
            split_list_add(&work->next_splits, part);
        else
            divide_part(list, plain, word, &part, work);
    }
    return text_work_swap_splits(work);
}
