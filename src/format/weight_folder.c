/* SPDX-License-Identifier: MIT */
/*
 * The files of a model folder: model.safetensors, or the shards of model.safetensors.index.json.
 * The index names a file for each tensor, and names are not trusted: a shard is a file of the
 * folder itself, and links are followed as folder_file.h says.
 */
#include "format/weight_source_parts.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "format/folder_file.h"
#include "format/json_tree.h"

/* The tensor `name` is in the shard `file`. */
typedef struct entry {
    const char *file, *name;
} entry;

static bool exists(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat about;
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof path && stat(path, &about) == 0;
}

static mha_status join(char path[PATH_MAX], const char *folder, const char *name,
                       const safetensors_report *report)
{
    const int length = snprintf(path, PATH_MAX, "%s/%s", folder, name);
    if (length < 0 || length >= PATH_MAX)
        return safetensors_fail(report, MHA_ERR_FILE, "the path is too long");
    return MHA_OK;
}

/* ---------------------------------------------------------------- shards ----- */

static bool is_file_name(const char *name)
{
    return name[0] && !strchr(name, '/') && !strchr(name, '\\') && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

/* The path of a shard without links, which must not lead out of the folder. */
static mha_status resolve(char path[PATH_MAX], const char *folder, const char *file,
                          const safetensors_report *report)
{
    if (!is_file_name(file))
        return safetensors_fail(report, MHA_ERR_FORMAT,
                                "the index names the file \"%s\", which is not in the folder",
                                safetensors_show(file).text);
    switch (folder_file_resolve(path, folder, file)) {
    case FOLDER_FILE_MISSING:
        return safetensors_fail(report, MHA_ERR_FILE,
                                "the file \"%s\" of the index cannot be found: was the model "
                                "downloaded completely?",
                                safetensors_show(file).text);
    case FOLDER_FILE_OUTSIDE:
        return safetensors_fail(report, MHA_ERR_FORMAT,
                                "the file \"%s\" of the index is a link that leads out of the "
                                "folder",
                                safetensors_show(file).text);
    default:
        return MHA_OK;
    }
}

/* Adds the shard of the first entry, and checks that it has the tensors of all `count`. */
static mha_status add_shard(weight_source *source, const char *folder, const entry *entries,
                            size_t count, const safetensors_report *report)
{
    char path[PATH_MAX];
    mha_status status = resolve(path, folder, entries[0].file, report);
    if (status == MHA_OK)
        status = weight_source_add_safetensors(source, path, report);
    if (status != MHA_OK)
        return status;
    const safetensors_file *const file = source->files[source->file_count - 1].safetensors;
    for (size_t n = 0; n < count; n++)
        if (!safetensors_find(file, entries[n].name))
            return safetensors_fail(
                report, MHA_ERR_FORMAT, "the tensor \"%s\" is not in \"%s\", as the index says",
                safetensors_show(entries[n].name).text, safetensors_show(entries[n].file).text);
    return MHA_OK;
}

/* ----------------------------------------------------------------- index ----- */

static int compare_entries(const void *left, const void *right)
{
    const entry *const a = left, *const b = right;
    const int order = strcmp(a->file, b->file);
    return order ? order : strcmp(a->name, b->name);
}

static mha_status list_entries(const json_value *map, entry *entries,
                               const safetensors_report *report)
{
    const size_t count = json_tree_count(map);
    for (size_t n = 0; n < count; n++) {
        entries[n].name = json_tree_key(map, n, NULL);
        if (!json_tree_get_string(json_tree_element(map, n), &entries[n].file, NULL))
            return safetensors_fail(report, MHA_ERR_FORMAT,
                                    "the file of the tensor \"%s\" in weight_map is not a string",
                                    safetensors_show(entries[n].name).text);
    }
    qsort(entries, count, sizeof *entries, compare_entries);
    return MHA_OK;
}

static mha_status add_entries(weight_source *source, const char *folder, const entry *entries,
                              size_t count, const safetensors_report *report)
{
    mha_status status = MHA_OK;
    for (size_t first = 0, end; first < count && status == MHA_OK; first = end) {
        for (end = first + 1; end < count && strcmp(entries[first].file, entries[end].file) == 0;)
            end++;
        status = add_shard(source, folder, entries + first, end - first, report);
    }
    return status;
}

static mha_status add_index(weight_source *source, const char *folder, const json_tree *tree,
                            const safetensors_report *report)
{
    const json_value *const map = json_tree_member(json_tree_root(tree), "weight_map");
    const size_t count = json_tree_count(map);
    if (json_tree_type_of(map) != JSON_TREE_OBJECT || count == 0)
        return safetensors_fail(report, MHA_ERR_FORMAT, "the index has no weight_map with tensors");
    entry *const entries = malloc(count * sizeof *entries);
    if (!entries)
        return safetensors_fail(report, MHA_ERR_MEMORY, "out of memory for %zu tensors", count);
    mha_status status = list_entries(map, entries, report);
    if (status == MHA_OK)
        status = add_entries(source, folder, entries, count, report);
    free(entries);
    return status;
}

static mha_status read_index(weight_source *source, const char *folder, const char *path,
                             const safetensors_report *outer)
{
    const safetensors_report report = {path, outer->message, outer->size};
    json_tree *tree;
    mha_status status = json_tree_read_file(&tree, path, report.message, report.size);
    if (status == MHA_OK)
        status = add_index(source, folder, tree, &report);
    json_tree_free(tree);
    return status;
}

/* ---------------------------------------------------------------- folders ----- */

static mha_status refuse_folder(const char *folder, const safetensors_report *report)
{
    static const char *const others[] = {"pytorch_model.bin", "pytorch_model.bin.index.json",
                                         "tf_model.h5", "flax_model.msgpack"};
    for (size_t n = 0; n < sizeof others / sizeof others[0]; n++)
        if (exists(folder, others[n]))
            return safetensors_fail(report, MHA_ERR_FORMAT,
                                    "the folder has %s but no model.safetensors: convert the model "
                                    "to safetensors, with model.save_pretrained(FOLDER) of the "
                                    "Python library transformers",
                                    others[n]);
    return safetensors_fail(report, MHA_ERR_FILE,
                            "the folder has neither model.safetensors nor "
                            "model.safetensors.index.json");
}

mha_status weight_source_add_folder(weight_source *source, const char *folder,
                                    const safetensors_report *report)
{
    static const char single[] = "model.safetensors", index[] = "model.safetensors.index.json";
    char path[PATH_MAX];
    const bool one = exists(folder, single);
    if (!one && !exists(folder, index))
        return refuse_folder(folder, report);
    const mha_status status = join(path, folder, one ? single : index, report);
    if (status != MHA_OK)
        return status;
    return one ? weight_source_add_safetensors(source, path, report)
               : read_index(source, folder, path, report);
}
