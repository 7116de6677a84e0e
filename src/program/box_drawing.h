/* SPDX-License-Identifier: MIT */
/* Boxes drawn over a picture, as PNG or, with what is in them, as SVG. */
#ifndef PROGRAM_BOX_DRAWING_H
#define PROGRAM_BOX_DRAWING_H

#include "picture/picture.h"
#include "translator/box.h"

typedef struct drawn_box {
    box box;
    char label[48];
} drawn_box;

/* The picture is enlarged. `path` ends in .png or .svg. Returns EXIT_GO_ON, or EXIT_FAILED after a
 * message. */
int box_drawing_write(const picture *seen, const drawn_box *boxes, int count, const char *path);

#endif
