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

/* Returns whole pages inside of bytes[from .. from+size) to the system. They can still be read,
 * from the disk again. Does nothing if the file is not mapped. */
void mapped_file_release(const mapped_file *file, size_t from, size_t size);

/* Reads a file of at most `limit` bytes under the same rules, without mapping it. *text, followed
 * by a zero byte that *length does not count, is freed by the caller; NULL on error. */
mha_status mapped_file_read(char **text, size_t *length, const char *path, size_t limit,
                            char *message, size_t message_size);

#endif
