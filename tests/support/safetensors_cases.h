/* SPDX-License-Identifier: MIT */
/* Handmade safetensors files: at least one that violates each rule of the format, and one on each
 * side of every limit. */
#ifndef MHA_SAFETENSORS_CASES_H
#define MHA_SAFETENSORS_CASES_H

#include <stddef.h>
#include <stdint.h>

typedef struct st_case {
    const char *name;
    const char *header;
    size_t header_length;
    size_t data;          /* bytes after the header, all 0 */
    int64_t length_error; /* added to the length at the beginning of the file */
    const char *rule;     /* the rule it violates; NULL for a valid file */
    const char *says;     /* part of the message, or of the warning for a valid file; or NULL */
} st_case;

extern const st_case st_invalid[], st_valid[];
extern const size_t st_invalid_count, st_valid_count;

/* The bytes of the file of a case; the caller frees them. */
unsigned char *st_case_bytes(const st_case *c, size_t *size);

/* The bytes of a file with this header and `data` zero bytes after it; the caller frees them. */
unsigned char *st_bytes(const char *header, size_t header_length, size_t data, int64_t length_error,
                        size_t *size);

#endif
