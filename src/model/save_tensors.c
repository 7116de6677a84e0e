/* SPDX-License-Identifier: MIT */
/*
 * model.safetensors of a saved model: the tensors of the source, all of them and by the same names,
 * in one file. Those that are changed are made in memory; the others are written from where they
 * are mapped. Layers that shared their weights may get copies of their own: tensors named
 * "...albert_layer_groups.0..." are then written once per layer.
 */
#include <stdlib.h>
#include <string.h>

#include "format/safetensors.h"
#include "model/save_parts.h"

static const char group_name[] = "albert_layer_groups.";

/* A tensor to be written, and what it needs of its own. */
typedef struct made_tensor {
    uint64_t shape[2];
    void *data;
    char *name;
} made_tensor; /* data and shape: if it is changed or shrunk */

typedef struct tensor_list {
    const model_saving *s;
    safetensors_item *items;
    made_tensor *made; /* [room], for the item of the same number */
    size_t count, room;
} tensor_list;

/* --------------------------------------------------------------------- data ----- */

static ptrdiff_t total_of(const saved_tensor *t)
{
    ptrdiff_t total = 0;
    for (size_t n = 0; n < t->run_count; n++)
        total += t->runs[n].count;
    return total;
}

/* Only the rows or columns of the runs. */
static void keep_runs(const saved_tensor *t, size_t size, char *to)
{
    const char *const from = t->tensor->data;
    const size_t row = (size_t)t->columns * size;
    for (ptrdiff_t r = 0; r < (t->by_columns ? t->rows : 1); r++)
        for (size_t n = 0; n < t->run_count; n++) {
            const size_t unit = t->by_columns ? size : row;
            const size_t bytes = (size_t)t->runs[n].count * unit;
            memcpy(to, from + (size_t)r * row + (size_t)t->runs[n].first * unit, bytes);
            to += bytes;
        }
}

/* Everything, with zeros in the runs. */
static void clear_runs(const saved_tensor *t, size_t size, char *to)
{
    const size_t row = (size_t)t->columns * size, unit = t->by_columns ? size : row;
    memcpy(to, t->tensor->data, (size_t)t->tensor->bytes);
    for (ptrdiff_t r = 0; r < (t->by_columns ? t->rows : 1); r++)
        for (size_t n = 0; n < t->run_count; n++)
            memset(to + (size_t)r * row + (size_t)t->runs[n].first * unit, 0,
                   (size_t)t->runs[n].count * unit);
}

/* Makes the data and the shape of a changed tensor. False: out of memory. */
static bool make_data(const model_saving *s, const saved_tensor *t, made_tensor *made,
                      safetensors_item *item)
{
    const size_t size = mha_dtype_size(t->tensor->type);
    const ptrdiff_t total = total_of(t);
    const ptrdiff_t rows = s->zeros || t->by_columns ? t->rows : total;
    const ptrdiff_t columns = s->zeros || !t->by_columns ? t->columns : total;
    made->data = malloc((size_t)(rows * columns) * size + 1);
    if (!made->data)
        return false;
    if (s->zeros) { /* the shape stays */
        clear_runs(t, size, made->data);
    } else {
        keep_runs(t, size, made->data);
        made->shape[0] = (uint64_t)rows;
        made->shape[1] = (uint64_t)columns;
        item->rank = item->rank > 1 ? 2 : 1;
        item->shape = made->shape;
    }
    item->data = made->data;
    return true;
}

/* Makes a matrix smaller, if it is one that can be. False: out of memory. */
static bool shrink(made_tensor *made, safetensors_item *item)
{
    if (!saving_shrinks(item))
        return true;
    uint64_t row_bytes;
    void *const bytes = saving_shrink(item, &row_bytes);
    if (!bytes)
        return false;
    made->shape[0] = item->shape[0];
    made->shape[1] = row_bytes;
    free(made->data);
    made->data = bytes;
    item->type = SAFETENSORS_U8;
    item->shape = made->shape;
    item->data = bytes;
    return true;
}

/* --------------------------------------------------------------------- list ----- */

/* Whether a tensor belongs to the layer that all others share. */
static const char *find_group(const char *name)
{
    const char *const group = strstr(name, group_name);
    return group && strncmp(group + sizeof group_name - 1, "0.", 2) == 0 ? group : NULL;
}

/* The name for another layer; NULL: out of memory. */
static char *name_for(const char *name, const char *group, int layer)
{
    const size_t size = strlen(name) + 16;
    const int before = (int)(group - name) + (int)sizeof group_name - 1;
    char *const made = malloc(size);
    if (made)
        snprintf(made, size, "%.*s%d%s", before, name, layer, name + before + 1);
    return made;
}

static bool add_item(tensor_list *list, const weight_tensor *tensor, const safetensors_item *item,
                     int layer)
{
    const char *const group = list->s->split ? find_group(item->name) : NULL;
    const saved_tensor *const change = saving_find(list->s, tensor, layer);
    safetensors_item *const to = &list->items[list->count];
    made_tensor *const made = &list->made[list->count++];
    *to = *item;
    if (group) {
        made->name = name_for(item->name, group, layer);
        to->name = made->name;
    }
    return to->name && (!change || make_data(list->s, change, made, to)) &&
           (!list->s->shrink || shrink(made, to));
}

static bool fill(tensor_list *list)
{
    const weight_source *const source = list->s->model->files.source;
    const int layers = list->s->model->stack[STACK_ENCODER].layers;
    for (size_t n = 0; n < weight_source_count(source); n++) {
        safetensors_item item;
        if (!weight_source_item(source, n, &item))
            return false;
        const int copies = list->s->split && find_group(item.name) ? layers : 1;
        for (int layer = 0; layer < copies; layer++)
            if (!add_item(list, weight_source_at(source, n), &item, layer))
                return false;
    }
    return true;
}

/* The metadata of the source. Other programs want to know that the tensors are PyTorch's. */
static mha_status write_list(const tensor_list *list, const char *path)
{
    const safetensors_file *const file = weight_source_safetensors(list->s->model->files.source);
    safetensors_pair *const pairs = malloc((file->pair_count + 2) * sizeof *pairs);
    size_t count = file->pair_count;
    bool has_format = false;
    if (!pairs)
        return saving_fail(list->s, MHA_ERR_MEMORY, "no memory for the metadata");
    for (size_t n = 0; n < file->pair_count; n++) {
        pairs[n] = file->pairs[n];
        has_format = has_format || strcmp(pairs[n].key, "format") == 0;
    }
    if (!has_format)
        pairs[count++] = (safetensors_pair){"format", "pt"};
    if (list->s->shrink)
        pairs[count++] = (safetensors_pair){WEIGHT_BLOCKS, WEIGHT_BLOCKS_Q8_0};
    const mha_status status = safetensors_write(path, list->items, list->count, pairs, count,
                                                list->s->message, list->s->message_size);
    free(pairs);
    return status;
}

mha_status saving_write_tensors(const model_saving *s, const char *path)
{
    tensor_list list = {.s = s, .room = weight_source_count(s->model->files.source)};
    if (s->split)
        list.room *= (size_t)s->model->stack[STACK_ENCODER].layers;
    list.items = calloc(list.room + 1, sizeof *list.items);
    list.made = calloc(list.room + 1, sizeof *list.made);
    const mha_status status = list.items && list.made && fill(&list)
                                  ? write_list(&list, path)
                                  : saving_fail(s, MHA_ERR_MEMORY, "no memory for the tensors");
    for (size_t n = 0; n < list.count; n++) {
        free(list.made[n].data);
        free(list.made[n].name);
    }
    free(list.items);
    free(list.made);
    return status;
}
