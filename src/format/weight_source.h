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
#include "format/safetensors.h"

enum { WEIGHT_RANK_MAX = 4 };

/* A safetensors file whose metadata have this key with the value "Q8_0" has matrices of MHA_Q8_0:
 * tensors of U8, whose last axis counts bytes. mha_model_save() writes such files. */
#define WEIGHT_BLOCKS "mha_blocks"
#define WEIGHT_BLOCKS_Q8_0 "Q8_0"

typedef struct weight_tensor {
    const char *name;
    bool usable;    /* false: elements that are not weights of libmha, such as I64, or I8, which
                     * has no scales; and U8, unless the metadata have WEIGHT_BLOCKS */
    mha_dtype type; /* only if usable */
    int rank;       /* a tensor of more than WEIGHT_RANK_MAX axes is not usable */
    uint64_t shape[WEIGHT_RANK_MAX]; /* in elements; the last axis is contiguous, also for GGUF */
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
/* The same for all memory of the files. */
void weight_source_release_all(const weight_source *source);

/* The GGUF or llama2.c file that has the tensors; NULL if they are in another kind of file. */
const gguf_file *weight_source_gguf(const weight_source *source);
const llama2c_file *weight_source_llama2c(const weight_source *source);

/* The first of the safetensors files that have the tensors; NULL as above. */
const safetensors_file *weight_source_safetensors(const weight_source *source);

/* A tensor of a safetensors file as safetensors_write() wants it, with its own type and all its
 * axes. `number` as in weight_source_at(). False if it is in another kind of file. */
bool weight_source_item(const weight_source *source, size_t number, safetensors_item *item);

/* Some bytes of a tensor. */
typedef struct weight_range {
    const weight_tensor *tensor;
    uint64_t begin, count;
} weight_range;

/* Writes a copy of the first file to `path`, with bytes of 0 in these ranges. The file at `path` is
 * replaced completely or not at all. */
mha_status weight_source_copy(const weight_source *source, const char *path,
                              const weight_range *zeros, size_t count, char *message,
                              size_t message_size);

#endif
