/* SPDX-License-Identifier: MIT */
/* Small model files for tests: folders in Hugging Face's form, and GGUF files. */
#ifndef MHA_MODEL_BUILDER_H
#define MHA_MODEL_BUILDER_H

#include "support/temp_files.h"

#include <stdint.h>

#include "mha/mha.h"

/*
 * Writes a safetensors file with f32 tensors. `tensors` are lines "NAME ROWS COLUMNS ..."; a name
 * with "#" stands for one tensor per layer. Element n of each tensor is n.
 */
void model_builder_tensors(const char *path, const char *tensors, int layers);

/* The same as model.safetensors of a folder, with a config.json. */
void model_builder_folder(const temp_folder *folder, const char *config, const char *tensors,
                          int layers);

/* A GGUF file in memory: first all pairs, then all tensors. */
enum { GGUF_BUILDER_BLOCKS = 60 };

typedef struct gguf_builder {
    unsigned char *bytes;
    size_t size, room;
    uint64_t pairs, tensors, offset;
    struct {
        uint64_t offset, bytes;
        mha_dtype type;
    } blocks[GGUF_BUILDER_BLOCKS]; /* tensors of a block type */
    int block_count;
} gguf_builder;

void gguf_builder_text(gguf_builder *g, const char *key, const char *value);
void gguf_builder_integer(gguf_builder *g, const char *key, uint32_t value);
void gguf_builder_real(gguf_builder *g, const char *key, float value);

/* Lines as above. Extents are those of memory, rows first. */
void gguf_builder_tensors(gguf_builder *g, const char *tensors, int layers);

/* The same in MHA_Q4_K or MHA_Q6_K, with weights at random that are about 1/16 in size. */
void gguf_builder_blocks(gguf_builder *g, const char *tensors, int layers, mha_dtype type);

/* Ends the file: *size bytes that the caller frees. Tensors of f32 are filled with `value`. */
unsigned char *gguf_builder_end(gguf_builder *g, float value, size_t *size);

#endif
