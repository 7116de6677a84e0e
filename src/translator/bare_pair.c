/* SPDX-License-Identifier: MIT */
/* Pairs without their final marks (bare_pair.h). */
#include "translator/bare_pair.h"

#include <string.h>

static bool ends_with(const char *text, size_t length, const char *end)
{
    const size_t bytes = strlen(end);
    return length >= bytes && memcmp(text + length - bytes, end, bytes) == 0;
}

/* The length without the spaces at the end: ASCII's, U+00A0 and U+202F, which stand before French
 * marks. */
static size_t without_spaces(const char *text, size_t length)
{
    static const char *const spaces[] = {" ", "\xc2\xa0", "\xe2\x80\xaf"};
    for (size_t n = 0; n < sizeof spaces / sizeof spaces[0];) {
        if (ends_with(text, length, spaces[n])) {
            length -= strlen(spaces[n]);
            n = 0;
        } else {
            n++;
        }
    }
    return length;
}

static bool is_of_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (unsigned char)c >= 0x80;
}

/* The length without the final mark, 0 if there is none. */
static size_t bare_length(const char *text, size_t length)
{
    if (length == 0 || strchr(".!?", text[length - 1]) == NULL)
        return 0;
    const size_t left = without_spaces(text, length - 1);
    if (left == 0 || !is_of_word(text[left - 1]))
        return 0;
    const bool is_abbreviation = left >= 2 && text[left - 2] == '.';
    return is_abbreviation ? 0 : left;
}

bool bare_pair_make(pair_text *pair)
{
    size_t lengths[TRANSFORMER_SIDES];
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        lengths[side] = bare_length(pair->text[side], pair->length[side]);
        if (lengths[side] == 0)
            return false;
    }
    memcpy(pair->length, lengths, sizeof lengths);
    return true;
}
