/* SPDX-License-Identifier: MIT */
/* Resizing in two passes, along rows and then along columns, in double precision. */
#include "picture/picture_resize.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Pixel n of `to` of an axis that had `from` pixels is the mean of source[first..last] with the
 * weights of weight(). */
typedef struct tap {
    ptrdiff_t first, last;
    double centre, reach;
} tap;

static tap tap_of(ptrdiff_t n, ptrdiff_t from, ptrdiff_t to)
{
    const double scale = (double)from / (double)to;
    tap t = {.centre = ((double)n + 0.5) * scale, .reach = scale > 1.0 ? scale : 1.0};
    t.first = (ptrdiff_t)floor(t.centre - t.reach);
    t.last = (ptrdiff_t)ceil(t.centre + t.reach);
    t.first = t.first < 0 ? 0 : t.first;
    t.last = t.last >= from ? from - 1 : t.last;
    return t;
}

static double weight(const tap *t, ptrdiff_t at)
{
    const double away = fabs((double)at + 0.5 - t->centre) / t->reach;
    return away < 1.0 ? 1.0 - away : 0.0;
}

/* `lines` lines of `from` values, `step` apart within a line, become lines of `to` values. */
typedef struct axis {
    ptrdiff_t from, to, step;
} axis;

static void resize_line(const axis *a, const double *in, double *out)
{
    for (ptrdiff_t n = 0; n < a->to; n++) {
        const tap t = tap_of(n, a->from, a->to);
        double sum = 0.0, total = 0.0;
        for (ptrdiff_t at = t.first; at <= t.last; at++) {
            sum += weight(&t, at) * in[at * a->step];
            total += weight(&t, at);
        }
        out[n * a->step] = sum / total;
    }
}

static uint8_t byte_of(double value)
{
    const double rounded = floor(value + 0.5);
    return (uint8_t)(rounded < 0.0 ? 0.0 : rounded > 255.0 ? 255.0 : rounded);
}

static void resize_channel(const picture *from, picture *to, ptrdiff_t channel, double *in,
                           double *middle, double *out)
{
    const axis across = {from->columns, to->columns, 1};
    const axis down = {from->rows, to->rows, to->columns};
    for (ptrdiff_t n = 0; n < from->rows * from->columns; n++)
        in[n] = (double)from->pixels[n * from->channels + channel];
    for (ptrdiff_t y = 0; y < from->rows; y++)
        resize_line(&across, in + y * from->columns, middle + y * to->columns);
    for (ptrdiff_t x = 0; x < to->columns; x++)
        resize_line(&down, middle + x, out + x);
    for (ptrdiff_t n = 0; n < to->rows * to->columns; n++)
        to->pixels[n * to->channels + channel] = byte_of(out[n]);
}

picture picture_resize(const picture *from, ptrdiff_t rows, ptrdiff_t columns)
{
    picture to = picture_new(rows, columns, from->channels);
    double *const in = malloc((size_t)(from->rows * from->columns) * sizeof *in);
    double *const middle = malloc((size_t)(from->rows * columns) * sizeof *middle);
    double *const out = malloc((size_t)(rows * columns) * sizeof *out);
    if (to.pixels && in && middle && out)
        for (ptrdiff_t c = 0; c < from->channels; c++)
            resize_channel(from, &to, c, in, middle, out);
    else
        picture_free(&to);
    free(in);
    free(middle);
    free(out);
    return to;
}

void picture_planes(const picture *from, int channels, uint8_t *to)
{
    static const double luminance[] = {0.299, 0.587, 0.114};
    const ptrdiff_t count = from->rows * from->columns;
    const bool colour = from->channels >= 3, alpha = from->channels % 2 == 0;
    for (ptrdiff_t n = 0; n < count; n++) {
        const uint8_t *const pixel = from->pixels + n * from->channels;
        const double seen = alpha ? pixel[from->channels - 1] / 255.0 : 1.0;
        double grey = 0.0;
        for (int c = 0; c < 3; c++) {
            const double value = pixel[colour ? c : 0] * seen;
            grey += luminance[c] * value;
            if (channels == 3)
                to[c * count + n] = byte_of(value);
        }
        if (channels == 1)
            to[n] = byte_of(grey);
    }
}

bool picture_input(const picture *from, int side, int channels, uint8_t *to)
{
    picture scaled = picture_resize(from, side, side);
    if (scaled.pixels)
        picture_planes(&scaled, channels, to);
    const bool fine = scaled.pixels != NULL;
    picture_free(&scaled);
    return fine;
}
