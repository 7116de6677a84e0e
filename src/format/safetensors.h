/* SPDX-License-Identifier: MIT */
/*
 * Tensors in a file, in the format safetensors:
 *
 *      8 bytes   N, little-endian
 *      N bytes   JSON: {"name": {"dtype": "F32", "shape": [2,3], "data_offsets": [0,24]}, ...,
 *                "__metadata__": {"key": "text", ...}}
 *      the rest  the tensors, row-major and little-endian, without holes between them
 *
 * Files are taken for hostile. The reader checks everything before it hands out anything: N <=
 * 100,000,000 and within the file, UTF-8, JSON, dtypes, shapes without overflow, offsets that fit
 * shapes, tensors that fill the file to its end without gap or overlap, no name twice. It holds the
 * header in memory, not the tensors, which are read where the caller wants them. No mapping of the
 * file: one that shrinks then gives an error, not a signal.
 *
 * A file that breaks a rule gives MHA_ERR_FORMAT and a message with the name of the rule:
 *
 *      HeaderTooSmall                 less than 8 bytes
 *      HeaderTooLarge                 N > 100,000,000
 *      InvalidHeaderLength            N goes beyond the file
 *      InvalidHeader                  the header is not UTF-8
 *      InvalidHeaderDeserialization   it is not JSON, or not JSON of the form above
 *      DuplicateKey                   a key stands twice in an object, at any level
 *      InvalidOffset                  a tensor does not begin where the one before it ends
 *      ValidationOverflow             a shape has more elements or bits than 64 bits count
 *      MisalignedSlice                elements of 4 or 6 bits do not fill whole bytes
 *      TensorInvalidInfo              the offsets say another number of bytes than the shape
 *      MetadataIncompleteBuffer       the file is longer or shorter than its tensors
 *
 * The names are those of the format's reference implementation, whose verdicts these are too, but
 * for keys that stand twice (there the last one counts, or an offset is wrong), \u0000 in a text,
 * more than 64 levels of JSON, and tensors or dtypes spelt as arrays or objects of another form:
 * all of these are refused. Fields of a tensor that the format does not know, and a
 * "__metadata__" of null, are accepted with a warning, or refused if MHAI_ST_STRICT is set; so are
 * extents of 2^48 and more.
 */
#ifndef MHAI_SAFETENSORS_H
#define MHAI_SAFETENSORS_H

#include <mha/mha.h>

#include <stdbool.h>

typedef enum mhai_st_type {
    MHAI_ST_BOOL,
    MHAI_ST_F4,
    MHAI_ST_F6_E2M3,
    MHAI_ST_F6_E3M2,
    MHAI_ST_U8,
    MHAI_ST_I8,
    MHAI_ST_F8_E5M2,
    MHAI_ST_F8_E4M3,
    MHAI_ST_F8_E8M0,
    MHAI_ST_F8_E4M3FNUZ,
    MHAI_ST_F8_E5M2FNUZ,
    MHAI_ST_I16,
    MHAI_ST_U16,
    MHAI_ST_F16,
    MHAI_ST_BF16,
    MHAI_ST_I32,
    MHAI_ST_U32,
    MHAI_ST_F32,
    MHAI_ST_C64,
    MHAI_ST_F64,
    MHAI_ST_I64,
    MHAI_ST_U64,
    MHAI_ST_TYPES
} mhai_st_type;

#define MHAI_ST_METADATA "__metadata__"

enum {
    MHAI_ST_LENGTH_BYTES = 8,
    MHAI_ST_HEADER_MAX = 100000000,
    MHAI_ST_STRICT = 1 /* flag of the reader */
};

/* "F32"; bits of an element. */
const char *mhai_st_type_name(mhai_st_type type);
unsigned mhai_st_type_bits(mhai_st_type type);
bool mhai_st_type_find(const char *name, mhai_st_type *type);

/* Bytes of a tensor. MHA_ERR_OVERFLOW if they cannot be counted, MHA_ERR_SHAPE if they are not
 * whole. */
mha_status mhai_st_bytes(mhai_st_type type, size_t rank, const uint64_t *shape, uint64_t *bytes);

/* Elements from the byte order of this machine to that of the file, or back. */
void mhai_st_swap(mhai_st_type type, void *data, size_t bytes);

/* --------------------------------------------------------------- reading ----- */

typedef struct mhai_st_tensor {
    const char *name;
    mhai_st_type type;
    size_t rank; /* 0: a single element */
    const uint64_t *shape;
    uint64_t begin, end; /* bytes, counted from the end of the header */
} mhai_st_tensor;

typedef struct mhai_st_pair {
    const char *key, *value;
} mhai_st_pair;

typedef struct mhai_st_file {
    const mhai_st_tensor *tensors; /* in the order of their bytes */
    size_t count;
    const mhai_st_pair *pairs; /* "__metadata__", in the order of the file */
    size_t pair_count;
    uint64_t header_bytes, data_bytes; /* N, and all tensors together */
    size_t warnings;
    char warning[200]; /* the first of them */
} mhai_st_file;

/*
 * Opens and checks a file; mhai_st_close() takes it back, and NULL too. `flags` is 0 or
 * MHAI_ST_STRICT. The message, which may be NULL, says why a file was not opened.
 */
mha_status mhai_st_open(mhai_st_file **file, const char *path, unsigned flags, char *message,
                        size_t message_size);
void mhai_st_close(mhai_st_file *file);

/* The same for a file in memory, which must stay as it is until it is closed. */
mha_status mhai_st_open_memory(mhai_st_file **file, const void *bytes, size_t size, unsigned flags,
                               char *message, size_t message_size);

/* NULL where there is no such tensor. */
const mhai_st_tensor *mhai_st_find(const mhai_st_file *file, const char *name);

/* The elements of one of the file's own tensors, in the byte order of this machine: end - begin
 * bytes. Several threads may read at once. */
mha_status mhai_st_read(const mhai_st_file *file, const mhai_st_tensor *tensor, void *data,
                        char *message, size_t message_size);

/* --------------------------------------------------------------- writing ----- */

typedef struct mhai_st_item {
    const char *name;
    mhai_st_type type;
    size_t rank;
    const uint64_t *shape; /* may be NULL for rank 0 */
    const void *data;      /* may be NULL where there are no elements */
} mhai_st_item;

/*
 * Writes all items, the widest types first, then by name, and all pairs by key: the same content
 * gives the same file, in which every tensor is aligned to its elements. The file at `path` is the
 * old one or the whole new one at any moment, and the old one after an error.
 */
mha_status mhai_st_write(const char *path, const mhai_st_item *items, size_t count,
                         const mhai_st_pair *pairs, size_t pair_count, char *message,
                         size_t message_size);

#endif
