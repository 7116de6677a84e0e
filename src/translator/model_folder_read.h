/* SPDX-License-Identifier: MIT */
/*
 * The files of model_folder.h read back. They are not trusted: sizes are checked before memory is
 * taken by them, and all tensors are compared with those of the configuration before a number is
 * read.
 */
#ifndef TRANSLATOR_MODEL_FOLDER_READ_H
#define TRANSLATOR_MODEL_FOLDER_READ_H

#include "format/json_tree.h"
#include "translator/model_folder.h"

enum { FOLDER_PATH_MAX = 4096 };

/* config.json while it is read. The first value that is refused decides, with its reason in
 * `message`; what is read after it does not matter. */
typedef struct folder_config {
    char path[FOLDER_PATH_MAX];
    json_tree *tree;
    char *message;
    mha_status status;
} folder_config;

/* After an error there is nothing to close. */
mha_status folder_config_open(folder_config *config, const char *folder,
                              char message[TRANSFORMER_MESSAGE_MAX]);
/* Copies what was read to `config`, if nothing was refused and it is a valid configuration. */
mha_status folder_config_close(folder_config *r, const transformer_config *read,
                               transformer_config *config);

const json_value *folder_config_member(const folder_config *r, const char *key); /* or NULL */
/* Refuses the file: "KEY" is not `wanted`. */
void folder_config_refuse(folder_config *r, const char *key, const char *wanted);
/* A positive integer. */
int folder_config_size(folder_config *r, const char *key);
/* This text and no other. */
void folder_config_expect(folder_config *r, const char *key, const char *wanted);

/* The parameters of a folder. */
typedef struct folder_values {
    const transformer_config *config;
    const char *prefix; /* of the names of all parameters */
    folder_shape (*shape)(const transformer_config *config, const transformer_tensor *tensor);
    /* NULL: the extents are those of the parameter */
} folder_values;

/* Reads model.safetensors; *values are in the order of the map, for the caller to free, and NULL
 * after an error. Tensors must have these shapes and finite values; others than the parameters are
 * ignored. */
mha_status model_folder_values(const char *folder, const folder_values *wanted, float **values,
                               char message[TRANSFORMER_MESSAGE_MAX]);

#endif
