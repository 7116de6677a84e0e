/* SPDX-License-Identifier: MIT */
/*
 * A streaming JSON writer: values go straight to a file, indented by two spaces per level. Write
 * errors are not reported here; the caller checks the stream (ferror) when it closes it.
 */
#ifndef FORMAT_JSON_WRITER_H
#define FORMAT_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_WRITER_DEPTH = 8 };

typedef struct json {
    FILE *file;
    int depth;
    char closer[JSON_WRITER_DEPTH];
    bool filled[JSON_WRITER_DEPTH];
} json;

json json_begin(FILE *file);

/* `key` is NULL inside an array and at the top level, here and below. Every object and array that
 * is opened must be closed; at most JSON_WRITER_DEPTH may be open. */
void json_open_object(json *j, const char *key);
void json_open_array(json *j, const char *key);
void json_close(json *j);

void json_string(json *j, const char *key, const char *value);
void json_strings(json *j, const char *key, const char *const *values, int count);
void json_integer(json *j, const char *key, int64_t value);
void json_unsigned(json *j, const char *key, uint64_t value);
void json_bool(json *j, const char *key, bool value);

/* Six significant digits. NaN and infinities, which JSON lacks, become null. */
void json_number(json *j, const char *key, double value);

/* The same with 17 digits, from which the same double is read. */
void json_exact(json *j, const char *key, double value);

/* An array of numbers on one line, with nine digits, from which the same floats are read. */
void json_numbers(json *j, const char *key, const float *values, int count);

#endif
