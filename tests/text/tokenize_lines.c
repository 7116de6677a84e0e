/* SPDX-License-Identifier: MIT */
/*
 * tokenize_lines PATH [FLAGS]: what a tokenizer makes of texts, for compare_tokenizers.py. Each
 * text on standard input is its length (u32, little-endian) and its bytes; with the flag "pairs"
 * two of them belong together, with "ids" a text is an array of ids (i32) to decode. The answer is
 * the number of tokens (u32) and for each token id, begin, end, segment and flags (u32); or the
 * length of the text that was decoded (u32) and its bytes. FLAGS are letters: m marks, p plain, s
 * skip marks.
 */
#include <mha/mha_model.h>

#include <stdbool.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct text {
    char *bytes;
    uint32_t length;
} text;

static bool read_text(text *t)
{
    if (fread(&t->length, sizeof t->length, 1, stdin) != 1)
        return false;
    t->bytes = malloc((size_t)t->length + 1);
    return t->bytes && fread(t->bytes, 1, t->length, stdin) == t->length;
}

static void write_number(size_t number)
{
    const uint32_t n = (uint32_t)number;
    fwrite(&n, sizeof n, 1, stdout);
}

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "tokenize_lines: %s\n", what);
    exit(1);
}

static void write_tokens(mha_tokens *tokens)
{
    write_number((size_t)tokens->count);
    for (ptrdiff_t n = 0; n < tokens->count; n++) {
        const mha_token *const t = &tokens->tokens[n];
        write_number((size_t)t->id);
        write_number(t->begin);
        write_number(t->end);
        write_number((size_t)t->segment);
        write_number(t->flags);
    }
    mha_tokens_free(tokens);
}

static void decode(const mha_tokenizer *tokenizer, const text *t, unsigned flags)
{
    char *decoded;
    size_t length;
    if (mha_tokenizer_decode(tokenizer, (const int32_t *)(const void *)t->bytes,
                             (ptrdiff_t)(t->length / 4), flags, &decoded, &length) != MHA_OK)
        fail("decoding failed");
    write_number(length);
    fwrite(decoded, 1, length, stdout);
    mha_text_free(decoded);
}

int main(int argc, char **argv)
{
    char message[500];
    mha_tokenizer *tokenizer;
    if (argc < 3)
        fail("usage: tokenize_lines PATH texts|pairs|ids [FLAGS]");
    if (mha_tokenizer_open(&tokenizer, argv[1], message, sizeof message) != MHA_OK)
        fail(message);
    const char *const letters = argc > 3 ? argv[3] : "";
    const unsigned flags = (strchr(letters, 'm') ? MHA_TEXT_MARKS : 0u) |
                           (strchr(letters, 'p') ? MHA_TEXT_PLAIN : 0u) |
                           (strchr(letters, 's') ? MHA_TEXT_SKIP_MARKS : 0u);
    text first = {0}, second = {0};
    while (read_text(&first)) {
        mha_tokens tokens;
        if (argv[2][0] == 'i') {
            decode(tokenizer, &first, flags);
        } else if (argv[2][0] == 'p') {
            if (!read_text(&second))
                fail("a pair without its second text");
            if (mha_tokenizer_encode_pair(tokenizer, first.bytes, first.length, second.bytes,
                                          second.length, flags, &tokens) != MHA_OK)
                fail("encoding failed");
            write_tokens(&tokens);
            free(second.bytes);
        } else {
            if (mha_tokenizer_encode(tokenizer, first.bytes, first.length, flags, &tokens) !=
                MHA_OK)
                fail("encoding failed");
            write_tokens(&tokens);
        }
        free(first.bytes);
    }
    mha_tokenizer_free(tokenizer);
    return 0;
}
