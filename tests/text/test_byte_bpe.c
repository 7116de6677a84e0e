/* SPDX-License-Identifier: MIT */
/* Byte-level BPE: merges by rank, words of GPT-2, bytes of characters, offsets, ranks of tiktoken's
 * kind, long words, invalid UTF-8; and the patterns of well-known vocabularies. */
#include "base/utf8.h"
#include "support/test.h"
#include "support/tokens.h"
#include "text/bpe.h"
#include "text/characters.h"
#include "text/known_patterns.h"
#include "text/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The 256 characters for bytes get the ids 0 .. 255; then come the pieces. */
static mha_tokenizer *open_gpt2(const char *const *merges)
{
    static char json[20000], lines[4000];
    size_t used = (size_t)snprintf(json, sizeof json, "{"), line = 0;
    for (int byte = 0; byte < 256; byte++) {
        char piece[8];
        const size_t bytes = utf8_encode(piece, byte_character((unsigned char)byte));
        const bool escaped = byte == '"' || byte == '\\';
        used += (size_t)snprintf(json + used, sizeof json - used, "%s\"%s%.*s\": %d",
                                 byte ? "," : "", escaped ? "\\" : "", (int)bytes, piece, byte);
    }
    line = (size_t)snprintf(lines, sizeof lines, "#version: 0.2\n");
    for (int n = 0; merges[n]; n++) {
        const char *const space = strchr(merges[n], ' ');
        used += (size_t)snprintf(json + used, sizeof json - used, ",\"%.*s%s\": %d",
                                 (int)(space - merges[n]), merges[n], space + 1, 256 + n);
        line += (size_t)snprintf(lines + line, sizeof lines - line, "%s\n", merges[n]);
    }
    snprintf(json + used, sizeof json - used, ",\"<|endoftext|>\": 1000}");
    const temp_folder folder = temp_folder_new();
    put_file(&folder, "vocab.json", json);
    put_file(&folder, "merges.txt", lines);
    mha_tokenizer *const t = open_tokenizer(&folder, "");
    temp_folder_free(&folder);
    return t;
}

static const char *const small[] = {"l o", "h e", "l lo", "\xc4\xa0 w", "he llo", "o r", NULL};

static void merges_by_rank(void)
{
    mha_tokenizer *const t = open_gpt2(small);
    /* h e l l o -> h e l lo -> he l lo -> he llo -> hello */
    expect_tokens(t, "hello", 0, "260[0,5]");
    expect_tokens(t, "hello world", 0, "260[0,5] 259[5,7] 261[7,9]+ 108[9,10]+ 100[10,11]+");
    expect_tokens(t, "llo", 0, "258[0,3]");
    expect_tokens(t, "lol", 0, "256[0,2] 108[2,3]+");
    CHECK(strcmp(mha_tokenizer_kind(t), "byte-level BPE") == 0, "kind");
    mha_tokenizer_free(t);
}

static void words_of_gpt2(void)
{
    mha_tokenizer *const t = open_gpt2(small);
    expect_tokens(t, "or's", 0, "261[0,2] 39[2,3] 115[3,4]+");
    expect_tokens(t, "or  or", 0, "261[0,2] 32[2,3] 32[3,4] 261[4,6]+");
    expect_tokens(t, "or  ", 0, "261[0,2] 32[2,3] 32[3,4]");
    expect_tokens(t, "1a", 0, "49[0,1] 97[1,2]");
    expect_tokens(t, "or<|endoftext|> or", 0, "261[0,2] 1000[2,15]! 32[15,16] 261[16,18]+");
    expect_tokens(t, "<|x", 0, "60[0,1] 124[1,2]+ 120[2,3]");
    mha_tokenizer_free(t);
}

static void bytes_of_characters(void)
{
    mha_tokenizer *const t = open_gpt2(small);
    /* é: both bytes have the place of the character. */
    expect_tokens(t, "\xc3\xa9", 0, "195[0,2] 169[0,2]+");
    /* A byte that is not UTF-8 becomes U+FFFD; a character that is cut off becomes one. */
    expect_tokens(t, "h\xff", 0, "104[0,1] 239[1,2] 191[1,2]+ 189[1,2]+");
    expect_tokens(t, "\xe2\x82!", 0, "239[0,2] 191[0,2]+ 189[0,2]+ 33[2,3]+");
    expect_text(t, (const int32_t[]){195, 169, 32, 260, -1}, 0, "\xc3\xa9 hello");
    expect_text(t, (const int32_t[]){195, -1}, 0, "\xc3");
    expect_text(t, (const int32_t[]){260, 1000, -1}, MHA_TEXT_SKIP_MARKS, "hello");
    mha_tokenizer_free(t);
}

static void characters_for_bytes(void)
{
    for (int byte = 0; byte < 256; byte++) {
        const uint32_t c = byte_character((unsigned char)byte);
        CHECK(character_byte(c) == byte && c > 0x20, "byte %d is U+%04X", byte, (unsigned)c);
    }
    CHECK(byte_character(' ') == 0x120 && byte_character('\n') == 0x10a, "space and newline");
    CHECK(byte_character(0xad) == 0x143 && byte_character(0x7f) == 0x121, "0xad and 0x7f");
    CHECK(character_byte(0x144) == -1 && character_byte(' ') == -1, "other characters");
}

/* ------------------------------------------------------------- long words ----- */

/* Random words of two letters, short and long: the heap and the search in the list agree with the
 * plain definition. */
static size_t plain_bpe(const bpe *model, const vocabulary *v, char *word, int32_t *ids)
{
    (void)model;
    size_t count = 0;
    for (; word[count]; count++)
        ids[count] = vocab_find(v, word + count, 1);
    for (;;) {
        size_t best = 0;
        int32_t best_id = INT32_MAX;
        for (size_t n = 0; n + 1 < count; n++) {
            char both[300];
            snprintf(both, sizeof both, "%s%s", vocab_piece(v, ids[n], NULL),
                     vocab_piece(v, ids[n + 1], NULL));
            const int32_t id = vocab_find(v, both, strlen(both));
            if (id >= 0 && id < best_id) {
                best_id = id;
                best = n;
            }
        }
        if (best_id == INT32_MAX)
            return count;
        ids[best] = best_id;
        memmove(ids + best + 1, ids + best + 2, (count - best - 2) * sizeof *ids);
        count--;
    }
}

static void both_ways_of_merging(void)
{
    static const char *const pieces[] = {"a",    "b",    "ab",   "aa",    "ba",     "aab",
                                         "abab", "bb",   "bbb",  "aaaa",  "babba",  "abb",
                                         "bba",  "aaab", "baab", "ababa", "aabaab", NULL};
    vocabulary *const v = vocab_create();
    for (int n = 0; pieces[n]; n++)
        vocab_add(v, n, pieces[n], strlen(pieces[n]), 0, 0);
    bpe *const model = bpe_create(v, &(bpe_config){.by_vocabulary = true, .unknown = -1});
    bpe_work *const work = bpe_work_create(NULL);
    test_random random = {test_seed(5)};
    for (int64_t round = 0; round < test_effort(3000); round++) {
        char word[101];
        int32_t ids[101];
        token_list list = {0};
        const size_t length = 1 + (size_t)test_random_below(&random, 100);
        for (size_t n = 0; n < length; n++)
            word[n] = test_random_below(&random, 2) ? 'a' : 'b';
        word[length] = '\0';
        bpe_encode(model, word, length, work, &list);
        const size_t count = plain_bpe(model, v, word, ids);
        bool equal = (size_t)list.count == count;
        for (size_t n = 0; equal && n < count; n++)
            equal = list.tokens[n].id == ids[n];
        CHECK(equal, "%s: %td tokens, not %zu", word, list.count, count);
        token_list_free(&list);
    }
    bpe_work_free(work);
    bpe_free(model);
    vocab_free(v);
}

/* The time of a word does not grow with the square of its length. */
static void a_word_of_a_megabyte(void)
{
    static const char *const merges[] = {"a a", "aa aa", "aaaa aaaa", NULL};
    enum { LENGTH = 1 << 20 };
    mha_tokenizer *const t = open_gpt2(merges);
    char *const text = malloc(LENGTH);
    memset(text, 'a', LENGTH);
    mha_tokens tokens;
    const clock_t begin = clock();
    CHECK(mha_tokenizer_encode(t, text, LENGTH, 0, &tokens) == MHA_OK, "status");
    const double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    CHECK(seconds < 60, "%g seconds of CPU time", seconds);
    CHECK(tokens.count == LENGTH / 8 && tokens.tokens[7].begin == 56, "%td tokens", tokens.count);
    mha_tokens_free(&tokens);
    free(text);
    mha_tokenizer_free(t);
}

/* --------------------------------------------------------------- patterns ----- */

/* The words of a text, with "|" between them. */
static void expect_words(const char *regex, const char *text, const char *wanted)
{
    char words[400] = "", message[200] = "";
    size_t used = 0;
    pattern *p = NULL;
    pattern_scratch *const scratch = pattern_scratch_create();
    CHECK(pattern_create(&p, regex, false, message, sizeof message) == MHA_OK, "%s", message);
    if (p && scratch) {
        pattern_search s = pattern_search_begin(p, scratch, text, strlen(text));
        while (pattern_search_next(&s) && used < sizeof words)
            used += (size_t)snprintf(words + used, sizeof words - used, "%s%.*s", used ? "|" : "",
                                     (int)(s.end - s.begin), text + s.begin);
        CHECK(s.status == MHA_OK && strcmp(words, wanted) == 0, "%s instead of %s", words, wanted);
    }
    pattern_scratch_free(scratch);
    pattern_free(p);
}

static void well_known_patterns(void)
{
    known_patterns llama, qwen, smollm;
    CHECK(known_patterns_of_gguf("llama-bpe", 9, &llama) && llama.whole_words, "llama-bpe");
    CHECK(known_patterns_of_gguf("qwen2", 5, &qwen), "qwen2");
    CHECK(known_patterns_of_gguf("smollm", 6, &smollm) && smollm.patterns[1], "smollm");
    CHECK(!known_patterns_of_gguf("llama", 5, &llama) && !known_patterns_of_gguf("", 0, &llama),
          "names that do not exist");
    expect_words(llama.patterns[0], "It'LL cost 12345 (ok)\n\n  x",
                 "It|'LL| cost| |123|45| (|ok|)\n\n| | x");
    expect_words(qwen.patterns[0], "a 123", "a| |1|2|3");
    expect_words(smollm.patterns[1], " don't  go", " don|'t| | go");
    const known_ranks *const o200k = known_ranks_of(199998);
    if (CHECK(o200k && !known_ranks_of(7), "o200k_base"))
        expect_words(o200k->pattern, "HelloWorld's XMLHttp a/b//\n",
                     "Hello|World's| XMLHttp| a|/b|//\n");
    /* U+180E is no space, U+31350 is newer than Unicode 14 and a letter. */
    expect_words("\\s+|\\S+", "a \xe1\xa0\x8e b", "a| |\xe1\xa0\x8e| |b");
    expect_words("\\p{L}+", "a\xf0\xb1\x8d\x90-\xd8\xa7", "a\xf0\xb1\x8d\x90|\xd8\xa7");
    /* BLOOM's has a class in a class. */
    expect_words(" ?[^(\\s|[.,!?])]+", "one, (two) three!", "one|two| three");
    expect_words("[^\\S]|\\w+|\\W", "a_1 \xcc\x81!", "a_1| |\xcc\x81|!");
}

static void patterns_that_are_refused(void)
{
    static const char *const bad[] = {"[a[^b]]",       "[[:alpha:]]", "[a&&b]", "\\h",   "[\\W]",
                                      "\\K",           "(*UTF)a",     "(a",     "\\p{",  "\\p",
                                      "\\p{Nonsense}", "[]",          "\\",     "a**b(", "[z-a]"};
    for (size_t n = 0; n < sizeof bad / sizeof bad[0]; n++) {
        char message[200] = "";
        pattern *p = NULL;
        CHECK(pattern_create(&p, bad[n], false, message, sizeof message) == MHA_ERR_FORMAT && !p,
              "%s was accepted", bad[n]);
        CHECK(strstr(message, bad[n]), "%s: %s", bad[n], message);
        pattern_free(p);
    }
}

/* A pattern that would try all ways to divide the text is stopped. */
static void patterns_have_limits(void)
{
    char text[64];
    pattern *p = NULL;
    pattern_scratch *const scratch = pattern_scratch_create();
    memset(text, 'a', sizeof text);
    text[20] = 'b';
    CHECK(pattern_create(&p, "(a+)+[bc]", false, NULL, 0) == MHA_OK, "create");
    pattern_search s = pattern_search_begin(p, scratch, text, sizeof text);
    CHECK(pattern_search_next(&s) && s.end == 21, "the first match");
    CHECK(!pattern_search_next(&s) && s.status == MHA_ERR_LENGTH, "status %d", (int)s.status);
    pattern_scratch_free(scratch);
    pattern_free(p);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(merges_by_rank);
    RUN(words_of_gpt2);
    RUN(bytes_of_characters);
    RUN(characters_for_bytes);
    RUN(both_ways_of_merging);
    RUN(a_word_of_a_megabyte);
    RUN(well_known_patterns);
    RUN(patterns_that_are_refused);
    RUN(patterns_have_limits);
    return test_end();
}
