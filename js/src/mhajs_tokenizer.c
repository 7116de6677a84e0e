/* SPDX-License-Identifier: MIT */
/* Tokenizers: texts to arrays of numbers, and back. */
#include "mhajs_model.h"

#include <stdlib.h>

enum { NUMBERS = 5 }; /* of a token */

mha_tokenizer *mhajs_tokenizer_open(const char *path, char *message, int32_t message_size,
                                    int32_t *status)
{
    mha_tokenizer *tokenizer = NULL;
    *status = mha_tokenizer_open(&tokenizer, path, message, (size_t)message_size);
    return tokenizer;
}

static int32_t *numbers_of(const mha_tokens *tokens)
{
    int32_t *const numbers = malloc(((size_t)tokens->count * NUMBERS + 1) * sizeof *numbers);
    for (ptrdiff_t n = 0; numbers && n < tokens->count; n++) {
        const mha_token *const t = &tokens->tokens[n];
        int32_t *const to = numbers + n * NUMBERS;
        to[0] = t->id;
        to[1] = (int32_t)t->flags;
        to[2] = t->segment;
        to[3] = (int32_t)t->begin;
        to[4] = (int32_t)t->end;
    }
    return numbers;
}

int32_t *mhajs_tokenizer_encode(const mha_tokenizer *tokenizer, const char *first,
                                int32_t first_length, const char *second, int32_t second_length,
                                uint32_t flags, int32_t *count, int32_t *status)
{
    mha_tokens tokens = {NULL, 0};
    *status = second ? mha_tokenizer_encode_pair(tokenizer, first, (size_t)first_length, second,
                                                 (size_t)second_length, flags, &tokens)
                     : mha_tokenizer_encode(tokenizer, first, (size_t)first_length, flags, &tokens);
    if (*status != MHA_OK)
        return NULL;
    int32_t *const numbers = numbers_of(&tokens);
    *count = (int32_t)tokens.count;
    *status = numbers ? MHA_OK : MHA_ERR_MEMORY;
    mha_tokens_free(&tokens);
    return numbers;
}

char *mhajs_tokenizer_decode(const mha_tokenizer *tokenizer, const int32_t *ids, int32_t count,
                             uint32_t flags, int32_t *length, int32_t *status)
{
    char *text = NULL;
    size_t bytes = 0;
    *status = mha_tokenizer_decode(tokenizer, ids, count, flags, &text, &bytes);
    *length = (int32_t)bytes;
    return text;
}
