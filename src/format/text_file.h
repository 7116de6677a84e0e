/* SPDX-License-Identifier: MIT */
/* Reads whole text files that users give to a command. Their content is not trusted. */
#ifndef FORMAT_TEXT_FILE_H
#define FORMAT_TEXT_FILE_H

#include <stddef.h>

enum { TEXT_FILE_MESSAGE_MAX = 512, TEXT_FILE_MAX = 16 << 20 };

/* Reads a file of UTF-8 text of at most TEXT_FILE_MAX bytes. The text ends with a 0 that `length`
 * does not count; it is for free(). NULL, with a message: it cannot be read, or is something else.
 */
char *text_file_read(const char *path, size_t *length, char message[TEXT_FILE_MESSAGE_MAX]);

#endif
