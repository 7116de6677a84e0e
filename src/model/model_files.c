/* SPDX-License-Identifier: MIT */
/*
 * Opens whatever is at a path as a model: finds out what kind of files there are, and has them
 * described (describe.c, describe_gguf.c) and bound (bind.c).
 *
 *      folder                config.json, weights, and more that says how the model is used
 *      *.safetensors         a translator of "mha train", or weights with config.json beside them
 *      *.gguf, *.bin         everything in one file
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/safetensors.h"
#include "model/bind.h"
#include "model/describe_usage.h"
#include "model/families.h"
#include "text/tokenizer_words.h"
#include "text/unicode_library.h"

enum { PATH_BYTES = 4096 };

typedef struct opening {
    model_files *files;
    const model_family *family;
    const char *path;
    char folder[PATH_BYTES]; /* of the path, or the path itself */
    char *message;
    size_t message_size;
} opening;

static mha_status fail(const opening *o, mha_status status, const char *text)
{
    const safetensors_report report = {o->path, o->message, o->message_size};
    return safetensors_fail(&report, status, "%s", text);
}

/* The path of a file in the folder of the model. False if it is too long. */
static bool join(const opening *o, const char *name, char path[PATH_BYTES])
{
    const int length = snprintf(path, PATH_BYTES, "%s/%s", o->folder, name);
    return length > 0 && length < PATH_BYTES;
}

static bool file_exists(const opening *o, const char *name)
{
    char path[PATH_BYTES];
    return join(o, name, path) && access(path, R_OK) == 0;
}

static void set_folder(opening *o, bool is_folder)
{
    snprintf(o->folder, sizeof o->folder, "%s", o->path);
    char *const slash = strrchr(o->folder, '/');
    if (is_folder)
        return;
    if (slash == o->folder)
        slash[1] = '\0';
    else if (slash)
        *slash = '\0';
    else
        snprintf(o->folder, sizeof o->folder, ".");
}

/* ------------------------------------------------------------ JSON files ----- */

typedef mha_status (*read_config)(void *to, const config_reader *r);

/* Reads a JSON file of the folder with a function. A file that is not there is skipped. */
static mha_status with_json(const opening *o, const char *name, read_config read, void *to)
{
    char path[PATH_BYTES];
    json_tree *tree;
    if (!join(o, name, path) || access(path, F_OK) != 0)
        return MHA_OK;
    mha_status status = json_tree_read_file(&tree, path, o->message, o->message_size);
    if (status)
        return status;
    const config_reader reader = {.object = json_tree_root(tree),
                                  .path = path,
                                  .message = o->message,
                                  .message_size = o->message_size};
    status = read(to, &reader);
    json_tree_free(tree);
    return status;
}

static mha_status read_main(void *to, const config_reader *r)
{
    opening *const o = to;
    return describe_config(&o->files->description, &o->family, r);
}

static mha_status read_generation(void *to, const config_reader *r)
{
    model_description *const d = to;
    const mha_status status = describe_tokens(r, &d->usage);
    return status ? status : describe_marks(r, d);
}

static mha_status read_sentences(void *to, const config_reader *r)
{
    return describe_sentences(r, to);
}

static mha_status read_pixels(void *to, const config_reader *r)
{
    return describe_pixels(r, to);
}

static mha_status read_pooling(void *to, const config_reader *r)
{
    return describe_pooling(r, to);
}

typedef struct modules_result {
    model_usage *usage;
    char folder[MODEL_FOLDER_MAX];
} modules_result;

static mha_status read_modules(void *to, const config_reader *r)
{
    modules_result *const result = to;
    return describe_modules(r, result->usage, result->folder);
}

/* What the files beside config.json say about the use of the model. */
static mha_status read_usage(const opening *o)
{
    model_usage *const usage = &o->files->description.usage;
    modules_result modules = {.usage = usage};
    char name[MODEL_FOLDER_MAX + 16];
    mha_status status =
        with_json(o, "generation_config.json", read_generation, &o->files->description);
    if (!status)
        status = with_json(o, "modules.json", read_modules, &modules);
    if (!status)
        status = with_json(o, "sentence_bert_config.json", read_sentences, usage);
    if (!status && o->files->description.kind == MHA_MODEL_IMAGE_ENCODER)
        status = with_json(o, "preprocessor_config.json", read_pixels, &o->files->description);
    if (status || !modules.folder[0])
        return status;
    snprintf(name, sizeof name, "%s/config.json", modules.folder);
    return with_json(o, name, read_pooling, usage);
}

/* -------------------------------------------------------------- tokenizer ----- */

/* A copy that the caller frees; NULL if memory ran out. */
static char *copy_path(const char *path)
{
    const size_t size = strlen(path) + 1;
    char *const copy = malloc(size);
    if (copy)
        memcpy(copy, path, size);
    return copy;
}

/* The same of the path of a file in the folder. */
static char *path_of(const opening *o, const char *name)
{
    char path[PATH_BYTES];
    return join(o, name, path) ? copy_path(path) : NULL;
}

/* A folder is a tokenizer if it has one of these files. False if memory ran out. */
static bool find_folder_tokenizer(const opening *o, model_files *files)
{
    static const char *const names[] = {"tokenizer.json",         "vocab.txt",    "vocab.json",
                                        "encoder.json",           "spiece.model", "tokenizer.model",
                                        "sentencepiece.bpe.model"};
    if (file_exists(o, "source.spm") && file_exists(o, "target.spm")) {
        files->tokenizer_path = path_of(o, "source.spm");
        files->target_tokenizer_path = path_of(o, "target.spm");
        return files->tokenizer_path && files->target_tokenizer_path;
    }
    size_t n = 0;
    while (n < sizeof names / sizeof names[0] && !file_exists(o, names[n]))
        n++;
    if (n == sizeof names / sizeof names[0])
        return true;
    files->tokenizer_path = copy_path(o->folder);
    return files->tokenizer_path != NULL;
}

/* A tokenizer of llama2.c is called after the size of its vocabulary, or just tokenizer.bin. */
static bool find_llama2c_beside(const opening *o, model_files *files)
{
    char name[40];
    snprintf(name, sizeof name, "tok%d.bin", files->description.vocabulary);
    if (!file_exists(o, name))
        snprintf(name, sizeof name, "tokenizer.bin");
    if (!file_exists(o, name))
        return true;
    files->tokenizer_path = path_of(o, name);
    return files->tokenizer_path != NULL;
}

/* Looks beside the file and, if it is a link, beside its target. */
static bool find_llama2c_tokenizer(const opening *o, model_files *files)
{
    if (!find_llama2c_beside(o, files))
        return false;
    char *const target = files->tokenizer_path == NULL ? realpath(o->path, NULL) : NULL;
    bool fine = true;
    if (target != NULL && strlen(target) < PATH_BYTES) {
        opening there = {.path = target};
        set_folder(&there, false);
        fine = find_llama2c_beside(&there, files);
    }
    free(target);
    return fine;
}

/* A GGUF file may have its tokenizer inside. */
static bool find_gguf_tokenizer(const opening *o, model_files *files)
{
    if (!gguf_find(weight_source_gguf(files->source), "tokenizer.ggml.model"))
        return true;
    files->tokenizer_path = copy_path(o->path);
    return files->tokenizer_path != NULL;
}

/* The file of a translator may have its words inside. */
static bool find_words(const opening *o, const safetensors_file *file, model_files *files)
{
    if (!text_libraries_present() || !safetensors_value(file, "source_vocabulary") ||
        !safetensors_value(file, "target_vocabulary"))
        return true;
    files->tokenizer_path = copy_path(o->path);
    files->target_tokenizer_path = copy_path(o->path);
    return files->tokenizer_path && files->target_tokenizer_path;
}

static mha_status fail_path(const opening *o)
{
    return fail(o, MHA_ERR_MEMORY, "out of memory for a path");
}

/* -------------------------------------------------------------- translator ----- */

static mha_status read_translator(opening *o, const char *text)
{
    json_tree *tree;
    mha_status status =
        json_tree_parse(&tree, o->path, text, strlen(text), o->message, o->message_size);
    if (status)
        return status;
    const config_reader reader = {.object = json_tree_root(tree),
                                  .path = o->path,
                                  .message = o->message,
                                  .message_size = o->message_size};
    status = describe_translator_config(&o->files->description, &o->family, &reader);
    json_tree_free(tree);
    return status;
}

/* Describes a safetensors file by its metadata. *known is false if it is not a translator. */
static mha_status try_translator(opening *o, bool *known)
{
    safetensors_file *file;
    mha_status status = safetensors_open(&file, o->path, 0, o->message, o->message_size);
    *known = false;
    if (status)
        return status;
    const char *const format = safetensors_value(file, "format");
    const char *const config = safetensors_value(file, "config");
    *known = format && strcmp(format, TRANSLATOR_FORMAT) == 0;
    if (*known)
        status = config
                     ? read_translator(o, config)
                     : fail(o, MHA_ERR_FORMAT, "the metadata of the translator have no \"config\"");
    if (*known && !status && !find_words(o, file, o->files))
        status = fail_path(o);
    safetensors_close(file);
    return status;
}

/* ------------------------------------------------------------------- open ----- */

static const tensor_layout *choose_layout(const opening *o)
{
    const model_family *const family = o->family;
    if (weight_source_gguf(o->files->source))
        return family->gguf;
    for (int n = 1; n < 2; n++)
        if (family->layouts[n] && weight_source_find(o->files->source, family->layouts[n]->probe))
            return family->layouts[n];
    return family->layouts[0];
}

static mha_status bind_weights(const opening *o)
{
    return model_bind(&o->files->binding, &o->files->description, o->files->source,
                      choose_layout(o), o->path, o->message, o->message_size);
}

/* Weights that config.json of the folder describes. */
static mha_status describe_folder(opening *o)
{
    mha_status status = with_json(o, "config.json", read_main, o);
    if (!status)
        status = read_usage(o);
    if (status)
        return status;
    o->files->folder = copy_path(o->folder);
    return o->files->folder && find_folder_tokenizer(o, o->files) ? MHA_OK : fail_path(o);
}

static mha_status open_folder(opening *o)
{
    if (!file_exists(o, "config.json"))
        return fail(o, MHA_ERR_FORMAT,
                    "the folder has no config.json: expected a model in Hugging Face's form, or "
                    "the path of a .gguf, .safetensors or llama2.c .bin file");
    mha_status status = describe_folder(o);
    if (!status)
        status = weight_source_open(&o->files->source, o->path, o->message, o->message_size);
    return status ? status : bind_weights(o);
}

static mha_status open_safetensors(opening *o)
{
    bool known;
    mha_status status = try_translator(o, &known);
    if (!status && !known)
        status = file_exists(o, "config.json")
                     ? describe_folder(o)
                     : fail(o, MHA_ERR_FORMAT,
                            "there is no config.json beside the file, and it is not a model of "
                            "\"mha train\": the weights alone do not say what model it is");
    return status ? status : bind_weights(o);
}

static mha_status open_file(opening *o)
{
    model_files *const files = o->files;
    mha_status status = weight_source_open(&files->source, o->path, o->message, o->message_size);
    if (status)
        return status;
    const gguf_file *const gguf = weight_source_gguf(files->source);
    const llama2c_file *const llama2c = weight_source_llama2c(files->source);
    const config_reader reader = {.gguf = gguf,
                                  .prefix = "",
                                  .path = o->path,
                                  .message = o->message,
                                  .message_size = o->message_size};
    if (!gguf && !llama2c)
        return open_safetensors(o);
    status = gguf ? describe_gguf(&files->description, &o->family, &reader)
                  : describe_llama2c(&files->description, &o->family, llama2c, &reader);
    if (!status && !(gguf ? find_gguf_tokenizer(o, files) : find_llama2c_tokenizer(o, files)))
        status = fail_path(o);
    return status ? status : bind_weights(o);
}

mha_status model_files_open(model_files *files, const char *path, char *message,
                            size_t message_size)
{
    struct stat about;
    opening o = {.files = files, .path = path, .message = message, .message_size = message_size};
    memset(files, 0, sizeof *files);
    if (strlen(path) >= PATH_BYTES - MODEL_FOLDER_MAX)
        return fail(&o, MHA_ERR_FILE, "the path is too long");
    if (stat(path, &about) != 0) {
        const safetensors_report report = {path, message, message_size};
        return safetensors_fail(&report, MHA_ERR_FILE, "cannot be opened: %s", strerror(errno));
    }
    const bool is_folder = S_ISDIR(about.st_mode);
    set_folder(&o, is_folder);
    files->path = copy_path(path);
    const mha_status status = !files->path ? fail_path(&o)
                              : is_folder  ? open_folder(&o)
                                           : open_file(&o);
    if (status)
        model_files_close(files);
    return status;
}

void model_files_close(model_files *files)
{
    model_binding_free(&files->binding);
    description_free(&files->description);
    weight_source_close(files->source);
    free(files->path);
    free(files->folder);
    free(files->tokenizer_path);
    free(files->target_tokenizer_path);
    memset(files, 0, sizeof *files);
}
