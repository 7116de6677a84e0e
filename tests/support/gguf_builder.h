/* SPDX-License-Identifier: MIT */
/*
 * GGUF files for tests, in memory: first all pairs, then all tensors. A builder begins with all
 * zero:
 *
 *      gguf_builder g = {0};
 *      gguf_builder_text(&g, "general.architecture", "llama");
 *      gguf_builder_tensors(&g, "token_embd.weight 10 16\n", 1);
 *      gguf_builder_write(&g, path);
 *      gguf_builder_free(&g);
 */
#ifndef MHA_GGUF_BUILDER_H
#define MHA_GGUF_BUILDER_H

#include <stddef.h>
#include <stdint.h>

#include "mha/mha.h"

typedef struct gguf_builder {
    unsigned char *bytes;
    size_t size, room;
    uint64_t pairs, tensors;
    struct gguf_data *data; /* [tensors] */
    size_t data_room;
    uint64_t offset; /* after the last tensor */
} gguf_builder;

void gguf_builder_text(gguf_builder *g, const char *key, const char *value);
void gguf_builder_integer(gguf_builder *g, const char *key, uint32_t value);
void gguf_builder_real(gguf_builder *g, const char *key, float value);
void gguf_builder_bool(gguf_builder *g, const char *key, int value);
/* Lists that end with NULL, and of `count` numbers. */
void gguf_builder_texts(gguf_builder *g, const char *key, const char *const *values);
void gguf_builder_integers(gguf_builder *g, const char *key, const int32_t *values, size_t count);
void gguf_builder_reals(gguf_builder *g, const char *key, const float *values, size_t count);

/* Tensors of f32, the lines of tensor_lines.h, filled with `value`. Extents are those of memory,
 * rows first. */
void gguf_builder_tensors(gguf_builder *g, const char *tensors, int layers, float value);

/* The same in MHA_Q8_0, MHA_Q4_K or MHA_Q6_K, with weights at random that are about 1/16 in size.
 */
void gguf_builder_blocks(gguf_builder *g, const char *tensors, int layers, mha_dtype type);

/* The file as it is now: *size bytes that the caller frees. More may be added after that. */
unsigned char *gguf_builder_file(const gguf_builder *g, size_t *size);
void gguf_builder_write(const gguf_builder *g, const char *path);

/* Frees the memory; the builder is all zero again. */
void gguf_builder_free(gguf_builder *g);

#endif
