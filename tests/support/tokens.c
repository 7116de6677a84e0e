/* SPDX-License-Identifier: MIT */
/* Tokenizers and tokens for tests (tokens.h). */
#include "support/tokens.h"

#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void put_file(const temp_folder *folder, const char *name, const char *text)
{
    if (!file_make(temp_path(folder, name), text, strlen(text))) {
        fprintf(stderr, "cannot write %s\n", name);
        exit(1);
    }
}

mha_tokenizer *open_tokenizer(const temp_folder *folder, const char *name)
{
    char message[400] = "";
    mha_tokenizer *t = NULL;
    const char *const path = name[0] ? temp_path(folder, name) : folder->path;
    const mha_status status = mha_tokenizer_open(&t, path, message, sizeof message);
    CHECK(status == MHA_OK, "%s: %s (status %d)", name, message, (int)status);
    CHECK((status == MHA_OK) == (t != NULL), "tokenizer and status disagree");
    return t;
}

mha_tokenizer *open_json(const char *json)
{
    const temp_folder folder = temp_folder_new();
    put_file(&folder, "tokenizer.json", json);
    mha_tokenizer *const t = open_tokenizer(&folder, "tokenizer.json");
    temp_folder_free(&folder);
    return t;
}

mha_status refusal(const char *name, const char *text, char *message, size_t size)
{
    const temp_folder folder = temp_folder_new();
    mha_tokenizer *t = NULL;
    message[0] = '\0';
    put_file(&folder, name, text);
    const mha_status status = mha_tokenizer_open(&t, temp_path(&folder, name), message, size);
    CHECK((status == MHA_OK) == (t != NULL), "tokenizer and status disagree");
    mha_tokenizer_free(t);
    temp_folder_free(&folder);
    return status;
}

static void print_tokens(const mha_tokens *tokens, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (ptrdiff_t n = 0; n < tokens->count && used < size; n++) {
        const mha_token *const t = &tokens->tokens[n];
        char place[48] = "";
        if (t->begin < t->end)
            snprintf(place, sizeof place, "%zu,%zu", t->begin, t->end);
        used += (size_t)snprintf(text + used, size - used, "%s%d[%s]%s%s%s%s", n ? " " : "",
                                 (int)t->id, place, t->flags & MHA_TOKEN_CONTINUES ? "+" : "",
                                 t->flags & MHA_TOKEN_UNKNOWN ? "?" : "",
                                 t->flags & MHA_TOKEN_SPECIAL ? "!" : "", t->segment ? ":1" : "");
    }
}

void expect_tokens(const mha_tokenizer *t, const char *text, unsigned flags, const char *wanted)
{
    char printed[2000];
    mha_tokens tokens;
    const mha_status status = mha_tokenizer_encode(t, text, strlen(text), flags, &tokens);
    if (!CHECK(status == MHA_OK, "\"%s\": status %d", text, (int)status))
        return;
    print_tokens(&tokens, printed, sizeof printed);
    CHECK(strcmp(printed, wanted) == 0, "\"%s\" is %s instead of %s", text, printed, wanted);
    mha_tokens_free(&tokens);
}

void expect_pair(const mha_tokenizer *t, const char *first, const char *second, const char *wanted)
{
    char printed[2000];
    mha_tokens tokens;
    const mha_status status = mha_tokenizer_encode_pair(t, first, strlen(first), second,
                                                        strlen(second), MHA_TEXT_MARKS, &tokens);
    if (!CHECK(status == MHA_OK, "\"%s\", \"%s\": status %d", first, second, (int)status))
        return;
    print_tokens(&tokens, printed, sizeof printed);
    CHECK(strcmp(printed, wanted) == 0, "\"%s\", \"%s\" is %s instead of %s", first, second,
          printed, wanted);
    mha_tokens_free(&tokens);
}

void expect_text(const mha_tokenizer *t, const int32_t *ids, unsigned flags, const char *wanted)
{
    char *text;
    size_t length;
    ptrdiff_t count = 0;
    while (ids[count] >= 0)
        count++;
    const mha_status status = mha_tokenizer_decode(t, ids, count, flags, &text, &length);
    if (!CHECK(status == MHA_OK, "status %d", (int)status))
        return;
    CHECK(strcmp(text, wanted) == 0 && length == strlen(text), "\"%s\" instead of \"%s\"", text,
          wanted);
    mha_text_free(text);
}
