/* SPDX-License-Identifier: MIT */
/*
 * mha_model_save(): checks, and models that are a single file. A GGUF or llama2.c file is copied
 * with zeros in the rows of W_O, where they read removed heads. Folders are in save_folder.c.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "format/safetensors.h"
#include "model/save_parts.h"

mha_status model_fail_at(const char *path, char *message, size_t message_size, mha_status status,
                         const char *format, ...)
{
    if (!message || message_size == 0)
        return status;
    va_list list;
    const int used = snprintf(message, message_size, "%s: ", path);
    va_start(list, format);
    if (used > 0 && (size_t)used < message_size)
        vsnprintf(message + used, message_size - (size_t)used, format, list);
    va_end(list);
    return status;
}

/* -------------------------------------------------------------- single files ----- */

/* The bytes of a run of columns of every row. Block types have whole blocks only. */
static mha_status list_ranges(const model_saving *s, const saved_tensor *t, weight_range *ranges)
{
    const mha_dtype type = t->tensor->type;
    const size_t row = mha_row_bytes(type, t->columns);
    for (ptrdiff_t r = 0; r < t->rows; r++)
        for (size_t n = 0; n < t->run_count; n++) {
            const size_t skip = mha_row_bytes(type, t->runs[n].first);
            const size_t count = mha_row_bytes(type, t->runs[n].count);
            if (count == 0 || (t->runs[n].first > 0 && skip == 0))
                return saving_fail(s, MHA_ERR_SHAPE,
                                   "heads have a width of %td, which is no multiple of the blocks "
                                   "of tensor %s: there is no place for zeros",
                                   t->runs[n].count, safetensors_show(t->tensor->name).text);
            *ranges++ = (weight_range){t->tensor, (uint64_t)r * row + skip, count};
        }
    return MHA_OK;
}

static mha_status write_zeros(const model_saving *s)
{
    size_t count = 0;
    for (size_t n = 0; n < s->count; n++)
        count += (size_t)s->tensors[n].rows * s->tensors[n].run_count;
    weight_range *const ranges = malloc((count + 1) * sizeof *ranges);
    if (!ranges)
        return saving_fail(s, MHA_ERR_MEMORY, "no memory for the list of heads");
    weight_range *next = ranges;
    mha_status status = MHA_OK;
    for (size_t n = 0; n < s->count && !status; n++) {
        status = list_ranges(s, &s->tensors[n], next);
        next += (size_t)s->tensors[n].rows * s->tensors[n].run_count;
    }
    if (!status)
        status = weight_source_copy(s->model->files.source, s->path, ranges, count, s->message,
                                    s->message_size);
    free(ranges);
    return status;
}

static mha_status save_file(const model_saving *s)
{
    const weight_source *const source = s->model->files.source;
    struct stat about;
    if (!weight_source_gguf(source) && !weight_source_llama2c(source))
        return saving_fail(s, MHA_ERR_FLAG,
                           "a translator of \"mha train\" is written by \"mha prune -o\"");
    if (s->count > 0 && !s->zeros)
        return saving_fail(s, MHA_ERR_FLAG,
                           "a %s file has one number of heads for all layers: it can only be "
                           "written with zeros for the removed heads",
                           weight_source_gguf(source) ? "GGUF" : "llama2.c");
    if (!s->replace && lstat(s->path, &about) == 0)
        return saving_fail(s, MHA_ERR_FILE, "exists already, and is not replaced");
    return write_zeros(s);
}

/* ------------------------------------------------------------------- checks ----- */

/* The model reads its own files until it is freed. */
static bool is_own_file(const model_saving *s)
{
    const model_files *const files = &s->model->files;
    const char *const own[] = {files->path, files->folder};
    struct stat there, about;
    if (stat(s->path, &there) != 0)
        return false;
    for (int n = 0; n < 2; n++)
        if (own[n] && stat(own[n], &about) == 0 && about.st_dev == there.st_dev &&
            about.st_ino == there.st_ino)
            return true;
    return false;
}

static mha_status save(model_saving *s)
{
    if (!s->model->files.source)
        return saving_fail(s, MHA_ERR_FLAG, "the model was not read from files");
    if (is_own_file(s))
        return saving_fail(s, MHA_ERR_FILE, "is the model itself, which cannot replace itself");
    mha_status status = saving_plan(s);
    if (!status)
        status = s->model->files.folder ? saving_write_folder(s) : save_file(s);
    saving_free(s);
    return status;
}

/* A copy without "/" at its end; NULL: out of memory. */
static char *plain_path(const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    char *const copy = malloc(length + 1);
    if (copy) {
        memcpy(copy, path, length);
        copy[length] = '\0';
    }
    return copy;
}

mha_status mha_model_save(const mha_model *model, const char *path, const mha_save_config *config)
{
    const mha_save_config none = {.size = sizeof none};
    config = config ? config : &none;
    if (config->size != sizeof *config)
        return MHA_ERR_STRUCT;
    if (!model || !path)
        return model_fail(config->message, config->message_size, MHA_ERR_NULL, "%s is NULL",
                          model ? "path" : "model");
    char *const plain = plain_path(path);
    if (!plain)
        return model_fail(config->message, config->message_size, MHA_ERR_MEMORY,
                          "no memory for a path");
    model_saving s = {.model = model,
                      .path = plain,
                      .zeros = config->zeros,
                      .replace = config->replace,
                      .shrink = config->storage == MHA_STORE_Q8,
                      .message = config->message,
                      .message_size = config->message_size};
    mha_status status = model->files.source ? saving_check_storage(&s, config->storage) : MHA_OK;
    if (!status)
        status = save(&s);
    free(plain);
    return status;
}
