/* SPDX-License-Identifier: MIT */
/* PNG files by libpng's simple interface, which needs no long jumps. */
#include "picture/png_file.h"

#include <errno.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output_file.h"

bool png_file_supported(void)
{
    return true;
}

static bool wrong(char *message, const char *path, const char *why)
{
    snprintf(message, PICTURE_MESSAGE_MAX, "%s: %s", path, why);
    return false;
}

/* What libpng says of the file, in words of ours around it. */
static bool damaged(char *message, const char *path, const png_image *image)
{
    snprintf(message, PICTURE_MESSAGE_MAX, "%s is damaged: libpng says \"%s\"", path,
             image->message);
    return false;
}

static bool has_signature(FILE *file)
{
    png_byte begin[8];
    return fread(begin, 1, sizeof begin, file) == sizeof begin && png_sig_cmp(begin, 0, 8) == 0;
}

static png_uint_32 format_of(ptrdiff_t channels)
{
    static const png_uint_32 formats[] = {PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB,
                                          PNG_FORMAT_RGBA};
    return formats[channels - 1];
}

/* The header has been read: room for its pixels, then the pixels. */
static bool read_pixels(const char *path, png_image *image, picture *p, char *message)
{
    const bool colour = (image->format & PNG_FORMAT_FLAG_COLOR) != 0;
    const bool alpha = (image->format & PNG_FORMAT_FLAG_ALPHA) != 0;
    if (image->width > PICTURE_SIDE_MAX || image->height > PICTURE_SIDE_MAX ||
        (uint64_t)image->width * image->height > PICTURE_PIXELS_MAX) {
        snprintf(message, PICTURE_MESSAGE_MAX,
                 "%s has %u x %u pixels; at most %d a side and %d in all are read", path,
                 (unsigned)image->width, (unsigned)image->height, PICTURE_SIDE_MAX,
                 PICTURE_PIXELS_MAX);
        return false;
    }
    *p = picture_new((ptrdiff_t)image->height, (ptrdiff_t)image->width,
                     (colour ? 3 : 1) + (alpha ? 1 : 0));
    if (p->pixels == NULL)
        return wrong(message, path, "out of memory");
    image->format = format_of(p->channels);
    if (!png_image_finish_read(image, NULL, p->pixels, 0, NULL)) {
        picture_free(p);
        return damaged(message, path, image);
    }
    return true;
}

bool png_stream_read(FILE *file, const char *path, picture *p, char *message)
{
    *p = (picture){0};
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (!has_signature(file))
        return wrong(message, path, ferror(file) ? strerror(errno) : "not a PNG file");
    rewind(file);
    const bool fine = png_image_begin_read_from_stdio(&image, file)
                          ? read_pixels(path, &image, p, message)
                          : damaged(message, path, &image);
    png_image_free(&image);
    return fine;
}

bool png_file_read(const char *path, picture *p, char *message)
{
    *p = (picture){0};
    errno = 0;
    FILE *const file = fopen(path, "rb");
    if (file == NULL)
        return wrong(message, path, strerror(errno));
    const bool fine = png_stream_read(file, path, p, message);
    fclose(file);
    return fine;
}

typedef struct bytes {
    void *data;
    png_alloc_size_t count;
} bytes;

static void put_bytes(FILE *file, const void *arg)
{
    const bytes *const b = arg;
    fwrite(b->data, 1, b->count, file);
}

bool png_file_write(const char *path, const picture *p, char *message)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)p->columns,
                       .height = (png_uint_32)p->rows,
                       .format = format_of(p->channels)};
    bytes b = {NULL, PNG_IMAGE_PNG_SIZE_MAX(image)};
    b.data = malloc(b.count);
    *message = '\0';
    if (b.data == NULL)
        return wrong(message, path, "out of memory");
    bool fine = png_image_write_to_memory(&image, b.data, &b.count, 0, p->pixels, 0, NULL) != 0;
    if (!fine)
        wrong(message, path, image.message);
    fine = fine && output_file_write(path, put_bytes, &b);
    free(b.data);
    return fine;
}
