/* SPDX-License-Identifier: MIT */
/*
 * The folder of a saved model. It is made under a temporary name and appears with everything in it:
 *
 *      config.json          save_config.c
 *      model.safetensors    save_tensors.c
 *      all other files      copies: tokenizer, generation_config.json, licence, ...; but no weights
 *      1_Pooling/...        copies: the folders that modules.json of a sentence encoder names
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/replace_file.h"
#include "base/replace_folder.h"
#include "format/folder_file.h"
#include "format/json_tree.h"
#include "model/save_parts.h"

enum { COPY_BYTES = 1 << 16 };

static mha_status fail_path(const model_saving *s)
{
    return saving_fail(s, MHA_ERR_FILE, "the path is too long");
}

static mha_status fail_written(const model_saving *s, const char *path, int error)
{
    return model_fail_at(path, s->message, s->message_size,
                         error == ENOMEM ? MHA_ERR_MEMORY : MHA_ERR_FILE, "cannot be written: %s",
                         strerror(error));
}

static bool join(char path[PATH_MAX], const char *folder, const char *name)
{
    const int length = snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return length > 0 && length < PATH_MAX - MHAI_FILE_SUFFIX;
}

/* -------------------------------------------------------------------- files ----- */

mha_status saving_write_bytes(const model_saving *s, const char *path, const void *bytes,
                              size_t count)
{
    char name[PATH_MAX];
    int fd = -1;
    int error = mhai_file_open_new(path, name, sizeof name, &fd);
    if (!error)
        error = mhai_file_finish_new(fd, name, path, mhai_file_write(fd, bytes, count));
    return error ? fail_written(s, path, error) : MHA_OK;
}

/* Returns an error of writing; *failed receives one of reading. */
static int pump(int from, int to, int *failed)
{
    char buffer[COPY_BYTES];
    int error = 0;
    while (!error) {
        const ssize_t got = read(from, buffer, sizeof buffer);
        if (got == 0)
            break;
        if (got > 0)
            error = mhai_file_write(to, buffer, (size_t)got);
        else if (errno != EINTR)
            error = *failed = errno;
    }
    return error;
}

static mha_status copy_file(const model_saving *s, const char *from, const char *to)
{
    char name[PATH_MAX];
    int fd = -1, failed = 0;
    const int source = open(from, O_RDONLY | O_CLOEXEC);
    int error = source < 0 ? (failed = errno) : mhai_file_open_new(to, name, sizeof name, &fd);
    if (!error)
        error = mhai_file_finish_new(fd, name, to, pump(source, fd, &failed));
    if (source >= 0)
        close(source);
    if (failed)
        return model_fail_at(from, s->message, s->message_size, MHA_ERR_FILE, "cannot be read: %s",
                             strerror(failed));
    return error ? fail_written(s, to, error) : MHA_OK;
}

/* ------------------------------------------------------------------ folders ----- */

static bool ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

/* Weights, and what is written again. Hidden files belong to the tools that made the folder. */
static bool is_left_out(const char *name, bool inner)
{
    static const char *const ends[] = {".safetensors", ".index.json", ".bin",  ".pt",
                                       ".pth",         ".ckpt",       ".h5",   ".msgpack",
                                       ".ot",          ".onnx",       ".gguf", ".tflite"};
    for (size_t n = 0; n < sizeof ends / sizeof ends[0]; n++)
        if (ends_with(name, ends[n]))
            return true;
    return name[0] == '.' || (!inner && strcmp(name, "config.json") == 0);
}

static mha_status copy_entry(const model_saving *s, const char *from, const char *to,
                             const char *name)
{
    char source[PATH_MAX], target[PATH_MAX];
    struct stat about;
    if (!join(source, from, name) || !join(target, to, name))
        return fail_path(s);
    if (stat(source, &about) != 0 || !S_ISREG(about.st_mode))
        return MHA_OK;
    if (folder_file_resolve(source, from, name) != FOLDER_FILE_INSIDE)
        return model_fail_at(from, s->message, s->message_size, MHA_ERR_FORMAT,
                             "the file \"%.60s\" is a link that leads out of the folder", name);
    return copy_file(s, source, target);
}

/* Copies the files of a folder, but not its folders. `inner`: it is one of a sentence encoder. */
static mha_status copy_files(const model_saving *s, const char *from, const char *to, bool inner)
{
    DIR *const folder = opendir(from);
    mha_status status = MHA_OK;
    if (!folder)
        return inner && errno == ENOENT
                   ? MHA_OK
                   : model_fail_at(from, s->message, s->message_size, MHA_ERR_FILE,
                                   "cannot be read: %s", strerror(errno));
    if (inner && mkdir(to, 0777) != 0)
        status = fail_written(s, to, errno);
    for (const struct dirent *entry; !status && (entry = readdir(folder));)
        if (!is_left_out(entry->d_name, inner))
            status = copy_entry(s, from, to, entry->d_name);
    closedir(folder);
    return status;
}

static bool is_plain_name(const char *name)
{
    return name[0] && name[0] != '.' && !strchr(name, '/');
}

static mha_status copy_module(const model_saving *s, const char *to, const json_value *module)
{
    char source[PATH_MAX], target[PATH_MAX];
    const char *name = "";
    struct stat about;
    json_tree_get_string(json_tree_member(module, "path"), &name, NULL);
    if (!is_plain_name(name))
        return MHA_OK;
    if (!join(source, s->model->files.folder, name) || !join(target, to, name))
        return fail_path(s);
    if (lstat(source, &about) != 0 || !S_ISDIR(about.st_mode) || lstat(target, &about) == 0)
        return MHA_OK;
    return copy_files(s, source, target, true);
}

static mha_status copy_modules(const model_saving *s, const char *to)
{
    char path[PATH_MAX];
    json_tree *tree;
    if (!join(path, s->model->files.folder, "modules.json"))
        return fail_path(s);
    if (access(path, F_OK) != 0)
        return MHA_OK;
    mha_status status = json_tree_read_file(&tree, path, s->message, s->message_size);
    const json_value *const list = status ? NULL : json_tree_root(tree);
    for (size_t n = 0; !status && n < json_tree_count(list); n++)
        status = copy_module(s, to, json_tree_element(list, n));
    json_tree_free(tree);
    return status;
}

/* -------------------------------------------------------------------- whole ----- */

static mha_status fill(const model_saving *s, const char *folder)
{
    char config[PATH_MAX], tensors[PATH_MAX];
    if (!join(config, folder, "config.json") || !join(tensors, folder, "model.safetensors"))
        return fail_path(s);
    mha_status status = saving_write_config(s, config);
    if (!status)
        status = copy_files(s, s->model->files.folder, folder, false);
    if (!status)
        status = copy_modules(s, folder);
    return status ? status : saving_write_tensors(s, tensors);
}

static mha_status fail_place(const model_saving *s, int error)
{
    switch (error) {
    case EEXIST:
        return saving_fail(s, MHA_ERR_FILE, "exists already, and is not replaced");
    case ENOTDIR:
        return saving_fail(s, MHA_ERR_FILE, "is not a folder, and is not replaced by one");
    case ENOTEMPTY:
        return saving_fail(s, MHA_ERR_FILE,
                           "is not replaced: it is not the folder of a model, with a config.json "
                           "and no folders in folders");
    default:
        return fail_written(s, s->path, error);
    }
}

mha_status saving_write_folder(const model_saving *s)
{
    const char *const mark = s->replace ? "config.json" : NULL;
    char name[PATH_MAX];
    if (strlen(s->path) + MHAI_FOLDER_SUFFIX >= sizeof name)
        return fail_path(s);
    int held, error = mhai_folder_open_new(s->path, mark, name, sizeof name, &held);
    if (error)
        return fail_place(s, error);
    const mha_status status = fill(s, name);
    error = mhai_folder_finish_new(held, name, s->path, mark, status ? ECANCELED : 0);
    return status ? status : error ? fail_place(s, error) : MHA_OK;
}
