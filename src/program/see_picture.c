/* SPDX-License-Identifier: MIT */
/* Reads pictures for "mha see" (see_picture.h). */
#include "program/see_picture.h"

#include <stdlib.h>

#include "picture/picture_file.h"
#include "picture/picture_resize.h"
#include "program/args.h"

int see_picture_load(see_picture *p, const char *path, int side, int channels,
                     const pixel_scale *scale)
{
    char message[PICTURE_MESSAGE_MAX];
    const size_t size = (size_t)side * (size_t)side;
    picture read;
    *p = (see_picture){.pixels = NULL};
    if (!picture_file_read(path, &read, message))
        return args_failed("%s", message);
    p->rows = read.rows;
    p->columns = read.columns;
    uint8_t *const planes = malloc((size_t)channels * size);
    p->seen = picture_new(side, side, channels);
    p->pixels = malloc((size_t)channels * size * sizeof *p->pixels);
    const bool fine =
        planes && p->seen.pixels && p->pixels && picture_input(&read, side, channels, planes);
    for (size_t n = 0; fine && n < (size_t)channels * size; n++) {
        const size_t channel = n / size, at = n % size;
        p->pixels[n] = scale->table[channel][planes[n]];
        p->seen.pixels[at * (size_t)channels + channel] = planes[n];
    }
    free(planes);
    picture_free(&read);
    return fine ? EXIT_GO_ON : args_failed("out of memory");
}

void see_picture_free(see_picture *p)
{
    picture_free(&p->seen);
    free(p->pixels);
}

rgb see_picture_pixel(const picture *p, ptrdiff_t y, ptrdiff_t x)
{
    const uint8_t *const at = p->pixels + (y * p->columns + x) * p->channels;
    return p->channels == 3 ? (rgb){at[0], at[1], at[2]} : (rgb){at[0], at[0], at[0]};
}

void see_picture_put(FILE *file, const picture *p, double side, int shade)
{
    const double step = side / (double)p->columns;
    for (ptrdiff_t y = 0; y < p->rows; y++)
        for (ptrdiff_t x = 0; x < p->columns; x++) {
            const rgb c = see_picture_pixel(p, y, x);
            fprintf(file,
                    "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
                    "fill=\"#%02x%02x%02x\"/>\n",
                    (double)x * step, (double)y * step, step + 0.1, step + 0.1, c.r / shade,
                    c.g / shade, c.b / shade);
        }
}
