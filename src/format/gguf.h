/* SPDX-License-Identifier: MIT */
/*
 * Reader of GGUF files, versions 2 and 3:
 *
 *      4 bytes   "GGUF"
 *      u32       the version
 *      u64, u64  the numbers of tensors and of pairs
 *      pairs     key, type and value each
 *      tensors   name, axes, extents, element type and offset each
 *      the rest  padding, then the elements of the tensors
 *
 * Numbers are little-endian; a string has its length, a u64, before it. The file is mapped, and
 * everything is checked when it is opened:
 *
 *      versions  1 and big-endian files are refused by name
 *      counts    of pairs, tensors, array elements and characters: the bytes that remain suffice
 *      keys      UTF-8 without a zero byte, at most 65535 bytes, none twice
 *      values    known types; no arrays of arrays; a bool is 0 or 1
 *      alignment "general.alignment", if there is one, is a u32 and a power of two
 *      names     of tensors: UTF-8 without a zero byte, at most 64 bytes, none twice
 *      shapes    at most 4 axes, less than 2^63 elements, rows of whole blocks, a known type
 *      offsets   aligned, inside of the file, without overlap; gaps are allowed
 */
#ifndef FORMAT_GGUF_H
#define FORMAT_GGUF_H

#include <mha/mha.h>

#include <stdbool.h>

typedef enum gguf_type {
    GGUF_U8 = 0,
    GGUF_I8 = 1,
    GGUF_U16 = 2,
    GGUF_I16 = 3,
    GGUF_U32 = 4,
    GGUF_I32 = 5,
    GGUF_F32 = 6,
    GGUF_BOOL = 7,
    GGUF_STRING = 8,
    GGUF_ARRAY = 9,
    GGUF_U64 = 10,
    GGUF_I64 = 11,
    GGUF_F64 = 12
} gguf_type;

/* Not terminated: points into the file. */
typedef struct gguf_string {
    const char *text;
    uint64_t length;
} gguf_string;

typedef struct gguf_pair {
    gguf_string key;
    gguf_type type;
    gguf_type element; /* of an array */
    uint64_t count;    /* elements of an array; else 1 */
    const void *data;  /* the first element, little-endian, unaligned */
} gguf_pair;

typedef struct gguf_tensor {
    const char *name;   /* terminated */
    uint32_t ggml_type; /* as in the file; an unknown one is refused */
    bool usable;        /* the type is one of mha_dtype */
    mha_dtype type;
    int rank;
    uint64_t shape[4]; /* reversed: the last axis is contiguous */
    const void *data;  /* little-endian */
    uint64_t bytes;
} gguf_tensor;

typedef struct gguf_file {
    const gguf_pair *pairs;
    size_t pair_count;
    const gguf_tensor *tensors;
    size_t tensor_count;
    uint32_t version;
    uint64_t bytes; /* of the file */
} gguf_file;

/* On error *file is NULL. `message` may be NULL, here and below. */
mha_status gguf_open(gguf_file **file, const char *path, char *message, size_t message_size);
/* The same for bytes in memory, which must not change until it is closed. */
mha_status gguf_open_memory(gguf_file **file, const void *bytes, size_t size, char *message,
                            size_t message_size);
/* NULL is allowed. */
void gguf_close(gguf_file *file);

/* The name of an element type of ggml, such as "Q4_K"; NULL if it is unknown. */
const char *gguf_tensor_type_name(uint32_t ggml_type);

/* NULL if there is none. O(log n). */
const gguf_pair *gguf_find(const gguf_file *file, const char *key);
const gguf_tensor *gguf_find_tensor(const gguf_file *file, const char *name);

/* Values of any number type, of type bool, of type string. False: there is no such key, or its
 * value is of another type, or an integer does not fit. */
bool gguf_get_integer(const gguf_file *file, const char *key, int64_t *value);
bool gguf_get_number(const gguf_file *file, const char *key, double *value);
bool gguf_get_bool(const gguf_file *file, const char *key, bool *value);
bool gguf_get_string(const gguf_file *file, const char *key, gguf_string *value);

/* The next string of an array of strings, or the string of a pair that is one; *at is 0 before the
 * first. At most `count` times. */
gguf_string gguf_next_string(const gguf_pair *array, uint64_t *at);

/* Elements of an array, number < count. The array must have elements of that type. */
int64_t gguf_array_integer(const gguf_pair *array, uint64_t number);
double gguf_array_number(const gguf_pair *array, uint64_t number);

#endif
