/* SPDX-License-Identifier: MIT */
/* Files that the program writes completely or, after an error, leaves as they were. */
#ifndef BASE_OUTPUT_FILE_H
#define BASE_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

/* Replaces the file at `path` by what `write` writes. False, after a message on stderr, if that is
 * not possible; the old file is then unchanged. */
bool output_file_write(const char *path, void (*write)(FILE *file, const void *arg),
                       const void *arg);

/* Whether a file at `path` could be written; an existing one is not changed. False after a message
 * on stderr. Commands call this when they start: it also removes what an earlier process left of a
 * file that it was writing there when it was killed. */
bool output_file_check(const char *path);

#endif
