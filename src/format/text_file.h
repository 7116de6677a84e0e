/* SPDX-License-Identifier: MIT */
/* Files that "mha view" is given beside the model. They are taken for hostile. */
#ifndef FORMAT_TEXT_FILE_H
#define FORMAT_TEXT_FILE_H

#include <stddef.h>

enum { TEXT_FILE_MESSAGE_MAX = 512, TEXT_FILE_MAX = 16 << 20 };

/* A file of UTF-8 text with a 0 behind it, for free(). NULL with a message. */
char *text_file_read(const char *path, size_t *length, char message[TEXT_FILE_MESSAGE_MAX]);

#endif
