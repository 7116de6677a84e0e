/* SPDX-License-Identifier: MIT */
/*
 * The JSON pull parser of json_reader.h. The functions take_*() advance `at` past one element of
 * the grammar; on an error they record the first fault and return false or JSON_ERROR. Which
 * objects and arrays are open is kept in fixed arrays of JSON_DEPTH, so there is no recursion.
 * Duplicate keys are found when an object closes, by sorting its keys.
 */
#include "format/json_reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"

/* ----------------------------------------------------------------- UTF-8 ----- */

static bool all_ascii(const unsigned char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return (word & 0x8080808080808080u) == 0;
}

bool mhai_utf8_valid(const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text, *const end = at + length;
    while (at < end) {
        if (end - at >= 8 && all_ascii(at)) {
            at += 8;
            continue;
        }
        uint32_t c;
        const size_t count = utf8_decode((const char *)at, (size_t)(end - at), &c);
        if (count == 0)
            return false;
        at += count;
    }
    return true;
}

/* ---------------------------------------------------------------- errors ----- */

static json_reader_token fail(json_reader *j, json_reader_fault fault, const char *problem)
{
    if (j->fault == JSON_FINE) {
        j->fault = fault;
        j->problem = problem;
        j->position = (size_t)(j->at - j->begin);
    }
    return JSON_ERROR;
}

static bool wrong(json_reader *j, const char *problem)
{
    fail(j, JSON_SYNTAX, problem);
    return false;
}

/* --------------------------------------------------------------- strings ----- */

static bool take_hex(json_reader *j, uint32_t *value)
{
    if (j->end - j->at < 4)
        return wrong(j, "\\u needs four hexadecimal digits");
    *value = 0;
    for (int n = 0; n < 4; n++, j->at++) {
        const char c = *j->at;
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return wrong(j, "\\u needs four hexadecimal digits");
        *value = *value << 4 | (uint32_t)digit;
    }
    return true;
}

/* Reads the rest of a \u escape, after the "u"; a surrogate pair is two escapes. */
static bool take_unicode(json_reader *j, uint32_t *c)
{
    uint32_t low;
    if (!take_hex(j, c))
        return false;
    if (*c == 0)
        return wrong(j, "\\u0000 in a string");
    if (*c < 0xd800 || *c > 0xdfff)
        return true;
    if (*c > 0xdbff || j->end - j->at < 2 || j->at[0] != '\\' || j->at[1] != 'u')
        return wrong(j, "an unpaired surrogate");
    j->at += 2;
    if (!take_hex(j, &low))
        return false;
    if (low < 0xdc00 || low > 0xdfff)
        return wrong(j, "an unpaired surrogate");
    *c = 0x10000 + ((*c - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

/* Decodes the escape after a backslash to *to, which is always before the bytes being read. */
static bool take_escape(json_reader *j, char **to)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (j->at == j->end)
        return wrong(j, "an unterminated string");
    const char letter = *j->at++;
    if (letter == 'u') {
        uint32_t c;
        if (!take_unicode(j, &c))
            return false;
        *to += utf8_encode(*to, c);
        return true;
    }
    const char *const found = letter ? strchr(letters, letter) : NULL;
    if (!found) {
        j->at--;
        return wrong(j, "an unknown escape sequence");
    }
    *(*to)++ = meanings[found - letters];
    return true;
}

/* Reads the rest of a string, after its first quote. The decoded string is never longer than its
 * source, so the terminating 0 overwrites the closing quote at the latest. */
static bool take_string(json_reader *j)
{
    char *to = j->at;
    j->text = to;
    while (j->at < j->end) {
        const unsigned char c = (unsigned char)*j->at;
        if (c < 0x20)
            return wrong(j, "a control character in a string");
        j->at++;
        if (c == '"') {
            *to = '\0';
            return true;
        }
        if (c != '\\')
            *to++ = (char)c;
        else if (!take_escape(j, &to))
            return false;
    }
    return wrong(j, "an unterminated string");
}

/* --------------------------------------------------------------- numbers ----- */

static bool at_digit(const json_reader *j)
{
    return j->at < j->end && *j->at >= '0' && *j->at <= '9';
}

static bool take_digits(json_reader *j)
{
    if (!at_digit(j))
        return wrong(j, "a number lacks a digit");
    while (at_digit(j))
        j->at++;
    return true;
}

static bool take_char(json_reader *j, char c)
{
    if (j->at == j->end || *j->at != c)
        return false;
    j->at++;
    return true;
}

static bool take_number(json_reader *j)
{
    j->text = j->at;
    take_char(j, '-');
    if (take_char(j, '0')) {
        if (at_digit(j))
            return wrong(j, "a number with a leading 0");
    } else if (!take_digits(j)) {
        return false;
    }
    if (take_char(j, '.') && !take_digits(j))
        return false;
    if (!take_char(j, 'e') && !take_char(j, 'E'))
        return true;
    if (!take_char(j, '+'))
        take_char(j, '-');
    return take_digits(j);
}

bool json_reader_integer(const json_reader *j, uint64_t *value)
{
    *value = 0;
    for (const char *at = j->text; at < j->at; at++)
        if (*at < '0' || *at > '9' || __builtin_mul_overflow(*value, (uint64_t)10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(*at - '0'), value))
            return false;
    return true;
}

/* ------------------------------------------------------------------ keys ----- */

static int compare_keys(const void *left, const void *right)
{
    const json_reader_key *const a = left, *const b = right;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return strcmp(a->text, b->text);
}

static bool push_key(json_reader *j)
{
    json_reader_key *const keys =
        mhai_array_grow(j->keys, &j->key_room, j->key_count + 1, sizeof *keys);
    if (!keys) {
        fail(j, JSON_MEMORY, "out of memory for the keys");
        return false;
    }
    const json_reader_key key = {mhai_text_hash(j->text), j->text};
    keys[j->key_count++] = key;
    j->keys = keys;
    return true;
}

/* Checks that the keys of the innermost object are all different, and removes them. Keys with the
 * same hash are compared as text, so colliding hashes cost time but not correctness. */
static bool pop_keys(json_reader *j)
{
    const size_t first = j->first_key[j->depth - 1], count = j->key_count - first;
    j->key_count = first;
    if (!j->keys || count < 2)
        return true;
    json_reader_key *const keys = j->keys + first;
    qsort(keys, count, sizeof *keys, compare_keys);
    for (size_t n = 1; n < count; n++)
        if (compare_keys(&keys[n - 1], &keys[n]) == 0) {
            j->text = keys[n].text;
            fail(j, JSON_DUPLICATE, "a key occurs twice in an object");
            return false;
        }
    return true;
}

/* ---------------------------------------------------------------- tokens ----- */

static void skip_space(json_reader *j)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\n' || *j->at == '\r' || *j->at == '\t'))
        j->at++;
}

static json_reader_token open_level(json_reader *j, bool is_object)
{
    if (j->depth == JSON_DEPTH)
        return fail(j, JSON_SYNTAX, "more than 64 levels of nesting");
    j->is_object[j->depth] = is_object;
    j->first_key[j->depth++] = j->key_count;
    j->state = JSON_OPENED;
    return is_object ? JSON_OBJECT : JSON_ARRAY;
}

static json_reader_token close_level(json_reader *j)
{
    const bool is_object = j->is_object[j->depth - 1];
    if (is_object && !pop_keys(j))
        return JSON_ERROR;
    j->depth--;
    j->state = JSON_DONE;
    return is_object ? JSON_OBJECT_END : JSON_ARRAY_END;
}

static json_reader_token take_word(json_reader *j, const char *word, json_reader_token token)
{
    const size_t length = strlen(word);
    if ((size_t)(j->end - j->at) < length || memcmp(j->at, word, length) != 0)
        return fail(j, JSON_SYNTAX, "a value is expected");
    j->at += length;
    return token;
}

static json_reader_token take_value(json_reader *j)
{
    if (take_char(j, '{'))
        return open_level(j, true);
    if (take_char(j, '['))
        return open_level(j, false);
    j->state = JSON_DONE;
    if (take_char(j, '"'))
        return take_string(j) ? JSON_STRING : JSON_ERROR;
    if (at_digit(j) || (j->at < j->end && *j->at == '-'))
        return take_number(j) ? JSON_NUMBER : JSON_ERROR;
    if (j->at < j->end && *j->at == 't')
        return take_word(j, "true", JSON_TRUE);
    if (j->at < j->end && *j->at == 'f')
        return take_word(j, "false", JSON_FALSE);
    return take_word(j, "null", JSON_NULL);
}

static json_reader_token take_key(json_reader *j)
{
    if (!take_char(j, '"'))
        return fail(j, JSON_SYNTAX, "a key is expected");
    if (!take_string(j))
        return JSON_ERROR;
    skip_space(j);
    if (!take_char(j, ':'))
        return fail(j, JSON_SYNTAX, "a colon is expected");
    j->state = JSON_VALUE;
    return push_key(j) ? JSON_KEY : JSON_ERROR;
}

/*
 * The state machine. JSON_VALUE: a value must follow (at the start, and after a key).
 * JSON_OPENED: an object or array has just begun and may close at once. JSON_DONE: a value is
 * complete, and a comma or the end of the level must follow.
 */
static json_reader_token take_token(json_reader *j)
{
    skip_space(j);
    if (j->state == JSON_VALUE)
        return take_value(j);
    if (j->depth == 0)
        return j->at == j->end ? JSON_END : fail(j, JSON_SYNTAX, "more text after the value");
    const bool is_object = j->is_object[j->depth - 1];
    if (take_char(j, is_object ? '}' : ']'))
        return close_level(j);
    if (j->state == JSON_DONE && !take_char(j, ','))
        return fail(j, JSON_SYNTAX, "a comma or the end of an object or array is expected");
    skip_space(j);
    return is_object ? take_key(j) : take_value(j);
}

json_reader json_reader_begin(char *text, size_t length)
{
    return (json_reader){.begin = text, .at = text, .end = text + length};
}

void json_reader_free(json_reader *j)
{
    free(j->keys);
    j->keys = NULL;
}

json_reader_token json_reader_next(json_reader *j)
{
    if (j->fault != JSON_FINE)
        return JSON_ERROR;
    const json_reader_token token = take_token(j);
    if (token != JSON_ERROR)
        j->position = (size_t)(j->at - j->begin);
    return token;
}

bool json_reader_skip(json_reader *j)
{
    const int depth = j->depth;
    json_reader_token token;
    do
        token = json_reader_next(j);
    while (token > JSON_END && j->depth > depth);
    return token > JSON_END;
}
