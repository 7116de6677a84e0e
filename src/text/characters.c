/* SPDX-License-Identifier: MIT */
/* Classes of characters: a search in the tables of unicode_tables.c. */
#include "text/characters.h"

#include "text/unicode_tables.h"

#include "text/unicode_library.h"

static bool is_in(const character_range *ranges, size_t count, uint32_t c)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (ranges[middle].last < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && ranges[low].first <= c;
}

bool character_is_space(uint32_t c)
{
    if (c < 0x80)
        return (c >= 9 && c <= 13) || c == ' ';
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
           c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

static bool is_letter_or_digit(uint32_t c)
{
    return (c | 0x20) - 'a' < 26 || c - '0' < 10;
}

bool character_is_punctuation(uint32_t c)
{
    if (c < 0x80)
        return c > ' ' && c < 0x7f && !is_letter_or_digit(c);
    return is_in(unicode_punctuation, unicode_punctuation_count, c);
}

bool character_is_numeric(uint32_t c)
{
    return c < 0x80 ? c - '0' < 10 : is_in(unicode_numeric, unicode_numeric_count, c);
}

bool character_is_nonspacing(uint32_t c)
{
    return c >= 0x300 && is_in(unicode_nonspacing, unicode_nonspacing_count, c);
}

bool character_is_mark(uint32_t c)
{
    return c >= 0x300 && is_in(unicode_mark, unicode_mark_count, c);
}

bool character_is_removed(uint32_t c)
{
    return c == 0 || is_in(unicode_removed, unicode_removed_count, c);
}

bool character_is_chinese(uint32_t c)
{
    static const character_range ranges[] = {
        {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},  {0x20000, 0x2a6df},
        {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
    return c >= 0x3400 && is_in(ranges, sizeof ranges / sizeof ranges[0], c);
}

/* The lower case of letters that are newer than Unicode 15. */
static uint32_t new_lower(uint32_t c)
{
    if (c == 0x1c89 || c == 0xa7cc || c == 0xa7ce || c == 0xa7d2 || c == 0xa7d4 || c == 0xa7da)
        return c + 1;
    if (c == 0xa7cb)
        return 0x264;
    if (c == 0xa7dc)
        return 0x19b;
    if (c >= 0x10d50 && c <= 0x10d65)
        return c + 32;
    if (c >= 0x16ea0 && c <= 0x16eb8)
        return c + 27;
    return c;
}

size_t character_lower(uint32_t c, uint32_t lower[2])
{
    if (c < 0x80) {
        lower[0] = c - 'A' < 26 ? c | 0x20 : c;
        return 1;
    }
    if (c == 0x130) {
        lower[0] = 'i';
        lower[1] = 0x307;
        return 2;
    }
    lower[0] = new_lower(c);
    if (lower[0] == c)
        lower[0] = unicode_lower(c);
    return 1;
}

/* ----------------------------------------------------------------- bytes ----- */

/* Printable characters of Latin-1 stand for their own byte; the other 68 bytes get the characters
 * from U+0100 on. */
static bool is_own(uint32_t c)
{
    return (c > 0x20 && c < 0x7f) || (c > 0xa0 && c < 0x100 && c != 0xad);
}

uint32_t byte_character(unsigned char byte)
{
    if (is_own(byte))
        return byte;
    if (byte <= 0x20)
        return 0x100u + byte;
    if (byte == 0xad)
        return 0x143;
    return 0x121u + (byte - 0x7fu);
}

int character_byte(uint32_t c)
{
    if (is_own(c))
        return (int)c;
    if (c >= 0x100 && c <= 0x120)
        return (int)(c - 0x100);
    if (c == 0x143)
        return 0xad;
    return c >= 0x121 && c <= 0x142 ? (int)(c - 0x121 + 0x7f) : -1;
}
