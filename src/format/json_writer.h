/* SPDX-License-Identifier: MIT */
/* JSON, written straight to a file, two spaces a level. */
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

/* `key` is NULL inside an array and at the top. Every open needs its close. */
void json_open_object(json *j, const char *key);
void json_open_array(json *j, const char *key);
void json_close(json *j);

void json_string(json *j, const char *key, const char *value);
void json_strings(json *j, const char *key, const char *const *values, int count);
void json_integer(json *j, const char *key, int64_t value);
void json_unsigned(json *j, const char *key, uint64_t value);
void json_bool(json *j, const char *key, bool value);

/* Six digits; NaN and infinities, which JSON has not, become null. */
void json_number(json *j, const char *key, double value);

/* An array of such numbers on one line. */
void json_numbers(json *j, const char *key, const float *values, int count);

#endif
