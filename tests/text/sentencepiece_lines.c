/* SPDX-License-Identifier: MIT */
/*
 * Tokenizes records for compare_sentencepiece.py. Each record of the input is a length, u32 little-
 * endian, and as many bytes. For each a line is written:
 *
 *      sentencepiece_lines encode MODEL      ID:BEGIN:END ... | the decoded text in hexadecimal
 *      sentencepiece_lines unigram MODEL     ID:BEGIN:END ... by the rules of "tokenizers"
 *      sentencepiece_lines rules MODEL       the text that MODEL's rules make by graphemes
 *      sentencepiece_lines decode MODEL      the record is a list of ids, i32: the text
 */
#include "text/sentencepiece.h"
#include "text/unigram.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct setting {
    sentencepiece *sp;
    sentencepiece_model model; /* of "unigram" and "rules" */
    unigram *unigram;
} setting;

static void write_hex(const char *text, size_t length)
{
    for (size_t n = 0; n < length; n++)
        printf("%02x", (unsigned char)text[n]);
}

static bool write_tokens(const token_list *list)
{
    for (ptrdiff_t n = 0; n < list->count; n++) {
        const mha_token *const t = &list->tokens[n];
        printf("%s%d:%zu:%zu", n ? " " : "", t->id, t->begin, t->end);
    }
    return !list->failed;
}

static bool write_decoded(const sentencepiece *sp, const int32_t *ids, ptrdiff_t count)
{
    char *text;
    size_t length;
    if (sentencepiece_decode(sp, ids, count, true, &text, &length) != MHA_OK)
        return false;
    write_hex(text, length);
    free(text);
    return true;
}

static bool encode(const setting *s, const char *text, size_t length)
{
    token_list list = {0};
    sentencepiece_encode(s->sp, text, length, &list);
    bool done = write_tokens(&list);
    int32_t *const ids = malloc(((size_t)list.count + 1) * sizeof *ids);
    for (ptrdiff_t n = 0; n < list.count; n++)
        ids[n] = list.tokens[n].id;
    printf(" | ");
    done = done && write_decoded(s->sp, ids, list.count);
    free(ids);
    token_list_free(&list);
    return done;
}

static bool split_by_unigram(const setting *s, const char *text, size_t length)
{
    token_list list = {0};
    unigram_encode(s->unigram, text, length, &list);
    const bool done = write_tokens(&list);
    token_list_free(&list);
    return done;
}

static bool write_part(void *context, size_t begin, size_t end, const char *by, size_t length)
{
    (void)context;
    (void)begin;
    (void)end;
    write_hex(by, length);
    return true;
}

static bool apply_rules(const setting *s, const char *text, size_t length)
{
    return precompiled_graphemes(s->model.rules, text, length, write_part, NULL);
}

static bool decode(const setting *s, const char *text, size_t length)
{
    int32_t *const ids = malloc(length + 1);
    memcpy(ids, text, length);
    const bool done = write_decoded(s->sp, ids, (ptrdiff_t)(length / sizeof *ids));
    free(ids);
    return done;
}

static bool run(const setting *s, bool (*one)(const setting *, const char *, size_t))
{
    unsigned char header[4];
    bool done = true;
    while (done && fread(header, 1, 4, stdin) == 4) {
        const size_t length =
            header[0] | (size_t)header[1] << 8 | (size_t)header[2] << 16 | (size_t)header[3] << 24;
        char *const text = malloc(length + 1);
        done = fread(text, 1, length, stdin) == length && one(s, text, length);
        printf("\n");
        free(text);
    }
    return done;
}

static bool read_model(setting *s, const char *path, char *message, size_t message_size)
{
    static char bytes[1 << 24];
    FILE *const file = fopen(path, "rb");
    if (file == NULL)
        return false;
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    if (sentencepiece_model_read(&s->model, bytes, size, message, message_size) != MHA_OK)
        return false;
    s->unigram = unigram_create(s->model.vocabulary, s->model.unknown_id, s->model.byte_fallback);
    return s->unigram != NULL;
}

int main(int argc, char **argv)
{
    char message[512] = "usage: sentencepiece_lines encode|unigram|rules|decode MODEL";
    const char *const way = argc == 3 ? argv[1] : "";
    setting s = {0};
    bool done = false;
    if (strcmp(way, "unigram") == 0 || strcmp(way, "rules") == 0) {
        done = read_model(&s, argv[2], message, sizeof message) &&
               run(&s, way[0] == 'u' ? split_by_unigram : apply_rules);
    } else if (argc == 3) {
        const size_t length = strlen(argv[2]);
        const bool is_llama2c = length > 4 && strcmp(argv[2] + length - 4, ".bin") == 0;
        done = (is_llama2c ? sentencepiece_from_llama2c : sentencepiece_open)(
                   &s.sp, argv[2], message, sizeof message) == MHA_OK &&
               run(&s, strcmp(way, "decode") == 0 ? decode : encode);
    }
    if (!done)
        fprintf(stderr, "sentencepiece_lines: %s\n", message);
    unigram_free(s.unigram);
    sentencepiece_model_free(&s.model);
    sentencepiece_free(s.sp);
    return done ? 0 : 1;
}
