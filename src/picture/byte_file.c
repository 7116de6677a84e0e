/* SPDX-License-Identifier: MIT */
/* Reads a file piece by piece: what it claims to be long does not decide how much memory is
 * taken. */
#include "picture/byte_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "picture/gzip.h"
#include "picture/picture.h"

enum { PIECE = 1 << 16 };

static bool wrong(char *message, const char *path, const char *why)
{
    snprintf(message, PICTURE_MESSAGE_MAX, "%.160s: %s", path, why);
    return false;
}

/* NULL, or why the file was not read. */
static const char *read_all(FILE *from, byte_file *file)
{
    size_t room = 0, got;
    do {
        uint8_t *const more = mhai_array_grow(file->data, &room, file->size + PIECE, 1);
        if (more == NULL)
            return "out of memory";
        file->data = more;
        got = fread(file->data + file->size, 1, PIECE, from);
        file->size += got;
        if (file->size > BYTE_FILE_MAX)
            return "larger than 1 GB, which is more than is read";
    } while (got > 0);
    return ferror(from) ? strerror(errno) : NULL;
}

static bool is_gzip(const byte_file *file)
{
    return file->size >= 2 && file->data[0] == 0x1f && file->data[1] == 0x8b;
}

bool byte_file_read(const char *path, byte_file *file, char *message)
{
    *file = (byte_file){NULL, 0};
    FILE *const from = fopen(path, "rb");
    if (from == NULL)
        return wrong(message, path, strerror(errno));
    const char *why = read_all(from, file);
    fclose(from);
    if (why == NULL && is_gzip(file)) {
        byte_file inflated = {NULL, 0};
        why = gzip_inflate(file->data, file->size, BYTE_FILE_MAX, &inflated.data, &inflated.size);
        free(file->data);
        *file = inflated;
    }
    if (why == NULL)
        return true;
    free(file->data);
    *file = (byte_file){NULL, 0};
    return wrong(message, path, why);
}
