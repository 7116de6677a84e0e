/* SPDX-License-Identifier: MIT */
/* The unigram model (text/unigram.h) and its trie, compared with a search through all ways to split
 * a text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"
#include "text/piece_trie.h"
#include "text/unigram.h"

static void add(vocabulary *v, const char *piece, float score, unsigned flags)
{
    CHECK(vocab_add(v, vocab_size(v), piece, strlen(piece), score, flags), "%s", piece);
}

static vocabulary *small_vocabulary(void)
{
    vocabulary *const v = vocab_create();
    add(v, "<unk>", 0, PIECE_UNKNOWN);
    add(v, "a", -2, 0);
    add(v, "b", -2, 0);
    add(v, "ab", -3, 0);
    add(v, "abc", -9, 0);
    add(v, "c", -4, 0);
    add(v, "\xc3\xa9", -2, 0);
    return v;
}

/* Writes tokens as "ID:BEGIN-END ...". */
static const char *written(const token_list *list)
{
    static char text[4096];
    size_t used = 0;
    text[0] = '\0';
    for (ptrdiff_t n = 0; n < list->count; n++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%d:%zu-%zu", n ? " " : "",
                                 list->tokens[n].id, list->tokens[n].begin, list->tokens[n].end);
    return text;
}

static void check_tokens(const unigram *model, const char *text, const char *wanted)
{
    token_list list = {0};
    unigram_encode(model, text, strlen(text), &list);
    CHECK(!list.failed, "%s: failed", text);
    CHECK(strcmp(written(&list), wanted) == 0, "%s: %s, not %s", text, written(&list), wanted);
    token_list_free(&list);
}

static void the_best_sum_is_taken(void)
{
    vocabulary *const v = small_vocabulary();
    unigram *const model = unigram_create(v, 0, false);
    check_tokens(model, "", "");
    check_tokens(model, "a", "1:0-1");
    check_tokens(model, "ab", "3:0-2");
    check_tokens(model, "abc", "3:0-2 5:2-3"); /* -7 instead of -9 */
    check_tokens(model, "ba", "2:0-1 1:1-2");
    check_tokens(model, "a\xc3\xa9", "1:0-1 6:1-3");
    unigram_free(model);
    vocab_free(v);
}

static void the_first_of_equal_sums_stays(void)
{
    vocabulary *const v = vocab_create();
    add(v, "<unk>", 0, PIECE_UNKNOWN);
    add(v, "a", -1, 0);
    add(v, "aa", -2, 0);
    unigram *const model = unigram_create(v, 0, false);
    check_tokens(model, "aa", "2:0-2");
    check_tokens(model, "aaa", "1:0-1 2:1-3");
    unigram_free(model);
    vocab_free(v);
}

/* The sum of both scores lies between two f32 and is rounded down. It is the same for "l ll" and
 * "ll l" only if both are rounded before they are compared. */
static void sums_are_rounded_before_they_are_compared(void)
{
    vocabulary *const v = vocab_create();
    add(v, "<unk>", 0, PIECE_UNKNOWN);
    add(v, "l", -1, 0);
    add(v, "ll", -1 - 0x3p-23f, 0);
    unigram *const model = unigram_create_sentencepiece(v, 0);
    check_tokens(model, "lll", "1:0-1 2:1-3");
    unigram_free(model);
    vocab_free(v);
}

static void unknown_characters_are_fused(void)
{
    vocabulary *const v = small_vocabulary();
    unigram *const model = unigram_create(v, 0, false);
    check_tokens(model, "x", "0:0-1");
    check_tokens(model, "xya", "0:0-2 1:2-3");
    check_tokens(model,
                 "a\xe4\xb8\xad\xe5\x9b\xbd"
                 "b",
                 "1:0-1 0:1-7 2:7-8");
    check_tokens(model, "<unk>", "0:0-5");
    unigram_free(model);
    unigram *const single = unigram_create_sentencepiece(v, 0);
    check_tokens(single, "xya", "0:0-1 0:1-2 1:2-3");
    check_tokens(single, "<unk>", "0:0-1 0:1-2 0:2-3 0:3-4 0:4-5");
    unigram_free(single);
    unigram *const none = unigram_create(v, -1, false);
    check_tokens(none, "xya", "1:2-3");
    unigram_free(none);
    vocab_free(v);
}

static void unknown_characters_become_bytes(void)
{
    vocabulary *const v = small_vocabulary();
    add(v, "<0xE4>", -5, PIECE_BYTE);
    add(v, "<0xB8>", -5, PIECE_BYTE);
    add(v, "<0xAD>", -5, PIECE_BYTE);
    unigram *const model = unigram_create(v, 0, true);
    check_tokens(model, "a\xe4\xb8\xad", "1:0-1 7:1-4 8:1-4 9:1-4");
    check_tokens(model, "x", "0:0-1");
    check_tokens(model, "<unk>", "0:0-5");
    unigram_free(model);
    vocab_free(v);
}

static void marks_and_bytes_are_not_in_a_text(void)
{
    vocabulary *const v = small_vocabulary();
    add(v, "</s>", -1, PIECE_SPECIAL);
    add(v, "abcabc", -1, PIECE_UNUSED);
    unigram *const model = unigram_create_sentencepiece(v, 0);
    check_tokens(model, "abcabc", "3:0-2 5:2-3 3:3-5 5:5-6");
    check_tokens(model, "</s>", "0:0-1 0:1-2 0:2-3 0:3-4");
    unigram_free(model);
    unigram *const all = unigram_create(v, 0, false);
    check_tokens(all, "</s>a", "7:0-4 1:4-5");
    unigram_free(all);
    vocab_free(v);
}

static void a_symbol_of_the_user_is_kept_whole(void)
{
    vocabulary *const v = small_vocabulary();
    add(v, "bca", -100, PIECE_USER);
    unigram *const model = unigram_create_sentencepiece(v, 0);
    check_tokens(model, "abcab", "1:0-1 7:1-4 2:4-5");
    unigram_free(model);
    vocab_free(v);
}

/* The best sum of all ways to write a text, by trying them. */
static double best_sum(const vocabulary *v, const char *text, double unknown)
{
    double best = *text ? -INFINITY : 0;
    bool has_character = false;
    for (size_t length = 1; *text && length <= strlen(text); length++) {
        const int32_t id = vocab_find(v, text, length);
        if (id < 0)
            continue;
        has_character |= length == 1;
        best = fmax(best, (double)vocab_score(v, id) + best_sum(v, text + length, unknown));
    }
    if (*text && !has_character)
        best = fmax(best, unknown + best_sum(v, text + 1, unknown));
    return best;
}

static void random_vocabulary(test_random *random, vocabulary *v)
{
    add(v, "<unk>", 0, PIECE_UNKNOWN);
    for (int n = 0; n < 12; n++) {
        char piece[8] = "";
        const int64_t length = 1 + test_random_below(random, 4);
        for (int64_t i = 0; i < length; i++)
            piece[i] = (char)('a' + test_random_below(random, 3));
        if (vocab_find(v, piece, strlen(piece)) < 0)
            add(v, piece, (float)-test_random_below(random, 20), 0);
    }
}

static void random_texts_have_the_best_sum(void)
{
    test_random random = {test_seed(3)};
    const int64_t rounds = test_effort(2000);
    for (int64_t round = 0; round < rounds; round++) {
        vocabulary *const v = vocab_create();
        random_vocabulary(&random, v);
        unigram *const model = unigram_create(v, 0, false);
        double smallest = 0, sum = 0;
        char text[12] = "";
        token_list list = {0};
        size_t at = 0;
        for (int32_t id = 0; id < vocab_size(v); id++)
            smallest = fmin(smallest, (double)vocab_score(v, id));
        for (int64_t n = test_random_below(&random, 11); n > 0; n--)
            text[n - 1] = (char)('a' + test_random_below(&random, 4));
        for (size_t n = strlen(text); n < sizeof text; n++)
            text[n] = '\0';
        unigram_encode(model, text, strlen(text), &list);
        for (ptrdiff_t n = 0; n < list.count; n++) {
            const mha_token *const t = &list.tokens[n];
            CHECK(t->begin == at, "%s: a gap at %zu", text, at);
            at = t->end;
            sum += t->id == 0 ? (smallest - 10) * (double)(t->end - t->begin)
                              : (double)vocab_score(v, t->id);
        }
        CHECK(at == strlen(text), "%s: ends at %zu", text, at);
        CHECK(sum == best_sum(v, text, smallest - 10), "%s: %g", text, sum);
        token_list_free(&list);
        unigram_free(model);
        vocab_free(v);
    }
}

/* A million characters; a long piece matches at every place except for its last byte. */
static void a_long_text_takes_linear_time(void)
{
    enum { LENGTH = 1 << 20 };
    vocabulary *const v = small_vocabulary();
    add(v, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", -1, 0);
    unigram *const model = unigram_create(v, 0, false);
    char *const text = malloc(LENGTH);
    token_list list = {0};
    memset(text, 'a', LENGTH);
    unigram_encode(model, text, LENGTH, &list);
    CHECK(list.count == LENGTH, "%td tokens", list.count);
    token_list_free(&list);
    free(text);
    unigram_free(model);
    vocab_free(v);
}

static void the_trie_has_what_the_filter_takes(void)
{
    vocabulary *const v = small_vocabulary();
    piece_trie trie;
    add(v, "abd", 0, PIECE_USER);
    add(v, "abd", 0, PIECE_USER);
    CHECK(piece_trie_create(&trie, v, (piece_filter){PIECE_USER, 0}), "memory");
    CHECK(trie.count == 4, "%d nodes", trie.count);
    CHECK(piece_trie_longest(&trie, "abdx", 4) == 3, "abdx");
    CHECK(piece_trie_longest(&trie, "abx", 3) == 0, "abx");
    CHECK(piece_trie_longest(&trie, "abd", 2) == 0, "ab");
    CHECK(trie.ids[3] == 7, "id %d", trie.ids[3]);
    piece_trie_free(&trie);
    CHECK(piece_trie_create(&trie, v, (piece_filter){0, PIECE_USER | PIECE_UNKNOWN}), "memory");
    CHECK(piece_trie_longest(&trie, "abd", 3) == 2, "ab");
    CHECK(piece_trie_longest(&trie, "abcd", 4) == 3, "abc");
    piece_trie_free(&trie);
    CHECK(piece_trie_create(&trie, v, (piece_filter){PIECE_BYTE, 0}), "memory");
    CHECK(trie.count == 1 && piece_trie_longest(&trie, "a", 1) == 0, "an empty trie");
    piece_trie_free(&trie);
    vocab_free(v);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(the_best_sum_is_taken);
    RUN(the_first_of_equal_sums_stays);
    RUN(sums_are_rounded_before_they_are_compared);
    RUN(unknown_characters_are_fused);
    RUN(unknown_characters_become_bytes);
    RUN(marks_and_bytes_are_not_in_a_text);
    RUN(a_symbol_of_the_user_is_kept_whole);
    RUN(random_texts_have_the_best_sum);
    RUN(a_long_text_takes_linear_time);
    RUN(the_trie_has_what_the_filter_takes);
    return test_end();
}
