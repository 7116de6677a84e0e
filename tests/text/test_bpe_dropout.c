/* SPDX-License-Identifier: MIT */
/* BPE-dropout: how often merges are passed over, that a seed decides, and that texts stay the same.
 */
#include "support/test.h"
#include "support/tokens.h"
#include "text/bpe_dropout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char model[] =
    "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"c\": 2, \"ab\": 3, "
    "\"abc\": 4, \"bc\": 5, \"aa\": 6}, \"merges\": [\"a b\", \"ab c\", \"b c\", \"a a\"]}, "
    "\"decoder\": {\"type\": \"Fuse\"}}";

enum { IDS_MAX = 64 };

/* Encodes a text; returns the number of ids. */
static ptrdiff_t encode(const mha_tokenizer *t, const char *text, const bpe_dropout *dropout,
                        int32_t ids[IDS_MAX])
{
    mha_tokens tokens;
    CHECK(tokenizer_encode_dropout(t, text, strlen(text), 0, dropout, &tokens) == MHA_OK, "status");
    const ptrdiff_t count = tokens.count < IDS_MAX ? tokens.count : 0;
    for (ptrdiff_t n = 0; n < count; n++)
        ids[n] = tokens.tokens[n].id;
    mha_tokens_free(&tokens);
    return count;
}

static bool near(int found, double share, int rounds)
{
    return fabs(found - share * rounds) < 5 * sqrt(share * (1 - share) * rounds);
}

/*
 * "ab" is merged unless its only pair is passed over. In "abc", (a,b) is tried first: merged with
 * 1 - p, and then (ab,c) with 1 - p. If it is passed over, (b,c) is merged with 1 - p; no pair is
 * left then, since (a,bc) is no merge.
 */
static void pairs_are_passed_over(void)
{
    enum { ROUNDS = 20000 };
    const double p = 0.3;
    mha_tokenizer *const t = open_json(model);
    int merged = 0, abc = 0, ab_c = 0, a_bc = 0, a_b_c = 0;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        const bpe_dropout dropout = {p, seed};
        int32_t ids[IDS_MAX];
        merged += encode(t, "ab", &dropout, ids) == 1;
        const ptrdiff_t count = encode(t, "abc", &dropout, ids);
        abc += count == 1 && ids[0] == 4;
        ab_c += count == 2 && ids[0] == 3;
        a_bc += count == 2 && ids[1] == 5;
        a_b_c += count == 3;
    }
    CHECK(near(merged, 1 - p, ROUNDS), "ab: %d", merged);
    CHECK(near(abc, (1 - p) * (1 - p), ROUNDS), "abc: %d", abc);
    CHECK(near(ab_c, (1 - p) * p, ROUNDS), "ab c: %d", ab_c);
    CHECK(near(a_bc, p * (1 - p), ROUNDS), "a bc: %d", a_bc);
    CHECK(near(a_b_c, p * p, ROUNDS), "a b c: %d", a_b_c);
    mha_tokenizer_free(t);
}

/* In "abab" the second pair is merged, and then the first one is tried again. */
static void pairs_are_tried_again(void)
{
    enum { ROUNDS = 20000 };
    const double p = 0.5;
    mha_tokenizer *const t = open_json(model);
    int both = 0;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        int32_t ids[IDS_MAX];
        both += encode(t, "abab", &(bpe_dropout){p, seed}, ids) == 2;
    }
    /* One is merged unless both are passed over; after it, the other one is tried once more. */
    CHECK(near(both, (1 - p * p) * (1 - p), ROUNDS), "%d", both);
    mha_tokenizer_free(t);
}

static void texts_and_seeds(void)
{
    static const char text[] = "abcabaabbcaacbabcabcabababcbacbabcbabcbabababcaaaab";
    mha_tokenizer *const t = open_json(model);
    int32_t plain[IDS_MAX], ids[IDS_MAX], again[IDS_MAX];
    const ptrdiff_t count = encode(t, text, NULL, plain);
    int different = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        const bpe_dropout dropout = {0.7, seed}, none = {0, seed};
        const ptrdiff_t some = encode(t, text, &dropout, ids);
        CHECK(encode(t, text, &dropout, again) == some &&
                  memcmp(ids, again, (size_t)some * sizeof *ids) == 0,
              "seed %d twice", (int)seed);
        different += some != count || memcmp(ids, plain, (size_t)count * sizeof *ids) != 0;
        char *back = NULL;
        CHECK(mha_tokenizer_decode(t, ids, some, 0, &back, NULL) == MHA_OK &&
                  strcmp(back, text) == 0,
              "the text of seed %d", (int)seed);
        mha_text_free(back);
        CHECK(encode(t, text, &none, ids) == count &&
                  memcmp(ids, plain, (size_t)count * sizeof *ids) == 0,
              "without dropout");
    }
    CHECK(different > 190, "only %d seeds make a difference", different);
    mha_tokenizer_free(t);
}

/* Pairs that were passed over do not make it quadratic. */
static void a_word_of_a_megabyte(void)
{
    enum { LENGTH = 1 << 20 };
    mha_tokenizer *const t = open_json(model);
    char *const text = malloc(LENGTH);
    if (CHECK(text != NULL, "out of memory")) {
        memset(text, 'a', LENGTH);
        mha_tokens tokens = {0};
        CHECK(tokenizer_encode_dropout(t, text, LENGTH, 0, &(bpe_dropout){0.5, 1}, &tokens) ==
                      MHA_OK &&
                  tokens.count > LENGTH / 2 && tokens.count < LENGTH,
              "%td tokens", tokens.count);
        mha_tokens_free(&tokens);
    }
    free(text);
    mha_tokenizer_free(t);
}

static void what_is_refused(void)
{
    static const double invalid[] = {-0.1, 1, 2, NAN, INFINITY};
    mha_tokenizer *const t = open_json(model);
    mha_tokenizer *const words = open_json("{\"model\": {\"type\": \"WordLevel\", \"unk_token\": "
                                           "\"a\", \"vocab\": {\"a\": 0}}}");
    const bpe_dropout some = {0.5, 1};
    mha_tokens tokens;
    for (size_t n = 0; n < sizeof invalid / sizeof invalid[0]; n++)
        CHECK(tokenizer_encode_dropout(t, "a", 1, 0, &(bpe_dropout){invalid[n], 1}, &tokens) ==
                  MHA_ERR_DROPOUT,
              "probability %g", invalid[n]);
    CHECK(tokenizer_encode_dropout(words, "a", 1, 0, &some, &tokens) == MHA_ERR_FLAG, "no BPE");
    CHECK(tokenizer_encode_dropout(t, "a", 1, 1u << 31, &some, &tokens) == MHA_ERR_FLAG, "flags");
    CHECK(tokenizer_encode_dropout(NULL, "a", 1, 0, &some, &tokens) == MHA_ERR_NULL, "NULL");
    mha_tokenizer_free(t);
    mha_tokenizer_free(words);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(pairs_are_passed_over);
    RUN(pairs_are_tried_again);
    RUN(texts_and_seeds);
    RUN(a_word_of_a_megabyte);
    RUN(what_is_refused);
    return test_end();
}
