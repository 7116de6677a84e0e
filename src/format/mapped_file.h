/* SPDX-License-Identifier: MIT */
/*
 * Whole files in memory, for readers of large files: mapped if possible, else read.
 *
 * A mapped file must not become shorter while it is open. The system ends a program that reads a
 * page past the new end of the file with the signal SIGBUS, and no check can prevent this. Programs
 * that replace files by renaming a new one over them, as this project does, are safe: the mapping
 * keeps the old file.
 */
#ifndef FORMAT_MAPPED_FILE_H
#define FORMAT_MAPPED_FILE_H

#include <mha/mha.h>

#include <stdbool.h>

#include "format/safetensors.h"

typedef struct mapped_file {
    const unsigned char *bytes;
    size_t size;
    bool mapped; /* else read into memory that was allocated */
} mapped_file;

/* Only regular files that are not empty are accepted. A pointer file of Git LFS is refused with the
 * hint how to get the file itself. `message` may be NULL. On error *file is all zero. */
mha_status mapped_file_open(mapped_file *file, const char *path, char *message,
                            size_t message_size);
/* A file that is all zero is allowed. */
void mapped_file_close(mapped_file *file);

/* Returns the pages of bytes[from .. from+size), and those around them that were mapped together
 * with them, to the system. They can still be read, from the disk again. Does nothing if the file
 * is not mapped. */
void mapped_file_release(const mapped_file *file, size_t from, size_t size);

/* Reads a file of at most `limit` bytes under the same rules, without mapping it. *text, followed
 * by a zero byte that *length does not count, is freed by the caller; NULL on error. */
mha_status mapped_file_read(char **text, size_t *length, const char *path, size_t limit,
                            char *message, size_t message_size);

/* A format whose files are mapped and read at once: what an open file of it is. */
typedef struct mapped_format {
    size_t size;   /* bytes of an open file, all zero before it is read */
    size_t map_at; /* where its mapped_file is */
    mha_status (*read)(void *open, const void *bytes, size_t size,
                       const safetensors_report *report);
    void (*close)(void *open); /* after an error, too */
} mapped_format;

/* Opens the file at `path`, or with path NULL `size` bytes in memory, which must not change until
 * it is closed. NULL on error, with *status and the message set. */
void *mapped_format_open(const mapped_format *format, const char *path, const void *bytes,
                         size_t size, char *message, size_t message_size, mha_status *status);

#endif
