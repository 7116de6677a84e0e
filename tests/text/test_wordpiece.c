/* SPDX-License-Identifier: MIT */
/* WordPiece as BERT has it: vocab.txt, cleaning, accents, Chinese characters, punctuation, the
 * longest piece first, unknown words, offsets, marks, pairs, decoding. */
#include "support/test.h"
#include "support/tokens.h"

#include <stdio.h>
#include <string.h>

/* 0 [PAD] 1 [UNK] 2 [CLS] 3 [SEP] 4 [MASK] 5 un 6 ##aff 7 ##able 8 hello 9 , 10 e 11 ##e 12 ##é 13
 * 中 14 ! 15 wor 16 ##ld 17 don 18 ' 19 t 20 E */
static const char vocabulary_text[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\nhello\n,\ne\n##e\n##\xc3\xa9\n"
    "\xe4\xb8\xad\n!\nwor\n##ld\ndon\n'\nt\nE\n";

static mha_tokenizer *open_bert(const char *config)
{
    const temp_folder folder = temp_folder_new();
    put_file(&folder, "vocab.txt", vocabulary_text);
    if (config)
        put_file(&folder, "tokenizer_config.json", config);
    mha_tokenizer *const t = open_tokenizer(&folder, "");
    temp_folder_free(&folder);
    return t;
}

static void words_and_pieces(void)
{
    mha_tokenizer *const t = open_bert(NULL);
    expect_tokens(t, "hello unaffable", 0, "8[0,5] 5[6,8] 6[8,11]+ 7[11,15]+");
    expect_tokens(t, "hello,world!", 0, "8[0,5] 9[5,6] 15[6,9] 16[9,11]+ 14[11,12]");
    expect_tokens(t, "unx hello", 0, "1[0,3]? 8[4,9]");
    expect_tokens(t, "", MHA_TEXT_MARKS, "2[]! 3[]!");
    expect_tokens(t, " \t\n ", 0, "");
    expect_tokens(t, "don't", 0, "17[0,3] 18[3,4] 19[4,5]");
    CHECK(strcmp(mha_tokenizer_kind(t), "WordPiece") == 0, "kind");
    CHECK(mha_tokenizer_size(t) == 21, "size");
    mha_tokenizer_free(t);
}

static void text_is_normalised(void)
{
    mha_tokenizer *const t = open_bert(NULL);
    expect_tokens(t, "HeLLo", 0, "8[0,5]");
    /* é and e with an accent of its own; U+200B is removed, U+3000 is a space. */
    expect_tokens(t, "\xc3\xa9", 0, "10[0,2]");
    expect_tokens(t, "e\xcc\x81!", 0, "10[0,1] 14[3,4]");
    expect_tokens(t, "he\xe2\x80\x8bllo\xe3\x80\x80,", 0, "8[0,8] 9[11,12]");
    expect_tokens(t, "un\xe4\xb8\xad,", 0, "5[0,2] 13[2,5] 9[5,6]");
    mha_tokenizer_free(t);
}

static void settings_beside_the_vocabulary(void)
{
    mha_tokenizer *const t = open_bert("{\"do_lower_case\": false}");
    expect_tokens(t, "Hello E e", 0, "1[0,5]? 20[6,7] 10[8,9]");
    expect_tokens(t, "e\xc3\xa9", 0, "10[0,1] 12[1,3]+");
    mha_tokenizer_free(t);
    mha_tokenizer *const more = open_bert(
        "{\"added_tokens_decoder\": {\"21\": {\"content\": \"<x>\", \"special\": true}}}");
    expect_tokens(more, "e<x>", 0, "10[0,1] 21[1,4]!");
    mha_tokenizer_free(more);
    mha_tokenizer *const plain = open_bert("{\"tokenize_chinese_chars\": false}");
    expect_tokens(plain, "un\xe4\xb8\xad", 0, "1[0,5]?");
    mha_tokenizer_free(plain);
}

static void marks_and_pairs(void)
{
    mha_tokenizer *const t = open_bert(NULL);
    expect_tokens(t, "hello", MHA_TEXT_MARKS, "2[]! 8[0,5] 3[]!");
    expect_pair(t, "hello", "un!", "2[]! 8[0,5] 3[]! 5[0,2]:1 14[2,3]:1 3[]!:1");
    expect_tokens(t, "hello [MASK]!", 0, "8[0,5] 4[6,12]! 14[12,13]");
    expect_tokens(t, "[MASK]", MHA_TEXT_PLAIN, "1[0,1]? 1[1,5]? 1[5,6]?");
    const int32_t marks[] = {2, 3, 1, 0, 2, 3, 4, -1};
    for (int n = 0; n < 8; n++)
        CHECK(mha_tokenizer_mark(t, (mha_mark)n) == marks[n], "mark %d is %d", n,
              (int)mha_tokenizer_mark(t, (mha_mark)n));
    CHECK(mha_tokenizer_flags(t, 2) == MHA_TOKEN_SPECIAL, "flags of [CLS]");
    CHECK(mha_tokenizer_flags(t, 1) == (MHA_TOKEN_SPECIAL | MHA_TOKEN_UNKNOWN), "of [UNK]");
    mha_tokenizer_free(t);
}

static void decoding(void)
{
    mha_tokenizer *const t = open_bert(NULL);
    expect_text(t, (const int32_t[]){2, 8, 9, 5, 6, 7, 14, 3, -1}, 0,
                "[CLS] hello, unaffable! [SEP]");
    expect_text(t, (const int32_t[]){2, 8, 9, 5, 6, 7, 14, 3, -1}, MHA_TEXT_SKIP_MARKS,
                "hello, unaffable!");
    expect_text(t, (const int32_t[]){-1}, 0, "");
    mha_tokenizer_free(t);
}

/* A word of more than 100 characters is unknown, whatever its pieces. */
static void long_words(void)
{
    char word[402];
    char wanted[32];
    mha_tokens tokens;
    mha_tokenizer *const t = open_bert(NULL);
    memset(word, 'e', sizeof word);
    CHECK(mha_tokenizer_encode(t, word, 100, 0, &tokens) == MHA_OK, "100 characters");
    CHECK(tokens.count == 100 && tokens.tokens[99].id == 11, "%td tokens", tokens.count);
    mha_tokens_free(&tokens);
    word[101] = '\0';
    snprintf(wanted, sizeof wanted, "1[0,101]?");
    expect_tokens(t, word, 0, wanted);
    mha_tokenizer_free(t);
}

static void wrong_arguments(void)
{
    mha_tokenizer *const t = open_bert(NULL);
    mha_tokens tokens;
    char *text;
    const int32_t bad[] = {21}, negative[] = {-1};
    CHECK(mha_tokenizer_encode(t, NULL, 1, 0, &tokens) == MHA_ERR_NULL && !tokens.tokens, "text");
    CHECK(mha_tokenizer_encode(NULL, "a", 1, 0, &tokens) == MHA_ERR_NULL, "tokenizer");
    CHECK(mha_tokenizer_encode(t, "a", 1, 0, NULL) == MHA_ERR_NULL, "tokens");
    CHECK(mha_tokenizer_encode(t, "a", 1, 64, &tokens) == MHA_ERR_FLAG, "flags");
    CHECK(mha_tokenizer_encode(t, NULL, 0, 0, &tokens) == MHA_OK && tokens.count == 0, "nothing");
    CHECK(mha_tokenizer_decode(t, bad, 1, 0, &text, NULL) == MHA_ERR_INDEX && !text, "id 21");
    CHECK(mha_tokenizer_decode(t, negative, 1, 0, &text, NULL) == MHA_ERR_INDEX, "id -1");
    CHECK(mha_tokenizer_decode(t, bad, -1, 0, &text, NULL) == MHA_ERR_LENGTH, "count");
    CHECK(mha_tokenizer_decode(t, bad, 1, MHA_TEXT_MARKS, &text, NULL) == MHA_ERR_FLAG, "flags");
    CHECK(!mha_tokenizer_piece(t, 21) && !mha_tokenizer_piece(NULL, 0), "no piece");
    CHECK(mha_tokenizer_find(t, "nothing") == -1 && mha_tokenizer_find(t, "##able") == 7, "find");
    CHECK(mha_tokenizer_mark(t, (mha_mark)99) == -1 && mha_tokenizer_size(NULL) == 0, "no mark");
    mha_tokenizer_free(t);
    mha_tokenizer_free(NULL);
    mha_tokens_free(NULL);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(words_and_pieces);
    RUN(text_is_normalised);
    RUN(settings_beside_the_vocabulary);
    RUN(marks_and_pairs);
    RUN(decoding);
    RUN(long_words);
    RUN(wrong_arguments);
    return test_end();
}
