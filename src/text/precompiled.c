/* SPDX-License-Identifier: MIT */
/*
 * SentencePiece's replacement rules (precompiled.h): a walk through a double array that never
 * leaves it. sentencepiece.c applies them by the longest match, the normalisers of tokenizer.json
 * by grapheme clusters, which utf8proc finds.
 */
#include "text/precompiled.h"

#include "text/unicode_library.h"
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

struct precompiled {
    uint32_t *units;
    size_t unit_count;
    char *replacements; /* terminated */
    size_t replacement_bytes;
};

static uint32_t read_u32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

mha_status precompiled_create(precompiled **rules, const void *bytes, size_t size)
{
    const unsigned char *const from = bytes;
    *rules = NULL;
    if (size <= 4 || read_u32(from) > size - 4)
        return MHA_ERR_FORMAT;
    const size_t trie_bytes = read_u32(from), rest = size - 4 - trie_bytes;
    precompiled *const made = calloc(1, sizeof *made);
    if (made == NULL)
        return MHA_ERR_MEMORY;
    made->unit_count = trie_bytes / 4;
    made->replacement_bytes = rest;
    made->units = malloc(made->unit_count * sizeof *made->units + 1);
    made->replacements = malloc(rest + 1);
    if (made->units == NULL || made->replacements == NULL) {
        precompiled_free(made);
        return MHA_ERR_MEMORY;
    }
    for (size_t n = 0; n < made->unit_count; n++)
        made->units[n] = read_u32(from + 4 + 4 * n);
    memcpy(made->replacements, from + 4 + trie_bytes, rest);
    made->replacements[rest] = '\0';
    *rules = made;
    return MHA_OK;
}

void precompiled_free(precompiled *rules)
{
    if (rules == NULL)
        return;
    free(rules->units);
    free(rules->replacements);
    free(rules);
}

static size_t children_offset(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & (1u << 9)) >> 6);
}

static bool has_value(uint32_t unit)
{
    return unit >> 8 & 1;
}

/* The byte of a node. A value is no byte, by bit 31. */
static uint32_t label(uint32_t unit)
{
    return unit & (1u << 31 | 0xff);
}

/* Longer replacements are ignored, so that a text grows by a bounded factor. Unicode's longest
 * compatibility decomposition has 33 bytes. */
enum { REPLACEMENT_MAX = 1024 };

/* The match that ends after `matched` bytes at a node whose value is at unit `at`. */
static replacement match(const precompiled *rules, size_t at, size_t matched)
{
    if (at >= rules->unit_count)
        return (replacement){0};
    const size_t value = rules->units[at] & ~(1u << 31);
    if (value >= rules->replacement_bytes)
        return (replacement){0};
    const char *const text = rules->replacements + value;
    const size_t length = strnlen(text, REPLACEMENT_MAX + 1);
    if (length > REPLACEMENT_MAX)
        return (replacement){0};
    return (replacement){matched, text, length};
}

static replacement search(const precompiled *rules, const char *text, size_t length, bool longest)
{
    replacement best = {0};
    if (rules->unit_count == 0)
        return best;
    size_t at = children_offset(rules->units[0]);
    for (size_t n = 0; n < length; n++) {
        const unsigned char byte = (unsigned char)text[n];
        at ^= byte;
        /* A zero byte is in no rule: its place is that of the value. */
        if (byte == 0 || at >= rules->unit_count || label(rules->units[at]) != byte)
            break;
        const uint32_t unit = rules->units[at];
        at ^= children_offset(unit);
        if (!has_value(unit))
            continue;
        const replacement found = match(rules, at, n + 1);
        if (found.matched > 0)
            best = found;
        if (best.matched > 0 && !longest)
            break;
    }
    return best;
}

replacement precompiled_longest(const precompiled *rules, const char *text, size_t length)
{
    return search(rules, text, length, true);
}

/* Replaces [begin, end) as a whole. False: there is no rule for it. */
static bool replace_whole(const precompiled *rules, const char *text, size_t begin, size_t end,
                          precompiled_part *replace, void *context, bool *going)
{
    const replacement by = search(rules, text + begin, end - begin, false);
    if (by.matched == 0)
        return false;
    *going = replace(context, begin, end, by.text, by.length);
    return true;
}

static size_t character_end(const char *text, size_t length, size_t begin, uint32_t *c)
{
    const size_t bytes = utf8_decode(text + begin, length - begin, c);
    return begin + (bytes ? bytes : 1);
}

/* Characters that are newer than utf8proc's tables and join the one before them. */
static const uint32_t new_marks[][2] = {
    {0x897, 0x897},     {0x1acf, 0x1add},   {0x1ae0, 0x1aeb},   {0x10d69, 0x10d6d},
    {0x10efa, 0x10efc}, {0x113b8, 0x113c0}, {0x113c2, 0x113c2}, {0x113c5, 0x113c5},
    {0x113c7, 0x113ca}, {0x113cc, 0x113d0}, {0x113d2, 0x113d2}, {0x113e1, 0x113e2},
    {0x11b60, 0x11b67}, {0x11f5a, 0x11f5a}, {0x1611e, 0x1612f}, {0x1e5ee, 0x1e5ef},
    {0x1e6e3, 0x1e6e3}, {0x1e6e6, 0x1e6e6}, {0x1e6ee, 0x1e6ef}, {0x1e6f5, 0x1e6f5}};

/* A character that utf8proc treats as Unicode 17 treats `c` where clusters are divided. */
static uint32_t stand_in(uint32_t c)
{
    enum { ACUTE_ACCENT = 0x301, ARABIC_NUMBER_SIGN = 0x600 };
    enum { NEW_PREPENDED = 0x113d1, NO_LONGER_PREPENDED = 0x11a3a };
    if (c == NEW_PREPENDED)
        return ARABIC_NUMBER_SIGN;
    if (c == NO_LONGER_PREPENDED)
        return 'a';
    for (size_t n = 0; c >= new_marks[0][0] && n < sizeof new_marks / sizeof new_marks[0]; n++) {
        if (c >= new_marks[n][0] && c <= new_marks[n][1])
            return ACUTE_ACCENT;
    }
    return c;
}

static size_t grapheme_end(const char *text, size_t length, size_t begin)
{
    int32_t state = 0;
    uint32_t before = 0, c = 0;
    size_t at = character_end(text, length, begin, &before);
    while (at < length) {
        const size_t next = character_end(text, length, at, &c);
        if (unicode_grapheme_ends(stand_in(before), stand_in(c), &state))
            break;
        before = c;
        at = next;
    }
    return at;
}

bool precompiled_graphemes(const precompiled *rules, const char *text, size_t length,
                           precompiled_part *replace, void *context)
{
    enum { WHOLE_BYTES = 6 };
    bool going = true;
    for (size_t begin = 0; going && begin < length;) {
        const size_t end = grapheme_end(text, length, begin);
        if (end - begin < WHOLE_BYTES &&
            replace_whole(rules, text, begin, end, replace, context, &going)) {
            begin = end;
            continue;
        }
        while (going && begin < end) {
            uint32_t c = 0;
            const size_t next = character_end(text, length, begin, &c);
            if (!replace_whole(rules, text, begin, next, replace, context, &going))
                going = replace(context, begin, next, text + begin, next - begin);
            begin = next;
        }
    }
    return going;
}
