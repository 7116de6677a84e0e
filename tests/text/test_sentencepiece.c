/* SPDX-License-Identifier: MIT */
/* The SentencePiece tokenizer (text/sentencepiece.h) with small models that are built here. What
 * larger ones do is compared with the library by compare_sentencepiece.py. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/sentencepiece_case.h"
#include "support/test.h"

static sentencepiece_builder b;

static void pairs_are_merged_by_score(void)
{
    small_model(&b, SENTENCEPIECE_BPE);
    sentencepiece *const sp = open_model(&b);
    check_tokens(sp, "", "");
    check_tokens(sp, "ab", "8:0-2");
    check_tokens(sp, "aab", "7:0-1 6:1-3");
    check_tokens(sp, "abab", "8:0-2 6:2-4");
    check_tokens(sp, "a b", "7:0-1 3:1-2 5:2-3");
    check_tokens(sp, "ab ab", "8:0-2 8:2-5");
    check_tokens(sp, "\xc3\xa9", "3:0-0 9:0-2");
    CHECK(sentencepiece_get_info(sp).adds_begin && !sentencepiece_get_info(sp).adds_end, "marks");
    sentencepiece_free(sp);
}

static void scores_are_summed(void)
{
    small_model(&b, SENTENCEPIECE_UNIGRAM);
    sentencepiece *const sp = open_model(&b);
    check_tokens(sp, "", "");
    check_tokens(sp, "ab", "8:0-2");
    check_tokens(sp, "aab", "7:0-1 6:1-3");
    check_tokens(sp, "a b", "7:0-1 3:1-2 5:2-3");
    sentencepiece_free(sp);
}

static void spaces_are_normalised(void)
{
    small_model(&b, SENTENCEPIECE_BPE);
    sentencepiece *sp = open_model(&b);
    check_tokens(sp, "   ", "");
    check_tokens(sp, "  ab  ab  ", "8:2-4 8:4-8");
    sentencepiece_free(sp);
    builder_number(&b, NORMALIZER, REMOVE_SPACES, 0);
    sp = open_model(&b);
    check_tokens(sp, " ab", "3:0-0 8:0-3");
    check_tokens(sp, "ab ", "8:0-2 3:2-3");
    check_tokens(sp, " ", "3:0-0 3:0-1");
    sentencepiece_free(sp);
    builder_number(&b, NORMALIZER, ADD_SPACE, 0);
    sp = open_model(&b);
    check_tokens(sp, "ab ab", "6:0-2 8:2-5");
    sentencepiece_free(sp);
}

static void the_space_can_follow(void)
{
    small_model(&b, SENTENCEPIECE_BPE);
    builder_number(&b, TRAINER, SUFFIX, 1);
    sentencepiece *const sp = open_model(&b);
    check_tokens(sp, "ab", "6:0-2 3:2-2");
    check_tokens(sp, "b a ", "5:0-1 7:1-3 3:3-3");
    sentencepiece_free(sp);
}

static void spaces_can_stay(void)
{
    small_model(&b, SENTENCEPIECE_BPE);
    builder_piece(&b, " ", -9, TYPE_NORMAL);
    builder_number(&b, NORMALIZER, ESCAPE, 0);
    sentencepiece *const sp = open_model(&b);
    check_tokens(sp, "ab a ", "10:0-0 6:0-2 10:2-3 4:3-4");
    sentencepiece_free(sp);
}

static void rules_replace_characters(void)
{
    static const charsmap_rule rules[] = {
        {"e\xcc\x81", "\xc3\xa9"}, {"A", "a"}, {"\xef\xac\x81", "ab"}, {"\xe3\x80\x80", " "}};
    static unsigned char charsmap[SENTENCEPIECE_BYTES_MAX];
    const size_t size = charsmap_build(charsmap, rules, 4);
    small_model(&b, SENTENCEPIECE_BPE);
    builder_data(&b, NORMALIZER, CHARSMAP, charsmap, size);
    sentencepiece *const sp = open_model(&b);
    check_tokens(sp, "Ab", "8:0-2");
    check_tokens(sp, "e\xcc\x81", "3:0-0 9:0-3");
    check_tokens(sp, "\xef\xac\x81!", "8:0-3 0:3-4");
    check_tokens(sp,
                 "\xe3\x80\x80"
                 "Ab\xe3\x80\x80\xe3\x80\x80"
                 "ab",
                 "8:3-5 8:5-13");
    sentencepiece_free(sp);
}

static void unknown_text(void)
{
    small_model(&b, SENTENCEPIECE_BPE);
    sentencepiece *sp = open_model(&b);
    check_tokens(sp, "xyab", "3:0-0 0:0-2 6:2-4");
    check_tokens(sp, "a\xe4\xb8\xad\xe5\x9b\xbd", "7:0-1 0:1-7");
    check_text(sp, IDS(7, 0, 4), true, "a \xe2\x81\x87 a");
    sentencepiece_free(sp);
    builder_data(&b, TRAINER, SURFACE, "?", 1);
    sp = open_model(&b);
    check_text(sp, IDS(7, 0, 4), true, "a?a");
    sentencepiece_free(sp);
}

static void invalid_bytes_are_replaced(void)
{
    small_model(&b, SENTENCEPIECE_BPE);
    builder_piece(&b, "\xef\xbf\xbd", -5, TYPE_NORMAL);
    sentencepiece *const sp = open_model(&b);
    check_tokens(sp,
                 "a\xff\xfe"
                 "b",
                 "7:0-1 10:1-2 10:2-3 5:3-4");
    check_tokens(sp, "a\xe4\xb8", "7:0-1 10:1-2 10:2-3");
    check_bytes(sp, "a\0b", 3, "7:0-1 0:1-2 5:2-3");
    sentencepiece_free(sp);
}

static void bytes_stand_for_unknown_text(void)
{
    for (int kind = SENTENCEPIECE_UNIGRAM; kind <= SENTENCEPIECE_BPE; kind++) {
        small_model(&b, kind);
        builder_bytes(&b);
        builder_number(&b, TRAINER, BYTE_FALLBACK, 1);
        sentencepiece *const sp = open_model(&b);
        check_tokens(sp, "a\xe4\xb8\xad", "7:0-1 238:1-1 194:1-1 183:1-4");
        check_text(sp, IDS(7, 238, 194, 183, 4), true,
                   "a\xe4\xb8\xad"
                   "a");
        check_text(sp, IDS(7, 238, 194, 4), true,
                   "a\xef\xbf\xbd\xef\xbf\xbd"
                   "a");
        check_text(sp, IDS(238, 238, 194, 183, 10 + 'z'), true, "\xef\xbf\xbd\xe4\xb8\xadz");
        sentencepiece_free(sp);
    }
}

static void symbols_of_the_user_are_kept(void)
{
    for (int kind = SENTENCEPIECE_UNIGRAM; kind <= SENTENCEPIECE_BPE; kind++) {
        small_model(&b, kind);
        builder_piece(&b, "<x>", 0, TYPE_USER);
        builder_piece(&b, "ba", 0, TYPE_USER);
        sentencepiece *const sp = open_model(&b);
        check_tokens(sp, "ab<x>a", "8:0-2 10:2-5 4:5-6");
        check_tokens(sp, "aba", "7:0-1 11:1-3");
        check_text(sp, IDS(7, 10), false, "a<x>");
        sentencepiece_free(sp);
    }
}

/* "ab" is joined first, but is not to be used. */
static void unused_pieces_are_split_again(void)
{
    b.size = 0;
    builder_marks(&b);
    builder_piece(&b, "a", -4, TYPE_NORMAL);
    builder_piece(&b, "b", -4, TYPE_NORMAL);
    builder_piece(&b, "ab", -1, TYPE_UNUSED);
    builder_piece(&b, "abab", -2, TYPE_UNUSED);
    builder_piece(&b, "bb", -3, TYPE_NORMAL);
    builder_number(&b, TRAINER, MODEL_TYPE, SENTENCEPIECE_BPE);
    builder_number(&b, NORMALIZER, ADD_SPACE, 0);
    sentencepiece *const sp = open_model(&b);
    check_tokens(sp, "ab", "3:0-1 4:1-2");
    check_tokens(sp, "abab", "3:0-1 4:1-2 3:2-3 4:3-4");
    check_tokens(sp, "abb", "3:0-1 4:1-2 4:2-3");
    check_tokens(sp, "bbab", "7:0-2 3:2-3 4:3-4");
    sentencepiece_free(sp);
}

static void check_continues(const sentencepiece *sp, const char *text, const char *wanted)
{
    char written[64] = "";
    token_list list = {0};
    if (sp == NULL)
        return;
    sentencepiece_encode(sp, text, strlen(text), &list);
    for (ptrdiff_t n = 0; n < list.count && n < 63; n++)
        written[n] = list.tokens[n].flags & MHA_TOKEN_CONTINUES ? '+' : '-';
    CHECK(strcmp(written, wanted) == 0, "%s: %s, not %s", text, written, wanted);
    token_list_free(&list);
}

static void words_are_continued(void)
{
    small_model(&b, SENTENCEPIECE_BPE);
    builder_bytes(&b);
    builder_number(&b, TRAINER, BYTE_FALLBACK, 1);
    sentencepiece *sp = open_model(&b);
    check_continues(sp, "ab aab b", "--+-+");
    check_continues(sp, "\xe4\xb8\xad", "-+++");
    sentencepiece_free(sp);
    builder_number(&b, TRAINER, SUFFIX, 1);
    sp = open_model(&b);
    check_continues(sp, "ab b", "-+-+");
    sentencepiece_free(sp);
}

static void marks_are_left_out_or_written(void)
{
    small_model(&b, SENTENCEPIECE_BPE);
    sentencepiece *const sp = open_model(&b);
    check_text(sp, NULL, 0, true, "");
    check_text(sp, IDS(1, 8, 8, 2), true, "ab ab");
    check_text(sp, IDS(1, 8, 8, 2), false, "<s> ab ab</s>");
    check_text(sp, IDS(3, 3, 4), true, "a");
    check_text(sp, IDS(3, 4), true, "a");
    char *text;
    size_t length;
    CHECK(sentencepiece_decode(sp, IDS(4, 10), true, &text, &length) == MHA_ERR_INDEX, "id 10");
    CHECK(sentencepiece_decode(sp, IDS(-1), true, &text, &length) == MHA_ERR_INDEX, "id -1");
    sentencepiece_free(sp);
    builder_number(&b, NORMALIZER, REMOVE_SPACES, 0);
    sentencepiece *const kept = open_model(&b);
    check_text(kept, IDS(3, 3, 4), true, " a");
    sentencepiece_free(kept);
}

static void check_refused(const char *what, const char *wanted)
{
    sentencepiece *sp = NULL;
    char message[256] = "";
    const mha_status status = sentencepiece_open_memory(&sp, b.bytes, b.size, message, 256);
    CHECK(status == MHA_ERR_FORMAT && sp == NULL, "%s: status %d", what, status);
    CHECK(strstr(message, wanted) != NULL, "%s: %s", what, message);
    sentencepiece_free(sp);
}

static void wrong_files_are_refused(void)
{
    b.size = 0;
    check_refused("no bytes", "no unknown piece");
    builder_piece(&b, "a", 0, TYPE_NORMAL);
    check_refused("no <unk>", "no unknown piece");
    builder_piece(&b, "<unk>", 0, TYPE_UNKNOWN);
    builder_piece(&b, "<unk2>", 0, TYPE_UNKNOWN);
    check_refused("two unknown pieces", "piece 2 is a second");
    small_model(&b, SENTENCEPIECE_BPE);
    builder_number(&b, TRAINER, BYTE_FALLBACK, 1);
    check_refused("no bytes", "256 byte pieces");
    small_model(&b, SENTENCEPIECE_BPE);
    builder_piece(&b, "", 0, TYPE_NORMAL);
    check_refused("an empty piece", "piece 10 is empty");
    small_model(&b, SENTENCEPIECE_BPE);
    builder_piece(&b, "<0xgg>", 0, TYPE_BYTE);
    check_refused("a byte that is none", "piece 10 is a byte");
    small_model(&b, SENTENCEPIECE_BPE);
    builder_piece(&b, "x", NAN, TYPE_NORMAL);
    check_refused("a score that is none", "not a number");
    small_model(&b, SENTENCEPIECE_BPE);
    builder_piece(&b, "x", 0, 9);
    check_refused("a type that is none", "unknown type");
    small_model(&b, 3);
    check_refused("words", "neither unigram nor BPE");
    small_model(&b, SENTENCEPIECE_BPE);
    builder_data(&b, NORMALIZER, CHARSMAP, "\xff\xff\xff\xff\x01", 5);
    check_refused("rules", "rules of normalisation");
}

/* A file that was cut off gives an error or fewer pieces, but never more than it has. */
static void every_length_is_harmless(void)
{
    small_model(&b, SENTENCEPIECE_UNIGRAM);
    const size_t size = b.size;
    int opened = 0;
    for (size_t cut = 0; cut < size; cut++) {
        unsigned char *const part = malloc(cut + 1); /* for the sanitizer */
        sentencepiece *sp = NULL;
        memcpy(part, b.bytes, cut);
        const mha_status status = sentencepiece_open_memory(&sp, part, cut, NULL, 0);
        CHECK(status == MHA_OK || (status == MHA_ERR_FORMAT && sp == NULL), "%zu: %d", cut, status);
        opened += status == MHA_OK;
        sentencepiece_free(sp);
        free(part);
    }
    CHECK(opened >= 7 && opened < 12, "%d parts were opened", opened);
}

static void damaged_files_are_harmless(void)
{
    static sentencepiece_builder damaged;
    test_random random = {test_seed(9)};
    const int64_t rounds = test_effort(20000);
    int64_t opened = 0;
    for (int64_t round = 0; round < rounds; round++) {
        small_model(&damaged, 1 + (int)test_random_below(&random, 2));
        for (int64_t n = test_random_below(&random, 4); n >= 0; n--)
            damaged.bytes[test_random_below(&random, (int64_t)damaged.size)] ^=
                (unsigned char)(1u << test_random_below(&random, 8));
        sentencepiece *sp = NULL;
        token_list list = {0};
        if (sentencepiece_open_memory(&sp, damaged.bytes, damaged.size, NULL, 0) != MHA_OK)
            continue;
        opened++;
        sentencepiece_encode(sp, " ab a\xc3\xa9xab", 10, &list);
        CHECK(!list.failed, "failed");
        token_list_free(&list);
        sentencepiece_free(sp);
    }
    CHECK(opened > rounds / 10, "%lld opened", (long long)opened);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(pairs_are_merged_by_score);
    RUN(scores_are_summed);
    RUN(spaces_are_normalised);
    RUN(the_space_can_follow);
    RUN(spaces_can_stay);
    RUN(rules_replace_characters);
    RUN(unknown_text);
    RUN(invalid_bytes_are_replaced);
    RUN(bytes_stand_for_unknown_text);
    RUN(symbols_of_the_user_are_kept);
    RUN(unused_pieces_are_split_again);
    RUN(words_are_continued);
    RUN(marks_are_left_out_or_written);
    RUN(wrong_files_are_refused);
    RUN(every_length_is_harmless);
    RUN(damaged_files_are_harmless);
    return test_end();
}
