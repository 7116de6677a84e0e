/* SPDX-License-Identifier: MIT */
/* GGUF files without tensors, pair by pair, for tests of what is in their pairs. */
#ifndef MHA_GGUF_BUILDER_H
#define MHA_GGUF_BUILDER_H

#include <stddef.h>
#include <stdint.h>

typedef struct gguf_builder {
    unsigned char bytes[1 << 16];
    size_t size;
    uint64_t pairs;
} gguf_builder;

void gguf_build_begin(gguf_builder *g);
void gguf_build_string(gguf_builder *g, const char *key, const char *value);
void gguf_build_u32(gguf_builder *g, const char *key, uint32_t value);
void gguf_build_bool(gguf_builder *g, const char *key, int value);
/* Lists that end with NULL, and of `count` numbers. */
void gguf_build_strings(gguf_builder *g, const char *key, const char *const *values);
void gguf_build_i32s(gguf_builder *g, const char *key, const int32_t *values, size_t count);

#endif
