/* SPDX-License-Identifier: MIT */
/*
 * Private declarations shared by the parts of the GGUF reader:
 *
 *      gguf.c           opens files; the header and the pairs of keys and values
 *      gguf_tensors.c   element types; the list of tensors
 *      gguf_values.c    finds pairs and tensors, and reads values
 */
#ifndef FORMAT_GGUF_PARTS_H
#define FORMAT_GGUF_PARTS_H

#include "format/gguf.h"
#include "format/mapped_file.h"
#include "format/safetensors.h"

enum {
    GGUF_NAME_MAX = 64, /* bytes of the name of a tensor */
    GGUF_KEY_MAX = 65535,
    GGUF_PAIR_MIN = 8 + 4 + 1,       /* bytes of the smallest pair: lengths, type, value */
    GGUF_TENSOR_MIN = 8 + 4 + 4 + 8, /* and of the smallest entry of the list of tensors */
    GGUF_ALIGNMENT = 32
};

/* Entries of the indices by key and by name. */
typedef struct gguf_pair_entry {
    const gguf_pair *pair;
} gguf_pair_entry;

typedef struct gguf_tensor_entry {
    const gguf_tensor *tensor;
} gguf_tensor_entry;

/* An open file with everything it owns. `file`, its first member, is what callers see. */
typedef struct gguf_open_file {
    gguf_file file;
    mapped_file map; /* all zero for a file in memory */
    gguf_pair *pairs;
    gguf_tensor *tensors;
    char (*names)[GGUF_NAME_MAX + 1];  /* of the tensors */
    gguf_pair_entry *sorted_pairs;     /* by key */
    gguf_tensor_entry *sorted_tensors; /* by name */
} gguf_open_file;

/* The bytes of a file and how far they have been read. */
typedef struct gguf_cursor {
    const unsigned char *bytes;
    uint64_t size, at;
    const safetensors_report *report;
} gguf_cursor;

/* Both return false at the end of the file, and do not move then. */
bool gguf_take_u32(gguf_cursor *c, uint32_t *value);
bool gguf_take_u64(gguf_cursor *c, uint64_t *value);
bool gguf_take_string(gguf_cursor *c, gguf_string *string);

/* A number of `size` <= 8 bytes in the byte order of the file. */
uint64_t gguf_load(const unsigned char *bytes, unsigned size);

/* The bytes of a value of this type; 0 for strings and arrays. */
unsigned gguf_value_size(gguf_type type);

/* Compares bytes and then lengths. */
int gguf_compare(gguf_string a, gguf_string b);

/* A string for a message. */
safetensors_shown gguf_show(gguf_string string);

/* Reads the list of tensors and checks where they are in the file. */
mha_status gguf_read_tensors(gguf_open_file *f, gguf_cursor *c, uint64_t count, uint32_t alignment);

#endif
