/* SPDX-License-Identifier: MIT */
/* Memory of pictures, and messages; reading and writing them is in png_file.c. */
#include "picture/picture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool picture_wrong(char *message, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(message, PICTURE_MESSAGE_MAX, format, list);
    va_end(list);
    return false;
}

picture picture_new(ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t channels)
{
    return (picture){rows, columns, channels, calloc((size_t)(rows * columns * channels) + 1, 1)};
}

void picture_free(picture *p)
{
    free(p->pixels);
    *p = (picture){0};
}
