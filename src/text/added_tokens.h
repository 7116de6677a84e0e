/* SPDX-License-Identifier: MIT */
/* Tokens that are found in a text before it is divided otherwise, such as "<|im_end|>". */
#ifndef TEXT_ADDED_TOKENS_H
#define TEXT_ADDED_TOKENS_H

#include "text/aligned_text.h"
#include "text/pre_tokenizer.h"

enum { ADDED_TOKEN_BYTES_MAX = 1024 };

typedef struct added_token {
    char *content;
    size_t length;
    int32_t id;
    bool single_word; /* not next to a letter or digit */
    bool left, right; /* white space before or after it belongs to it */
    bool normalized;  /* it is searched in the normalised text */
    bool special;     /* a mark */
} added_token;

typedef struct added_tokens {
    added_token *tokens; /* sorted by content once added_tokens_sort() was called */
    size_t count, room;
    uint32_t first[257]; /* by first byte: tokens[first[b]] .. tokens[first[b + 1] - 1] */
} added_tokens;

/* Copies the content, of 1 to ADDED_TOKEN_BYTES_MAX bytes. False: out of memory. */
bool added_tokens_add(added_tokens *list, const added_token *token);
void added_tokens_sort(added_tokens *list);
void added_tokens_free(added_tokens *list);

/* Divides the splits of a text at the tokens in them: at the leftmost place the longest one. Marks
 * stay text if `plain`. */
mha_status added_tokens_divide(const added_tokens *list, bool plain, const pattern *word,
                               text_work *work);

#endif
