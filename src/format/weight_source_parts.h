/* SPDX-License-Identifier: MIT */
/*
 * Private declarations shared by the parts of the weight source:
 *
 *      weight_source.c   opens files, lists and finds tensors
 *      weight_folder.c   finds the files of a folder
 */
#ifndef FORMAT_WEIGHT_SOURCE_PARTS_H
#define FORMAT_WEIGHT_SOURCE_PARTS_H

#include "format/mapped_file.h"
#include "format/safetensors.h"
#include "format/weight_source.h"

/* An entry of the index by name. */
typedef struct weight_entry {
    const weight_tensor *tensor;
} weight_entry;

/* A file and its reader; of the readers all but one are NULL. */
typedef struct weight_file {
    mapped_file map;
    safetensors_file *safetensors;
    gguf_file *gguf;
    llama2c_file *llama2c;
} weight_file;

struct weight_source {
    weight_file *files;
    size_t file_count, file_room;
    weight_tensor *tensors; /* in the order of the files */
    size_t count, room;
    weight_entry *sorted; /* by name */
    uint64_t bytes;
};

/* Opens a safetensors file and adds its tensors. */
mha_status weight_source_add_safetensors(weight_source *source, const char *path,
                                         const safetensors_report *report);

/* Adds the tensors of a folder. */
mha_status weight_source_add_folder(weight_source *source, const char *folder,
                                    const safetensors_report *report);

#endif
