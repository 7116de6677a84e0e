/* SPDX-License-Identifier: MIT */
/* PGM and PPM files: "P5" or "P6", columns, rows and 255 in decimal, one white space, the pixels.
 */
#include "picture/pnm_file.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "picture/png_file.h"

/* The number of channels that the first two bytes say; 0: another kind of file. */
static int read_channels(FILE *file)
{
    const int magic = getc(file), kind = getc(file);
    if (magic != 'P')
        return 0;
    return kind == '5' ? 1 : kind == '6' ? 3 : 0;
}

bool pnm_file_is(const char *path)
{
    FILE *const file = fopen(path, "rb");
    if (!file)
        return false;
    const bool is = read_channels(file) > 0;
    fclose(file);
    return is;
}

/* A number of the header, after white space and comments; -1: there is none. One character after it
 * is read too. */
static int read_number(FILE *file)
{
    int c = getc(file), number = 0;
    while (isspace(c) || c == '#') {
        if (c == '#')
            while (c != '\n' && c != EOF)
                c = getc(file);
        c = getc(file);
    }
    if (!isdigit(c))
        return -1;
    for (; isdigit(c); c = getc(file))
        number = number > PICTURE_SIDE_MAX ? number : 10 * number + (c - '0');
    return isspace(c) ? number : -1;
}

static bool read_pixels(FILE *file, const char *path, int channels, picture *p, char *message)
{
    const int columns = read_number(file), rows = read_number(file), most = read_number(file);
    if (columns < 1 || rows < 1 || most != 255)
        return picture_wrong(message, "%.150s: expected columns, rows and 255 at its beginning",
                             path);
    if (columns > PICTURE_SIDE_MAX || rows > PICTURE_SIDE_MAX ||
        (int64_t)columns * rows > PICTURE_PIXELS_MAX)
        return picture_wrong(message,
                             "%.150s is too large; at most %d pixels a side and %d in all are read",
                             path, PICTURE_SIDE_MAX, PICTURE_PIXELS_MAX);
    *p = picture_new(rows, columns, channels);
    if (!p->pixels)
        return picture_wrong(message, "%.150s: out of memory", path);
    const size_t size = (size_t)columns * (size_t)rows * (size_t)channels;
    return fread(p->pixels, 1, size, file) == size ||
           picture_wrong(message, "%.150s is cut off", path);
}

bool pnm_stream_read(FILE *file, const char *name, picture *p, char *message)
{
    *p = (picture){0};
    const int channels = read_channels(file);
    const bool fine = channels > 0 ? read_pixels(file, name, channels, p, message)
                                   : picture_wrong(message, "%.150s is no PGM or PPM file", name);
    if (!fine)
        picture_free(p);
    return fine;
}

bool pnm_file_read(const char *path, picture *p, char *message)
{
    *p = (picture){0};
    FILE *const file = fopen(path, "rb");
    if (!file)
        return picture_wrong(message, "%.150s: %s", path, strerror(errno));
    const bool fine = pnm_stream_read(file, path, p, message);
    fclose(file);
    return fine;
}
