/* SPDX-License-Identifier: MIT */
/*
 * Reader of the model files of llama2.c, versions 0 and 1: seven numbers, then f32 tensors in a
 * fixed order. The file is mapped, and its length must be exactly what the numbers say. Tensors get
 * the names tok_embeddings, layers.N.{attention_norm,wq,wk,wv,wo,ffn_norm,w1,w2,w3}, norm and
 * output. A matrix has a row per output.
 */
#ifndef FORMAT_LLAMA2C_H
#define FORMAT_LLAMA2C_H

#include <mha/mha.h>

#include <stdbool.h>

typedef struct llama2c_tensor {
    char name[40];
    int rank;
    uint64_t shape[2];
    const void *data; /* f32, little-endian */
} llama2c_tensor;

typedef struct llama2c_file {
    int32_t width, inner, layers, heads, key_heads, vocabulary, positions;
    bool tied; /* no tensor "output": it is tok_embeddings */
    const llama2c_tensor *tensors;
    size_t tensor_count;
    uint64_t bytes;
} llama2c_file;

/* Does a file of `size` bytes begin as a model of llama2.c does? The bytes are all of it, or 64. */
bool llama2c_begins(const void *bytes, uint64_t size);

/* On error *file is NULL. `message` may be NULL. */
mha_status llama2c_open(llama2c_file **file, const char *path, char *message, size_t message_size);
/* The same for bytes in memory, which must not change until it is closed. */
mha_status llama2c_open_memory(llama2c_file **file, const void *bytes, size_t size, char *message,
                               size_t message_size);
/* NULL is allowed. */
void llama2c_close(llama2c_file *file);

#endif
