/* SPDX-License-Identifier: MIT */
/*
 * Reader and writer of the safetensors file format:
 *
 *      8 bytes   N, little-endian
 *      N bytes   JSON: {"name": {"dtype": "F32", "shape": [2,3], "data_offsets": [0,24]}, ...,
 *                "__metadata__": {"key": "text", ...}}
 *      the rest  the tensors, row-major and little-endian, without gaps between them
 *
 * Files are not trusted. The reader checks everything before it returns anything: N <= 100,000,000
 * and within the file, UTF-8, JSON, dtypes, shapes without overflow, offsets that match the shapes,
 * tensors that fill the file to its end without gap or overlap, and unique names. It keeps the
 * header in memory but not the tensors, which are read into memory of the caller. The file is not
 * mapped: if it shrinks while it is open, reading gives an error and not a signal.
 *
 * A file that violates a rule gives MHA_ERR_FORMAT and a message with the name of the rule:
 *
 *      HeaderTooSmall                 less than 8 bytes
 *      HeaderTooLarge                 N > 100,000,000
 *      InvalidHeaderLength            N exceeds the size of the file
 *      InvalidHeader                  the header is not UTF-8
 *      InvalidHeaderDeserialization   it is not JSON, or not JSON of the form above
 *      DuplicateKey                   an object has the same key twice, at any level
 *      InvalidOffset                  a tensor does not begin where the one before it ends
 *      ValidationOverflow             the elements or bits of a shape overflow 64 bits
 *      MisalignedSlice                elements of 4 or 6 bits do not fill whole bytes
 *      TensorInvalidInfo              the offsets do not match the number of bytes of the shape
 *      MetadataIncompleteBuffer       the file is longer or shorter than its tensors
 *
 * The names are those of the format's reference implementation. Both accept and refuse the same
 * files, except that this reader also refuses duplicate keys (there the last one counts, or an
 * offset is wrong), \u0000 in a string, more than 64 levels of JSON, and tensors or dtypes written
 * as arrays or objects of another form. Unknown fields of a tensor, a "__metadata__" of null, and
 * extents of 2^48 and more are accepted with a warning, or refused if SAFETENSORS_STRICT is set.
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
    SAFETENSORS_STRICT = 1 /* a flag of the reader: refuse what otherwise gives a warning */
};

/* The name in files, such as "F32", and the bits of an element. */
const char *safetensors_type_name(safetensors_type type);
unsigned safetensors_type_bits(safetensors_type type);

/* Returns false if there is no type of this name. */
bool safetensors_type_find(const char *name, safetensors_type *type);

/* The bytes of a tensor. MHA_ERR_OVERFLOW if they overflow 64 bits, MHA_ERR_SHAPE if the elements
 * do not fill whole bytes. */
mha_status safetensors_bytes(safetensors_type type, size_t rank, const uint64_t *shape,
                             uint64_t *bytes);

/* Converts elements in place from the byte order of this machine to that of the file, or back. */
void safetensors_swap(safetensors_type type, void *data, size_t bytes);

/* --------------------------------------------------------------- reading ----- */

typedef struct safetensors_tensor {
    const char *name;
    safetensors_type type;
    size_t rank; /* 0: a single element */
    const uint64_t *shape;
    uint64_t begin, end; /* byte offsets from the end of the header */
} safetensors_tensor;

typedef struct safetensors_pair {
    const char *key, *value;
} safetensors_pair;

typedef struct safetensors_file {
    const safetensors_tensor *tensors; /* sorted by offset */
    size_t count;
    const safetensors_pair *pairs; /* "__metadata__", in the order of the file */
    size_t pair_count;
    uint64_t header_bytes, data_bytes; /* N, and the bytes of all tensors */
    size_t warnings;                   /* how many there were */
    char warning[200];                 /* the first one */
} safetensors_file;

/*
 * Opens and checks a file. On success the caller ends with safetensors_close(), which accepts NULL;
 * on an error *file is NULL. `flags` is 0 or SAFETENSORS_STRICT. `message` receives the reason of
 * an error and may be NULL, here and below.
 */
mha_status safetensors_open(safetensors_file **file, const char *path, unsigned flags,
                            char *message, size_t message_size);
void safetensors_close(safetensors_file *file);

/* The same for a file in memory. The bytes must not change until it is closed. */
mha_status safetensors_open_memory(safetensors_file **file, const void *bytes, size_t size,
                                   unsigned flags, char *message, size_t message_size);

/* The value of a key of "__metadata__"; NULL if there is none. */
const char *safetensors_value(const safetensors_file *file, const char *key);

/* Returns NULL if there is no tensor of this name. O(log n). */
const safetensors_tensor *safetensors_find(const safetensors_file *file, const char *name);

/* Reads the elements of a tensor of this file into `data`, end - begin bytes, in the byte order of
 * this machine. Several threads may read from one file at once. */
mha_status safetensors_read(const safetensors_file *file, const safetensors_tensor *tensor,
                            void *data, char *message, size_t message_size);

/* --------------------------------------------------------------- writing ----- */

typedef struct safetensors_item {
    const char *name;
    safetensors_type type;
    size_t rank;
    const uint64_t *shape; /* may be NULL for rank 0 */
    const void *data;      /* may be NULL if there are no elements */
} safetensors_item;

/*
 * Writes a file with all items and pairs. Items are sorted by width of their type, the widest
 * first, and then by name; pairs are sorted by key. So the same content always gives the same file,
 * and every tensor is aligned to its elements. The file at `path` is replaced atomically; after an
 * error the old file is still there.
 */
mha_status safetensors_write(const char *path, const safetensors_item *items, size_t count,
                             const safetensors_pair *pairs, size_t pair_count, char *message,
                             size_t message_size);

/* ------------------------------------------------------------ messages ----- */

/* Where the message of an error goes; also for readers that build on this one. */
typedef struct safetensors_report {
    const char *path;
    char *message;
    size_t size;
} safetensors_report;

/* Writes "PATH: " and the formatted text into the report, and returns `status`. */
mha_status safetensors_fail(const safetensors_report *report, mha_status status, const char *format,
                            ...) __attribute__((format(printf, 3, 4)));

/* Reports "PATH: cannot be DONE: " and the text of the errno value `error`; returns MHA_ERR_FILE.
 */
mha_status safetensors_fail_file(const safetensors_report *report, const char *done, int error);

/* A name made safe for a message: control characters become "?", and long names are cut. */
typedef struct safetensors_shown {
    char text[64];
} safetensors_shown;
safetensors_shown safetensors_show(const char *name);

#endif
