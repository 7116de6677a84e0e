/* SPDX-License-Identifier: MIT */
/* Handmade GGUF files: at least one that violates each rule of the format, and valid ones at the
 * limits. */
#ifndef MHA_GGUF_CASES_H
#define MHA_GGUF_CASES_H

#include <stddef.h>
#include <stdint.h>

/* A file is a header with these numbers; `body`, which are the pairs and the list of tensors; zero
 * bytes up to a multiple of `alignment`; and `data` bytes of tensors. */
typedef struct gguf_case {
    const char *name;
    uint32_t version;
    uint64_t tensors, pairs;
    const char *body;
    size_t body_length;
    size_t alignment, data;
    const char *says; /* part of the message; NULL for a valid file */
} gguf_case;

extern const gguf_case gguf_invalid[], gguf_valid[];
extern const size_t gguf_invalid_count, gguf_valid_count;

/* A valid file with every type of value and several tensors; its last byte belongs to a tensor. */
extern const gguf_case gguf_sample;

/* The bytes of the file of a case, in memory of exactly their size; the caller frees them. Byte n
 * of the tensors is 7 * n. */
unsigned char *gguf_case_bytes(const gguf_case *c, size_t *size);

#endif
