/* SPDX-License-Identifier: MIT */
/* Files of the program that are there as a whole or, after an error, as they were before. */
#ifndef BASE_OUTPUT_FILE_H
#define BASE_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

/* Writes the file at `path` anew with `write`. False, with a message on stderr, if it cannot be
 * written; what was there then still is. */
bool output_file_write(const char *path, void (*write)(FILE *file, const void *arg),
                       const void *arg);

/* Whether a file at `path` could be written; it is not touched. False with a message on stderr. */
bool output_file_check(const char *path);

#endif
