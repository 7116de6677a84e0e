/* SPDX-License-Identifier: MIT */
/*
 * Trees of JSON texts (json_tree.h). All values and keys are elements of one array, whose size is
 * known from the punctuation of the text before it is parsed. While the text is read, values of
 * open objects and arrays are stacked at the front of the array. When an object or array closes,
 * what it contains moves to the back, so that children are neighbours: an array has its elements
 * there, an object has a key, its value, the next key and so on. Each value is in one of the two
 * places, so they never meet.
 */
#define _GNU_SOURCE /* strtod_l */
#include "format/json_tree.h"

#include <assert.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/json_reader.h"
#include "format/mapped_file.h"
#include "format/safetensors.h"

struct json_value {
    union {
        const char *text;           /* of a string or number, in the tree's copy of the text */
        const json_value *children; /* of an array or object */
        bool truth;
    } is;
    uint32_t count; /* bytes of a string, elements of an array, keys and values of an object */
    json_tree_type type;
};

struct json_tree {
    char *text;
    json_value *values;
};

/* -------------------------------------------------------------- building ----- */

typedef struct build {
    json_reader json;
    json_value *front, *back;     /* one past the stack; the first that is in its final place */
    json_value *open[JSON_DEPTH]; /* objects and arrays that are not closed yet */
    const safetensors_report *report;
} build;

/* The number of values and keys is at most one more than the number of brackets that open, commas
 * and colons outside of strings: each of them has one value or key after it. */
static size_t count_values(const char *text, size_t length)
{
    size_t count = 1;
    bool inside = false;
    for (size_t n = 0; n < length; n++) {
        const char c = text[n];
        if (c == '"')
            inside = !inside;
        else if (inside)
            n += c == '\\';
        else
            count += c == '[' || c == '{' || c == ',' || c == ':';
    }
    return count;
}

static void push(build *b, json_value value)
{
    assert(b->front < b->back);
    *b->front++ = value;
}

static void push_string(build *b)
{
    const char *const text = b->json.text;
    push(b,
         (json_value){.is.text = text, .count = (uint32_t)strlen(text), .type = JSON_TREE_STRING});
}

static void open_level(build *b, json_tree_type type)
{
    b->open[b->json.depth - 1] = b->front;
    push(b, (json_value){.type = type});
}

/* Moves the children of the innermost object or array, all that are on the stack after it, to the
 * back. */
static void close_level(build *b)
{
    json_value *const parent = b->open[b->json.depth];
    const size_t count = (size_t)(b->front - parent - 1);
    b->back -= count;
    memmove(b->back, parent + 1, count * sizeof *parent);
    b->front = parent + 1;
    parent->is.children = b->back;
    parent->count = (uint32_t)count;
}

static void take_token(build *b, json_reader_token token)
{
    switch (token) {
    case JSON_OBJECT:
        open_level(b, JSON_TREE_OBJECT);
        break;
    case JSON_ARRAY:
        open_level(b, JSON_TREE_ARRAY);
        break;
    case JSON_OBJECT_END:
    case JSON_ARRAY_END:
        close_level(b);
        break;
    case JSON_KEY:
    case JSON_STRING:
        push_string(b);
        break;
    case JSON_NUMBER:
        push(b, (json_value){.is.text = b->json.text, .type = JSON_TREE_NUMBER});
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        push(b, (json_value){.is.truth = token == JSON_TRUE, .type = JSON_TREE_BOOL});
        break;
    default:
        push(b, (json_value){.type = JSON_TREE_NULL});
    }
}

static mha_status refuse(const build *b)
{
    const json_reader *const j = &b->json;
    if (j->fault == JSON_MEMORY)
        return safetensors_fail(b->report, MHA_ERR_MEMORY, "out of memory for the keys");
    if (j->fault == JSON_DUPLICATE)
        return safetensors_fail(b->report, MHA_ERR_FORMAT, "\"%s\" occurs twice in an object",
                                safetensors_show(j->text).text);
    return safetensors_fail(b->report, MHA_ERR_FORMAT, "not JSON at byte %zu: %s", j->position,
                            j->problem);
}

static mha_status fill(json_tree *tree, size_t length, size_t count,
                       const safetensors_report *report)
{
    build b = {.json = json_reader_begin(tree->text, length),
               .front = tree->values,
               .back = tree->values + count,
               .report = report};
    json_reader_token token;
    while ((token = json_reader_next(&b.json)) > JSON_END)
        take_token(&b, token);
    json_reader_free(&b.json);
    return token == JSON_END ? MHA_OK : refuse(&b);
}

/* Takes the text, terminated, and frees it on error. */
static mha_status build_tree(json_tree **result, char *text, size_t length,
                             const safetensors_report *report)
{
    if (!mhai_utf8_valid(text, length)) {
        free(text);
        return safetensors_fail(report, MHA_ERR_FORMAT, "not UTF-8 text");
    }
    const size_t count = count_values(text, length);
    json_tree *const tree = malloc(sizeof *tree);
    json_value *const values = malloc(count * sizeof *values);
    if (!tree || !values) {
        free(tree);
        free(values);
        free(text);
        return safetensors_fail(report, MHA_ERR_MEMORY, "out of memory for %zu values", count);
    }
    *tree = (json_tree){text, values};
    const mha_status status = fill(tree, length, count, report);
    if (status == MHA_OK)
        *result = tree;
    else
        json_tree_free(tree);
    return status;
}

mha_status json_tree_read_file(json_tree **tree, const char *path, char *message,
                               size_t message_size)
{
    const safetensors_report report = {path, message, message_size};
    char *text;
    size_t length;
    *tree = NULL;
    const mha_status status =
        mapped_file_read(&text, &length, path, JSON_TREE_MAX, message, message_size);
    return status == MHA_OK ? build_tree(tree, text, length, &report) : status;
}

mha_status json_tree_parse(json_tree **tree, const char *name, const char *text, size_t length,
                           char *message, size_t message_size)
{
    const safetensors_report report = {name, message, message_size};
    *tree = NULL;
    if (length > JSON_TREE_MAX)
        return safetensors_fail(&report, MHA_ERR_FORMAT, "the text has %zu bytes; %d are allowed",
                                length, (int)JSON_TREE_MAX);
    char *const copy = malloc(length + 1);
    if (!copy)
        return safetensors_fail(&report, MHA_ERR_MEMORY, "out of memory for %zu bytes", length);
    if (length)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return build_tree(tree, copy, length, &report);
}

void json_tree_free(json_tree *tree)
{
    if (!tree)
        return;
    free(tree->values);
    free(tree->text);
    free(tree);
}

/* --------------------------------------------------------------- reading ----- */

const json_value *json_tree_root(const json_tree *tree)
{
    return tree->values;
}

json_tree_type json_tree_type_of(const json_value *value)
{
    return value ? value->type : JSON_TREE_NULL;
}

const json_value *json_tree_member(const json_value *value, const char *name)
{
    if (json_tree_type_of(value) != JSON_TREE_OBJECT)
        return NULL;
    const size_t length = strlen(name);
    for (uint32_t n = 0; n < value->count; n += 2) {
        const json_value *const key = &value->is.children[n];
        if (key->count == length && memcmp(key->is.text, name, length) == 0)
            return key + 1;
    }
    return NULL;
}

size_t json_tree_count(const json_value *value)
{
    const json_tree_type type = json_tree_type_of(value);
    return type == JSON_TREE_ARRAY ? value->count : type == JSON_TREE_OBJECT ? value->count / 2 : 0;
}

const json_value *json_tree_element(const json_value *value, size_t number)
{
    if (number >= json_tree_count(value))
        return NULL;
    return &value->is.children[value->type == JSON_TREE_OBJECT ? 2 * number + 1 : number];
}

const char *json_tree_key(const json_value *value, size_t number, size_t *length)
{
    if (json_tree_type_of(value) != JSON_TREE_OBJECT || number >= json_tree_count(value))
        return NULL;
    const json_value *const key = &value->is.children[2 * number];
    if (length)
        *length = key->count;
    return key->is.text;
}

bool json_tree_get_string(const json_value *value, const char **text, size_t *length)
{
    if (json_tree_type_of(value) != JSON_TREE_STRING)
        return false;
    *text = value->is.text;
    if (length)
        *length = value->count;
    return true;
}

bool json_tree_get_bool(const json_value *value, bool *result)
{
    if (json_tree_type_of(value) != JSON_TREE_BOOL)
        return false;
    *result = value->is.truth;
    return true;
}

bool json_tree_get_number(const json_value *value, double *result)
{
    if (json_tree_type_of(value) != JSON_TREE_NUMBER)
        return false;
    /* The program's locale may have a decimal comma. The text continues after the number, but with
     * a character that is no part of a number. */
    const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain)
        return false;
    const double number = strtod_l(value->is.text, NULL, plain);
    freelocale(plain);
    if (!isfinite(number))
        return false;
    *result = number;
    return true;
}

/* The digits after the sign; false if there is more than digits, or they exceed `limit`. */
static bool take_digits(const char *text, uint64_t limit, uint64_t *value)
{
    for (*value = 0; *text >= '0' && *text <= '9'; text++)
        if (__builtin_mul_overflow(*value, (uint64_t)10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(*text - '0'), value))
            return false;
    return *value <= limit && !strchr(".eE", *text ? *text : ' ');
}

bool json_tree_get_integer(const json_value *value, int64_t *result)
{
    double number;
    uint64_t size;
    if (json_tree_type_of(value) != JSON_TREE_NUMBER)
        return false;
    const bool negative = value->is.text[0] == '-';
    if (take_digits(value->is.text + negative, (uint64_t)INT64_MAX + negative, &size)) {
        *result = negative ? (int64_t)(0 - size) : (int64_t)size;
        return true;
    }
    /* With a fraction or an exponent: up to 2^53, where a double still has every integer. */
    if (!json_tree_get_number(value, &number) || fabs(number) > 0x1p53 || number != floor(number))
        return false;
    *result = (int64_t)number;
    return true;
}
