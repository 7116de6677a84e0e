/* SPDX-License-Identifier: MIT */
/*
 * Encoder-decoders with subwords as subjects: words that are joined from subwords, on the source,
 * on a given target and on a written one; rows of cross-attention, which belong to the words that
 * they say; scores; and source words that are hidden.
 */
#include "format/json_reader.h"
#include "heads/subject_model_parts.h"
#include "heads/whole_words.h"
#include "support/test.h"
#include "support/tiny_marian.h"
#include "support/tiny_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tiny_marian marian;

static bool has_words(const subject_side *side, const char *const *words, int count)
{
    bool fine = CHECK(side->count == count, "%d words, not %d", side->count, count);
    for (int n = 0; fine && n < count; n++)
        fine = CHECK(strcmp(side->words[n], words[n]) == 0, "word %d is \"%s\", not \"%s\"", n,
                     side->words[n], words[n]);
    return fine;
}

/* Subwords, also single bytes of a character, become whole words again. */
static void words_are_joined(void)
{
    static const char *const source[] = {"The", "zebra", "😀", "sleeps", ".", "</s>"};
    static const char *const target[] = {"<pad>", "Le", "zèbre", "n'", "a", "pas", "œuvré", "."};
    subject_text text = tiny_marian_read(&marian, "The zebra 😀 sleeps.", "Le zèbre n'a pas œuvré.");
    whole_words whole;
    CHECK(text.source.count > 6 && text.target.count > 8, "no subwords");
    for (int n = 0; n < text.source.count; n++)
        CHECK(mhai_utf8_valid(text.source.words[n], strlen(text.source.words[n])),
              "token %d is half of a character", n);
    if (CHECK(whole_words_make(&whole, &text), "no memory")) {
        has_words(&whole.text.source, source, 6);
        has_words(&whole.text.target, target, 8);
        CHECK(strcmp(whole.text.expected[1], "zèbre") == 0 &&
                  strcmp(whole.text.expected[7], "</s>") == 0,
              "expected words");
    }
    whole_words_free(&whole);
    subject_text_free(&marian.subject, &text);
}

static void tokens_know_their_place(void)
{
    static const char given[] = "Le chat dort.";
    subject_text text = tiny_marian_read(&marian, "The cat sleeps.", given);
    for (int n = 1; n < text.target.count; n++) {
        const int begin = text.target.begins[n], end = text.target.ends[n];
        CHECK(begin >= 0 && begin < end && end <= (int)strlen(given) &&
                  (n == 1 || begin == text.target.ends[n - 1]),
              "token %d: bytes %d to %d", n, begin, end);
    }
    CHECK(text.source.ends[text.source.count - 1] == text.source.begins[text.source.count - 1],
          "the end mark has no place");
    subject_text_free(&marian.subject, &text);
}

/* A model may write "chat" letter by letter, and a character byte by byte. */
static void written_words_are_those_of_the_text(void)
{
    static const char *const pieces[] = {"\xe2\x96\x81Le", "\xe2\x96\x81", "c", "h", "a", "t",
                                         "<0xC5>",         "<0x93>",       "."};
    static const bool wanted[] = {false, false, true, true, true, true, true, true, false};
    enum { COUNT = sizeof wanted / sizeof wanted[0] };
    const mha_tokenizer *const tokenizer = mha_model_tokenizer(marian.model);
    int32_t ids[COUNT];
    bool continues[COUNT];
    for (int n = 0; n < COUNT; n++) {
        ids[n] = mha_tokenizer_find(tokenizer, pieces[n]);
        CHECK(ids[n] >= 0, "no token \"%s\"", pieces[n]);
    }
    model_continues(tokenizer, ids, COUNT, continues);
    for (int n = 0; n < COUNT; n++)
        CHECK(continues[n] == wanted[n], "token %d \"%s\"", n, pieces[n]);
}

/* This model never ends a text. */
static void written_texts_fit(void)
{
    subject_text written = tiny_marian_read(&marian, "The cat sleeps.", NULL);
    CHECK(!written.target.begins, "places of a written text");
    CHECK(written.target.count == marian.config.positions, "%d tokens", written.target.count);
    subject_text_free(&marian.subject, &written);
}

/* ----------------------------------------------------------------- cross ----- */

/* The row that says the first token of a word is the one that reads the last token before it. */
static void cross_rows_are_those_of_words_that_they_say(void)
{
    static const capture_options options = {.weights = true};
    subject_text text = tiny_marian_read(&marian, "The cat sleeps.", "Le zèbre dort.");
    capture *const c = subject_run(&marian.subject, &text, &options, NULL);
    if (!CHECK(c, "no capture"))
        return;
    int first = 1; /* the first token of "zèbre" */
    while (!text.target.continues[first + 1])
        first++;
    int end = first + 1;
    while (end < text.target.count && text.target.continues[end])
        end++;
    const int columns = c->source_count, pieces = end - first;
    double wanted = 0.0;
    for (int row = first - 1; row < end - 1; row++)
        wanted += (double)c->kind[ATTENTION_CROSS].weights[row * columns] / pieces;
    const int word = first - 1; /* "Le" is one token */
    CHECK(first == 2 && pieces > 1 && capture_join_words(c), "%d pieces", pieces);
    const capture_heads *const cross = &c->kind[ATTENTION_CROSS];
    const double is = (double)cross->weights[word * cross->columns];
    CHECK(fabs(is - wanted) < 1e-6, "%g, not %g", is, wanted);
    CHECK(cross->rows == c->kind[ATTENTION_DECODER].rows, "%d rows", cross->rows);
    capture_free(c);
    subject_text_free(&marian.subject, &text);
}

static void scores_are_means(void)
{
    static const capture_options options = {.weights = false};
    subject_text text = tiny_marian_read(&marian, "The cat sleeps.", "Le chat dort.");
    capture *const c = subject_run(&marian.subject, &text, &options, NULL);
    double sum = 0.0;
    CHECK(c->scored == text.target.count, "%d rows are scored", c->scored);
    for (int n = 0; n < c->scored; n++)
        sum += c->log_likelihood[n];
    CHECK(fabs(capture_score(c) - sum / c->scored) < 1e-12, "%g", capture_score(c));
    c->scored = 0;
    CHECK(isnan(capture_score(c)), "the score of nothing");
    capture_free(c);
    subject_text_free(&marian.subject, &text);
}

/* The score of a written text is that of the search that found it. */
static void scores_are_those_of_generation(void)
{
    static const capture_options options = {.weights = false};
    const mha_generate_config config = {
        .size = sizeof config, .most = 63, .beams = 4, .length_penalty = 1.0};
    subject_text text = tiny_marian_read(&marian, "The cat sleeps.", NULL);
    capture *const c = subject_run(&marian.subject, &text, &options, NULL);
    const int64_t starts[2] = {0, text.source.count};
    mha_generation found;
    CHECK(mha_model_generate(marian.model, 1, starts, text.source.numbers, &config, &found, NULL) ==
              MHA_OK,
          "generate");
    CHECK(fabs(capture_score(c) - found.score) < 1e-4, "%g, not %g", capture_score(c), found.score);
    mha_generation_free(&found);
    capture_free(c);
    subject_text_free(&marian.subject, &text);
}

/* ---------------------------------------------------------------- hidden ----- */

/* Log-likelihoods with one source token hidden and replaced by another one. */
static void check_hidden(const capture *plain, const capture *hidden, const capture *other, int at)
{
    const capture_heads *const cross = &hidden->kind[ATTENTION_CROSS];
    double most = 0.0;
    for (int n = 0; n < plain->scored; n++) {
        CHECK(hidden->log_likelihood[n] == other->log_likelihood[n],
              "row %d depends on a hidden token", n);
        most = fmax(most, fabs(hidden->log_likelihood[n] - plain->log_likelihood[n]));
    }
    CHECK(most > 1e-4, "nothing changes");
    for (int row = 0; row < cross->layers * cross->heads * cross->rows; row++) {
        double sum = 0.0;
        for (int j = 0; j < cross->columns; j++)
            sum += (double)cross->weights[row * cross->columns + j];
        CHECK(cross->weights[row * cross->columns + at] == 0.0f && fabs(sum - 1.0) < 1e-5,
              "row %d: %g", row, sum);
    }
}

static void hidden_tokens_do_not_matter(void)
{
    bool hidden[64] = {[1] = true};
    const capture_options plain = {.weights = true}, options = {.weights = true, .hidden = hidden};
    subject_text a = tiny_marian_read(&marian, "The cat sleeps.", "Le chat dort.");
    subject_text b = tiny_marian_read(&marian, "The dog sleeps.", "Le chat dort.");
    CHECK(a.source.count == b.source.count && a.source.numbers[1] != b.source.numbers[1], "texts");
    for (int n = 2; a.source.continues[n] && CHECK(b.source.continues[n], "pieces"); n++)
        hidden[n] = true;
    capture *const all = subject_run(&marian.subject, &a, &plain, NULL);
    capture *const one = subject_run(&marian.subject, &a, &options, NULL);
    capture *const other = subject_run(&marian.subject, &b, &options, NULL);
    check_hidden(all, one, other, 1);
    capture_free(all);
    capture_free(one);
    capture_free(other);
    subject_text_free(&marian.subject, &a);
    subject_text_free(&marian.subject, &b);
}

static void a_model_without_a_tokenizer_is_refused(void)
{
    char message[SUBJECT_MESSAGE_MAX] = "";
    const mha_model_config request = {
        .size = sizeof request, .message = message, .message_size = sizeof message};
    mha_model *model = NULL;
    subject other;
    remove(temp_path(&marian.folder, "model/tokenizer.json"));
    if (CHECK(mha_model_open(&model, temp_path(&marian.folder, "model"), &request) == MHA_OK, "%s",
              message)) {
        CHECK(!subject_of_model(&other, model, message) && strstr(message, "no tokenizer"), "%s",
              message);
        subject_close(&other);
    }
    mha_model_free(model);
}

static void hidden_words_of_a_translator_do_not_matter(void)
{
    static const int source[] = {5, 7, 9, 4}, changed[] = {5, 8, 9, 4}, target[] = {6, 3, 8};
    bool hidden[5] = {[1] = true};
    const capture_options plain = {.weights = true}, options = {.weights = true, .hidden = hidden};
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    const transformer_config config = tiny_config();
    float *const values = tiny_values(&config, 3);
    translator *const own = translator_create(&config, values, message);
    if (CHECK(own, "%s", message)) {
        capture *const all = capture_create(own, source, 4, target, 3, &plain, NULL);
        capture *const one = capture_create(own, source, 4, target, 3, &options, NULL);
        capture *const other = capture_create(own, changed, 4, target, 3, &options, NULL);
        check_hidden(all, one, other, 1);
        capture_free(all);
        capture_free(one);
        capture_free(other);
    }
    translator_free(own);
    free(values);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    if (tiny_marian_open(&marian, 5)) {
        RUN(words_are_joined);
        RUN(tokens_know_their_place);
        RUN(written_words_are_those_of_the_text);
        RUN(written_texts_fit);
        RUN(cross_rows_are_those_of_words_that_they_say);
        RUN(scores_are_means);
        RUN(scores_are_those_of_generation);
        RUN(hidden_tokens_do_not_matter);
        RUN(a_model_without_a_tokenizer_is_refused);
    }
    RUN(hidden_words_of_a_translator_do_not_matter);
    tiny_marian_close(&marian);
    return test_end();
}
