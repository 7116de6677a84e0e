/* SPDX-License-Identifier: MIT */
/* What kind of file holds a model. The content decides; the name only says what a file that is
 * damaged should have been. */
#ifndef FORMAT_FILE_KIND_H
#define FORMAT_FILE_KIND_H

#include <stddef.h>
#include <stdint.h>

typedef enum file_kind {
    FILE_UNKNOWN,
    FILE_SAFETENSORS,
    FILE_GGUF,
    FILE_LLAMA2C,
    FILE_TORCH /* a zip archive, or a pickle */
} file_kind;

/* Bytes at the beginning of a file that are enough to tell. */
enum { FILE_KIND_BYTES = 64 };

/* By the first bytes of a file of `size` bytes: all of them, or FILE_KIND_BYTES. */
file_kind file_kind_of(const void *bytes, uint64_t size, const char *path);

/* The same of the file at a path. FILE_UNKNOWN if it cannot be read or is not a regular file,
 * unless its name says more. */
file_kind file_kind_at(const char *path);

#endif
