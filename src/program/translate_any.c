/* SPDX-License-Identifier: MIT */
/*
 * Translations by any encoder-decoder: texts are tokenised with the model's marks, and generated
 * greedily, some at a time.
 */
#include "program/translate_any.h"

#include <stdio.h>
#include <stdlib.h>

#include "format/json_writer.h"
#include "program/args.h"
#include "program/model_session.h"

/* A translation that does not end is cut off after MOST tokens. */
enum { TOGETHER = 32, MOST = 512 };

static void print_one(const char *text, const mha_generation *result, json *j)
{
    if (j == NULL) {
        printf("%s\n", result->text);
        return;
    }
    json_open_object(j, NULL);
    json_string(j, "source", text);
    json_string(j, "target", result->text);
    json_number(j, "log_probability", result->log_probability);
    json_bool(j, "complete", result->ended != 0);
    json_close(j);
}

static int translate_some(const mha_model *model, const char *const *texts, ptrdiff_t count,
                          json *j, mha_pool *pool)
{
    char message[MODEL_MESSAGE_MAX] = "";
    mha_generation results[TOGETHER] = {{.count = 0}};
    id_batch ids;
    int code = id_batch_make(&ids, mha_model_tokenizer(model), texts, count, MHA_TEXT_MARKS);
    if (code == EXIT_GO_ON) {
        const mha_generate_config config = {
            .size = sizeof config, .message = message, .message_size = sizeof message};
        const mha_status status =
            mha_model_generate(model, count, ids.starts, ids.ids, &config, results, pool);
        if (status != MHA_OK)
            code = args_failed("translate: %s", message[0] ? message : mha_status_string(status));
    }
    for (ptrdiff_t n = 0; n < count && code == EXIT_GO_ON; n++) {
        print_one(texts[n], &results[n], j);
        mha_generation_free(&results[n]);
    }
    id_batch_free(&ids);
    return code;
}

int translate_any(const mha_model *model, int words, char **argv, bool as_json, mha_pool *pool)
{
    mha_model_info info = {.size = sizeof info};
    mha_model_get_info(model, &info);
    if (info.kind != MHA_MODEL_ENCODER_DECODER)
        return args_failed("translate: the model is not an encoder-decoder; \"mha generate\" "
                           "continues texts");
    if (mha_model_tokenizer(model) == NULL)
        return args_failed("translate: no tokenizer was found beside the model");
    text_list list;
    int code = text_list_read(&list, words, argv);
    json j = json_begin(stdout);
    if (as_json)
        json_open_array(&j, NULL);
    for (ptrdiff_t n = 0; n < list.count && code == EXIT_GO_ON; n += TOGETHER) {
        const ptrdiff_t left = list.count - n;
        code = translate_some(model, (const char *const *)list.texts + n,
                              left < TOGETHER ? left : TOGETHER, as_json ? &j : NULL, pool);
    }
    if (as_json)
        json_close(&j);
    text_list_free(&list);
    return code == EXIT_GO_ON ? EXIT_FINE : code;
}
