/* SPDX-License-Identifier: MIT */
/*
 * JSON, read token by token from a text in memory.
 *
 *      mhai_json j = mhai_json_begin(text, length);
 *      while ((token = mhai_json_next(&j)) > MHAI_JSON_END) ...
 *      mhai_json_free(&j);
 *
 * Strict RFC 8259, and stricter: no key twice in an object, at any level; no \u0000, since strings
 * are handed out as C strings; at most MHAI_JSON_DEPTH levels. Time is n log n of the text and
 * memory a few times the keys of the objects that are open, whatever the text says. A library that
 * builds a tree (jansson) was not taken: a tree of hostile text is ten and more times the text,
 * made by one allocation a number, and headers of tensor files may have 100 MB.
 */
#ifndef MHAI_JSON_TEXT_H
#define MHAI_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MHAI_JSON_DEPTH = 64 };

typedef enum mhai_json_token {
    MHAI_JSON_ERROR, /* and from then on nothing else */
    MHAI_JSON_END,   /* the value is complete, and only white space followed */
    MHAI_JSON_OBJECT,
    MHAI_JSON_OBJECT_END,
    MHAI_JSON_ARRAY,
    MHAI_JSON_ARRAY_END,
    MHAI_JSON_KEY,
    MHAI_JSON_STRING,
    MHAI_JSON_NUMBER,
    MHAI_JSON_TRUE,
    MHAI_JSON_FALSE,
    MHAI_JSON_NULL
} mhai_json_token;

typedef enum mhai_json_fault {
    MHAI_JSON_FINE,
    MHAI_JSON_SYNTAX,
    MHAI_JSON_DUPLICATE, /* `text` is the key */
    MHAI_JSON_MEMORY
} mhai_json_fault;

typedef struct mhai_json_key {
    uint64_t hash;
    const char *text;
} mhai_json_key;

typedef struct mhai_json {
    const char *text; /* of the last key or string; of a number where it begins */
    mhai_json_fault fault;
    const char *problem; /* what is wrong, for a fault of syntax */
    int depth;           /* objects and arrays that are open */
    size_t position;     /* bytes read so far */

    /* private */
    char *begin, *at, *end;
    enum { MHAI_JSON_VALUE, MHAI_JSON_OPENED, MHAI_JSON_DONE } state;
    bool is_object[MHAI_JSON_DEPTH];
    size_t first_key[MHAI_JSON_DEPTH];
    mhai_json_key *keys; /* of all open objects, the innermost last */
    size_t key_count, key_room;
} mhai_json;

/* The text is valid UTF-8, without the forms that are too long and without surrogates. */
bool mhai_utf8_valid(const char *text, size_t length);

/*
 * `text` is valid UTF-8 and is overwritten: strings are decoded where they stand, and stay there
 * as long as the text does. text[length] is not touched.
 */
mhai_json mhai_json_begin(char *text, size_t length);
void mhai_json_free(mhai_json *j);

mhai_json_token mhai_json_next(mhai_json *j);

/* The number just read, where it is written as digits only and fits. */
bool mhai_json_integer(const mhai_json *j, uint64_t *value);

/* Reads over the next value, whatever it is; false for an error. */
bool mhai_json_skip(mhai_json *j);

#endif
