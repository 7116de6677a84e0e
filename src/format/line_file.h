/* SPDX-License-Identifier: MIT */
/* Text files whose lines are read one by one; like those of text_file.h they are not trusted. */
#ifndef FORMAT_LINE_FILE_H
#define FORMAT_LINE_FILE_H

#include <stdbool.h>

#include "format/text_file.h"

typedef struct line_file {
    char *text;   /* owns the lines */
    char **lines; /* [count], each terminated, without its "\n" */
    size_t count;
} line_file;

/* Reads all lines, empty ones too; what follows the last "\n" is a line if there is something.
 * False with a message, also for a byte of 0, which a line cannot have. line_file_free() either
 * way. */
bool line_file_read(line_file *file, const char *path, char message[TEXT_FILE_MESSAGE_MAX]);
void line_file_free(line_file *file);

#endif
