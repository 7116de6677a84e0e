/* SPDX-License-Identifier: MIT */
/*
 * The text of a model that reads pictures is the name of a picture: a file of PGM or PPM (P5, P6),
 * which is scaled to the size that the model reads. Its tokens are the marks of the model and then
 * the patches, row by row: "1.3" is the third patch of the first row.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heads/subject_model_parts.h"
#include "model/inspect.h"

enum { SIDE_MAX = 16384 };

typedef struct picture {
    int width, height, channels;
    unsigned char *bytes; /* [height][width][channels] */
} picture;

static bool wrong(char *message, const char *path, const char *what)
{
    snprintf(message, SUBJECT_MESSAGE_MAX, "%.200s: %s", path, what);
    return false;
}

/* A number of the header, after white space and comments; -1: there is none. */
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
    for (; isdigit(c) && number <= SIDE_MAX; c = getc(file))
        number = 10 * number + (c - '0');
    return number;
}

static bool read_file(picture *p, FILE *file, const char *path, char *message)
{
    const bool magic = getc(file) == 'P';
    const int kind = getc(file);
    if (!magic || (kind != '5' && kind != '6'))
        return wrong(message, path,
                     "the model reads pictures; give the name of a PGM or PPM file (P5, P6)");
    p->channels = kind == '6' ? 3 : 1;
    p->width = read_number(file);
    p->height = read_number(file);
    const int most = read_number(file);
    if (p->width < 1 || p->width > SIDE_MAX || p->height < 1 || p->height > SIDE_MAX || most != 255)
        return wrong(message, path, "not a picture with values up to 255");
    const size_t size = (size_t)p->width * (size_t)p->height * (size_t)p->channels;
    p->bytes = malloc(size);
    if (!p->bytes)
        return wrong(message, path, "out of memory");
    return fread(p->bytes, 1, size, file) == size || wrong(message, path, "the picture is cut off");
}

/* The value at a place between the pixels, 0 to 255. */
static double value_at(const picture *p, double x, double y, int channel)
{
    const int x0 = x < 0 ? 0 : (int)x, y0 = y < 0 ? 0 : (int)y;
    const int x1 = x0 + 1 < p->width ? x0 + 1 : x0, y1 = y0 + 1 < p->height ? y0 + 1 : y0;
    const double fx = x < 0 ? 0 : x - x0, fy = y < 0 ? 0 : y - y0;
    const int c = p->channels == 1 ? 0 : channel;
#define AT(column, row)                                                                         \
    ((double)                                                                                   \
         p->bytes[((size_t)(row) * (size_t)p->width + (size_t)(column)) * (size_t)p->channels + \
                  (size_t)c])
    return (AT(x0, y0) * (1 - fx) + AT(x1, y0) * fx) * (1 - fy) +
           (AT(x0, y1) * (1 - fx) + AT(x1, y1) * fx) * fy;
#undef AT
}

/* pixels[channels][size][size] = the picture, scaled, with values from -1 to 1. */
static void scale(const picture *p, int size, int channels, float *pixels)
{
    for (int c = 0; c < channels; c++)
        for (int y = 0; y < size; y++)
            for (int x = 0; x < size; x++) {
                const double at_x = (x + 0.5) * p->width / size - 0.5;
                const double at_y = (y + 0.5) * p->height / size - 0.5;
                *pixels++ = (float)(value_at(p, at_x, at_y, c) / 127.5 - 1.0);
            }
}

/* The marks of the model, then its patches. */
static void list_patches(model_side *m, int marks, int patches)
{
    for (int n = 0; n < marks + patches * patches; n++) {
        const int patch = n - marks;
        m->side.marks[n] = n < marks;
        m->side.numbers[n] = n;
        if (n < marks)
            snprintf(m->room[n], SUBJECT_WORD_MAX, n == 0 ? "[CLS]" : "[DIST]");
        else
            snprintf(m->room[n], SUBJECT_WORD_MAX, "%d.%d", patch / patches + 1,
                     patch % patches + 1);
        m->side.words[n] = m->room[n];
    }
    m->side.count = marks + patches * patches;
}

bool subject_picture_read(const subject *s, const char *path, model_text *m, char *message)
{
    mha_model_info info = {.size = sizeof info};
    mha_model_get_info(model_of(s), &info);
    const int size = (int)info.image_size, marks = model_picture_marks(model_of(s));
    const int patches = model_picture_across(model_of(s));
    model_side *const side = &m->sides[TRANSFORMER_SOURCE];
    picture p = {0};
    FILE *const file = fopen(path, "rb");
    if (!file)
        return wrong(message, path, "cannot be opened; give the name of a PGM or PPM picture");
    bool fine = read_file(&p, file, path, message) &&
                model_side_make(side, marks + patches * patches, message);
    fclose(file);
    if (fine) {
        m->pixels = malloc((size_t)info.channels * (size_t)size * (size_t)size * sizeof *m->pixels);
        fine = m->pixels || wrong(message, path, "out of memory");
    }
    if (fine) {
        scale(&p, size, (int)info.channels, m->pixels);
        list_patches(side, marks, patches);
    }
    free(p.bytes);
    return fine;
}
