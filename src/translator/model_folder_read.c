/* SPDX-License-Identifier: MIT */
/* Reads config.json and model.safetensors of a folder (model_folder_read.h). */
#include "translator/model_folder_read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/convert.h"
#include "format/safetensors.h"

static mha_status name_file(char path[FOLDER_PATH_MAX], const char *folder, const char *name,
                            char message[TRANSFORMER_MESSAGE_MAX])
{
    if (snprintf(path, FOLDER_PATH_MAX, "%s/%s", folder, name) < FOLDER_PATH_MAX)
        return MHA_OK;
    snprintf(message, TRANSFORMER_MESSAGE_MAX, "%.120s: the name is too long", folder);
    return MHA_ERR_FILE;
}

/* -------------------------------------------------------- configuration ----- */

mha_status folder_config_open(folder_config *r, const char *folder,
                              char message[TRANSFORMER_MESSAGE_MAX])
{
    *r = (folder_config){.message = message};
    mha_status status = name_file(r->path, folder, "config.json", message);
    if (status == MHA_OK)
        status = json_tree_read_file(&r->tree, r->path, message, TRANSFORMER_MESSAGE_MAX);
    return status;
}

mha_status folder_config_close(folder_config *r, const transformer_config *read,
                               transformer_config *config)
{
    json_tree_free(r->tree);
    if (r->status == MHA_OK && !transformer_config_check(read, r->message))
        r->status = MHA_ERR_FORMAT;
    if (r->status == MHA_OK)
        *config = *read;
    return r->status;
}

const json_value *folder_config_member(const folder_config *r, const char *key)
{
    return json_tree_member(json_tree_root(r->tree), key);
}

void folder_config_refuse(folder_config *r, const char *key, const char *wanted)
{
    if (r->status == MHA_OK)
        snprintf(r->message, TRANSFORMER_MESSAGE_MAX, "%.120s: \"%s\" is not %s", r->path, key,
                 wanted);
    r->status = MHA_ERR_FORMAT;
}

int folder_config_size(folder_config *r, const char *key)
{
    int64_t value = 0;
    if (!json_tree_get_integer(folder_config_member(r, key), &value) || value < 1 ||
        value > INT32_MAX)
        folder_config_refuse(r, key, "a positive integer");
    return r->status == MHA_OK ? (int)value : 1;
}

void folder_config_expect(folder_config *r, const char *key, const char *wanted)
{
    const char *text = "";
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\"", wanted);
    if (!json_tree_get_string(folder_config_member(r, key), &text, NULL) ||
        strcmp(text, wanted) != 0)
        folder_config_refuse(r, key, quoted);
}

/* ------------------------------------------------------------ parameters ----- */

typedef struct value_reader {
    const folder_values *wanted;
    const safetensors_file *file;
    safetensors_report report;
    uint16_t *halves; /* room for the largest tensor */
} value_reader;

static folder_shape shape_of(const folder_values *values, const transformer_tensor *tensor)
{
    return values->shape ? values->shape(values->config, tensor)
                         : (folder_shape){(size_t)tensor->rank,
                                          {(uint64_t)tensor->shape[0], (uint64_t)tensor->shape[1]}};
}

static bool has_shape(const value_reader *r, const safetensors_tensor *found,
                      const transformer_tensor *tensor)
{
    const folder_shape wanted = shape_of(r->wanted, tensor);
    if (found->rank != wanted.rank)
        return false;
    for (size_t axis = 0; axis < wanted.rank; axis++)
        if (found->shape[axis] != wanted.extents[axis])
            return false;
    return true;
}

/* The tensor of a parameter, if it is as it must be; else NULL after a message. */
static const safetensors_tensor *find_tensor(const value_reader *r,
                                             const transformer_tensor *wanted)
{
    char name[2 * TRANSFORMER_NAME_MAX];
    snprintf(name, sizeof name, "%s%s", r->wanted->prefix, wanted->name);
    const safetensors_tensor *const found = safetensors_find(r->file, name);
    if (!found)
        safetensors_fail(&r->report, MHA_ERR_FORMAT, "there is no tensor \"%s\"", name);
    else if (!has_shape(r, found, wanted))
        safetensors_fail(&r->report, MHA_ERR_FORMAT,
                         "\"%s\" has another shape than config.json says", name);
    else if (found->type != SAFETENSORS_F16 && found->type != SAFETENSORS_F32)
        safetensors_fail(&r->report, MHA_ERR_FORMAT, "\"%s\" is %s, neither F16 nor F32", name,
                         safetensors_type_name(found->type));
    else
        return found;
    return NULL;
}

static mha_status read_tensor(const value_reader *r, const transformer_tensor *wanted,
                              float *values)
{
    const safetensors_tensor *const found = find_tensor(r, wanted);
    float *const to = values + wanted->at;
    if (!found)
        return MHA_ERR_FORMAT;
    const bool half = found->type == SAFETENSORS_F16;
    const mha_status status = safetensors_read(
        r->file, found, half ? (void *)r->halves : (void *)to, r->report.message, r->report.size);
    for (size_t n = 0; n < wanted->count && status == MHA_OK; n++) {
        if (half)
            to[n] = convert_f16_to_f32(r->halves[n]);
        if (!isfinite(to[n]))
            return safetensors_fail(&r->report, MHA_ERR_FORMAT, "element %zu of \"%s\" is %g", n,
                                    found->name, (double)to[n]);
    }
    return status;
}

static mha_status out_of_memory(const value_reader *r)
{
    return safetensors_fail(&r->report, MHA_ERR_MEMORY, "out of memory");
}

/* All tensors are checked first: then the file is at least as large as the memory that is taken. */
static mha_status read_tensors(value_reader *r, const transformer_tensor *tensors, int count,
                               float **values)
{
    size_t largest = 1, all = 0;
    for (int n = 0; n < count; n++) {
        if (!find_tensor(r, &tensors[n]))
            return MHA_ERR_FORMAT;
        largest = tensors[n].count > largest ? tensors[n].count : largest;
        all += tensors[n].count;
    }
    r->halves = malloc(largest * sizeof *r->halves);
    *values = malloc(all * sizeof **values);
    mha_status status = r->halves && *values ? MHA_OK : out_of_memory(r);
    for (int n = 0; n < count && status == MHA_OK; n++)
        status = read_tensor(r, &tensors[n], *values);
    free(r->halves);
    if (status == MHA_OK)
        return MHA_OK;
    free(*values);
    *values = NULL;
    return status;
}

static mha_status read_file(value_reader *r, float **values)
{
    transformer_tensor *const tensors = malloc(TRANSFORMER_TENSORS_MAX * sizeof *tensors);
    if (!tensors)
        return out_of_memory(r);
    const int count = transformer_tensors(r->wanted->config, tensors);
    const mha_status status = read_tensors(r, tensors, count, values);
    free(tensors);
    return status;
}

mha_status model_folder_values(const char *folder, const folder_values *wanted, float **values,
                               char message[TRANSFORMER_MESSAGE_MAX])
{
    char path[FOLDER_PATH_MAX];
    safetensors_file *file = NULL;
    *values = NULL;
    mha_status status = name_file(path, folder, "model.safetensors", message);
    if (status == MHA_OK)
        status = safetensors_open(&file, path, 0, message, TRANSFORMER_MESSAGE_MAX);
    if (status == MHA_OK) {
        value_reader r = {
            .wanted = wanted, .file = file, .report = {path, message, TRANSFORMER_MESSAGE_MAX}};
        status = read_file(&r, values);
    }
    safetensors_close(file);
    return status;
}
