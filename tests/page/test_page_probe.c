/* SPDX-License-Identifier: MIT */
/*
 * Answers to requests for experiments (page/page_probe.h), through serve_view(), which the server
 * and live pages share: numbers are those of captures, and what cannot be done is refused with a
 * reason.
 */
#include "page/page_probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heads/probe.h"
#include "page/serve_app.h"
#include "support/test.h"
#include "support/tiny_model.h"

static subject laboratory;
static serve_app app = {.model = &laboratory};

/* The answer to a body, for free(); the status is checked. */
static char *answer(const char *body, unsigned status)
{
    char *const copy = strdup(body);
    const http_answer a = serve_view(&app, copy, strlen(copy));
    CHECK(a.status == status, "%s: %u: %.200s", body, a.status, a.text);
    free(copy);
    return a.text;
}

/* The number after the n-th occurrence of "key": in a JSON text; NaN: there is none. */
static double number_at(const char *text, const char *key, int n)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *at = strstr(text, quoted);
    while (at != NULL && n-- > 0)
        at = strstr(at + 1, quoted);
    return at != NULL ? strtod(at + strlen(quoted), NULL) : (double)NAN;
}

static subject_text read_text(const char *text, const char *target)
{
    const pair_request request = {.text = text, .target = target};
    char message[SUBJECT_MESSAGE_MAX] = "";
    subject_text read;
    CHECK(subject_read(&laboratory, &request, NULL, &read, message), "%s", message);
    return read;
}

static void numbers_are_those_of_captures(void)
{
    char *const got =
        answer("{\"text\": \"the cat sleeps\", \"to\": \"le chat dort\", \"changes\": "
               "[{\"kind\": \"cross\", \"layer\": 1, \"head\": 2, \"change\": "
               "\"zero\"}], \"probe\": {\"hidden\": [1, 1]}}",
               200);
    subject_text text = read_text("the cat sleeps", "le chat dort");
    const bool hidden[16] = {[1] = true};
    const uint8_t changes[16] = {[1] = HEAD_ZERO};
    const capture_options plain = {.weights = false},
                          changed = {.hidden = hidden, .changes = {[ATTENTION_CROSS] = changes}};
    capture *const before = subject_run(&laboratory, &text, &plain, NULL);
    capture *const after = subject_run(&laboratory, &text, &changed, NULL);
    CHECK(before->scored == 4, "%d rows", before->scored);
    for (int row = 0; row < before->scored; row++) {
        const double is = number_at(got, "before", row + 1), then = before->log_likelihood[row];
        CHECK(fabs(is - then) < 1e-5, "row %d before: %g, not %g", row, is, then);
        CHECK(fabs(number_at(got, "after", row + 1) - after->log_likelihood[row]) < 1e-5,
              "row %d after", row);
        CHECK(fabs(then - after->log_likelihood[row]) > 1e-6, "row %d does not change", row);
    }
    CHECK(isnan(number_at(got, "before", 5)) && strstr(got, "\"written\""), "%s", got);
    capture_free(before);
    capture_free(after);
    subject_text_free(&laboratory, &text);
    free(got);
}

static void nothing_changed_is_nothing_changed(void)
{
    char *const got =
        answer("{\"text\": \"the cat sleeps\", \"to\": \"le chat dort\", \"probe\": {}}", 200);
    for (int row = 0; row < 2; row++) {
        const double before = number_at(got, "before", row), after = number_at(got, "after", row);
        CHECK(before < 0.0 && fabs(before - after) == 0.0, "row %d: %g and %g", row, before, after);
    }
    CHECK(strstr(got, "\"written\"") == NULL, "it was written again");
    free(got);
}

/* With one head of eight the words are between those of both texts; "second" is what the other
 * says. */
static void heads_are_patched(void)
{
    char *const got = answer("{\"text\": \"the cat sleeps\", \"to\": \"le chat dort\", \"probe\": "
                             "{\"patch\": {\"text\": \"the dog sleeps\", \"heads\": [{\"kind\": "
                             "\"cross\", \"layer\": 2, \"head\": 1}]}}}",
                             200);
    subject_text text = read_text("the dog sleeps", "le chat dort");
    const capture_options plain = {.weights = false};
    capture *const other = subject_run(&laboratory, &text, &plain, NULL);
    for (int row = 0; row < other->scored; row++) {
        CHECK(fabs(number_at(got, "second", row) - other->log_likelihood[row]) < 1e-5, "row %d",
              row);
        CHECK(fabs(number_at(got, "after", row) - number_at(got, "before", row)) > 1e-9,
              "row %d does not change", row);
    }
    CHECK(strstr(got, "\"written\"") == NULL && strstr(got, "the dog sleeps") != NULL, "%s", got);
    capture_free(other);
    subject_text_free(&laboratory, &text);
    free(got);
}

static void words_are_taken_apart(void)
{
    char *const got = answer("{\"text\": \"the cat sleeps\", \"to\": \"le chat dort\", \"probe\": "
                             "{\"row\": 2, \"word\": 7}}",
                             200);
    const char *const shares = strstr(got, "\"shares\"");
    if (CHECK(shares != NULL, "%s", got)) {
        double sum = 0.0, share;
        int count = 0;
        for (; !isnan(share = number_at(shares, "share", count)); count++)
            sum += share;
        CHECK(count == 2 * 2 * 4 + 2 + 4 + 3, "%d shares", count);
        CHECK(fabs(sum - number_at(shares, "sum", 0)) < 1e-9, "%g", sum);
        CHECK(fabs(sum - number_at(shares, "logit", 0)) < 1e-3, "%g", sum);
        CHECK((int)number_at(shares, "number", 0) == 7, "another word");
    }
    free(got);
}

static void what_cannot_be_done_is_refused(void)
{
    static const char *const cases[][2] = {
        {"{\"text\": \"the cat sleeps\", \"probe\": {\"hidden\": [4]}}", "no such word"},
        {"{\"text\": \"the cat sleeps\", \"probe\": {\"hidden\": [4096]}}", "no such word"},
        {"{\"text\": \"the cat sleeps\", \"probe\": {\"hidden\": [0, 1, 2, 3]}}", "all words"},
        {"{\"text\": \"the cat sleeps\", \"to\": \"le chat dort\", \"probe\": {\"row\": 4}}",
         "no such row"},
        {"{\"text\": \"the cat sleeps\", \"probe\": {\"row\": 18446744073709551615}}",
         "no such row"},
        {"{\"text\": \"the cat sleeps\", \"probe\": {\"row\": 0, \"word\": 99999999}}",
         "no such word"},
        {"{\"text\": \"the cat sleeps\", \"probe\": {\"patch\": {\"text\": \"the cat\", \"heads\": "
         "[{\"kind\": \"encoder\", \"layer\": 1, \"head\": 1}]}}}",
         "4 in this text, 3 in"},
        {"{\"text\": \"the cat sleeps\", \"to\": \"le chat dort\", \"probe\": {\"patch\": "
         "{\"text\": \"the cat\", \"to\": \"le chat\", \"heads\": [{\"kind\": \"cross\", "
         "\"layer\": 1, \"head\": 1}]}}}",
         "4 in this text, 3 in"},
        {"{\"text\": \"the cat sleeps\", \"probe\": {\"patch\": {\"text\": \"  \", \"heads\": "
         "[{\"kind\": \"encoder\", \"layer\": 1, \"head\": 1}]}}}",
         "no words"},
        {"{\"text\": \" \", \"probe\": {\"hidden\": [0]}}", "no words"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        char *const got = answer(cases[n][0], 400);
        CHECK(strstr(got, cases[n][1]) != NULL, "%s: %s", cases[n][0], got);
        free(got);
    }
}

int main(int argc, char **argv)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    test_begin(argc, argv);
    transformer_config config = tiny_corpus_config();
    float *const values = tiny_values(&config, 3);
    translator *const own = translator_create(&config, values, message);
    if (CHECK(own, "%s", message)) {
        subject_of_translator(&laboratory, own);
        RUN(numbers_are_those_of_captures);
        RUN(nothing_changed_is_nothing_changed);
        RUN(heads_are_patched);
        RUN(words_are_taken_apart);
        RUN(what_cannot_be_done_is_refused);
        subject_close(&laboratory);
    }
    translator_free(own);
    free(values);
    return test_end();
}
