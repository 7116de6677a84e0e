/* SPDX-License-Identifier: MIT */
/*
 * Tests of what is between text and the translator: reading sentences, finding unknown words and
 * putting them back, drawing maps of weights, reading lines; and of counting right translations.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/line_reader.h"
#include "program/maps.h"
#include "support/test.h"
#include "support/tiny_model.h"
#include "translator/accuracy.h"
#include "translator/sentence.h"

static translator *model;

static source_sentence *read_source(const char *text)
{
    source_sentence *const s = calloc(1, sizeof *s);
    if (!s)
        abort();
    source_read(s, model, text, false);
    return s;
}

/* -------------------------------------------------------------- source ----- */

static void sentences_become_numbers(void)
{
    source_sentence *const s = read_source("  The CAT, doesn't\tsleep. ");
    static const char *const tokens[] = {"the", "cat", "does", "not", "sleep"};
    CHECK(s->tokens.count == 5 && !s->problem[0] && s->unknown_count == 0, "%d tokens, \"%s\"",
          s->tokens.count, s->problem);
    CHECK(strcmp(s->text, "The CAT, doesn't sleep.") == 0, "\"%s\"", s->text);
    for (int n = 0; n < s->tokens.count && n < 5; n++)
        CHECK(strcmp(s->tokens.tokens[n], tokens[n]) == 0 &&
                  s->numbers[n] ==
                      vocabulary_find(translator_vocabulary(model, TRANSFORMER_SOURCE), tokens[n]),
              "token %d is \"%s\"", n, s->tokens.tokens[n]);
    free(s);
}

static void unknown_words_are_found(void)
{
    source_sentence *const s = read_source("the catt sees the xylophonist");
    if (CHECK(s->unknown_count == 2, "%d unknown words", s->unknown_count)) {
        CHECK(s->unknown[0].position == 1 && s->unknown[1].position == 4, "positions");
        CHECK(s->unknown[0].near_count > 0 && strcmp(s->unknown[0].near[0], "cat") == 0,
              "nothing is near to \"catt\"");
        CHECK(s->unknown[1].near_count == 0, "\"%s\" is near", s->unknown[1].near[0]);
        for (int n = 1; n < s->unknown[0].near_count; n++)
            CHECK(strcmp(s->unknown[0].near[n], s->unknown[0].near[n - 1]) != 0, "the same twice");
    }
    CHECK(s->numbers[1] == WORD_UNKNOWN && !s->problem[0], "it can be translated");
    free(s);
}

/* The laboratory says what its grammar does not have; other models have no grammar. */
static void sentences_outside_the_grammar_are_known(void)
{
    static const char *const list[][2] = {
        {"the cat sleeps", ""},
        {"They gave it to him", ""},
        {"the wug sees the catt", "unknown word \"wug\""},
        {"the cat sleep", "\"sleep\" should be \"sleeps\""},
        {"cat the sleeps", "unexpected word \"cat\""},
        {"the cat", "the sentence is incomplete"},
        {"i see me", "two pronouns are the same person"},
        {"", ""},
    };
    CHECK(translator_is_laboratory(model), "the words are those of the corpus");
    for (size_t n = 0; n < sizeof list / sizeof list[0]; n++) {
        source_sentence *const s = read_source(list[n][0]);
        CHECK(strcmp(s->outside, list[n][1]) == 0, "\"%s\": \"%s\", not \"%s\"", list[n][0],
              s->outside, list[n][1]);
        free(s);
    }
}

static void problems_are_reported(void)
{
    char text[4096] = "";
    source_sentence *s = read_source("");
    CHECK(s->tokens.count == 0 && !s->problem[0], "an empty sentence has a problem: \"%s\"",
          s->problem);
    free(s);
    s = read_source("the cat sees the dog and the king and the queen and");
    CHECK(s->tokens.count == 0 && strstr(s->problem, "it has 12 words") &&
              strstr(s->problem, "up to 11"),
          "\"%s\"", s->problem);
    free(s);
    s = read_source("the cat sees the dog and the king and the queen");
    CHECK(s->tokens.count == 11 && !s->problem[0], "\"%s\"", s->problem);
    source_read(s, model, "the beginning", true);
    CHECK(s->tokens.count == 0 && strstr(s->problem, "too long"), "\"%s\"", s->problem);
    free(s);
    for (int n = 0; n < 300; n++)
        memcpy(text + 9 * n, "wordword ", 10);
    s = read_source(text);
    CHECK(s->tokens.count == 0 && strstr(s->problem, "too long"), "\"%s\"", s->problem);
    free(s);
}

static void strange_bytes_become_harmless(void)
{
    source_sentence *const s = read_source("\x1b[31mred \xff\xfe \xc2\x9bx");
    for (const char *c = s->text; *c; c++)
        CHECK((unsigned char)*c >= 0x20, "byte %d", (unsigned char)*c);
    CHECK(strcmp(s->text, "\ufffd[31mred \ufffd\ufffd \ufffdx") == 0, "\"%s\"", s->text);
    CHECK(s->unknown_count == 3, "%d unknown words", s->unknown_count);
    free(s);
}

/* -------------------------------------------------------------- target ----- */

/* A result of these words (NULL: unknown); the weights of word i are on source word looks[i]. */
static translation make_result(const source_sentence *s, const char *const *words, const int *looks,
                               int count, bool ends)
{
    const transformer_config *const config = translator_config(model);
    translation t = {.source_count = s->tokens.count + 1, .target_count = count + ends};
    const int maps = config->layers[TRANSFORMER_TARGET] * config->heads;
    for (int n = 0; n < t.target_count; n++)
        t.target[n] =
            n == count ? WORD_END
            : words[n] ? vocabulary_find(translator_vocabulary(model, TRANSFORMER_TARGET), words[n])
                       : WORD_UNKNOWN;
    t.weights = looks ? calloc((size_t)maps * (size_t)t.target_count * (size_t)t.source_count,
                               sizeof(float))
                      : NULL;
    for (int row = 0; t.weights && row < maps * t.target_count; row++) {
        const int i = row % t.target_count;
        t.weights[row * t.source_count + (i < count ? looks[i] : s->tokens.count)] = 1.0f;
    }
    return t;
}

static void check_text(const translated *t, const char *wanted)
{
    corpus_sentence tokens;
    char text[CORPUS_TEXT_MAX];
    target_tokens(t, 0, &tokens);
    corpus_detokenise(CORPUS_FRENCH, &tokens, text);
    CHECK(strcmp(text, wanted) == 0, "\"%s\", not \"%s\"", text, wanted);
}

static void unknown_words_are_put_back(void)
{
    static const char *const words[] = {"le", NULL, "voit", NULL};
    static const int straight[] = {0, 1, 2, 4}, crossed[] = {0, 4, 2, 1};
    source_sentence *const two = read_source("the wug sees the blick");
    translation result = make_result(two, words, straight, 4, true);
    const translated t = {model, two, &result, 1};
    check_text(&t, "le wug voit blick");
    free(result.weights);
    result = make_result(two, words, crossed, 4, true);
    check_text(&t, "le blick voit wug");
    free(result.weights);
    result = make_result(two, words, NULL, 4, true);
    check_text(&t, "le wug voit blick");
    source_sentence *const one = read_source("the wug sees the cat");
    const translated single = {model, one, &result, 1};
    check_text(&single, "le wug voit wug");
    source_sentence *const none = read_source("the dog sees the cat");
    const translated known = {model, none, &result, 1};
    check_text(&known, "le <unknown> voit <unknown>");
    free(two);
    free(one);
    free(none);
}

static void the_grammar_is_asked(void)
{
    static const char *const words[] = {"il", "dort"};
    source_sentence *const s = read_source("He sleeps.");
    translation result = make_result(s, words, NULL, 2, true);
    const translated t = {model, s, &result, 1};
    gold_translation gold;
    gold_find(&gold, &t);
    CHECK(gold.known && gold.agrees && strcmp(gold.text, "il dort") == 0, "\"%s\"", gold.text);
    result.target_count--;
    gold_find(&gold, &t);
    CHECK(gold.known && !gold.agrees, "half a sentence is right");
    result = make_result(s, words, NULL, 1, true);
    gold_find(&gold, &t);
    CHECK(gold.known && !gold.agrees, "one word is right");
    source_read(s, model, "he sleep", false);
    gold_find(&gold, &t);
    CHECK(!gold.known && gold.reason[0], "\"he sleep\" is a sentence");
    free(s);
}

/* ---------------------------------------------------------------- maps ----- */

static void check_map(const translated *t, int layer, int head, const char *wanted)
{
    char *text = NULL;
    size_t size;
    layer_map map;
    FILE *const file = open_memstream(&text, &size);
    const terminal plain = {COLOR_NONE, 60, false};
    if (!file || !CHECK(alignment_map_make(&map, t, layer, head), "no map"))
        abort();
    heatmap_draw(file, &map.sheet, &plain);
    fclose(file);
    CHECK(strcmp(text, wanted) == 0, "got\n%s\nwanted\n%s", text, wanted);
    free(text);
    layer_map_free(&map);
}

/* The numbers of rows and columns differ, and titles are wider than maps. */
static void maps_are_drawn(void)
{
    static const char *const words[] = {"il"};
    static const int looks[] = {0};
    source_sentence *const s = read_source("he sleeps");
    translation result = make_result(s, words, looks, 1, true);
    const translated t = {model, s, &result, 1};
    const size_t size = 6;
    for (size_t n = 0; n < size; n++) /* head 2 of layer 1 attends only to word 2 */
        result.weights[size + n] = n % 3 == 1 ? 1.0f : 0.0f;
    check_map(&t, 1, 2,
              "      head 2\n"
              "        s   \n"
              "        l < \n"
              "        e e \n"
              "        e n \n"
              "      h p d \n"
              "      e s > \n"
              "   il   @@  \n"
              "<end>   @@  \n"
              "\n"
              "      0    ..::---==++***##%%@@@ 1.00\n");
    check_map(&t, 1, 0,
              "      head 1  head 2  head 3  head 4  mean\n"
              "        s       s       s       s       s   \n"
              "        l <     l <     l <     l <     l < \n"
              "        e e     e e     e e     e e     e e \n"
              "        e n     e n     e n     e n     e n \n"
              "      h p d   h p d   h p d   h p d   h p d \n"
              "      e s >   e s >   e s >   e s >   e s > \n"
              "   il @@        @@    @@      @@      ##::  \n"
              "<end>     @@    @@        @@      @@    ::##\n"
              "\n"
              "      0    ..::---==++***##%%@@@ 1.00\n");
    free(result.weights);
    free(s);
}

/* Some heads of a layer, in any order, with factors, notes and a heading. A title that is wider
 * than its map moves the next map, and never exceeds the total width. */
static void check_chosen(int width, const char *wanted)
{
    static const float weights[] = {1.0f, 0.0f, 0.5f, 0.5f, 0.0f, 1.0f,
                                    0.5f, 0.5f, 0.0f, 1.0f, 1.0f, 0.0f};
    static const float norms[] = {1.0f, 1.0f, 2.0f, 1.0f, 2.0f, 2.0f};
    static const char *const notes[] = {"self", "far", "previous"};
    static const int chosen[] = {2, 0};
    const layer_heads heads = {weights, norms, 2, 2, chosen, 2, true, notes};
    static const char *const words[] = {"<b>", "a", "b"};
    const terminal plain = {COLOR_NONE, width, false};
    char *text = NULL;
    size_t size;
    layer_map map;
    FILE *const file = open_memstream(&text, &size);
    if (!file || !CHECK(layer_map_make(&map, &heads), "no map"))
        abort();
    map.sheet.rows = layer_map_label(map.rows, words, 2);
    map.sheet.columns = layer_map_label(map.columns, words + 1, 2);
    map.sheet.heading = "a layer";
    heatmap_draw(file, &map.sheet, &plain);
    fclose(file);
    CHECK(strcmp(text, wanted) == 0, "got\n%s\nwanted\n%s", text, wanted);
    free(text);
    layer_map_free(&map);
}

static void chosen_heads_are_drawn(void)
{
    check_chosen(32, "a layer\n"
                     "\n"
                     "    head 3    head 1    mean\n"
                     "    previous  self      \n"
                     "    a b       a b       a b \n"
                     "<b>   @@      ++        ::++\n"
                     "  a @@        ::::      **..\n"
                     "\n"
                     "    0   ..::--==++**##%%@@@ 2.00\n");
    check_chosen(31, "a layer\n"
                     "\n"
                     "    head 3    head 1\n"
                     "    previous  self\n"
                     "    a b       a b \n"
                     "<b>   @@      ++  \n"
                     "  a @@        ::::\n"
                     "\n"
                     "    mean\n"
                     "    \n"
                     "    a b \n"
                     "<b> ::++\n"
                     "  a **..\n"
                     "\n"
                     "    0   ..::--==++**##%%@@ 2.00\n");
}

/* --------------------------------------------------------------- lines ----- */

static void give(int fd, const char *bytes, size_t size)
{
    CHECK(write(fd, bytes, size) == (ssize_t)size, "cannot write");
}

/* Complete lines are returned at once, however the input was split; an incomplete line waits. */
static void lines_come_as_they_are(void)
{
    static input_line lines[8];
    static line_reader reader;
    int fds[2];
    if (!CHECK(pipe(fds) == 0, "no pipe"))
        return;
    reader = (line_reader){.fd = fds[0]};
    give(fds[1], "one\n\ntw", 7);
    CHECK(line_reader_take(&reader, lines, 8) == 2, "not two lines");
    CHECK(strcmp(lines[0].text, "one") == 0 && strcmp(lines[1].text, "") == 0, "\"%s\", \"%s\"",
          lines[0].text, lines[1].text);
    give(fds[1], "o\na\0b\nc\nd\n", 10);
    CHECK(line_reader_take(&reader, lines, 2) == 2, "not the limit");
    CHECK(strcmp(lines[0].text, "two") == 0 && strcmp(lines[1].text, "a b") == 0, "\"%s\", \"%s\"",
          lines[0].text, lines[1].text);
    CHECK(line_reader_take(&reader, lines, 8) == 2, "not the rest");
    give(fds[1], "end", 3);
    close(fds[1]);
    CHECK(line_reader_take(&reader, lines, 8) == 1 && strcmp(lines[0].text, "end") == 0,
          "a last line without its end");
    CHECK(line_reader_take(&reader, lines, 8) == 0 && reader.error == 0, "more after the end");
    close(fds[0]);
}

static void long_lines_are_cut(void)
{
    static input_line lines[8];
    static line_reader reader;
    static char text[LINE_BYTES + 100];
    int fds[2];
    if (!CHECK(pipe(fds) == 0, "no pipe"))
        return;
    reader = (line_reader){.fd = fds[0]};
    memset(text, 'x', sizeof text);
    for (int extra = 0; extra < 2; extra++) {
        give(fds[1], text, LINE_BYTES - 1 + (size_t)extra);
        give(fds[1], "\nshort\n", 7);
    }
    close(fds[1]);
    CHECK(line_reader_take(&reader, lines, 8) == 4, "not four lines");
    CHECK(!lines[0].cut && !lines[1].cut && lines[2].cut && !lines[3].cut, "cut lines");
    CHECK(strlen(lines[2].text) == LINE_BYTES - 1 && strcmp(lines[3].text, "short") == 0, "texts");
    close(fds[0]);
    reader = (line_reader){.fd = fds[0]};
    CHECK(line_reader_take(&reader, lines, 8) == 0 && reader.error != 0, "a closed file was read");
}

/* ------------------------------------------------------------ accuracy ----- */

typedef struct witness {
    int64_t sentences, right, words_right;
} witness;

/* Counts again, from the words themselves. */
static void see(void *context, const corpus_pair *pair, const translation *said, bool right)
{
    witness *const w = context;
    const corpus_sentence *const expected = &pair->side[CORPUS_FRENCH];
    const vocabulary *const v = translator_vocabulary(model, TRANSFORMER_TARGET);
    bool all = said->target_count == expected->count + 1;
    for (int i = 0; i <= expected->count; i++) {
        const char *const word = i < expected->count ? expected->tokens[i] : "<end>";
        const bool same = i < said->target_count && strcmp(v->words[said->target[i]], word) == 0;
        all = all && same;
        w->words_right += same;
    }
    CHECK(all == right, "sentence %lld is judged wrongly", (long long)w->sentences);
    w->sentences++;
    w->right += right;
}

static void right_answers_are_counted(void)
{
    const translation_options greedy = {.beam = 1};
    witness w = {0};
    const accuracy_watch watch = {see, &w};
    accuracy sum = {0};
    /* The tiny model reads at most 11 words, so only such sentences are used. */
    for (int64_t n = 0; n < 60; n++) {
        corpus_pair pair;
        corpus_generate(1, CORPUS_TRAIN, (uint64_t)n, &pair, NULL);
        if (pair.side[CORPUS_ENGLISH].count <= 11)
            CHECK(accuracy_add(model, 1, CORPUS_TRAIN, n, 1, &greedy, NULL, &sum, &watch) == MHA_OK,
                  "sentence %lld", (long long)n);
    }
    CHECK(sum.sentences == w.sentences && sum.right == w.right && sum.words_right == w.words_right,
          "%lld, %lld right, %lld words right", (long long)sum.sentences, (long long)sum.right,
          (long long)sum.words_right);
    CHECK(sum.sentences > 20 && sum.words > sum.sentences, "too few");
}

int main(int argc, char **argv)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    const transformer_config config = tiny_corpus_config();
    float *const values = tiny_values(&config, 1);
    test_begin(argc, argv);
    model = translator_create(&config, values, message);
    if (!model)
        abort();
    RUN(sentences_become_numbers);
    RUN(unknown_words_are_found);
    RUN(sentences_outside_the_grammar_are_known);
    RUN(problems_are_reported);
    RUN(strange_bytes_become_harmless);
    RUN(unknown_words_are_put_back);
    RUN(the_grammar_is_asked);
    RUN(maps_are_drawn);
    RUN(chosen_heads_are_drawn);
    RUN(lines_come_as_they_are);
    RUN(long_lines_are_cut);
    RUN(right_answers_are_counted);
    translator_free(model);
    free(values);
    return test_end();
}
