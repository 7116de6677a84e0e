/* SPDX-License-Identifier: MIT */
/* Reads whole text files that users give to a command. They are not trusted. */
#ifndef FORMAT_TEXT_FILE_H
#define FORMAT_TEXT_FILE_H

#include <stddef.h>

enum { TEXT_FILE_MESSAGE_MAX = 512, TEXT_FILE_MAX = 16 << 20 };

/*
 * Returns the content of a file of UTF-8 text, terminated by a 0 that `*length` does not count; the
 * caller frees it. Returns NULL with a message if the file cannot be read, is not UTF-8 or has more
 * than TEXT_FILE_MAX bytes.
 */
char *text_file_read(const char *path, size_t *length, char message[TEXT_FILE_MESSAGE_MAX]);

#endif
