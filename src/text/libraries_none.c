/* SPDX-License-Identifier: MIT */
/*
 * A build without PCRE2 or utf8proc, such as a cross build: mha_tokenizer_open() refuses every
 * file, so the rest of this file is never called. Models can be opened and run on token ids.
 */
#include "text/pattern.h"
#include "text/unicode_library.h"

#include <stdio.h>

bool text_libraries_present(void)
{
    return false;
}

uint32_t unicode_lower(uint32_t c)
{
    return c;
}

int unicode_combining_class(uint32_t c)
{
    (void)c;
    return 0;
}

int unicode_decompose(uint32_t c, bool compatible, uint32_t parts[UNICODE_PARTS_MAX])
{
    (void)compatible;
    parts[0] = c;
    return 1;
}

uint32_t unicode_compose(uint32_t a, uint32_t b)
{
    (void)a;
    (void)b;
    return 0;
}

bool unicode_grapheme_ends(uint32_t before, uint32_t after, int32_t *state)
{
    (void)before;
    (void)after;
    (void)state;
    return true;
}

mha_status pattern_create(pattern **made, const char *text, bool literal, char *message,
                          size_t message_size)
{
    (void)text;
    (void)literal;
    *made = NULL;
    if (message && message_size)
        snprintf(message, message_size, "this build has no PCRE2");
    return MHA_ERR_FLAG;
}

void pattern_free(pattern *p)
{
    (void)p;
}

pattern_scratch *pattern_scratch_create(void)
{
    return NULL;
}

void pattern_scratch_free(pattern_scratch *scratch)
{
    (void)scratch;
}

pattern_search pattern_search_begin(const pattern *p, pattern_scratch *scratch, const char *text,
                                    size_t length)
{
    const pattern_search search = {
        .status = MHA_ERR_FLAG, .pattern = p, .scratch = scratch, .text = text, .length = length};
    return search;
}

bool pattern_search_next(pattern_search *search)
{
    (void)search;
    return false;
}
