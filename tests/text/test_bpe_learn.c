/* SPDX-License-Identifier: MIT */
/* Vocabularies that are learned from lines: which words lines are divided into, which pieces and
 * ids there are, that texts come back unchanged, and what is refused. */
#include "base/utf8.h"
#include "support/test.h"
#include "support/tokens.h"
#include "text/bpe_learn.h"
#include "text/tokenizer_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPACE "\xe2\x96\x81"

static bpe_learner *make_learner(void)
{
    bpe_learner *learner;
    char message[300] = "";
    const mha_status status = bpe_learner_create(&learner, message, sizeof message);
    CHECK(status == MHA_OK, "status %d: %s", (int)status, message);
    return learner;
}

static void add_lines(bpe_learner *learner, const char *line, int count)
{
    for (int n = 0; n < count; n++)
        CHECK(bpe_learner_add(learner, line, strlen(line)) == MHA_OK, "\"%s\"", line);
}

static bpe_learned finish(const bpe_learner *learner, bpe_learn_options options)
{
    bpe_learned learned;
    char message[300] = "";
    const mha_status status =
        bpe_learner_finish(learner, &options, &learned, message, sizeof message);
    CHECK(status == MHA_OK && learned.json && learned.json[learned.length] == '\0', "status %d: %s",
          (int)status, message);
    return learned;
}

static mha_tokenizer *open_learned(const bpe_learned *learned)
{
    mha_tokenizer *tokenizer;
    char message[300] = "";
    const mha_status status = bpe_learned_open(learned, &tokenizer, message, sizeof message);
    CHECK(status == MHA_OK, "status %d: %s", (int)status, message);
    return tokenizer;
}

/* The tokenizer of one learner, which is freed. */
static mha_tokenizer *tokenizer_of(bpe_learner *learner, bpe_learn_options options)
{
    bpe_learned learned = finish(learner, options);
    mha_tokenizer *const tokenizer = open_learned(&learned);
    CHECK(mha_tokenizer_size(tokenizer) == learned.size, "%td pieces, not %d",
          mha_tokenizer_size(tokenizer), (int)learned.size);
    bpe_learned_free(&learned);
    bpe_learner_free(learner);
    return tokenizer;
}

/* ----------------------------------------------------------------- words ----- */

static void expect_words(const mha_tokenizer *t, const char *text, const char *wanted)
{
    text_work work;
    char words[500] = "";
    if (!CHECK(text_work_create(&work), "out of memory"))
        return;
    CHECK(tokenizer_divide(t, text, strlen(text), true, &work) == MHA_OK, "\"%s\"", text);
    for (size_t n = 0; n < work.splits.count; n++) {
        const split *const word = &work.splits.splits[n];
        const size_t used = strlen(words);
        snprintf(words + used, sizeof words - used, "%s%.*s", n ? "|" : "",
                 (int)(word->end - word->begin), work.text.text + word->begin);
    }
    for (char *at = words; (at = strstr(at, SPACE)) != NULL; at++) { /* shorter in this file */
        *at = '_';
        memmove(at + 1, at + 3, strlen(at + 3) + 1);
    }
    CHECK(strcmp(words, wanted) == 0, "\"%s\": %s instead of %s", text, words, wanted);
    text_work_free(&work);
}

static void words_of_lines(void)
{
    static const char *const cases[][2] = {
        {"Stop that!", "_Stop|_that|!"},
        {"I don't think it's Tom's.", "_I|_do|n't|_think|_it|'s|_Tom|'s|."},
        {"CAN'T they're we've I'm he'll you'd", "_CA|N'T|_they|'re|_we|'ve|_I|'m|_he|'ll|_you|'d"},
        {"isn\u2019t it\u2019s", "_is|n\u2019t|_it|\u2019s"},
        {"L'homme qu'il n'aime", "_L'|homme|_qu'|il|_n'|aime"},
        {"aujourd\u2019hui o'clock", "_aujourd\u2019|hui|_o'|clock"},
        {"the dogs' 'end' n't'a", "_the|_dogs|'|_'|end|'|_n|'t|'|a"},
        {"d\u00e9j\u00e0-vu a-t-il", "_d\u00e9j\u00e0|-|vu|_a|-|t|-|il"},
        {"in 1998, 3.5%", "_in|_1|9|9|8|,|_3|.|5|%"},
        {"Quoi ? Non\u00a0! Si\u202f; \u00ab oui \u00bb",
         "_Quoi|_?|_Non|\u00a0!|_Si|\u202f;|_\u00ab|_oui|_\u00bb"},
        {"So... What?! \u2026", "_So|...|_What|?|!|_\u2026"},
        {"  two  spaces ", "__|_two|_|_spaces|_"},
        {"a\tb\r\n\n c\u00a0d", "_a|\t|b|\r\n\n|_c|\u00a0|d"},
        {"e\u0301te\u0301 \u0301", "_\u00e9t\u00e9|_\u0301"},
        {"\u4f60\u597d \u0939\u093f\u0928\u094d\u0926\u0940",
         "_\u4f60\u597d|_\u0939\u093f\u0928\u094d\u0926\u0940"},
        {"</s> <0x41> <unk>", "_<|/|s|>|_<|0|x|4|1|>|_<|unk|>"},
        {"x=a_b", "_x|=|a|_|b"}};
    mha_tokenizer *const t = tokenizer_of(make_learner(), (bpe_learn_options){LEARNED_MIN, 0, 0});
    for (size_t n = 0; n < sizeof cases / sizeof cases[0] && t; n++)
        expect_words(t, cases[n][0], cases[n][1]);
    mha_tokenizer_free(t);
}

/* ---------------------------------------------------------------- pieces ----- */

static void expect_piece(const mha_tokenizer *t, int32_t id, const char *wanted)
{
    const char *const piece = mha_tokenizer_piece(t, id);
    CHECK(piece && strcmp(piece, wanted) == 0, "piece %d is \"%s\" instead of \"%s\"", (int)id,
          piece ? piece : "(none)", wanted);
}

static void pieces_have_fixed_places(void)
{
    bpe_learner *const learner = make_learner();
    add_lines(learner, "ba", 3);
    add_lines(learner, "b\u00e9", 2);
    add_lines(learner, "z", 1);
    mha_tokenizer *const t = tokenizer_of(learner, (bpe_learn_options){1000, 2, 2});
    static const char *const wanted[] = {"a",       "b",        "\u00e9",       SPACE,
                                         SPACE "b", SPACE "ba", SPACE "b\u00e9"};
    expect_piece(t, LEARNED_END, "</s>");
    expect_piece(t, LEARNED_UNKNOWN, "<unk>");
    expect_piece(t, LEARNED_PAD, "<pad>");
    expect_piece(t, LEARNED_BYTES, "<0x00>");
    expect_piece(t, LEARNED_BYTES + 255, "<0xFF>");
    for (int32_t n = 0; n < 7; n++)
        expect_piece(t, LEARNED_CHARACTERS + n, wanted[n]);
    CHECK(mha_tokenizer_size(t) == LEARNED_CHARACTERS + 7, "size %td", mha_tokenizer_size(t));
    CHECK(mha_tokenizer_mark(t, MHA_MARK_END) == LEARNED_END &&
              mha_tokenizer_mark(t, MHA_MARK_UNKNOWN) == LEARNED_UNKNOWN &&
              mha_tokenizer_mark(t, MHA_MARK_PAD) == LEARNED_PAD,
          "marks");
    expect_tokens(t, "ba b\u00e9", MHA_TEXT_MARKS, "264[0,2] 265[2,6] 0[]!");
    expect_tokens(t, "bz", 0, "263[0,1] 125[1,2]+");
    expect_pair(t, "ba", "a", "264[0,2] 0[]! 262[0,1]:1 259[0,1]+:1 0[]!:1");
    mha_tokenizer_free(t);
}

/* Rare characters, and those that do not fit, are written as bytes. */
static void characters_are_limited(void)
{
    bpe_learner *const learner = make_learner();
    add_lines(learner, "ccccc bbbb aaa dd e", 1);
    const struct {
        bpe_learn_options options;
        const char *pieces[8];
    } cases[] = {{{1000, 9, 0}, {"c", SPACE}},
                 {{1000, 9, 4}, {"b", "c", SPACE}},
                 {{1000, 9, 1}, {"a", "b", "c", "d", "e", SPACE}},
                 {{LEARNED_MIN, 1, 1}, {SPACE}},
                 {{LEARNED_MIN + 1, 9, 1}, {SPACE}},
                 {{LEARNED_MIN + 2, 9, 1}, {"c", SPACE}},
                 {{LEARNED_MIN + 5, 9, 1}, {"b", "c", SPACE}}};
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        bpe_learned learned = finish(learner, cases[n].options);
        mha_tokenizer *const t = open_learned(&learned);
        int32_t count = 0;
        for (; cases[n].pieces[count]; count++)
            expect_piece(t, LEARNED_CHARACTERS + count, cases[n].pieces[count]);
        CHECK(learned.characters == count && learned.size == LEARNED_CHARACTERS + count,
              "case %zu: %d pieces, %d characters", n, (int)learned.size, (int)learned.characters);
        mha_tokenizer_free(t);
        bpe_learned_free(&learned);
    }
    bpe_learner_free(learner);
}

static const char *const lines[] = {
    "I don't think it's Tom's.",   "Je ne crois pas que ce soit \u00e0 Tom.",
    "L'homme qu'il n'aime pas.",   "The man he doesn't like.",
    "O\u00f9 est-il\u00a0?",       "Where is he?",
    "Aujourd'hui, c'est lundi !",  "Today is Monday!",
    "Nous sommes le 14 juillet.",  "It's the 14th of July.",
    "Il n'y a pas d'eau ici.",     "There's no water here...",
    "Elle l'a d\u00e9j\u00e0 vu.", "She's already seen it."};
enum { LINES = sizeof lines / sizeof lines[0] };

/* The result is a function of the counts of words. */
static void order_does_not_matter(void)
{
    bpe_learner *const forth = make_learner(), *const back = make_learner();
    for (int n = 0; n < LINES; n++) {
        add_lines(forth, lines[n], 1 + n % 3);
        add_lines(back, lines[LINES - 1 - n], 1 + (LINES - 1 - n) % 3);
    }
    const bpe_learn_options options = {400, 2, 1};
    bpe_learned first = finish(forth, options), second = finish(back, options),
                again = finish(forth, options);
    CHECK(first.size > 330, "only %d pieces", (int)first.size);
    CHECK(first.length == second.length && memcmp(first.json, second.json, first.length) == 0,
          "another order of the lines");
    CHECK(first.length == again.length && memcmp(first.json, again.json, first.length) == 0,
          "the same learner");
    bpe_learned_free(&first);
    bpe_learned_free(&second);
    bpe_learned_free(&again);
    bpe_learner_free(forth);
    bpe_learner_free(back);
}

/* ----------------------------------------------------------------- texts ----- */

static void expect_round_trip(const mha_tokenizer *t, const char *text, size_t length)
{
    mha_tokens tokens;
    char *back = NULL;
    size_t back_length = 0;
    CHECK(mha_tokenizer_encode(t, text, length, MHA_TEXT_MARKS | MHA_TEXT_PLAIN, &tokens) == MHA_OK,
          "encode");
    int32_t *const ids = malloc(((size_t)tokens.count + 1) * sizeof *ids);
    for (ptrdiff_t n = 0; n < tokens.count && ids; n++) {
        ids[n] = tokens.tokens[n].id;
        const bool last = n == tokens.count - 1;
        CHECK(last ? ids[n] == LEARNED_END : ids[n] >= LEARNED_BYTES, "\"%s\": id %d at %td", text,
              (int)ids[n], n);
    }
    CHECK(mha_tokenizer_decode(t, ids, tokens.count, MHA_TEXT_SKIP_MARKS, &back, &back_length) ==
              MHA_OK,
          "decode");
    CHECK(back && back_length == length && memcmp(back, text, length) == 0, "\"%s\" became \"%s\"",
          text, back ? back : "");
    mha_text_free(back);
    free(ids);
    mha_tokens_free(&tokens);
}

/* Characters that NFC does not change. */
static uint32_t random_character(test_random *random)
{
    switch (test_random_below(random, 4)) {
    case 0:
        return 0x2600 + (uint32_t)test_random_below(random, 0x400);
    case 1:
        return 0x1f300 + (uint32_t)test_random_below(random, 0x300);
    default:
        return (uint32_t)test_random_below(random, 0x300);
    }
}

static void random_round_trips(const mha_tokenizer *t)
{
    test_random random = {test_seed(11)};
    for (int64_t round = test_effort(2000); round > 0; round--) {
        char text[200];
        size_t length = 0;
        for (int64_t n = 1 + test_random_below(&random, 20); n > 0; n--)
            length += utf8_encode(text + length, random_character(&random));
        text[length] = '\0';
        expect_round_trip(t, text, length);
    }
}

static void texts_come_back(void)
{
    static const char *const texts[] = {"",
                                        " ",
                                        "  ",
                                        " a",
                                        "a ",
                                        "  a  b  ",
                                        "\t",
                                        "\n\n",
                                        " \t \n ",
                                        "L'\u00e9t\u00e9 !",
                                        "</s>",
                                        "<unk> <pad></s>",
                                        "<0x41>",
                                        "<0x41",
                                        "\u00a0?",
                                        "\u202f",
                                        "\U0001f600 ok",
                                        "\u65e5\u672c\u8a9e",
                                        "a.b..c...",
                                        "\x7f\x01",
                                        "don't 'tis l'"};
    bpe_learner *const learner = make_learner();
    for (int n = 0; n < LINES; n++)
        add_lines(learner, lines[n], 3);
    mha_tokenizer *const t = tokenizer_of(learner, (bpe_learn_options){400, 2, 0});
    for (size_t n = 0; n < sizeof texts / sizeof texts[0]; n++)
        expect_round_trip(t, texts[n], strlen(texts[n]));
    for (int n = 0; n < LINES; n++)
        expect_round_trip(t, lines[n], strlen(lines[n]));
    expect_round_trip(t, "a\0b", 3);
    random_round_trips(t);
    mha_tokenizer_free(t);
}

/* Without any line there are bytes and spaces. */
static void nothing_was_added(void)
{
    bpe_learner *const learner = make_learner();
    add_lines(learner, "", 5);
    mha_tokenizer *const t = tokenizer_of(learner, (bpe_learn_options){8000, 0, 0});
    CHECK(mha_tokenizer_size(t) == LEARNED_MIN, "size %td", mha_tokenizer_size(t));
    expect_piece(t, LEARNED_CHARACTERS, SPACE);
    expect_round_trip(t, "L'\u00e9t\u00e9 !", strlen("L'\u00e9t\u00e9 !"));
    mha_tokenizer_free(t);
}

/* ---------------------------------------------------------------- limits ----- */

static void sizes_that_are_refused(void)
{
    static const int32_t sizes[] = {INT32_MIN,          -1,       0, LEARNED_MIN - 1,
                                    VOCABULARY_MAX + 1, INT32_MAX};
    bpe_learner *const learner = make_learner();
    add_lines(learner, "a b", 10);
    for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++) {
        const bpe_learn_options options = {.vocabulary_size = sizes[n]};
        bpe_learned learned;
        char message[300] = "", number[20];
        snprintf(number, sizeof number, "%d", (int)sizes[n]);
        CHECK(bpe_learner_finish(learner, &options, &learned, message, sizeof message) ==
                  MHA_ERR_SHAPE,
              "size %d", (int)sizes[n]);
        CHECK(strstr(message, number) && strstr(message, "260") && !learned.json, "%s", message);
        CHECK(bpe_learner_finish(learner, &options, &learned, NULL, 0) == MHA_ERR_SHAPE,
              "without a message");
    }
    bpe_learned learned = finish(learner, (bpe_learn_options){VOCABULARY_MAX, 0, 0});
    CHECK(learned.size == LEARNED_CHARACTERS + 5, "size %d", (int)learned.size);
    bpe_learned_free(&learned);
    bpe_learner_free(learner);
}

/* Lines that are refused count nothing. */
static void lines_that_are_refused(void)
{
    static const char *const invalid[] = {"a\xff", "\xc3", "a \xed\xa0\x80 b", "\xc0\x80",
                                          "\xf4\x90\x80\x80"};
    bpe_learner *const learner = make_learner(), *const other = make_learner();
    add_lines(learner, "a b", 10);
    add_lines(other, "a b", 10);
    for (size_t n = 0; n < sizeof invalid / sizeof invalid[0]; n++)
        CHECK(bpe_learner_add(learner, invalid[n], strlen(invalid[n])) == MHA_ERR_FORMAT,
              "invalid line %zu", n);
    add_lines(learner, "c", 10);
    add_lines(other, "c", 10);
    const bpe_learn_options options = {1000, 1, 1};
    bpe_learned first = finish(learner, options), second = finish(other, options);
    CHECK(strcmp(first.json, second.json) == 0, "an invalid line was counted");
    bpe_learned_free(&first);
    bpe_learned_free(&second);
    bpe_learner_free(learner);
    bpe_learner_free(other);
}

/* No line takes quadratic time. */
static void lines_of_a_megabyte(void)
{
    enum { LENGTH = 1 << 20 };
    static const char *const units[] = {"a", "ab ", "'", "n't", " ", "l'", ".", "1", "a\u0301"};
    char *const line = malloc(LENGTH);
    for (size_t n = 0; n < sizeof units / sizeof units[0] && line; n++) {
        const size_t unit = strlen(units[n]), length = LENGTH / unit * unit;
        bpe_learner *const learner = make_learner();
        for (size_t at = 0; at < length; at += unit)
            memcpy(line + at, units[n], unit);
        CHECK(bpe_learner_add(learner, line, length) == MHA_OK, "unit %zu", n);
        mha_tokenizer *const t = tokenizer_of(learner, (bpe_learn_options){1000, 0, 0});
        mha_tokens tokens = {0};
        CHECK(mha_tokenizer_encode(t, line, length, 0, &tokens) == MHA_OK && tokens.count > 1000,
              "unit %zu: %td tokens", n, tokens.count);
        mha_tokens_free(&tokens);
        mha_tokenizer_free(t);
    }
    free(line);
}

static void files_are_replaced(void)
{
    const temp_folder folder = temp_folder_new();
    bpe_learner *const learner = make_learner();
    for (int n = 0; n < LINES; n++)
        add_lines(learner, lines[n], 1);
    bpe_learned learned = finish(learner, (bpe_learn_options){400, 0, 0});
    char message[300] = "";
    size_t size = 0;
    put_file(&folder, "tokenizer.json", "old");
    CHECK(bpe_learned_save(&learned, temp_path(&folder, "tokenizer.json"), message,
                           sizeof message) == MHA_OK,
          "%s", message);
    unsigned char *const bytes = file_bytes(temp_path(&folder, "tokenizer.json"), &size);
    CHECK(bytes && size == learned.length && memcmp(bytes, learned.json, size) == 0, "content");
    CHECK(temp_folder_count(&folder) == 1, "%d files", temp_folder_count(&folder));
    free(bytes);
    mha_tokenizer *const t = open_tokenizer(&folder, "");
    CHECK(mha_tokenizer_size(t) == learned.size, "size %td", mha_tokenizer_size(t));
    expect_round_trip(t, lines[0], strlen(lines[0]));
    mha_tokenizer_free(t);
    CHECK(bpe_learned_save(&learned, temp_path(&folder, "none/x.json"), message, sizeof message) ==
              MHA_ERR_FILE,
          "a folder that does not exist");
    CHECK(strstr(message, "none/x.json") && strstr(message, "cannot be written"), "%s", message);
    bpe_learned_free(&learned);
    bpe_learner_free(learner);
    temp_folder_free(&folder);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(words_of_lines);
    RUN(pieces_have_fixed_places);
    RUN(characters_are_limited);
    RUN(order_does_not_matter);
    RUN(texts_come_back);
    RUN(nothing_was_added);
    RUN(sizes_that_are_refused);
    RUN(lines_that_are_refused);
    RUN(lines_of_a_megabyte);
    RUN(files_are_replaced);
    return test_end();
}
