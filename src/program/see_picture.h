/* SPDX-License-Identifier: MIT */
/* A picture of a file as a model reads it. */
#ifndef PROGRAM_SEE_PICTURE_H
#define PROGRAM_SEE_PICTURE_H

#include "picture/picture.h"
#include "vision/augment.h"

typedef struct see_picture {
    picture seen;  /* side x side pixels, for people */
    float *pixels; /* [channels][side][side], scaled, for the model */
} see_picture;

/* Reads a PNG file of any size. Returns EXIT_GO_ON, or EXIT_FAILED after a message on stderr;
 * see_picture_free() is needed in any case. */
int see_picture_load(see_picture *p, const char *path, int side, int channels,
                     const pixel_scale *scale);
void see_picture_free(see_picture *p);

#endif
