/* SPDX-License-Identifier: MIT */
/*
 * Translates regular expressions (pattern_translate.h). Most of a pattern is copied. Classes of
 * characters are written out where PCRE2 defines them otherwise, or may know an older version of
 * Unicode: unicode_tables.c has what is to be added.
 */
#include "text/pattern_translate.h"

#include "text/unicode_tables.h"

#include <stdio.h>
#include <string.h>

/* White_Space; PCRE2's \s also has U+180E. And all other characters. */
#define SPACES                                                                                   \
    "\\x09-\\x0d\\x20\\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}" \
    "\\x{3000}"
#define NO_SPACES                                                                              \
    "\\x00-\\x08\\x0e-\\x1f\\x21-\\x84\\x86-\\x9f\\xa1-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-" \
    "\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}"

/* \w of Oniguruma, which has some numbers of Latin-1. */
#define WORDS "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\xb2\\xb3\\xb9\\xbc-\\xbe"

static void add_range(text_buffer *to, uint32_t first, uint32_t last)
{
    char range[40];
    snprintf(range, sizeof range, first == last ? "\\x{%x}" : "\\x{%x}-\\x{%x}", first, last);
    text_buffer_add_string(to, range);
}

/* Characters of a category that are newer than those PCRE2 is sure to know. */
static void add_new(text_buffer *to, const char *category)
{
    for (size_t n = 0; n < unicode_new_count; n++)
        if (strncmp(unicode_new[n].category, category, strlen(category)) == 0)
            add_range(to, unicode_new[n].first, unicode_new[n].last);
}

static void add_new_of_property(text_buffer *to, const char *name)
{
    static const char *const known[] = {"L", "Lu", "Ll", "Lt", "Lm", "Lo",
                                        "M", "N",  "Nd", "No", "P",  "S"};
    for (size_t n = 0; n < sizeof known / sizeof known[0]; n++)
        if (strcmp(name, known[n]) == 0)
            add_new(to, name);
    if (strcmp(name, "Han") == 0) {
        add_range(to, 0x2ebf0, 0x2ee5d);
        add_range(to, 0x31350, 0x323af);
    }
}

/* Where the pattern is read, and whether that is inside of [...]. */
typedef struct reader {
    const char *at;
    bool in_class;
    int nested; /* classes inside of a class that are open */
    text_buffer *to;
} reader;

static void put_class(reader *r, bool negated, const char *class, const char *newer)
{
    if (!r->in_class)
        text_buffer_add_string(r->to, negated ? "[^" : "[");
    text_buffer_add_string(r->to, class);
    if (newer)
        add_new_of_property(r->to, newer);
    if (!r->in_class)
        text_buffer_add_string(r->to, "]");
}

/* The name of a property after \p or \P: "L" or "{Lu}" or "{^Lu}". */
static bool read_name(reader *r, char name[32], bool *negated)
{
    const bool braces = *r->at == '{';
    r->at += braces;
    if (braces && *r->at == '^') {
        *negated = !*negated;
        r->at++;
    }
    const size_t length = braces ? strcspn(r->at, "}") : *r->at != '\0';
    if (length == 0 || length > 30 || (braces && r->at[length] == '\0'))
        return false;
    memcpy(name, r->at, length);
    name[length] = '\0';
    r->at += length + braces;
    return true;
}

static const char *take_property(reader *r, bool negated)
{
    char name[32], class[48];
    if (!read_name(r, name, &negated))
        return "\\p without the name of a property";
    if (negated && r->in_class) {
        snprintf(class, sizeof class, "\\P{%s}", name);
        text_buffer_add_string(r->to, class);
        return NULL;
    }
    snprintf(class, sizeof class, "\\p{%s}", name);
    put_class(r, negated, class, name);
    return NULL;
}

static void put_words(reader *r, bool negated)
{
    if (!r->in_class)
        text_buffer_add_string(r->to, negated ? "[^" : "[");
    text_buffer_add_string(r->to, WORDS);
    add_new(r->to, "L");
    add_new(r->to, "M");
    add_new(r->to, "Nd");
    if (!r->in_class)
        text_buffer_add_string(r->to, "]");
}

static const char *take_escape(reader *r)
{
    const char letter = *r->at;
    if (letter == '\0')
        return "a backslash at its end";
    r->at++;
    switch (letter) {
    case 's':
        put_class(r, false, SPACES, NULL);
        return NULL;
    case 'S':
        if (r->in_class)
            text_buffer_add_string(r->to, NO_SPACES);
        else
            put_class(r, true, SPACES, NULL);
        return NULL;
    case 'd':
        put_class(r, false, "\\p{Nd}", "Nd");
        return NULL;
    case 'w':
        put_words(r, false);
        return NULL;
    case 'D':
    case 'W':
        if (r->in_class)
            return letter == 'D' ? "\\D inside of [...]" : "\\W inside of [...]";
        if (letter == 'D')
            put_class(r, true, "\\p{Nd}", "Nd");
        else
            put_words(r, true);
        return NULL;
    case 'p':
    case 'P':
        return take_property(r, letter == 'P');
    case 'h':
    case 'H':
    case 'R':
    case 'X':
    case 'K':
    case 'Q':
    case 'E':
    case 'C':
        return "an escape that is not supported: \\h, \\H, \\R, \\X, \\K, \\Q, \\E or \\C";
    default:
        text_buffer_add(r->to, r->at - 2, 2);
        return NULL;
    }
}

static const char *take_one(reader *r)
{
    const char c = *r->at++;
    if (c == '\\')
        return take_escape(r);
    if (r->in_class) {
        /* [a[bc]] is the union of both. */
        if (c == '[' && (*r->at == '^' || *r->at == ':' || *r->at == ']'))
            return "[^, [: or [] inside of [...]";
        if (c == '[' || (c == ']' && r->nested)) {
            r->nested += c == '[' ? 1 : -1;
            return NULL;
        }
        if (c == '&' && *r->at == '&')
            return "&& inside of [...]";
        if (c == ']')
            r->in_class = false;
    } else if (c == '[') {
        r->in_class = true;
        text_buffer_add_string(r->to, "[");
        if (*r->at == '^') {
            text_buffer_add_string(r->to, "^");
            r->at++;
        }
        return *r->at == ']' ? "an empty []" : NULL;
    } else if (c == '(' && r->at[0] == '*') {
        return "(*";
    }
    text_buffer_add(r->to, &c, 1);
    return NULL;
}

const char *pattern_translate(const char *text, bool literal, text_buffer *to)
{
    reader r = {.at = text, .to = to};
    text_buffer_add(to, "", 0);
    for (; literal && *text; text++) {
        if (strchr("\\^$.|?*+()[]{}-#", *text))
            text_buffer_add_string(to, "\\");
        text_buffer_add(to, text, 1);
    }
    while (!literal && *r.at) {
        const char *const problem = take_one(&r);
        if (problem)
            return problem;
    }
    return NULL;
}
