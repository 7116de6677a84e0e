/* SPDX-License-Identifier: MIT */
/* Reads pictures for "mha see" (see_picture.h). */
#include "program/see_picture.h"

#include <stdlib.h>

#include "picture/picture_resize.h"
#include "picture/png_file.h"
#include "program/args.h"

int see_picture_load(see_picture *p, const char *path, int side, int channels,
                     const pixel_scale *scale)
{
    char message[PICTURE_MESSAGE_MAX];
    const size_t size = (size_t)side * (size_t)side;
    picture read;
    *p = (see_picture){.pixels = NULL};
    if (!png_file_read(path, &read, message))
        return args_failed("%s", message);
    picture scaled = picture_resize(&read, side, side);
    picture_free(&read);
    uint8_t *const planes = malloc((size_t)channels * size);
    p->seen = picture_new(side, side, channels);
    p->pixels = malloc((size_t)channels * size * sizeof *p->pixels);
    const bool fine = scaled.pixels && planes && p->seen.pixels && p->pixels;
    if (fine)
        picture_planes(&scaled, channels, planes);
    for (size_t n = 0; fine && n < (size_t)channels * size; n++) {
        const size_t channel = n / size, at = n % size;
        p->pixels[n] = scale->table[channel][planes[n]];
        p->seen.pixels[at * (size_t)channels + channel] = planes[n];
    }
    free(planes);
    picture_free(&scaled);
    return fine ? EXIT_GO_ON : args_failed("out of memory");
}

void see_picture_free(see_picture *p)
{
    picture_free(&p->seen);
    free(p->pixels);
}
