/* SPDX-License-Identifier: MIT */
/*
 * Answers requests: serve_request.c reads a body, page_sentence.c runs the model on it, page.c
 * makes JSON of the result.
 */
#include "page/serve_app.h"

#include <stdio.h>
#include <stdlib.h>

#include "page/serve_request.h"

static const char first_text[] = "the cat that i saw yesterday ran away";
static const char json_type[] = "application/json";

static http_answer error_answer(const char *message)
{
    http_answer answer = {400, json_type, NULL};
    size_t size;
    FILE *const file = open_memstream(&answer.text, &size);
    if (file == NULL)
        return answer;
    json j = json_begin(file);
    json_open_object(&j, NULL);
    json_string(&j, "error", message);
    json_close(&j);
    fclose(file);
    return answer;
}

/* The JSON of a page with one sentence, for free(); NULL: out of memory. "mha view" cannot change
 * heads, so a page with changed heads names "mha serve" as its command. */
static char *make_data(const serve_app *app, const page_sentence_memory *memory, bool changed,
                       const page_sentence *sentence)
{
    const char *const given = memory->pair.target_text;
    const char *const target = given[0] != '\0' ? given : NULL;
    const page_command call = {.output = "view.html",
                               .model_file = app->model_file,
                               .target = target,
                               .study = PAGE_STUDY_SENTENCES};
    char *const command = page_command_text(&call, sentence, 1);
    const page_data page = {.model = app->model,
                            .words = &app->words,
                            .command = changed ? "mha serve" : command,
                            .study = app->study,
                            .sentences = sentence,
                            .count = 1};
    char *const text = command != NULL ? page_json(&page) : NULL;
    free(command);
    return text;
}

/* The JSON that answers a request, for free(); NULL with a message. */
static char *answer_request(const serve_app *app, const pair_request *request, bool changed,
                            char message[PAIR_MESSAGE_MAX])
{
    page_sentence_memory *const memory = calloc(1, sizeof *memory);
    page_sentence *const sentence = calloc(1, sizeof *sentence);
    char *text = NULL;
    snprintf(message, PAIR_MESSAGE_MAX, "out of memory");
    if (memory != NULL && sentence != NULL &&
        page_sentence_make(memory, sentence, app->model, request, app->pool, message))
        text = make_data(app, memory, changed, sentence);
    if (memory != NULL)
        page_sentence_free(memory);
    free(memory);
    free(sentence);
    return text;
}

http_answer serve_view(void *arg, char *body, size_t length)
{
    const serve_app *const app = arg;
    char message[PAIR_MESSAGE_MAX] = "";
    serve_request request;
    if (!serve_request_read(&request, translator_config(app->model), body, length, message))
        return error_answer(message);
    char *const text = answer_request(app, &request.request, request.changed, message);
    return text != NULL ? (http_answer){200, json_type, text} : error_answer(message);
}

/* The page with a first sentence; it requests others itself. */
http_answer serve_page(void *arg, char *body, size_t length)
{
    const serve_app *const app = arg;
    const pair_request request = {first_text, NULL, {NULL}};
    char message[PAIR_MESSAGE_MAX];
    http_answer answer = {200, "text/html; charset=utf-8", NULL};
    (void)body;
    (void)length;
    char *const text = answer_request(app, &request, false, message);
    size_t size;
    FILE *const file = text != NULL ? open_memstream(&answer.text, &size) : NULL;
    if (file != NULL) {
        page_write_live(file, text);
        fclose(file);
    }
    free(text);
    return answer;
}
