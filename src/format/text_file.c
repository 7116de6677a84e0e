/* SPDX-License-Identifier: MIT */
/* Whole text files with a size limit, for JSON that the user supplies (text_file.h). */
#include "format/text_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/json_reader.h"

/* Returns what is wrong with what was read, or NULL. */
static const char *fault_of(FILE *file, const char *text, size_t length)
{
    if (ferror(file))
        return strerror(errno);
    if (length > TEXT_FILE_MAX)
        return "larger than 16 MB";
    return mhai_utf8_valid(text, length) ? NULL : "not UTF-8 text";
}

char *text_file_read(const char *path, size_t *length, char message[TEXT_FILE_MESSAGE_MAX])
{
    FILE *const file = fopen(path, "rb");
    if (file == NULL) {
        snprintf(message, TEXT_FILE_MESSAGE_MAX, "%s: cannot be opened: %s", path, strerror(errno));
        return NULL;
    }
    /* One byte more than the limit shows that a file is too large; one is for the final 0. The size
     * is not asked from the system, so that pipes can be read too. */
    char *text = malloc(TEXT_FILE_MAX + 2);
    const char *fault = "out of memory";
    if (text != NULL) {
        errno = 0;
        *length = fread(text, 1, TEXT_FILE_MAX + 1, file);
        fault = fault_of(file, text, *length);
    }
    fclose(file);
    if (fault != NULL) {
        snprintf(message, TEXT_FILE_MESSAGE_MAX, "%s: %s", path, fault);
        free(text);
        return NULL;
    }
    text[*length] = '\0';
    return text;
}
