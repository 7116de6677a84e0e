/* SPDX-License-Identifier: MIT */
/* Properties of characters from utf8proc: see unicode_library.h. */
#include "text/unicode_library.h"

#include <utf8proc.h>

bool text_libraries_present(void)
{
    return true;
}

uint32_t unicode_lower(uint32_t c)
{
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
}

int unicode_combining_class(uint32_t c)
{
    return utf8proc_get_property((utf8proc_int32_t)c)->combining_class;
}

int unicode_decompose(uint32_t c, bool compatible, uint32_t parts[UNICODE_PARTS_MAX])
{
    utf8proc_int32_t found[UNICODE_PARTS_MAX];
    const int options = UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
    const utf8proc_ssize_t count = utf8proc_decompose_char(
        (utf8proc_int32_t)c, found, UNICODE_PARTS_MAX, (utf8proc_option_t)options, NULL);
    if (count < 1 || count > UNICODE_PARTS_MAX) {
        parts[0] = c;
        return 1;
    }
    for (utf8proc_ssize_t n = 0; n < count; n++)
        parts[n] = (uint32_t)found[n];
    return (int)count;
}

uint32_t unicode_compose(uint32_t a, uint32_t b)
{
    utf8proc_int32_t pair[3] = {(utf8proc_int32_t)a, (utf8proc_int32_t)b, 0};
    const utf8proc_ssize_t count =
        utf8proc_normalize_utf32(pair, 2, (utf8proc_option_t)(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    return count == 1 ? (uint32_t)pair[0] : 0;
}

bool unicode_grapheme_ends(uint32_t before, uint32_t after, int32_t *state)
{
    return utf8proc_grapheme_break_stateful((utf8proc_int32_t)before, (utf8proc_int32_t)after,
                                            state);
}
