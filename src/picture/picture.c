/* SPDX-License-Identifier: MIT */
/* Memory of pictures; reading and writing them is in png_file.c. */
#include "picture/picture.h"

#include <stdlib.h>

picture picture_new(ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t channels)
{
    return (picture){rows, columns, channels, calloc((size_t)(rows * columns * channels) + 1, 1)};
}

void picture_free(picture *p)
{
    free(p->pixels);
    *p = (picture){0};
}
