/* SPDX-License-Identifier: MIT */
/* Whole files in memory, plain or compressed by gzip. */
#ifndef PICTURE_BYTE_FILE_H
#define PICTURE_BYTE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Files with more bytes than this, after inflating, are refused. */
enum { BYTE_FILE_MAX = 1 << 30 };

typedef struct byte_file {
    uint8_t *data; /* for free() */
    size_t size;
} byte_file;

/* Reads a file, and inflates it if it begins as one of gzip does. False with a sentence in
 * `message`, PICTURE_MESSAGE_MAX bytes; nothing is left then. */
bool byte_file_read(const char *path, byte_file *file, char *message);

#endif
