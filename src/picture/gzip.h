/* SPDX-License-Identifier: MIT */
/* Bytes compressed by gzip, with zlib where it is installed. */
#ifndef PICTURE_GZIP_H
#define PICTURE_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the program was built with zlib. */
bool gzip_supported(void);

/* Inflates one or more gzip members into a new array, for free(). Returns NULL or, in words, why it
 * cannot: the bytes are damaged or cut off, something follows them, or more than `most` bytes come
 * out; nothing is left then. */
const char *gzip_inflate(const uint8_t *bytes, size_t size, size_t most, uint8_t **data,
                         size_t *count);

#endif
