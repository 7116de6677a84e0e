/* SPDX-License-Identifier: MIT */
/* A picture of 8 bits a channel. */
#ifndef CLAIMS_PICTURE_H
#define CLAIMS_PICTURE_H

#include <stddef.h>
#include <stdint.h>

typedef struct picture {
    ptrdiff_t rows, columns;
    ptrdiff_t channels; /* 1 grey, 2 grey and alpha, 3 colours, 4 colours and alpha */
    uint8_t *pixels;    /* [rows][columns][channels] */
} picture;

/* NULL pixels: no memory. */
picture picture_new(ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t channels);
void picture_free(picture *p);

#endif
