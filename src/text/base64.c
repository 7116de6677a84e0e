/* SPDX-License-Identifier: MIT */
/* The decoder of base64.h: the padding at the end may be missing. */
#include "text/base64.h"

#include <stdint.h>
#include <stdlib.h>

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

mha_status base64_decode(const char *text, size_t text_length, unsigned char **bytes,
                         size_t *length)
{
    *length = 0;
    while (text_length && text[text_length - 1] == '=')
        text_length--;
    *bytes = malloc(text_length / 4 * 3 + 3);
    if (!*bytes)
        return MHA_ERR_MEMORY;
    uint32_t bits = 0;
    for (size_t n = 0; n < text_length; n++) {
        const int value = value_of(text[n]);
        if (value < 0) {
            free(*bytes);
            *bytes = NULL;
            return MHA_ERR_FORMAT;
        }
        bits = bits << 6 | (uint32_t)value;
        if (n % 4 > 0)
            (*bytes)[(*length)++] = (unsigned char)(bits >> (6 - 2 * (n % 4)));
    }
    return MHA_OK;
}
