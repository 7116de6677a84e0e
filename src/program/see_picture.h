/* SPDX-License-Identifier: MIT */
/* A picture of a file as a model reads it. */
#ifndef PROGRAM_SEE_PICTURE_H
#define PROGRAM_SEE_PICTURE_H

#include <stdio.h>

#include "base/terminal.h"
#include "picture/picture.h"
#include "vision/augment.h"

typedef struct see_picture {
    picture seen;            /* side x side pixels, for people */
    float *pixels;           /* [channels][side][side], scaled, for the model */
    ptrdiff_t rows, columns; /* of the file */
} see_picture;

/* Reads a file of any size. Returns EXIT_GO_ON, or EXIT_FAILED after a message on stderr;
 * see_picture_free() is needed in any case. */
int see_picture_load(see_picture *p, const char *path, int side, int channels,
                     const pixel_scale *scale);
void see_picture_free(see_picture *p);

/* A pixel of a grey or coloured picture. */
rgb see_picture_pixel(const picture *p, ptrdiff_t y, ptrdiff_t x);

/* The pixels as rectangles of SVG, `side` wide in all; `shade` divides their colours. */
void see_picture_put(FILE *file, const picture *p, double side, int shade);

#endif
