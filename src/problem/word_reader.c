/* SPDX-License-Identifier: MIT */
/*
 * Tokens of problem words and layer words: numbers, choices and extents, and the messages that say
 * where a word is wrong. Both kinds of words are read with these functions.
 */
#include "problem/word_reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"

word_reader reader_begin(const char *text, char *message, size_t size)
{
    if (size > 0)
        message[0] = '\0';
    return (word_reader){.text = text, .rest = text, .message = message, .size = size};
}

bool reader_fail(word_reader *r, const char *format, ...)
{
    va_list list;
    const int n = snprintf(r->message, r->size, "word \"%.160s\"", r->text);
    size_t used = n < 0 ? 0 : (size_t)n;
    if (used < r->size && r->token[0] != '\0')
        used += (size_t)snprintf(r->message + used, r->size - used, ", \"%s\" at column %d",
                                 r->token, r->at + 1);
    if (used + 2 < r->size) {
        memcpy(r->message + used, ": ", 3);
        va_start(list, format);
        vsnprintf(r->message + used + 2, r->size - used - 2, format, list);
        va_end(list);
    }
    return false;
}

bool reader_unknown(word_reader *r, const char *noun, const char *text, const char *const *names,
                    int count)
{
    const char *near = suggest_nearest(text, names, count);
    if (near != NULL)
        return reader_fail(r, "unknown %s; did you mean \"%s\"?", noun, near);
    return reader_fail(r, "unknown %s; see \"mha help words\"", noun);
}

/* ---------------------------------------------------------------- tokens ----- */

bool reader_next(word_reader *r)
{
    const size_t length = strcspn(r->rest, ":");
    r->at = (int)(r->rest - r->text);
    snprintf(r->token, sizeof r->token, "%.*s", (int)length, r->rest);
    if (length == 0)
        return reader_fail(r, "a part is missing at column %d", r->at + 1);
    if (length >= sizeof r->token)
        return reader_fail(r, "too long");
    r->rest += length;
    return true;
}

bool reader_more(word_reader *r)
{
    if (*r->rest != ':')
        return false;
    r->rest++;
    return true;
}

/* ---------------------------------------------------------------- values ----- */

bool reader_number(word_reader *r, const char *value, int64_t low, int64_t high, int64_t *number)
{
    char *end;
    errno = 0;
    const long long n = strtoll(value, &end, 10);
    if (end == value || *end != '\0' || *value == '+' || *value == ' ')
        return reader_fail(r, "\"%s\" is not a whole number", value);
    if (errno == ERANGE || n < low || n > high)
        return reader_fail(r, "%s is not in %lld..%lld", value, (long long)low, (long long)high);
    *number = n;
    return true;
}

bool reader_int(word_reader *r, const char *value, int low, int high, int *number)
{
    int64_t n = 0;
    if (!reader_number(r, value, low, high, &n))
        return false;
    *number = (int)n;
    return true;
}

bool reader_choice(word_reader *r, const char *value, const char *const *names, int count,
                   int *choice)
{
    for (int n = 0; n < count; n++) {
        if (strcmp(value, names[n]) == 0) {
            *choice = n;
            return true;
        }
    }
    char list[96] = "";
    for (int n = 0; n < count; n++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", n ? ", " : "", names[n]);
    const char *near = suggest_nearest(value, names, count);
    if (near != NULL)
        return reader_fail(r, "\"%s\" is none of %s; did you mean \"%s\"?", value, list, near);
    return reader_fail(r, "\"%s\" is none of %s", value, list);
}

/* --------------------------------------------------------------- extents ----- */

/* Reads the number of an extent, digits only; returns where it ends, NULL after a message. */
static const char *read_extent(word_reader *r, char letter, const char *text, ptrdiff_t *extent)
{
    char *end;
    if (*text < '0' || *text > '9') {
        reader_fail(r, "'%c' needs a number, as in %c64", letter, letter);
        return NULL;
    }
    errno = 0;
    const long long n = strtoll(text, &end, 10);
    if (errno == ERANGE || n > WORD_EXTENT_MAX) {
        reader_fail(r, "'%c' is at most %lld", letter, (long long)WORD_EXTENT_MAX);
        return NULL;
    }
    *extent = (ptrdiff_t)n;
    return end;
}

static bool no_extent(word_reader *r, char letter, const char *letters)
{
    char list[32] = "";
    for (size_t n = 0; letters[n] != '\0' && 2 * n + 2 < sizeof list; n++) {
        list[2 * n] = ' ';
        list[2 * n + 1] = letters[n];
    }
    return reader_fail(r, "'%c' is none of the extents%s", letter, list);
}

bool reader_extents(word_reader *r, const char *letters, ptrdiff_t *const *extents, bool seen[128])
{
    for (const char *next = r->token; *next != '\0';) {
        const char letter = *next++;
        const char *place = strchr(letters, letter);
        if (place == NULL)
            return no_extent(r, letter, letters);
        if (seen[(int)letter])
            return reader_fail(r, "'%c' was given before", letter);
        seen[(int)letter] = true;
        next = read_extent(r, letter, next, extents[place - letters]);
        if (next == NULL)
            return false;
    }
    return true;
}

/* -------------------------------------------------------------- printing ----- */

void printer_put(word_printer *p, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const size_t room = p->used < p->size ? p->size - p->used : 0;
    const int n = vsnprintf(room > 0 ? p->text + p->used : NULL, room, format, list);
    va_end(list);
    p->used += n > 0 ? (size_t)n : 0;
}
