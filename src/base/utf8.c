/* SPDX-License-Identifier: MIT */
/* The one UTF-8 decoder of the program and of the file formats. text.c replaces what is invalid,
 * the JSON reader refuses it. */
#include "base/utf8.h"

/* Bytes of a character by its first byte; 0 for a byte that cannot be the first. */
static size_t character_bytes(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* The second byte tells overlong forms, surrogates, and numbers past the end of Unicode. */
static int second_fits(unsigned char first, unsigned char second)
{
    const unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    return second >= low && second <= high;
}

size_t utf8_decode(const char *text, size_t length, uint32_t *c)
{
    const unsigned char *const bytes = (const unsigned char *)text;
    const size_t count = character_bytes(bytes[0]);
    if (count == 0 || count > length || (count > 1 && !second_fits(bytes[0], bytes[1])))
        return 0;
    uint32_t value = count == 1 ? bytes[0] : bytes[0] & (0x7fu >> count);
    for (size_t n = 1; n < count; n++) {
        if ((bytes[n] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (bytes[n] & 0x3fu);
    }
    *c = value;
    return count;
}

size_t utf8_encode(char *to, uint32_t c)
{
    static const unsigned lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    const size_t count = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t n = count - 1; n > 0; n--, c >>= 6)
        to[n] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(lead[count] | c);
    return count;
}
