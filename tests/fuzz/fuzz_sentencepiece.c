/* SPDX-License-Identifier: MIT */
/*
 * Bytes as a SentencePiece file and a text: the first half of the bytes damages or extends a small
 * model, or is one; the rest is the text. Whatever they are, tokens lie inside of the text in their
 * order, ids exist, and the tokens can be decoded.
 *
 *      clang -fsanitize=fuzzer,address ... fuzz_sentencepiece.c    a libFuzzer target
 *      cc -DFUZZ_STANDALONE ... fuzz_sentencepiece.c test.c        a test with pseudo-random bytes
 */
#include "support/fuzz.h"
#include "support/sentencepiece_case.h"
#include "text/sentencepiece.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 1024, IDS_MAX = 16384 };

static void check_list(const token_list *list, const vocabulary *v, size_t length)
{
    size_t begin = 0, end = 0;
    for (ptrdiff_t n = 0; n < list->count; n++) {
        const mha_token *const t = &list->tokens[n];
        if (vocab_piece(v, t->id, NULL) == NULL)
            fuzz_die("an id without a piece");
        if (t->begin > t->end || t->end > length || t->begin < begin || t->end < end)
            fuzz_die("a token outside of its place");
        begin = t->begin;
        end = t->end;
    }
}

static void decode_list(const sentencepiece *sp, const token_list *list)
{
    static int32_t ids[IDS_MAX];
    char *text;
    size_t length;
    const ptrdiff_t count = list->count < IDS_MAX ? list->count : IDS_MAX;
    for (ptrdiff_t n = 0; n < count; n++)
        ids[n] = list->tokens[n].id;
    if (sentencepiece_decode(sp, ids, count, false, &text, &length) != MHA_OK)
        fuzz_die("tokens cannot be decoded");
    if (text[length] != '\0')
        fuzz_die("a text does not end");
    free(text);
}

/* The first byte says how a model is made of the next ones. */
static void make_model(sentencepiece_builder *b, const uint8_t *bytes, size_t size)
{
    const unsigned way = size > 0 ? bytes[0] : 0;
    if (way % 4 == 3) {
        b->size = size - 1;
        memcpy(b->bytes, bytes + 1, b->size);
        return;
    }
    small_model(b, way & 8 ? SENTENCEPIECE_BPE : SENTENCEPIECE_UNIGRAM);
    if (way & 16) {
        builder_bytes(b);
        builder_number(b, TRAINER, BYTE_FALLBACK, 1);
    }
    builder_number(b, NORMALIZER, REMOVE_SPACES, way >> 5 & 1);
    builder_number(b, TRAINER, SUFFIX, way >> 6 & 1);
    for (size_t n = 1; n + 2 < size && way % 4 == 1; n += 3)
        b->bytes[((size_t)bytes[n] << 8 | bytes[n + 1]) % b->size] = bytes[n + 2];
    for (size_t n = 1; n + 3 < size && way % 4 == 2; n += 4) {
        const char piece[3] = {(char)('a' + bytes[n] % 3), (char)(bytes[n + 1] | 1), '\0'};
        builder_piece(b, piece, (float)bytes[n + 2],
                      1 + bytes[n + 3] % 5 + (bytes[n + 3] % 5 == 1));
    }
}

static bool fuzz_one(const uint8_t *bytes, size_t size)
{
    static sentencepiece_builder b;
    sentencepiece *sp = NULL;
    token_list list = {0};
    size = size < BYTES_MAX ? size : BYTES_MAX;
    const size_t half = size / 2, length = size - half;
    make_model(&b, bytes, half);
    if (sentencepiece_open_memory(&sp, b.bytes, b.size, NULL, 0) != MHA_OK)
        return false;
    fuzz f = fuzz_begin(bytes, 0);
    char *const text = fuzz_buffer(&f, length);
    if (length > 0)
        memcpy(text, bytes + half, length);
    sentencepiece_encode(sp, text, length, &list);
    if (list.failed)
        fuzz_die("out of memory");
    check_list(&list, sentencepiece_vocabulary(sp), length);
    decode_list(sp, &list);
    token_list_free(&list);
    sentencepiece_free(sp);
    fuzz_finish(&f, MHA_OK);
    return true;
}

static void pseudo_random_models(void)
{
    static const char letters[] = "aabb  \xc3\xa9\xe2\x96\x81x<\xff";
    uint8_t bytes[256];
    test_random random = {test_seed(78)};
    const int64_t rounds = test_effort(30000);
    int64_t opened = 0;
    for (int64_t n = 0; n < rounds; n++) {
        const size_t size = 8 * (size_t)(1 + test_random_below(&random, 32));
        fuzz_random_bytes(&random, bytes, size);
        for (size_t i = size / 2; i < size; i++) {
            if (bytes[i] < 200)
                bytes[i] = (uint8_t)letters[bytes[i] % (sizeof letters - 1)];
        }
        opened += fuzz_one(bytes, size);
    }
    CHECK(rounds < 1000 || opened > rounds / 4, "only %lld of %lld were models", (long long)opened,
          (long long)rounds);
}

FUZZ_TARGET(fuzz_one, pseudo_random_models)
