/* SPDX-License-Identifier: MIT */
/*
 * The tensors of a model, whatever files they are in:
 *
 *      a folder     model.safetensors, or model.safetensors.index.json and its shards
 *      a file       *.safetensors, *.gguf, or llama2.c's *.bin
 *
 * Files are mapped into memory (see mapped_file.h for what must not happen to them then) and
 * checked completely before a tensor is returned: every tensor is inside of its file, and no name
 * occurs twice. Data may have any alignment, and is little-endian as in the file: a machine of the
 * other byte order would have to swap it. PyTorch files are refused; the message says how to
 * convert them.
 */
#ifndef FORMAT_WEIGHT_SOURCE_H
#define FORMAT_WEIGHT_SOURCE_H

#include <mha/mha.h>

#include "format/gguf.h"
#include "format/llama2c.h"

enum { WEIGHT_RANK_MAX = 4 };

typedef struct weight_tensor {
    const char *name;
    bool usable;    /* false: elements that are not weights of libmha, such as I64, or I8, which
                     * has no scales */
    mha_dtype type; /* only if usable */
    int rank;       /* a tensor of more than WEIGHT_RANK_MAX axes is not usable */
    uint64_t shape[WEIGHT_RANK_MAX]; /* the last axis is contiguous, also for GGUF */
    const void *data;
    uint64_t bytes;
} weight_tensor;

typedef struct weight_source weight_source;

/* On error *source is NULL. `message` may be NULL. */
mha_status weight_source_open(weight_source **source, const char *path, char *message,
                              size_t message_size);
/* NULL is allowed. */
void weight_source_close(weight_source *source);

/* NULL if there is no tensor of this name. */
const weight_tensor *weight_source_find(const weight_source *source, const char *name);

/* All tensors, in no particular order. */
size_t weight_source_count(const weight_source *source);
/* NULL if number >= count. */
const weight_tensor *weight_source_at(const weight_source *source, size_t number);

/* The bytes of all tensors. */
uint64_t weight_source_bytes(const weight_source *source);

/* Tells the system that the memory of a tensor is not needed for now, as after it was packed. It
 * can still be read, from the file again. */
void weight_source_release(const weight_source *source, const weight_tensor *tensor);

/* The GGUF or llama2.c file that has the tensors; NULL if they are in another kind of file. */
const gguf_file *weight_source_gguf(const weight_source *source);
const llama2c_file *weight_source_llama2c(const weight_source *source);

#endif
