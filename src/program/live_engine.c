/* SPDX-License-Identifier: MIT */
/*
 * Collects the files of a model for a page: one file, or of a folder those that a model can consist
 * of, and those of its folders, such as 1_Pooling. Links that lead out of the folder are
 * refused (folder_file.h).
 */
#include "program/live_engine.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "format/file_kind.h"
#include "format/folder_file.h"
#include "format/text_file.h"
#include "program/args.h"

/* Browsers have limits for the length of a text, the smallest about 500 MB; base64 takes 4/3. */
#define LIVE_BYTES_MAX (size_t)384000000

static bool failed(const char *path, const char *reason)
{
    args_failed("%s: %s", path, reason);
    return false;
}

static bool add_file(live_engine *e, const char *path, const char *name)
{
    char message[TEXT_FILE_MESSAGE_MAX] = "";
    const int n = e->count;
    if (n == LIVE_FILES_MAX || strlen(name) >= LIVE_NAME_MAX)
        return failed(path, "the model has too many files for a page");
    if (mapped_file_open(&e->contents[n], path, message, sizeof message) != MHA_OK)
        return failed(path, message);
    e->count++;
    snprintf(e->names[n], LIVE_NAME_MAX, "%s", name);
    e->files[n] = (page_file){e->names[n], e->contents[n].bytes, e->contents[n].size};
    return true;
}

/* Whether a model in a folder can need a file of this name. */
static bool is_wanted(const char *name)
{
    static const char *const ends[] = {".json", ".safetensors", ".txt",
                                       ".spm",  ".model",       ".tiktoken"};
    const size_t length = strlen(name);
    for (size_t n = 0; n < sizeof ends / sizeof ends[0]; n++) {
        const size_t tail = strlen(ends[n]);
        if (length > tail && strcmp(name + length - tail, ends[n]) == 0)
            return name[0] != '.';
    }
    return false;
}

/* Adds a file of `folder`; `under` is "", or the name of the folder in the model's with a "/". */
static bool add_entry(live_engine *e, const char *folder, const char *under, const char *name)
{
    char path[PATH_MAX], inside[LIVE_NAME_MAX + NAME_MAX];
    struct stat about;
    snprintf(inside, sizeof inside, "%s%s", under, name);
    switch (folder_file_resolve(path, folder, name)) {
    case FOLDER_FILE_INSIDE:
        return stat(path, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0 ||
               add_file(e, path, inside);
    case FOLDER_FILE_OUTSIDE:
        return failed(folder, "a file is a link that leads out of the folder");
    default:
        return true;
    }
}

/* The name of a folder in the model's folder, with a "/" at its end; false: it is none. */
static bool is_folder(const char *folder, const char *name, char path[PATH_MAX],
                      char under[NAME_MAX + 2])
{
    struct stat about;
    snprintf(under, NAME_MAX + 2, "%s/", name);
    return name[0] != '.' && snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX &&
           lstat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool add_folder(live_engine *e, const char *folder, const char *under)
{
    char path[PATH_MAX], inner[NAME_MAX + 2];
    DIR *const open = opendir(folder);
    bool fine = open != NULL || failed(folder, "cannot be read");
    for (const struct dirent *entry; fine && (entry = readdir(open)) != NULL;)
        if (under[0] == '\0' && is_folder(folder, entry->d_name, path, inner))
            fine = add_folder(e, path, inner);
        else if (is_wanted(entry->d_name))
            fine = add_entry(e, folder, under, entry->d_name);
    if (open != NULL)
        closedir(open);
    return fine;
}

/* A file of weights with config.json beside it stands for its folder. */
static bool find_folder(const session *s, char folder[PATH_MAX])
{
    char beside[PATH_MAX];
    struct stat about;
    if (snprintf(folder, PATH_MAX, "%s", s->path) >= PATH_MAX)
        return false;
    if (stat(folder, &about) == 0 && S_ISDIR(about.st_mode))
        return true;
    char *const slash = strrchr(folder, '/');
    if (slash != NULL)
        slash[slash == folder] = '\0';
    else
        snprintf(folder, PATH_MAX, ".");
    return s->model == NULL &&
           snprintf(beside, sizeof beside, "%s/config.json", folder) < PATH_MAX &&
           stat(beside, &about) == 0;
}

static bool is_tokenizer(const char *name)
{
    static const char begins[] = "tok", ends[] = ".bin";
    const size_t length = strlen(name), least = strlen(begins) + strlen(ends);
    return length >= least && strncmp(name, begins, strlen(begins)) == 0 &&
           strcmp(name + length - strlen(ends), ends) == 0;
}

/* A model in one file, and beside one of llama2.c the tokenizers, which are called tok*.bin. */
static bool add_alone(live_engine *e, const char *path, const char *folder)
{
    const char *const slash = strrchr(path, '/');
    bool fine = add_file(e, path, slash != NULL ? slash + 1 : path);
    DIR *const open = fine && file_kind_at(path) == FILE_LLAMA2C ? opendir(folder) : NULL;
    for (const struct dirent *entry; open != NULL && (entry = readdir(open)) != NULL;)
        if (fine && is_tokenizer(entry->d_name))
            fine = add_entry(e, folder, "", entry->d_name);
    if (open != NULL)
        closedir(open);
    return fine;
}

static bool check_size(const live_engine *e, const session *s)
{
    size_t total = 0;
    for (int n = 0; n < e->count; n++)
        total += e->files[n].size;
    return total <= LIVE_BYTES_MAX ||
           failed(s->path, "the model is too large for a page, which has room for 384 MB");
}

bool live_engine_open(live_engine *e, const session *s)
{
    char module[MODEL_PATH_MAX], folder[PATH_MAX], message[TEXT_FILE_MESSAGE_MAX] = "";
    *e = (live_engine){.is_translator = s->model != NULL};
    if (!model_path_find_module(module))
        return false;
    if (mapped_file_open(&e->module, module, message, sizeof message) != MHA_OK)
        return failed(module, message);
    e->is_file = !find_folder(s, folder);
    return (e->is_file ? add_alone(e, s->path, folder) : add_folder(e, folder, "")) &&
           check_size(e, s);
}

void live_engine_close(live_engine *e)
{
    mapped_file_close(&e->module);
    for (int n = 0; n < e->count; n++)
        mapped_file_close(&e->contents[n]);
}

page_live live_engine_page(const live_engine *e, const char *json_text)
{
    return (page_live){.json_text = json_text,
                       .module = {MODEL_PAGE_MODULE, e->module.bytes, e->module.size},
                       .files = e->files,
                       .count = e->count,
                       .model = e->is_file ? e->names[0] : "",
                       .is_translator = e->is_translator};
}
