/* SPDX-License-Identifier: MIT */
/*
 * Replaces a file completely or not at all: a new file is written under a temporary name next to
 * the old one and renamed when all of it is on the disk. Errors are numbers as in errno, 0 for
 * none.
 */
#ifndef BASE_REPLACE_FILE_H
#define BASE_REPLACE_FILE_H

#include <stddef.h>
#include <stdint.h>

enum { MHAI_FILE_SUFFIX = 64 }; /* bytes that a temporary name may be longer than `path` */

/* Opens a new file next to `path` for writing. Its name is stored in name[size]. */
int mhai_file_open_new(const char *path, char *name, size_t size, int *fd);

/* Writes all bytes. */
int mhai_file_write(int fd, const void *data, size_t count);

/* Reads exactly `count` bytes; EIO if there are fewer. */
int mhai_file_read(int fd, void *data, size_t count);

/* Closes the file and renames it to `path`. If `error` is set or one occurs now, deletes it
 * instead. Returns the error. */
int mhai_file_finish_new(int fd, const char *name, const char *path, int error);

/* Converts `count` elements of `size` bytes from native to little-endian order, or back. */
void mhai_file_swap(void *data, size_t size, size_t count);

/* FNV-1a, the checksum of files: from the start, or of more bytes after those of `hash`. */
#define MHAI_FILE_HASH_START 0xcbf29ce484222325u
uint64_t mhai_file_hash(uint64_t hash, const void *data, size_t count);

#endif
