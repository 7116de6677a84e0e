/* SPDX-License-Identifier: MIT */
/* Reads a text file and divides it into lines. */
#include "format/line_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t count_lines(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t n = 0; n < length; n++)
        count += text[n] == '\n' || n + 1 == length;
    return count;
}

static void divide(line_file *file)
{
    char *at = file->text;
    for (size_t n = 0; n < file->count; n++) {
        file->lines[n] = at;
        at += strcspn(at, "\n");
        *at++ = '\0';
    }
}

bool line_file_read(line_file *file, const char *path, char message[TEXT_FILE_MESSAGE_MAX])
{
    size_t length = 0;
    *file = (line_file){.text = text_file_read(path, &length, message)};
    if (file->text == NULL)
        return false;
    if (strlen(file->text) < length) {
        snprintf(message, TEXT_FILE_MESSAGE_MAX, "%.400s: has a byte of 0", path);
        return false;
    }
    const size_t count = count_lines(file->text, length);
    file->lines = calloc(count + 1, sizeof *file->lines);
    if (file->lines == NULL) {
        snprintf(message, TEXT_FILE_MESSAGE_MAX, "%.400s: out of memory", path);
        return false;
    }
    file->count = count;
    divide(file);
    return true;
}

void line_file_free(line_file *file)
{
    free(file->lines);
    free(file->text);
    *file = (line_file){.text = NULL};
}
