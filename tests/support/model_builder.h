/* SPDX-License-Identifier: MIT */
/* Small model files for tests: folders in Hugging Face's form, and GGUF files. */
#ifndef MHA_MODEL_BUILDER_H
#define MHA_MODEL_BUILDER_H

#include "support/temp_files.h"

#include <stdint.h>

/*
 * Writes a safetensors file with f32 tensors. `tensors` are lines "NAME ROWS COLUMNS ..."; a name
 * with "#" stands for one tensor per layer. Element n of each tensor is n.
 */
void model_builder_tensors(const char *path, const char *tensors, int layers);

/* The same as model.safetensors of a folder, with a config.json. */
void model_builder_folder(const temp_folder *folder, const char *config, const char *tensors,
                          int layers);

/* A GGUF file in memory: first all pairs, then all tensors. */
typedef struct gguf_builder {
    unsigned char *bytes;
    size_t size, room;
    uint64_t pairs, tensors, offset;
} gguf_builder;

void gguf_builder_text(gguf_builder *g, const char *key, const char *value);
void gguf_builder_integer(gguf_builder *g, const char *key, uint32_t value);
void gguf_builder_real(gguf_builder *g, const char *key, float value);

/* Lines as above. Extents are those of memory, rows first. */
void gguf_builder_tensors(gguf_builder *g, const char *tensors, int layers);

/* Ends the file: *size bytes that the caller frees. All tensors are filled with `value`. */
unsigned char *gguf_builder_end(gguf_builder *g, float value, size_t *size);

#endif
