/* SPDX-License-Identifier: MIT */
/*
 * JSON files as trees, for configurations and tokenizers:
 *
 *      json_tree *tree;
 *      if (json_tree_read_file(&tree, path, message, sizeof message) == MHA_OK) {
 *          const json_value *const layers = json_tree_member(json_tree_root(tree), "num_layers");
 *          int64_t count;
 *          if (json_tree_get_integer(layers, &count)) ...
 *          json_tree_free(tree);
 *      }
 *
 * Texts are not trusted. The rules are those of json_reader.h: strict JSON, UTF-8, no key twice in
 * an object, no \u0000, at most JSON_DEPTH levels. The tree takes at most 16 bytes for each value
 * and key and a copy of the text, together less than 18 times the text; it is allocated at once.
 * Reading a value never fails by surprise: a NULL or a value of another type gives NULL, 0 or
 * false, so that a path of members can be followed without checks in between. A tree never changes,
 * so several threads may use it.
 */
#ifndef FORMAT_JSON_TREE_H
#define FORMAT_JSON_TREE_H

#include <mha/mha.h>

#include <stdbool.h>

enum { JSON_TREE_MAX = 64 << 20 }; /* bytes of a text */

typedef enum json_tree_type {
    JSON_TREE_NULL,
    JSON_TREE_BOOL,
    JSON_TREE_NUMBER,
    JSON_TREE_STRING,
    JSON_TREE_ARRAY,
    JSON_TREE_OBJECT
} json_tree_type;

typedef struct json_tree json_tree;
typedef struct json_value json_value;

/* On error *tree is NULL, and `message` receives the reason; it may be NULL. The text of
 * json_tree_parse() is copied; messages call it `name`. */
mha_status json_tree_read_file(json_tree **tree, const char *path, char *message,
                               size_t message_size);
mha_status json_tree_parse(json_tree **tree, const char *name, const char *text, size_t length,
                           char *message, size_t message_size);
/* NULL is allowed. */
void json_tree_free(json_tree *tree);

const json_value *json_tree_root(const json_tree *tree);

/* JSON_TREE_NULL for NULL. */
json_tree_type json_tree_type_of(const json_value *value);

/* The member of an object; NULL if there is none. Takes time proportional to the members: go
 * through a large object with json_tree_count(), json_tree_key() and json_tree_element(). */
const json_value *json_tree_member(const json_value *value, const char *name);

/* The number of elements of an array, or of members of an object. */
size_t json_tree_count(const json_value *value);

/* An element of an array or the value of a member, in the order of the text; NULL if number >=
 * count. */
const json_value *json_tree_element(const json_value *value, size_t number);

/* The key of a member, terminated; NULL if number >= count, or for an array. `length` may be NULL.
 */
const char *json_tree_key(const json_value *value, size_t number, size_t *length);

/* The value, if it has this type; else false, and the result is not written. A string is
 * terminated; `length` may be NULL. */
bool json_tree_get_string(const json_value *value, const char **text, size_t *length);
bool json_tree_get_bool(const json_value *value, bool *result);

/* False also if the number does not fit: for an integer, if it has a fraction or is outside of
 * int64_t (1e3 and 2.0 are integers); for a number, if it is not finite. */
bool json_tree_get_integer(const json_value *value, int64_t *result);
bool json_tree_get_number(const json_value *value, double *result);

#endif
