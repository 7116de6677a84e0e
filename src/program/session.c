/* SPDX-License-Identifier: MIT */
/*
 * Opens what a command computes with, in this order: the number of threads (a wrong variable is
 * wrong usage), the instruction set, the model, the threads themselves.
 */
#include "program/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "format/file_kind.h"
#include "format/safetensors.h"
#include "program/args.h"
#include "program/scene_subject.h"
#include "text/tokenizer_words.h"
#include "vision/classes.h"

const char *require_isa(void)
{
    const char *isa = mha_isa_name();
    if (isa != NULL)
        return isa;
    const char *asked = getenv("MHA_ISA");
    fprintf(stderr,
            "mha: MHA_ISA=%s: no such instruction set, or this CPU does not have it; \"c\" always "
            "works, and without MHA_ISA the best one is used\n",
            asked != NULL ? asked : "");
    return NULL;
}

/* `threads` 0 is one per CPU. */
static int start_threads(mha_pool **pool, int threads)
{
    const mha_status status = mha_pool_create(pool, threads);
    if (status == MHA_OK)
        return EXIT_GO_ON;
    return args_failed("no threads: %s", mha_status_string(status));
}

static int load_translator(session *s)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    if ((s->model = translator_load(s->path, message)) != NULL)
        return EXIT_GO_ON;
    return args_failed("%s", message);
}

/* The first two steps: *count is for start_threads(). */
static int prepare(int64_t threads, int *count)
{
    const int found = args_threads(threads, -1);
    *count = found > 0 ? found : 0;
    if (found == 0)
        return EXIT_USAGE;
    return require_isa() != NULL ? EXIT_GO_ON : EXIT_FAILED;
}

/* Whether the metadata of a file say that it is a translator. */
static bool is_translator(const char *path)
{
    safetensors_file *file;
    if (safetensors_open(&file, path, 0, NULL, 0) != MHA_OK)
        return false;
    const char *const format = safetensors_value(file, "format");
    const bool is = format != NULL && strcmp(format, TRANSLATOR_FORMAT) == 0;
    safetensors_close(file);
    return is;
}

/* Whether a file is in a folder in the form of Hugging Face, which then is the model. */
static bool is_in_folder(const char *path)
{
    char beside[MODEL_PATH_MAX + 16];
    struct stat about;
    const char *const slash = strrchr(path, '/');
    snprintf(beside, sizeof beside, "%.*sconfig.json", slash != NULL ? (int)(slash - path) + 1 : 0,
             path);
    return stat(path, &about) == 0 && stat(beside, &about) == 0;
}

/* Folders and files of other forms are other models, and so are weights in a folder. What is none
 * of these is reported as what is wrong with it as a translator. */
static bool is_other(const char *path)
{
    struct stat about;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        return true;
    const file_kind kind = file_kind_at(path);
    if (kind != FILE_SAFETENSORS && kind != FILE_UNKNOWN)
        return true;
    return is_in_folder(path) && !is_translator(path);
}

/* The names of the classes, of a model in a folder that says them. */
static int read_classes(session *s)
{
    const int count = s->subject.class_count;
    char folder[MODEL_PATH_MAX], message[PICTURE_MESSAGE_MAX];
    struct stat about;
    snprintf(folder, sizeof folder, "%s", s->path);
    char *const slash = strrchr(folder, '/');
    if (stat(folder, &about) == 0 && !S_ISDIR(about.st_mode) && slash != NULL)
        slash[slash == folder] = '\0';
    if (count == 0)
        return EXIT_GO_ON;
    picture_class_name *const names = s->class_memory = calloc((size_t)count, sizeof *names);
    s->class_names = calloc((size_t)count, sizeof *s->class_names);
    if (names == NULL || s->class_names == NULL)
        return args_failed("out of memory");
    for (int n = 0; n < count; n++)
        s->class_names[n] = names[n];
    if (classes_read(folder, names, count, message))
        s->subject.classes = s->class_names;
    return EXIT_GO_ON;
}

static int load_other(session *s, bool heads, const mha_model_config *storage)
{
    char message[SUBJECT_MESSAGE_MAX] = "";
    const mha_model_config config = {.size = sizeof config,
                                     .storage = storage->storage,
                                     .message = message,
                                     .message_size = sizeof message,
                                     .arithmetic = storage->arithmetic};
    const mha_status status = mha_model_open(&s->any, s->path, &config);
    if (status != MHA_OK)
        return args_failed("%s", message[0] != '\0' ? message : mha_status_string(status));
    if (subject_of_model(&s->subject, s->any, message))
        return read_classes(s);
    subject_close(&s->subject);
    s->subject = (subject){.methods = NULL};
    return heads ? args_failed("%s: %s", s->path, message) : EXIT_GO_ON;
}

static int load_any(session *s, const char *model_file, shipped_model usual, bool heads,
                    const mha_model_config *storage)
{
    if (!model_path_find(model_file, usual, s->path))
        return EXIT_FAILED;
    if (is_other(s->path))
        return load_other(s, heads, storage);
    const int code = load_translator(s);
    if (code != EXIT_GO_ON)
        return code;
    subject_of_translator(&s->subject, s->model);
    return subject_count_words(&s->subject) ? EXIT_GO_ON : args_failed("out of memory");
}

static int open_with(session *s, const char *model_file, shipped_model usual, bool heads,
                     int64_t threads, const mha_model_config *storage)
{
    int count;
    *s = (session){.path = ""};
    int code = prepare(threads, &count);
    if (code == EXIT_GO_ON)
        code = load_any(s, model_file, usual, heads, storage);
    return code == EXIT_GO_ON ? start_threads(&s->pool, count) : code;
}

int session_open(session *s, const char *model_file, shipped_model usual, int64_t threads)
{
    const mha_model_config as_file = {.storage = MHA_STORE_AS_FILE};
    return open_with(s, model_file, usual, true, threads, &as_file);
}

int session_open_text(session *s, const char *model_file, shipped_model usual, int64_t threads,
                      const mha_model_config *storage)
{
    return open_with(s, model_file, usual, false, threads, storage);
}

int session_open_view(session *s, const char *model_file, shipped_model usual, int64_t threads)
{
    int count;
    *s = (session){.path = ""};
    if (!model_path_find(model_file, usual, s->path))
        return EXIT_FAILED;
    if (!scene_subject_is_folder(s->path))
        return session_open(s, model_file, usual, threads);
    int code = prepare(threads, &count);
    if (code == EXIT_GO_ON)
        code = start_threads(&s->pool, count);
    if (code != EXIT_GO_ON)
        return code;
    s->scenes = scene_subject_open(&s->subject, s->path, s->pool);
    return s->scenes != NULL ? EXIT_GO_ON : EXIT_FAILED;
}

void session_close(session *s)
{
    scene_model_free(s->scenes);
    mha_pool_free(s->pool);
    subject_close(&s->subject);
    translator_free(s->model);
    mha_model_free(s->any);
    free(s->class_memory);
    free((void *)s->class_names);
}

int session_open_pool(mha_pool **pool, int64_t threads)
{
    int count;
    *pool = NULL;
    const int code = prepare(threads, &count);
    return code == EXIT_GO_ON ? start_threads(pool, count) : code;
}
