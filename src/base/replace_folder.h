/* SPDX-License-Identifier: MIT */
/*
 * Writes a folder completely or not at all: it is filled under a temporary name next to its place
 * and renamed when everything is on the disk. Errors are numbers as in errno, 0 for none.
 */
#ifndef BASE_REPLACE_FOLDER_H
#define BASE_REPLACE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

enum { MHAI_FOLDER_SUFFIX = 64 }; /* bytes that a temporary name may be longer than `path` */

/*
 * Makes an empty folder next to `path`, which must not end with "/". Its name is stored in
 * name[size], and in *held a descriptor that locks it as long as this process lives, by which
 * leftover_files.c knows that it is in use; -1 where folders cannot be locked.
 *
 *      EEXIST      there is something at `path`, and `mark` is NULL
 *      ENOTDIR     what is there is not a folder
 *      ENOTEMPTY   it is a folder that must not be replaced
 *
 * An empty folder at `path` counts as nothing. Another one is replaced if it has a file called
 * `mark` and nothing but files and folders of files.
 */
int mhai_folder_open_new(const char *path, const char *mark, char *name, size_t size, int *held);

/* Renames the folder to `path`; what was there is removed then. If `error` is set or one occurs
 * now, removes the new folder instead. Returns the error. */
int mhai_folder_finish_new(int held, const char *name, const char *path, const char *mark,
                           int error);

/* Removes a folder of files and folders of files, in the folder of a descriptor; one with anything
 * else in it stays as it is. */
int mhai_folder_remove_at(int folder, const char *name);

#endif
