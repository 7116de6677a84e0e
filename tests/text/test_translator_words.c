/* SPDX-License-Identifier: MIT */
/*
 * The tokenizers of our translator: the same numbers and the same texts as its own code, on
 * sentences of its corpus and on others; and translations by libmha_model, which are the same too.
 */
#include <mha/mha_model.h>

#include "format/safetensors.h"
#include "support/temp_files.h"
#include "support/test.h"
#include "translator/sentence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static translator *own;
static mha_model *model;

static void open_both(void)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    own = translator_load(MHA_MODEL_FILE, message);
    CHECK(own, "%s", message);
    CHECK(mha_model_open(&model, MHA_MODEL_FILE, NULL) == MHA_OK && mha_model_tokenizer(model) &&
              mha_model_target_tokenizer(model) != mha_model_tokenizer(model),
          "two tokenizers");
}

/* ------------------------------------------------------------------- numbers ----- */

/* Does the tokenizer give these numbers, and the end mark? */
static void same_numbers(const mha_tokenizer *tokenizer, const char *text, const int *numbers,
                         int count)
{
    mha_tokens tokens;
    if (!CHECK(mha_tokenizer_encode(tokenizer, text, strlen(text), MHA_TEXT_MARKS, &tokens) ==
                   MHA_OK,
               "encode"))
        return;
    CHECK(tokens.count == count + 1, "%td tokens, not %d: \"%s\"", tokens.count, count + 1, text);
    for (int n = 0; n < count && n < tokens.count; n++) {
        const mha_token *const token = &tokens.tokens[n];
        CHECK(token->id == numbers[n], "word %d is %d, not %d: \"%s\"", n, (int)token->id,
              numbers[n], text);
        CHECK(!(token->flags & MHA_TOKEN_UNKNOWN) == (numbers[n] != WORD_UNKNOWN), "unknown");
        CHECK(token->begin < token->end && token->end <= strlen(text), "word %d is at %u to %u", n,
              (unsigned)token->begin, (unsigned)token->end);
    }
    if (tokens.count > 0)
        CHECK(tokens.tokens[tokens.count - 1].id == WORD_END, "no end: \"%s\"", text);
    mha_tokens_free(&tokens);
}

/* mha translate shows at most 60 columns of what stands between two spaces, and reads no more. */
static bool is_cut(const char *text)
{
    size_t length;
    do {
        length = strcspn(text, " \t\n\v\f\r");
        text += length + (text[length] != '\0');
    } while (length < 60 && *text != '\0');
    return length >= 60;
}

static void check_english(const char *text)
{
    source_sentence source = {.line = 0};
    source_read(&source, own, text, false);
    if (source.problem[0] == '\0' && !is_cut(text))
        same_numbers(mha_model_tokenizer(model), text, source.numbers, source.tokens.count);
}

static void check_french(const char *text)
{
    char buffer[CORPUS_TEXT_MAX];
    corpus_sentence tokens;
    int numbers[CORPUS_TOKENS_MAX];
    if (!corpus_tokenise(CORPUS_FRENCH, text, buffer, &tokens))
        return;
    for (int n = 0; n < tokens.count; n++)
        numbers[n] =
            vocabulary_find(translator_vocabulary(own, TRANSFORMER_TARGET), tokens.tokens[n]);
    same_numbers(mha_model_target_tokenizer(model), text, numbers, tokens.count);
}

static void chosen_texts(void)
{
    static const char *const english[] = {"",
                                          "   ",
                                          "The cat sleeps.",
                                          "THE CAT, the dog!",
                                          "I won't sleep; she doesn't either",
                                          "I won\u2019t, he can't",
                                          "n't xn't won't. won't? \"don't\"",
                                          "the<end>cat <end> <begin> <unknown>",
                                          "is it??",
                                          "? a ?",
                                          "caf\u00c9 CAF\u00c9 \u0301cat cat\u0301",
                                          "the\tcat\r\nthe\vdog\fa",
                                          "the\u00a0cat \x01 the\x02 cat",
                                          "bad \xff bytes \xe2\x80 here",
                                          "a\u200bb \u200b c",
                                          "they're friends' 'quoted'"};
    static const char *const french[] = {"Le chat dort.",           "l'ami d'aujourd'hui",
                                         "aujourd'hui, l\u2019eau", "aujourd'huit xaujourd'hui",
                                         "d'aujourd'hui'a ''",      "Est-ce qu'elle dort ?",
                                         "\u00c9LAN <end>"};
    for (size_t n = 0; n < sizeof english / sizeof english[0]; n++)
        check_english(english[n]);
    for (size_t n = 0; n < sizeof french / sizeof french[0]; n++)
        check_french(french[n]);
}

/* Words of the vocabularies and other pieces of text, put together at random. */
static void random_texts(void)
{
    static const char *const pieces[] = {
        " ", " ",      " ",   ",",     ".",   "?",           "!",   "\"", ";",      ":",
        "'", "\u2019", "n't", "won't", "don", "x",           "A",   "T",  "-",      "é",
        "É", "<",      ">",   "\t",    "\n",  "aujourd'hui", "hui", "l'", "zorglub"};
    enum { PIECES = sizeof pieces / sizeof pieces[0] };
    test_random random = {test_seed(31)};
    for (int64_t n = 0; n < test_effort(4000); n++) {
        const int side = (int)test_random_below(&random, 2);
        const vocabulary *const words = translator_vocabulary(own, side);
        char text[400] = "";
        for (int64_t k = test_random_below(&random, 14); k >= 0; k--) {
            const bool word = test_random_below(&random, 3) == 0;
            strcat(text, word ? words->words[test_random_below(&random, words->count)]
                              : pieces[test_random_below(&random, PIECES)]);
        }
        if (side == TRANSFORMER_SOURCE)
            check_english(text);
        else
            check_french(text);
    }
}

/* --------------------------------------------------------------------- texts ----- */

static void check_decoded(const mha_tokenizer *tokenizer, corpus_side side,
                          const corpus_sentence *sentence)
{
    char expected[CORPUS_TEXT_MAX];
    int32_t ids[CORPUS_TOKENS_MAX + 1];
    char *text = NULL;
    for (int n = 0; n < sentence->count; n++)
        ids[n] = mha_tokenizer_find(tokenizer, sentence->tokens[n]);
    ids[sentence->count] = WORD_END;
    corpus_detokenise(side, sentence, expected);
    if (CHECK(mha_tokenizer_decode(tokenizer, ids, sentence->count + 1, MHA_TEXT_SKIP_MARKS, &text,
                                   NULL) == MHA_OK,
              "decode"))
        CHECK(strcmp(text, expected) == 0, "\"%s\", not \"%s\"", text, expected);
    mha_text_free(text);
}

static void numbers_to_texts(void)
{
    for (uint64_t n = 0; n < 300; n++) {
        corpus_pair pair;
        corpus_generate(7, CORPUS_TEST, n, &pair, NULL);
        check_decoded(mha_model_tokenizer(model), CORPUS_ENGLISH, &pair.side[CORPUS_ENGLISH]);
        check_decoded(mha_model_target_tokenizer(model), CORPUS_FRENCH, &pair.side[CORPUS_FRENCH]);
    }
}

/* -------------------------------------------------------------- translations ----- */

/* By our own search, greedy. */
static void translate(const char *english, char french[CORPUS_TEXT_MAX])
{
    const translation_options options = {.beam = 1};
    source_sentence source = {.line = 0};
    translation result;
    corpus_sentence tokens;
    source_read(&source, own, english, false);
    const int *const numbers = source.numbers;
    CHECK(translator_translate(own, &numbers, &source.tokens.count, 1, &options, &result, NULL) ==
              MHA_OK,
          "translate");
    const translated all = {own, &source, &result, 1};
    target_tokens(&all, 0, &tokens);
    corpus_detokenise(CORPUS_FRENCH, &tokens, french);
}

static void check_translation(const char *english)
{
    char french[CORPUS_TEXT_MAX];
    int32_t ids[CORPUS_TOKENS_MAX];
    mha_tokens tokens;
    mha_generation result;
    translate(english, french);
    CHECK(mha_tokenizer_encode(mha_model_tokenizer(model), english, strlen(english), MHA_TEXT_MARKS,
                               &tokens) == MHA_OK,
          "encode");
    for (ptrdiff_t n = 0; n < tokens.count; n++)
        ids[n] = tokens.tokens[n].id;
    const int64_t starts[2] = {0, tokens.count};
    const mha_generate_config config = {.size = sizeof config, .most = 60};
    const mha_status status = mha_model_generate(model, 1, starts, ids, &config, &result, NULL);
    if (CHECK(status == MHA_OK, "%s", mha_status_string(status))) {
        CHECK(strcmp(result.text, french) == 0, "\"%s\": \"%s\", not \"%s\"", english, result.text,
              french);
        mha_generation_free(&result);
    }
    mha_tokens_free(&tokens);
}

static void same_translations(void)
{
    for (uint64_t n = 0; n < 100; n++) {
        char english[CORPUS_TEXT_MAX];
        corpus_pair pair;
        corpus_generate(3, CORPUS_TEST, n, &pair, NULL);
        corpus_detokenise(CORPUS_ENGLISH, &pair.side[CORPUS_ENGLISH], english);
        check_translation(english);
    }
    check_translation("Won't the cat eat the apple?");
}

/* --------------------------------------------------------------------- files ----- */

/* A file of one tensor with these lists of words; what opening its tokenizer says. */
static mha_status open_words(const char *format, const char *words, mha_tokenizer **tokenizer)
{
    const temp_folder folder = temp_folder_new();
    const float number = 1;
    const uint64_t shape[] = {1};
    const safetensors_item array = {
        .name = "x", .type = SAFETENSORS_F32, .rank = 1, .shape = shape, .data = &number};
    const safetensors_pair pairs[] = {{"format", format}, {"source_vocabulary", words}};
    const char *const path = temp_path(&folder, "model.safetensors");
    CHECK(safetensors_write(path, &array, 1, pairs, words ? 2 : 1, NULL, 0) == MHA_OK, "write");
    char message[300] = "";
    const mha_status status = mha_tokenizer_open(tokenizer, path, message, sizeof message);
    CHECK((status == MHA_OK) == (message[0] == '\0'), "\"%s\"", message);
    CHECK(status == MHA_OK || strstr(message, path), "\"%s\" names no file", message);
    temp_folder_free(&folder);
    return status;
}

static void wrong_files(void)
{
    static const char good[] = "[\"<begin>\", \"<end>\", \"<unknown>\", \"cat\"]";
    static const char *const bad[] = {"",
                                      "{}",
                                      "[\"<begin>\", \"<end>\"]",
                                      "[\"<begin>\", \"<unknown>\", \"<end>\", \"cat\"]",
                                      "[\"<begin>\", \"<end>\", \"<unknown>\", 7]",
                                      "[\"<begin>\", \"<end>\", \"<unknown>\", \"\"]",
                                      "[\"<begin>\", \"<end>\", \"<unknown>\", \"a\\u0000b\"]",
                                      "[\"<begin>\", \"<end>\", \"<unknown>\""};
    mha_tokenizer *tokenizer;
    CHECK(open_words("mha-translator-1", good, &tokenizer) == MHA_OK, "good");
    CHECK(mha_tokenizer_size(tokenizer) == 4 && mha_tokenizer_find(tokenizer, "cat") == 3, "words");
    mha_tokenizer_free(tokenizer);
    CHECK(open_words("mha-translator-2", good, &tokenizer) == MHA_ERR_FORMAT, "another format");
    CHECK(open_words("mha-translator-1", NULL, &tokenizer) == MHA_ERR_FORMAT, "no words");
    for (size_t n = 0; n < sizeof bad / sizeof bad[0]; n++)
        CHECK(open_words("mha-translator-1", bad[n], &tokenizer) == MHA_ERR_FORMAT && !tokenizer,
              "words %zu", n);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(open_both);
    if (own && model) {
        RUN(chosen_texts);
        RUN(random_texts);
        RUN(numbers_to_texts);
        RUN(same_translations);
    }
    RUN(wrong_files);
    mha_model_free(model);
    translator_free(own);
    return test_end();
}
