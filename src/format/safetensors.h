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
 * "__metadata__" of null, are accepted with a warning, or refused if SAFETENSORS_STRICT is set; so
 * are extents of 2^48 and more.
 */
#ifndef FORMAT_SAFETENSORS_H
#define FORMAT_SAFETENSORS_H

#include <mha/mha.h>

#include <stdbool.h>

typedef enum safetensors_type {
    SAFETENSORS_BOOL,
    SAFETENSORS_F4,
    SAFETENSORS_F6_E2M3,
    SAFETENSORS_F6_E3M2,
    SAFETENSORS_U8,
    SAFETENSORS_I8,
    SAFETENSORS_F8_E5M2,
    SAFETENSORS_F8_E4M3,
    SAFETENSORS_F8_E8M0,
    SAFETENSORS_F8_E4M3FNUZ,
    SAFETENSORS_F8_E5M2FNUZ,
    SAFETENSORS_I16,
    SAFETENSORS_U16,
    SAFETENSORS_F16,
    SAFETENSORS_BF16,
    SAFETENSORS_I32,
    SAFETENSORS_U32,
    SAFETENSORS_F32,
    SAFETENSORS_C64,
    SAFETENSORS_F64,
    SAFETENSORS_I64,
    SAFETENSORS_U64,
    SAFETENSORS_TYPES
} safetensors_type;

#define SAFETENSORS_METADATA "__metadata__"

enum {
    SAFETENSORS_LENGTH_BYTES = 8,
    SAFETENSORS_HEADER_MAX = 100000000,
    SAFETENSORS_STRICT = 1 /* flag of the reader */
};

/* "F32"; bits of an element. */
const char *safetensors_type_name(safetensors_type type);
unsigned safetensors_type_bits(safetensors_type type);
bool safetensors_type_find(const char *name, safetensors_type *type);

/* Bytes of a tensor. MHA_ERR_OVERFLOW if they cannot be counted, MHA_ERR_SHAPE if they are not
 * whole. */
mha_status safetensors_bytes(safetensors_type type, size_t rank, const uint64_t *shape,
                             uint64_t *bytes);

/* Elements from the byte order of this machine to that of the file, or back. */
void safetensors_swap(safetensors_type type, void *data, size_t bytes);

/* --------------------------------------------------------------- reading ----- */

typedef struct safetensors_tensor {
    const char *name;
    safetensors_type type;
    size_t rank; /* 0: a single element */
    const uint64_t *shape;
    uint64_t begin, end; /* bytes, counted from the end of the header */
} safetensors_tensor;

typedef struct safetensors_pair {
    const char *key, *value;
} safetensors_pair;

typedef struct safetensors_file {
    const safetensors_tensor *tensors; /* in the order of their bytes */
    size_t count;
    const safetensors_pair *pairs; /* "__metadata__", in the order of the file */
    size_t pair_count;
    uint64_t header_bytes, data_bytes; /* N, and all tensors together */
    size_t warnings;
    char warning[200]; /* the first of them */
} safetensors_file;

/*
 * Opens and checks a file; safetensors_close() takes it back, and NULL too. `flags` is 0 or
 * SAFETENSORS_STRICT. The message, which may be NULL, says why a file was not opened.
 */
mha_status safetensors_open(safetensors_file **file, const char *path, unsigned flags,
                            char *message, size_t message_size);
void safetensors_close(safetensors_file *file);

/* The same for a file in memory, which must stay as it is until it is closed. */
mha_status safetensors_open_memory(safetensors_file **file, const void *bytes, size_t size,
                                   unsigned flags, char *message, size_t message_size);

/* NULL where there is no such tensor. */
const safetensors_tensor *safetensors_find(const safetensors_file *file, const char *name);

/* The elements of one of the file's own tensors, in the byte order of this machine: end - begin
 * bytes. Several threads may read at once. */
mha_status safetensors_read(const safetensors_file *file, const safetensors_tensor *tensor,
                            void *data, char *message, size_t message_size);

/* --------------------------------------------------------------- writing ----- */

typedef struct safetensors_item {
    const char *name;
    safetensors_type type;
    size_t rank;
    const uint64_t *shape; /* may be NULL for rank 0 */
    const void *data;      /* may be NULL where there are no elements */
} safetensors_item;

/*
 * Writes all items, the widest types first, then by name, and all pairs by key: the same content
 * gives the same file, in which every tensor is aligned to its elements. The file at `path` is the
 * old one or the whole new one at any moment, and the old one after an error.
 */
mha_status safetensors_write(const char *path, const safetensors_item *items, size_t count,
                             const safetensors_pair *pairs, size_t pair_count, char *message,
                             size_t message_size);

/* ------------------------------------------------------------ messages ----- */

/* Where the message of an error goes, for readers that build on this one. */
typedef struct safetensors_report {
    const char *path;
    char *message;
    size_t size;
} safetensors_report;

/* "PATH: ..." */
mha_status safetensors_fail(const safetensors_report *report, mha_status status, const char *format,
                            ...) __attribute__((format(printf, 3, 4)));

/* MHA_ERR_FILE: the file cannot be `done`, for the reason `error`. */
mha_status safetensors_fail_file(const safetensors_report *report, const char *done, int error);

/* The beginning of a name, fit for a message: printable, and not long. */
typedef struct safetensors_shown {
    char text[64];
} safetensors_shown;
safetensors_shown safetensors_show(const char *name);

#endif
