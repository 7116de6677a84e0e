/* SPDX-License-Identifier: MIT */
/* For a build without zlib. */
#include "picture/gzip.h"

bool gzip_supported(void)
{
    return false;
}

const char *gzip_inflate(const uint8_t *bytes, size_t size, size_t most, uint8_t **data,
                         size_t *count)
{
    (void)bytes;
    (void)size;
    (void)most;
    (void)data;
    (void)count;
    return "this program was built without zlib, which inflates gzip files; run gunzip on it first";
}
