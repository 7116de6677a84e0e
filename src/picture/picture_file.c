/* SPDX-License-Identifier: MIT */
/* Chooses who reads a picture (picture_file.h). */
#include "picture/picture_file.h"

#include "picture/png_file.h"
#include "picture/pnm_file.h"

bool picture_file_read(const char *path, picture *p, char *message)
{
    return pnm_file_is(path) ? pnm_file_read(path, p, message) : png_file_read(path, p, message);
}
