/* SPDX-License-Identifier: MIT */
/*
 * A pull parser for JSON: it reads a text in memory token by token.
 *
 *      json_reader j = json_reader_begin(text, length);
 *      while ((token = json_reader_next(&j)) > JSON_END) ...
 *      json_reader_free(&j);
 *
 * It follows RFC 8259 strictly and is stricter in three points: an object may not contain a key
 * twice, at any level; \u0000 is refused, since strings are returned as C strings; and values may
 * be nested at most JSON_DEPTH levels deep. For any input, valid or not, time is O(n log n) and
 * memory is proportional to the keys of the open objects.
 *
 * A library that builds a tree (such as jansson) was not used: the tree of a hostile text takes ten
 * times the memory of the text or more, with one allocation per number, and the header of a tensor
 * file may have 100 MB.
 */
#ifndef FORMAT_JSON_READER_H
#define FORMAT_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_DEPTH = 64 };

typedef enum json_reader_token {
    JSON_ERROR, /* all later calls return it too */
    JSON_END,   /* the value is complete, and only white space follows it */
    JSON_OBJECT,
    JSON_OBJECT_END,
    JSON_ARRAY,
    JSON_ARRAY_END,
    JSON_KEY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL
} json_reader_token;

typedef enum json_reader_fault {
    JSON_FINE,
    JSON_SYNTAX,
    JSON_DUPLICATE, /* a key occurs twice; `text` is the key */
    JSON_MEMORY
} json_reader_fault;

typedef struct json_reader_key {
    uint64_t hash;
    const char *text;
} json_reader_key;

typedef struct json_reader {
    const char *text; /* the last key or string; for a number, where it begins */
    json_reader_fault fault;
    const char *problem; /* a description of the fault */
    int depth;           /* number of open objects and arrays */
    size_t position;     /* bytes read so far */

    /* private */
    char *begin, *at, *end;
    enum { JSON_VALUE, JSON_OPENED, JSON_DONE } state;
    bool is_object[JSON_DEPTH];
    size_t first_key[JSON_DEPTH];
    json_reader_key *keys; /* the keys of all open objects, the innermost object last */
    size_t key_count, key_room;
} json_reader;

/* Returns whether the text is valid UTF-8. Overlong forms and surrogates are not valid. */
bool mhai_utf8_valid(const char *text, size_t length);

/*
 * Starts reading. `text` must be valid UTF-8 and is modified: strings are decoded in place, and the
 * pointers to them stay valid as long as the text. text[length] is neither read nor written.
 */
json_reader json_reader_begin(char *text, size_t length);
void json_reader_free(json_reader *j);

json_reader_token json_reader_next(json_reader *j);

/* The number just read. False if it is not written with digits only, or is 2^64 or more. */
bool json_reader_integer(const json_reader *j, uint64_t *value);

/* Skips the next value with everything in it. Returns false on an error. */
bool json_reader_skip(json_reader *j);

#endif
