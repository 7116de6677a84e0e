/* SPDX-License-Identifier: MIT */
/*
 * Answers requests: serve_request.c reads a body, page_sentence.c runs the model on it, page.c
 * makes JSON of the result.
 */
#include "page/serve_app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page/page_probe.h"
#include "page/serve_request.h"

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

/* The command of a page, for free(); NULL: out of memory. "mha view" cannot change heads, so that
 * of a page with changed heads is "mha serve", and the page's address has the sentence and changes.
 */
static char *make_command(const serve_app *app, bool changed, const page_sentence *sentence)
{
    const char *const given = sentence->text.given;
    if (app->command != NULL)
        return strdup(app->command);
    page_command call = {.model_file = app->model_file,
                         .texts = app->texts,
                         .study = PAGE_STUDY_SENTENCES,
                         .layer = 1};
    if (changed) {
        call.examples = app->examples;
        call.example_count = app->example_count;
        return page_command_text(&call, NULL, 0);
    }
    call.output = "view.html";
    call.target = given != NULL && given[0] != '\0' ? given : NULL;
    return page_command_text(&call, sentence, 1);
}

/* The JSON of a page with one sentence, for free(); NULL: out of memory. */
static char *make_data(const serve_app *app, bool changed, const page_sentence *sentence)
{
    char *const command = make_command(app, changed, sentence);
    const page_data page = {.subject = app->model,
                            .command = command,
                            .study = app->study,
                            .lecture = app->lecture,
                            .sentences = sentence,
                            .examples = app->examples,
                            .example_count = app->example_count,
                            .count = 1};
    char *const text = command != NULL ? page_json(&page) : NULL;
    free(command);
    return text;
}

/* The JSON that answers a request, for free(); NULL with a message. */
static char *answer_request(const serve_app *app, const serve_request *asked,
                            char message[SUBJECT_MESSAGE_MAX])
{
    const double cost = asked->effects ? PAGE_LIVE_COST : 0.0;
    page_sentence *const sentence = calloc(1, sizeof *sentence);
    char *text = NULL;
    snprintf(message, SUBJECT_MESSAGE_MAX, "out of memory");
    if (sentence != NULL &&
        page_sentence_make(sentence, app->model, &asked->request, cost, app->pool, message))
        text = make_data(app, asked->changed, sentence);
    if (sentence != NULL)
        page_sentence_free(sentence, app->model);
    free(sentence);
    return text;
}

/* {"format": "mha-compute-1", "steps": [...], "matrices": [...]} for free(); NULL: out of memory.
 */
static char *compute_text(const page_steps *steps, const page_matrices *matrices)
{
    char *text = NULL;
    size_t size;
    FILE *const file = open_memstream(&text, &size);
    if (file == NULL)
        return NULL;
    json j = json_begin(file);
    json_open_object(&j, NULL);
    json_string(&j, "format", "mha-compute-1");
    bool fine = page_steps_put(&j, steps) && page_matrices_put(&j, matrices);
    json_close(&j);
    fine = fclose(file) == 0 && fine;
    if (!fine) {
        free(text);
        text = NULL;
    }
    return text;
}

/* The same for a request; NULL with a message. */
static char *answer_compute(const serve_app *app, const serve_request *r,
                            char message[SUBJECT_MESSAGE_MAX])
{
    int layers[ATTENTION_KINDS] = {-1, -1, -1};
    subject_text read;
    char *text = NULL;
    layers[r->kind] = r->layer;
    if (subject_read(app->model, &r->request, app->pool, &read, message)) {
        page_steps steps;
        page_matrices matrices;
        snprintf(message, SUBJECT_MESSAGE_MAX, "out of memory");
        const bool fine =
            page_steps_make(&steps, app->model, &read, r->request.changes, layers, app->pool);
        if (page_matrices_make(&matrices, app->model, layers, true) && fine)
            text = compute_text(&steps, &matrices);
        page_matrices_free(&matrices);
        page_steps_free(&steps);
    }
    subject_text_free(app->model, &read);
    return text;
}

/* The answer to a request, for free(); NULL with a message. */
static char *answer_any(const serve_app *app, const serve_request *request,
                        char message[SUBJECT_MESSAGE_MAX])
{
    if (request->probe.asked)
        return page_probe_json(app->model, request, app->pool, message);
    return request->compute ? answer_compute(app, request, message)
                            : answer_request(app, request, message);
}

/* The same with the picture of the request, which a model that reads pictures needs: the names of
 * files are not followed. */
static char *answer_picture(const serve_app *app, serve_request *request,
                            char message[SUBJECT_MESSAGE_MAX])
{
    if (request->picture.bytes == NULL) {
        snprintf(message, SUBJECT_MESSAGE_MAX, "the model reads pictures: \"picture\" is missing");
        return NULL;
    }
    uint8_t *const bytes = serve_picture_read(&request->picture, app->model, message);
    request->request.picture = bytes;
    char *const text = bytes != NULL ? answer_any(app, request, message) : NULL;
    free(bytes);
    return text;
}

http_answer serve_view(void *arg, char *body, size_t length)
{
    const serve_app *const app = arg;
    char message[SUBJECT_MESSAGE_MAX] = "";
    serve_request request;
    if (!serve_request_read(&request, app->model->shape, body, length, message))
        return error_answer(message);
    const bool pictures = app->model->reads_pictures || request.picture.bytes != NULL;
    char *const text =
        pictures ? answer_picture(app, &request, message) : answer_any(app, &request, message);
    return text != NULL ? (http_answer){200, json_type, text} : error_answer(message);
}

/* The page with a first sentence; it requests others itself. */
http_answer serve_page(void *arg, char *body, size_t length)
{
    const serve_app *const app = arg;
    serve_request first = {.request = {.text = app->model->first_text}, .effects = true};
    if (app->example_count > 0) {
        first.request.text = app->examples[0].name;
        first.request.picture = app->examples[0].bytes;
    }
    char message[SUBJECT_MESSAGE_MAX];
    http_answer answer = {200, "text/html; charset=utf-8", NULL};
    (void)body;
    (void)length;
    char *const text = answer_request(app, &first, message);
    size_t size;
    FILE *const file = text != NULL ? open_memstream(&answer.text, &size) : NULL;
    if (file != NULL) {
        page_write_served(file, text);
        fclose(file);
    }
    free(text);
    return answer;
}
