/* SPDX-License-Identifier: MIT */
/* The model of a page, and its answers. There is one: it lives as long as the Worker. */
#include "mhajs_page.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "heads/subject.h"
#include "page/serve_app.h"
#include "translator/translator.h"

static subject model;
static serve_app app = {.model = &model};
static char message[SUBJECT_MESSAGE_MAX];

static bool open_translator(const char *path)
{
    const translator *const loaded = translator_load(path, message);
    if (loaded == NULL)
        return false;
    subject_of_translator(&model, loaded);
    snprintf(message, sizeof message, "out of memory");
    return subject_count_words(&model);
}

static bool open_other(const char *path)
{
    const mha_model_config config = {
        .size = sizeof config, .message = message, .message_size = sizeof message};
    mha_model *opened;
    const mha_status status = mha_model_open(&opened, path, &config);
    if (status != MHA_OK && message[0] == '\0')
        snprintf(message, sizeof message, "%s", mha_status_string(status));
    return status == MHA_OK && subject_of_model(&model, opened, message);
}

const char *mhajs_page_open(const char *path, int32_t is_translator, const char *command)
{
    if (app.command != NULL)
        return "the model is open already";
    if (mha_pool_create(&app.pool, 1) != MHA_OK || (app.command = strdup(command)) == NULL)
        return "out of memory";
    return (is_translator ? open_translator(path) : open_other(path)) ? NULL : message;
}

char *mhajs_page_ask(char *body, int32_t length, int32_t *status)
{
    const http_answer answer = serve_view(&app, body, (size_t)length);
    *status = (int32_t)answer.status;
    return answer.text;
}
