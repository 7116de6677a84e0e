/* SPDX-License-Identifier: MIT */
/* mha translate --evaluate: how many sentences and words of the corpus are translated as the
 * grammar does it. */
#include "program/translate_evaluate.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/terminal.h"
#include "format/json_writer.h"
#include "program/args.h"
#include "translator/accuracy.h"
#include "translator/sentence.h"

enum { AT_ONCE = 512 };

typedef struct error_list {
    const evaluation *request;
    json *json; /* NULL: plain text */
} error_list;

/* Called for every sentence; prints those that differ from the grammar's translation. */
static void print_error(void *context, const corpus_pair *pair, const translation *said, bool right)
{
    const error_list *const list = context;
    if (right)
        return;
    const source_sentence none = {.unknown_count = 0};
    const translated t = {list->request->model, &none, said, 1};
    corpus_sentence tokens;
    char english[CORPUS_TEXT_MAX], expected[CORPUS_TEXT_MAX], text[CORPUS_TEXT_MAX];
    target_tokens(&t, 0, &tokens);
    corpus_detokenise(CORPUS_ENGLISH, &pair->side[CORPUS_ENGLISH], english);
    corpus_detokenise(CORPUS_FRENCH, &pair->side[CORPUS_FRENCH], expected);
    corpus_detokenise(CORPUS_FRENCH, &tokens, text);
    if (list->json == NULL) {
        printf("%s\n  expected  %s\n  output    %s\n", english, expected, text);
        return;
    }
    json_open_object(list->json, NULL);
    json_string(list->json, "source", english);
    json_string(list->json, "expected", expected);
    json_string(list->json, "target", text);
    json_close(list->json);
}

/* Translates in groups of AT_ONCE sentences, so that progress can be shown. */
static mha_status measure(const evaluation *e, const error_list *list, accuracy *sum)
{
    error_list errors = *list;
    const accuracy_watch watch = {print_error, &errors};
    mha_status status = MHA_OK;
    for (int64_t first = 0; status == MHA_OK && first < e->count; first += AT_ONCE) {
        const int64_t left = e->count - first;
        status = accuracy_add(e->model, e->seed, e->split, first, left < AT_ONCE ? left : AT_ONCE,
                              &e->options, e->pool, sum, e->errors ? &watch : NULL);
        progress("%" PRId64 " of %" PRId64 " sentences, %" PRId64 " exact", sum->sentences,
                 e->count, sum->right);
    }
    progress_end();
    return status;
}

static double share(int64_t part, int64_t whole)
{
    return (double)part / (double)whole;
}

static void print_json(json *j, const evaluation *e, const accuracy *sum, double seconds)
{
    json_string(j, "split", corpus_split_name(e->split));
    json_unsigned(j, "seed", e->seed);
    json_integer(j, "beam", e->options.beam);
    json_integer(j, "sentences", sum->sentences);
    json_integer(j, "exact", sum->right);
    json_number(j, "exact_share", share(sum->right, sum->sentences));
    json_integer(j, "words", sum->words);
    json_integer(j, "words_right", sum->words_right);
    json_number(j, "words_right_share", share(sum->words_right, sum->words));
    json_number(j, "sentences_per_second", (double)sum->sentences / seconds);
}

/* The speed goes to stderr: the result itself is the same on every run. */
static void print_text(const evaluation *e, const accuracy *sum, double seconds)
{
    printf("%s, seed %" PRIu64 ": %" PRId64 " of %" PRId64 " sentences exact (%.2f %%), "
           "%" PRId64 " of %" PRId64 " words right (%.2f %%)\n",
           corpus_split_name(e->split), e->seed, sum->right, sum->sentences,
           100.0 * share(sum->right, sum->sentences), sum->words_right, sum->words,
           100.0 * share(sum->words_right, sum->words));
    fprintf(stderr, "%.0f sentences per second\n", (double)sum->sentences / seconds);
}

int translate_evaluate(const evaluation *e)
{
    accuracy sum = {0};
    json j = json_begin(stdout);
    const error_list list = {e, e->as_json ? &j : NULL};
    const double start = clock_seconds();
    if (e->as_json)
        json_open_object(&j, NULL);
    if (e->as_json && e->errors)
        json_open_array(&j, "errors");
    const mha_status status = measure(e, &list, &sum);
    const double seconds = clock_seconds() - start;
    if (e->as_json && e->errors)
        json_close(&j);
    if (status == MHA_OK && e->as_json)
        print_json(&j, e, &sum, seconds);
    else if (status == MHA_OK)
        print_text(e, &sum, seconds);
    if (e->as_json)
        json_close(&j);
    if (status != MHA_OK)
        fprintf(stderr, "mha: cannot translate: %s\n", mha_status_string(status));
    return status == MHA_OK ? EXIT_FINE : EXIT_FAILED;
}
