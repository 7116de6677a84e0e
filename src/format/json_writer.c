/* SPDX-License-Identifier: MIT */
/*
 * The streaming JSON writer of json_writer.h. Per open level it remembers the closing bracket and
 * whether a value has been written, which decides where commas and line breaks go.
 */
#include "format/json_writer.h"

#include <inttypes.h>
#include <math.h>

#include "base/text.h"

enum { DIGITS = 6, DIGITS_FLOAT = 9, DIGITS_EXACT = 17 };

json json_begin(FILE *file)
{
    return (json){.file = file};
}

/* Writes a string that is valid JSON for any bytes: invalid UTF-8 becomes U+FFFD, and control
 * characters are escaped. */
static void put_text(FILE *file, const char *text)
{
    fputc('"', file);
    while (*text != '\0') {
        uint32_t c;
        const size_t length = text_decode(text, &c);
        if (c == '"' || c == '\\')
            fprintf(file, "\\%c", *text);
        else if (c == '\n')
            fputs("\\n", file);
        else if (c < 0x20 || (c >= 0x7f && c < 0xa0))
            fprintf(file, "\\u%04x", (unsigned)c);
        else if (c == 0xfffd)
            fputs(TEXT_REPLACEMENT, file);
        else
            fwrite(text, 1, length, file);
        text += length;
    }
    fputc('"', file);
}

static void new_line(json *j)
{
    fprintf(j->file, "\n%*s", 2 * j->depth, "");
}

/* Writes all that comes before a value: comma, line break, indentation and key. */
static void begin_value(json *j, const char *key)
{
    if (j->depth == 0)
        return;
    if (j->filled[j->depth - 1])
        fputc(',', j->file);
    j->filled[j->depth - 1] = true;
    new_line(j);
    if (key != NULL) {
        put_text(j->file, key);
        fputs(": ", j->file);
    }
}

static void open_value(json *j, const char *key, char opener, char closer)
{
    begin_value(j, key);
    fputc(opener, j->file);
    j->closer[j->depth] = closer;
    j->filled[j->depth++] = false;
}

void json_open_object(json *j, const char *key)
{
    open_value(j, key, '{', '}');
}

void json_open_array(json *j, const char *key)
{
    open_value(j, key, '[', ']');
}

void json_close(json *j)
{
    j->depth--;
    if (j->filled[j->depth])
        new_line(j);
    fputc(j->closer[j->depth], j->file);
    if (j->depth == 0)
        fputc('\n', j->file);
}

void json_string(json *j, const char *key, const char *value)
{
    begin_value(j, key);
    put_text(j->file, value);
}

void json_strings(json *j, const char *key, const char *const *values, int count)
{
    json_open_array(j, key);
    for (int n = 0; n < count; n++)
        json_string(j, NULL, values[n]);
    json_close(j);
}

void json_integer(json *j, const char *key, int64_t value)
{
    begin_value(j, key);
    fprintf(j->file, "%" PRId64, value);
}

void json_unsigned(json *j, const char *key, uint64_t value)
{
    begin_value(j, key);
    fprintf(j->file, "%" PRIu64, value);
}

void json_bool(json *j, const char *key, bool value)
{
    begin_value(j, key);
    fputs(value ? "true" : "false", j->file);
}

static void put_number(FILE *file, int digits, double value)
{
    if (isfinite(value))
        fprintf(file, "%.*g", digits, value);
    else
        fputs("null", file);
}

void json_number(json *j, const char *key, double value)
{
    begin_value(j, key);
    put_number(j->file, DIGITS, value);
}

void json_exact(json *j, const char *key, double value)
{
    begin_value(j, key);
    put_number(j->file, DIGITS_EXACT, value);
}

void json_numbers(json *j, const char *key, const float *values, int count)
{
    begin_value(j, key);
    fputc('[', j->file);
    for (int n = 0; n < count; n++) {
        fputs(n > 0 ? ", " : "", j->file);
        put_number(j->file, DIGITS_FLOAT, (double)values[n]);
    }
    fputc(']', j->file);
}
