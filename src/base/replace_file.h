/* SPDX-License-Identifier: MIT */
/*
 * Files that are new or the old ones, never half of either: a file is written under a name of its
 * own beside the one it is to replace, and takes that one's place when all of it is on the disk.
 * Errors are numbers as in errno, 0 for none. Knows nothing of the rest of the core.
 */
#ifndef BASE_REPLACE_FILE_H
#define BASE_REPLACE_FILE_H

#include <stddef.h>

enum { MHAI_FILE_SUFFIX = 64 }; /* room that the name of a new file needs behind that of `path` */

/* A new file beside `path`, open for writing: its name goes to `name`, `size` bytes. */
int mhai_file_open_new(const char *path, char *name, size_t size, int *fd);

int mhai_file_write(int fd, const void *data, size_t count);

/* Closes the file. It becomes `path` unless there was an error before or there is one now, which
 * leaves no new file. */
int mhai_file_finish_new(int fd, const char *name, const char *path, int error);

/* Elements of `size` bytes become little-endian, or native again. */
void mhai_file_swap(void *data, size_t size, size_t count);

#endif
