/* SPDX-License-Identifier: MIT */
/*
 * JSON, read token by token from a text in memory.
 *
 *      json_reader j = json_reader_begin(text, length);
 *      while ((token = json_reader_next(&j)) > JSON_END) ...
 *      json_reader_free(&j);
 *
 * Strict RFC 8259, and stricter: no key twice in an object, at any level; no \u0000, since strings
 * are handed out as C strings; at most JSON_DEPTH levels. Time is n log n of the text and
 * memory a few times the keys of the objects that are open, whatever the text says. A library that
 * builds a tree (jansson) was not taken: a tree of hostile text is ten and more times the text,
 * made by one allocation a number, and headers of tensor files may have 100 MB.
 */
#ifndef FORMAT_JSON_READER_H
#define FORMAT_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_DEPTH = 64 };

typedef enum json_reader_token {
    JSON_ERROR, /* and from then on nothing else */
    JSON_END,   /* the value is complete, and only white space followed */
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
    JSON_DUPLICATE, /* `text` is the key */
    JSON_MEMORY
} json_reader_fault;

typedef struct json_reader_key {
    uint64_t hash;
    const char *text;
} json_reader_key;

typedef struct json_reader {
    const char *text; /* of the last key or string; of a number where it begins */
    json_reader_fault fault;
    const char *problem; /* what is wrong, for a fault of syntax */
    int depth;           /* objects and arrays that are open */
    size_t position;     /* bytes read so far */

    /* private */
    char *begin, *at, *end;
    enum { JSON_VALUE, JSON_OPENED, JSON_DONE } state;
    bool is_object[JSON_DEPTH];
    size_t first_key[JSON_DEPTH];
    json_reader_key *keys; /* of all open objects, the innermost last */
    size_t key_count, key_room;
} json_reader;

/* The text is valid UTF-8, without the forms that are too long and without surrogates. */
bool mhai_utf8_valid(const char *text, size_t length);

/*
 * `text` is valid UTF-8 and is overwritten: strings are decoded where they stand, and stay there
 * as long as the text does. text[length] is not touched.
 */
json_reader json_reader_begin(char *text, size_t length);
void json_reader_free(json_reader *j);

json_reader_token json_reader_next(json_reader *j);

/* The number just read, where it is written as digits only and fits. */
bool json_reader_integer(const json_reader *j, uint64_t *value);

/* Reads over the next value, whatever it is; false for an error. */
bool json_reader_skip(json_reader *j);

#endif
