/* SPDX-License-Identifier: MIT */
/* Saves a model as q8 into a temporary folder (mha_model_save(), base/replace_folder.h). */
#include "program/small_model.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/leftover_files.h"
#include "base/replace_folder.h"
#include "program/args.h"
#include "program/model_session.h"
#include "translator/model_path.h"

static int save_copy(const mha_model *model, const char *path)
{
    char message[MODEL_MESSAGE_MAX] = "";
    const mha_save_config config = {.size = sizeof config,
                                    .message = message,
                                    .message_size = sizeof message,
                                    .storage = MHA_STORE_Q8};
    const mha_status status = mha_model_save(model, path, &config);
    if (status == MHA_OK)
        return EXIT_GO_ON;
    return args_failed("--store q8: %s", message[0] != '\0' ? message : mha_status_string(status));
}

static int make_folder(small_model *copy, const char *output)
{
    if (snprintf(copy->place, sizeof copy->place, "%s.model", output) >=
        PATH_MAX - MHAI_FOLDER_SUFFIX)
        return args_failed("%s: the path is too long", output);
    leftover_files_remove(copy->place);
    const int error =
        mhai_folder_open_new(copy->place, NULL, copy->path, sizeof copy->path, &copy->held);
    if (error == 0)
        return EXIT_GO_ON;
    copy->path[0] = '\0';
    return args_failed("%s: cannot be written: %s", copy->place, strerror(error));
}

int small_model_make(small_model *copy, const char *model_file, const char *output)
{
    char message[MODEL_MESSAGE_MAX] = "", path[MODEL_PATH_MAX];
    const mha_model_config config = {
        .size = sizeof config, .message = message, .message_size = sizeof message};
    mha_model *model;
    *copy = (small_model){.path = "", .held = -1};
    if (!model_path_find(model_file, SHIPPED_TRANSLATOR, path))
        return EXIT_FAILED;
    const mha_status status = mha_model_open(&model, path, &config);
    if (status != MHA_OK)
        return args_failed("%s", message[0] != '\0' ? message : mha_status_string(status));
    int code = make_folder(copy, output);
    if (code == EXIT_GO_ON)
        code = save_copy(model, copy->path);
    mha_model_free(model);
    return code;
}

void small_model_remove(small_model *copy)
{
    if (copy->path[0] != '\0')
        mhai_folder_finish_new(copy->held, copy->path, copy->place, NULL, ECANCELED);
    copy->path[0] = '\0';
}
