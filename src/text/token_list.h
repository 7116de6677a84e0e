/* SPDX-License-Identifier: MIT */
/* A growing list of tokens with their places in a text: what each step of a tokenizer appends to.
 */
#ifndef TEXT_TOKEN_LIST_H
#define TEXT_TOKEN_LIST_H

#include <mha/mha_model.h>

#include <stdbool.h>

typedef struct token_list {
    mha_token *tokens;
    ptrdiff_t count, room;
    bool failed; /* out of memory; later calls do nothing */
} token_list;

void token_list_add(token_list *list, int32_t id, uint32_t flags, size_t begin, size_t end);
void token_list_free(token_list *list);

#endif
