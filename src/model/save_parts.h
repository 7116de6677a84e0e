/* SPDX-License-Identifier: MIT */
/*
 * What the parts of mha_model_save() share:
 *
 *      save.c           the public function: checks, single files
 *      save_changes.c   which rows and columns of which tensors are written
 *      save_tensors.c   model.safetensors of the new folder
 *      save_storage.c   its matrices in a smaller type
 *      save_config.c    its config.json
 *      save_folder.c    its other files; the whole folder appears at once
 */
#ifndef MODEL_SAVE_PARTS_H
#define MODEL_SAVE_PARTS_H

#include "model/model_parts.h"

/* Rows or columns that follow one another. */
typedef struct saved_run {
    ptrdiff_t first, count;
} saved_run;

/* A tensor that is not written as it is in the file. */
typedef struct saved_tensor {
    const weight_tensor *tensor;
    int layer;               /* the layer that it is written for, if layers are split; else 0 */
    ptrdiff_t rows, columns; /* as it is stored; a vector has rows of one element */
    bool by_columns;         /* runs are of columns, else of rows */
    saved_run *runs;         /* that are kept or, with `zeros`, that become 0 */
    size_t run_count, run_room;
} saved_tensor;

typedef struct model_saving {
    const mha_model *model;
    const char *path;
    bool zeros, replace;
    bool shrink; /* matrices become MHA_Q8_0 */
    char *message;
    size_t message_size;
    bool split;            /* layers that share their weights in the file get their own */
    saved_tensor *tensors; /* by tensor and layer */
    size_t count, room, first_of_attention;
} model_saving;

/* Writes "PATH: " and the text; returns the status. */
#define saving_fail(s, status, ...) \
    (model_fail_at((s)->path, (s)->message, (s)->message_size, status, __VA_ARGS__))
mha_status model_fail_at(const char *path, char *message, size_t message_size, mha_status status,
                         const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Fills in the tensors of a saving, and `split`; saving_free() frees them, after an error too. */
mha_status saving_plan(model_saving *s);
void saving_free(model_saving *s);

/* How a tensor is changed for a layer; NULL: it is not. */
const saved_tensor *saving_find(const model_saving *s, const weight_tensor *tensor, int layer);

/* Writes model.safetensors and config.json to these paths. */
mha_status saving_write_tensors(const model_saving *s, const char *path);
mha_status saving_write_config(const model_saving *s, const char *path);

/* Whether a tensor to be written becomes one of MHA_Q8_0; then its bytes, for free(), and the bytes
 * of a row. NULL: out of memory. */
bool saving_shrinks(const safetensors_item *item);
void *saving_shrink(const safetensors_item *item, uint64_t *row_bytes);

/* Whether the matrices of a model can be shrunk; else after a message. */
mha_status saving_check_storage(const model_saving *s, mha_model_storage storage);

/* Writes bytes to a new file. */
mha_status saving_write_bytes(const model_saving *s, const char *path, const void *bytes,
                              size_t count);

/* Writes the whole folder. */
mha_status saving_write_folder(const model_saving *s);

#endif
