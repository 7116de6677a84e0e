/* SPDX-License-Identifier: MIT */
/* Words of a sentence as they can be printed in the columns of a terminal: cut to a width, without
 * control characters, with the widths of letters from two small tables. */
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

typedef struct range {
    uint32_t first, last;
} range;

/* Scripts and symbols that are two columns wide. */
static const range wide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},
                             {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
                             {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f},
                             {0x1f680, 0x1f6ff}, {0x1f900, 0x1faff}, {0x20000, 0x3fffd}};

/* Combining marks, which are drawn on the letter before them. */
static const range marks[] = {{0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd},
                              {0x064b, 0x065f}, {0x093a, 0x093c}, {0x0941, 0x0948},
                              {0x094d, 0x094d}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},
                              {0x200b, 0x200f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}};

static bool in_ranges(uint32_t c, const range *ranges, size_t count)
{
    for (size_t n = 0; n < count; n++)
        if (c >= ranges[n].first && c <= ranges[n].last)
            return true;
    return false;
}

/* 0 for combining marks, 2 for wide characters, else 1. */
static int columns_of(uint32_t c)
{
    if (in_ranges(c, marks, sizeof marks / sizeof marks[0]))
        return 0;
    return in_ranges(c, wide, sizeof wide / sizeof wide[0]) ? 2 : 1;
}

size_t text_decode(const char *text, uint32_t *c)
{
    const size_t length = utf8_decode(text, 4, c);
    if (length > 0)
        return length;
    *c = 0xfffd;
    return 1;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Control characters of both blocks, and characters that change the direction of writing. */
static bool unprintable(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200e && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           c == 0xfffd;
}

static void append(text_word *word, size_t *used, const char *bytes, size_t length, int columns)
{
    memcpy(word->bytes + *used, bytes, length);
    *used += length;
    word->bytes[*used] = '\0';
    word->columns += columns;
    word->letters += columns > 0;
}

/* Reads one word from the text and returns where it ends. */
static const char *take_word(const char *text, text_word *word, int columns)
{
    size_t used = 0;
    bool cut = false;
    *word = (text_word){0};
    while (*text != '\0' && !is_space(*text)) {
        uint32_t c;
        const size_t length = text_decode(text, &c);
        const bool bad = unprintable(c);
        int width = bad ? 1 : columns_of(c);
        /* A mark without a letter before it gets a column of its own. */
        const bool lonely = width == 0 && word->letters == 0;
        width = lonely ? 1 : width;
        const char *const shown = bad || lonely ? TEXT_REPLACEMENT : text;
        const size_t size = bad || lonely ? sizeof TEXT_REPLACEMENT - 1 : length;
        /* Leaves room for "~", unless this is the last letter. */
        const bool last = text[length] == '\0' || is_space(text[length]);
        cut = cut || word->columns + width > columns - (last ? 0 : 1) ||
              used + size + 2 > TEXT_WORD_BYTES;
        if (!cut)
            append(word, &used, shown, size, width);
        text += length;
    }
    if (cut)
        append(word, &used, "~", 1, 1);
    return text;
}

int text_split(const char *sentence, text_word *words, int limit, int columns)
{
    int count = 0;
    text_word spare;
    while (*sentence != '\0') {
        if (is_space(*sentence)) {
            sentence++;
            continue;
        }
        sentence = take_word(sentence, count < limit ? &words[count] : &spare, columns);
        count++;
    }
    return count;
}

size_t text_letter(const text_word *word, int index, const char **begin)
{
    const char *text = word->bytes;
    for (int letter = 0; *text != '\0'; letter++) {
        uint32_t c;
        *begin = text;
        text += text_decode(text, &c);
        while (*text != '\0') {
            const size_t length = text_decode(text, &c);
            if (columns_of(c) > 0)
                break;
            text += length;
        }
        if (letter == index)
            return (size_t)(text - *begin);
    }
    return 0;
}

int text_letter_columns(const char *letter)
{
    uint32_t c;
    text_decode(letter, &c);
    return columns_of(c) == 2 ? 2 : 1;
}
