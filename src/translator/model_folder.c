/* SPDX-License-Identifier: MIT */
/* Writes the files of a model's folder (model_folder.h). */
#include "translator/model_folder.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/replace_file.h"
#include "format/convert.h"

enum { NAME_MAX_LENGTH = 4096, ITEMS_MAX = TRANSFORMER_TENSORS_MAX + MODEL_FOLDER_EXTRAS };

static mha_status fail(char message[TRANSFORMER_MESSAGE_MAX], mha_status status, const char *path,
                       const char *reason)
{
    snprintf(message, TRANSFORMER_MESSAGE_MAX, "%.120s: %.120s", path, reason);
    return status;
}

mha_status model_folder_make(const char *folder, char message[TRANSFORMER_MESSAGE_MAX])
{
    if (strlen(folder) > NAME_MAX_LENGTH - 64)
        return fail(message, MHA_ERR_FILE, folder, strerror(ENAMETOOLONG));
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return fail(message, MHA_ERR_FILE, folder, strerror(errno));
    return MHA_OK;
}

/* ----------------------------------------------------------- text files ----- */

mha_status model_folder_text(const char *folder, const char *name, const char *text, size_t length,
                             char message[TRANSFORMER_MESSAGE_MAX])
{
    char path[NAME_MAX_LENGTH], fresh[NAME_MAX_LENGTH + MHAI_FILE_SUFFIX];
    int fd;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int error = mhai_file_open_new(path, fresh, sizeof fresh, &fd);
    if (error == 0)
        error = mhai_file_finish_new(fd, fresh, path, mhai_file_write(fd, text, length));
    return error == 0 ? MHA_OK : fail(message, MHA_ERR_FILE, path, strerror(error));
}

mha_status model_folder_json(const char *folder, const char *name,
                             void (*fill)(json *j, const void *content), const void *content,
                             char message[TRANSFORMER_MESSAGE_MAX])
{
    char *text = NULL;
    size_t length = 0;
    FILE *const file = open_memstream(&text, &length);
    if (!file)
        return fail(message, MHA_ERR_MEMORY, name, "out of memory");
    json j = json_begin(file);
    json_open_object(&j, NULL);
    fill(&j, content);
    json_close(&j);
    const bool fine = !ferror(file);
    const mha_status status = fclose(file) == 0 && fine
                                  ? model_folder_text(folder, name, text, length, message)
                                  : fail(message, MHA_ERR_MEMORY, name, "out of memory");
    free(text);
    return status;
}

/* ---------------------------------------------------------- parameters ----- */

typedef struct folder_writer {
    const folder_tensors *content;
    const char *path;
    char *message;
    transformer_tensor tensors[TRANSFORMER_TENSORS_MAX];
    char names[TRANSFORMER_TENSORS_MAX][2 * TRANSFORMER_NAME_MAX];
    folder_shape shapes[ITEMS_MAX];
    safetensors_item items[ITEMS_MAX];
    int parameters;   /* items that are parameters */
    uint16_t *halves; /* [values, then those of the extra tensor], or NULL */
} folder_writer;

static size_t elements(const folder_shape *shape)
{
    size_t count = 1;
    for (size_t n = 0; n < shape->rank; n++)
        count *= (size_t)shape->extents[n];
    return count;
}

/* Values of a tensor as they are written: themselves, or converted to `halves`. NULL if one of them
 * cannot be. */
static const void *convert(folder_writer *w, const char *name, const float *values, size_t count,
                           uint16_t *halves)
{
    char reason[TRANSFORMER_MESSAGE_MAX];
    for (size_t n = 0; n < count; n++) {
        if (w->halves)
            halves[n] = convert_f32_to_f16(values[n]);
        if (isfinite(w->halves ? convert_f16_to_f32(halves[n]) : values[n]))
            continue;
        snprintf(reason, sizeof reason, "element %zu of \"%s\" is %g: not a finite %s", n, name,
                 (double)values[n], w->halves ? "F16" : "number");
        fail(w->message, MHA_ERR_FORMAT, w->path, reason);
        return NULL;
    }
    return w->halves ? (const void *)halves : (const void *)values;
}

static mha_status add_item(folder_writer *w, int number, const char *name, const float *values,
                           size_t at)
{
    const folder_shape *const shape = &w->shapes[number];
    w->items[number] = (safetensors_item){
        .name = name,
        .type = w->halves ? SAFETENSORS_F16 : SAFETENSORS_F32,
        .rank = shape->rank,
        .shape = shape->extents,
        .data = convert(w, name + strlen(number < w->parameters ? w->content->prefix : ""), values,
                        elements(shape), w->halves ? w->halves + at : NULL)};
    return w->items[number].data ? MHA_OK : MHA_ERR_FORMAT;
}

static folder_shape plain_shape(const transformer_tensor *tensor)
{
    return (folder_shape){(size_t)tensor->rank,
                          {(uint64_t)tensor->shape[0], (uint64_t)tensor->shape[1]}};
}

/* All parameters, and last the extra tensor if there is one. */
static mha_status make_items(folder_writer *w, size_t *count)
{
    const folder_tensors *const c = w->content;
    transformer_map map;
    transformer_map_fill(&map, c->config);
    const int tensors = transformer_tensors(c->config, w->tensors);
    const size_t extra = c->extra.name ? elements(&c->extra.shape) : 0;
    if (c->type == MHA_F16) {
        w->halves = malloc((map.count + extra) * sizeof *w->halves);
        if (!w->halves)
            return fail(w->message, MHA_ERR_MEMORY, w->path, "out of memory");
    }
    mha_status status = MHA_OK;
    w->parameters = tensors;
    for (int n = 0; n < tensors && status == MHA_OK; n++) {
        const transformer_tensor *const tensor = &w->tensors[n];
        char name[2 * TRANSFORMER_NAME_MAX]; /* both are in *w, which compilers warn of */
        snprintf(name, sizeof name, "%s%s", c->prefix, tensor->name);
        memcpy(w->names[n], name, sizeof name);
        w->shapes[n] = c->shape ? c->shape(c->config, tensor) : plain_shape(tensor);
        status = add_item(w, n, w->names[n], c->values + tensor->at, tensor->at);
    }
    *count = (size_t)tensors + (c->extra.name ? 1 : 0);
    if (status != MHA_OK || !c->extra.name)
        return status;
    w->shapes[tensors] = c->extra.shape;
    return add_item(w, tensors, c->extra.name, c->extra.values, map.count);
}

/* Readers of PyTorch look for "format". */
static mha_status write_items(folder_writer *w, size_t count)
{
    const size_t notes = w->content->note_count;
    safetensors_pair *const pairs = calloc(notes + 1, sizeof *pairs);
    if (!pairs)
        return fail(w->message, MHA_ERR_MEMORY, w->path, "out of memory");
    pairs[0] = (safetensors_pair){"format", "pt"};
    if (notes > 0)
        memcpy(pairs + 1, w->content->notes, notes * sizeof *pairs);
    const mha_status status = safetensors_write(w->path, w->items, count, pairs, notes + 1,
                                                w->message, TRANSFORMER_MESSAGE_MAX);
    free(pairs);
    return status;
}

mha_status model_folder_tensors(const char *folder, const folder_tensors *content,
                                char message[TRANSFORMER_MESSAGE_MAX])
{
    char path[NAME_MAX_LENGTH];
    size_t count = 0;
    folder_writer *const w = calloc(1, sizeof *w);
    if (!w)
        return fail(message, MHA_ERR_MEMORY, folder, "out of memory");
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    w->content = content;
    w->path = path;
    w->message = message;
    mha_status status = make_items(w, &count);
    if (status == MHA_OK)
        status = write_items(w, count);
    free(w->halves);
    free(w);
    return status;
}
