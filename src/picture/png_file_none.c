/* SPDX-License-Identifier: MIT */
/* For a build without libpng. */
#include <stdio.h>

#include "picture/png_file.h"

static bool missing(char *message)
{
    snprintf(message, PICTURE_MESSAGE_MAX,
             "this program was built without libpng, which reads and writes pictures; install it "
             "(Debian: libpng-dev) and build again");
    return false;
}

bool png_file_supported(void)
{
    return false;
}

bool png_file_read(const char *path, picture *p, char *message)
{
    (void)path;
    *p = (picture){0};
    return missing(message);
}

bool png_stream_read(FILE *file, const char *name, picture *p, char *message)
{
    (void)file;
    return png_file_read(name, p, message);
}

bool png_file_write(const char *path, const picture *p, char *message)
{
    (void)path;
    (void)p;
    return missing(message);
}
