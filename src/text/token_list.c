/* SPDX-License-Identifier: MIT */
/* The growing list of tokens that every step of a tokenizer appends to. */
#include "text/token_list.h"

#include "base/array.h"

#include <stdlib.h>

void token_list_add(token_list *list, int32_t id, uint32_t flags, size_t begin, size_t end)
{
    size_t room = (size_t)list->room;
    if (list->failed)
        return;
    mha_token *const tokens =
        mhai_array_grow(list->tokens, &room, (size_t)list->count + 1, sizeof *tokens);
    if (!tokens) {
        list->failed = true;
        return;
    }
    list->tokens = tokens;
    list->room = (ptrdiff_t)room;
    tokens[list->count++] = (mha_token){.id = id, .flags = flags, .begin = begin, .end = end};
}

void token_list_free(token_list *list)
{
    free(list->tokens);
    *list = (token_list){0};
}
