/* SPDX-License-Identifier: MIT */
/* Pictures of PGM and PPM files with bytes as pixels (P5, P6). A file is hostile until it has been
 * read. */
#ifndef PICTURE_PNM_FILE_H
#define PICTURE_PNM_FILE_H

#include <stdio.h>

#include "picture/picture.h"

/* Whether a file begins as one of these; false if it cannot be read. */
bool pnm_file_is(const char *path);

/* False with a sentence in `message`, PICTURE_MESSAGE_MAX bytes, where the file cannot be read, is
 * not one of these, is cut off or larger than the limits of png_file.h; nothing is left then. */
bool pnm_file_read(const char *path, picture *p, char *message);
/* The same of a stream, which a message calls `name`. */
bool pnm_stream_read(FILE *file, const char *name, picture *p, char *message);

#endif
