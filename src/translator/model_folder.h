/* SPDX-License-Identifier: MIT */
/* The files of a model as a folder in Hugging Face's form. Each is replaced completely or not at
 * all. On an error a function returns its status, with the reason in `message`. */
#ifndef TRANSLATOR_MODEL_FOLDER_H
#define TRANSLATOR_MODEL_FOLDER_H

#include "format/json_writer.h"
#include "format/safetensors.h"
#include "translator/transformer.h"

enum { MODEL_FOLDER_RANK = 4, MODEL_FOLDER_EXTRAS = 1 };

/* The extents of a tensor as other programs write it. */
typedef struct folder_shape {
    size_t rank;
    uint64_t extents[MODEL_FOLDER_RANK];
} folder_shape;

/* A tensor that is not a parameter. */
typedef struct folder_extra {
    const char *name; /* NULL: there is none */
    folder_shape shape;
    const float *values;
} folder_extra;

typedef struct folder_tensors {
    const transformer_config *config;
    const float *values;
    mha_dtype type;     /* MHA_F16 or MHA_F32 */
    const char *prefix; /* of the names of all parameters */
    folder_shape (*shape)(const transformer_config *config, const transformer_tensor *tensor);
    /* NULL: the extents are those of the parameter */
    folder_extra extra;
    const safetensors_pair *notes; /* for the metadata */
    size_t note_count;
} folder_tensors;

/* Creates the folder if it does not exist. */
mha_status model_folder_make(const char *folder, char message[TRANSFORMER_MESSAGE_MAX]);

mha_status model_folder_text(const char *folder, const char *name, const char *text, size_t length,
                             char message[TRANSFORMER_MESSAGE_MAX]);

/* A file that is one object, which `fill` fills. */
mha_status model_folder_json(const char *folder, const char *name,
                             void (*fill)(json *j, const void *content), const void *content,
                             char message[TRANSFORMER_MESSAGE_MAX]);

/* model.safetensors. MHA_ERR_FORMAT if a value is not finite, or not in the requested type. */
mha_status model_folder_tensors(const char *folder, const folder_tensors *tensors,
                                char message[TRANSFORMER_MESSAGE_MAX]);

#endif
