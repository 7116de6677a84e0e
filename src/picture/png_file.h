/* SPDX-License-Identifier: MIT */
/* Pictures from and to PNG files. A file is hostile until it has been read. */
#ifndef PICTURE_PNG_FILE_H
#define PICTURE_PNG_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "picture/picture.h"

enum { PICTURE_SIDE_MAX = 16384, PICTURE_PIXELS_MAX = 1 << 24 };

/* Whether the program was built with libpng. */
bool png_file_supported(void);

/* Palettes become colours, other depths 8 bits; colours are taken as sRGB. False with a sentence
 * in `message`, PICTURE_MESSAGE_MAX bytes, where the file cannot be read, is no PNG file, is
 * damaged or larger than the limits above; nothing is left then. */
bool png_file_read(const char *path, picture *p, char *message);
/* The same of a stream that can be rewound, which a message calls `name`. */
bool png_stream_read(FILE *file, const char *name, picture *p, char *message);

/* The file is there as a whole or, after an error, as it was before. False with a message on stderr
 * for what the disk says, in `message` for the rest (else it is empty). */
bool png_file_write(const char *path, const picture *p, char *message);

#endif
