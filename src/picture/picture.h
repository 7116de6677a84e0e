/* SPDX-License-Identifier: MIT */
/* A picture of 8 bits a channel. */
#ifndef PICTURE_PICTURE_H
#define PICTURE_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Functions that read files write why they could not to so many bytes. */
enum { PICTURE_MESSAGE_MAX = 256 };
/* Writes such a message and returns false. */
__attribute__((format(printf, 2, 3))) bool picture_wrong(char *message, const char *format, ...);

typedef struct picture {
    ptrdiff_t rows, columns;
    ptrdiff_t channels; /* 1 grey, 2 grey and alpha, 3 colours, 4 colours and alpha */
    uint8_t *pixels;    /* [rows][columns][channels] */
} picture;

/* NULL pixels: no memory. */
picture picture_new(ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t channels);
void picture_free(picture *p);

#endif
