/* SPDX-License-Identifier: MIT */
/* A picture of a file, whose kind its first bytes say: PNG, or PGM and PPM. */
#ifndef PICTURE_PICTURE_FILE_H
#define PICTURE_PICTURE_FILE_H

#include "picture/picture.h"

/* As png_file_read() and pnm_file_read(). */
bool picture_file_read(const char *path, picture *p, char *message);

#endif
