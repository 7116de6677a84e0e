/* SPDX-License-Identifier: MIT */
/*
 * Bytes as a JSON tree. A text is refused with a message, or the tree has exactly the values that
 * the token reader finds in the same text, in the same order.
 *
 *      clang -fsanitize=fuzzer,address ... fuzz_json_tree.c    a libFuzzer target
 *      cc -DFUZZ_STANDALONE ... fuzz_json_tree.c test.c        a test with pseudo-random bytes
 */
#include "format/json_reader.h"
#include "format/json_tree.h"
#include "support/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 4096 };

static void expect(json_reader *j, json_reader_token wanted)
{
    if (json_reader_next(j) != wanted)
        fuzz_die("the tree has another value");
}

static void compare_number(const json_reader *j, const json_value *value)
{
    uint64_t size;
    int64_t integer = 0;
    double number;
    if (json_reader_integer(j, &size) && size <= INT64_MAX &&
        (!json_tree_get_integer(value, &integer) || (uint64_t)integer != size))
        fuzz_die("another integer");
    if (json_tree_get_integer(value, &integer) &&
        (!json_tree_get_number(value, &number) || number != (double)integer))
        fuzz_die("a number that differs from its integer");
}

static void compare_string(const json_reader *j, const json_value *value)
{
    const char *text;
    size_t length;
    if (!json_tree_get_string(value, &text, &length) || strcmp(text, j->text) != 0 ||
        length != strlen(text))
        fuzz_die("another string");
}

/* Compares a value with the tokens that follow; the depth is limited by the reader. */
static void compare(json_reader *j, const json_value *value)
{
    const size_t count = json_tree_count(value);
    bool truth;
    switch (json_tree_type_of(value)) {
    case JSON_TREE_NULL:
        expect(j, JSON_NULL);
        break;
    case JSON_TREE_BOOL:
        expect(j, json_tree_get_bool(value, &truth) && truth ? JSON_TRUE : JSON_FALSE);
        break;
    case JSON_TREE_NUMBER:
        expect(j, JSON_NUMBER);
        compare_number(j, value);
        break;
    case JSON_TREE_STRING:
        expect(j, JSON_STRING);
        compare_string(j, value);
        break;
    case JSON_TREE_ARRAY:
        expect(j, JSON_ARRAY);
        for (size_t n = 0; n < count; n++)
            compare(j, json_tree_element(value, n));
        expect(j, JSON_ARRAY_END);
        break;
    case JSON_TREE_OBJECT:
        expect(j, JSON_OBJECT);
        for (size_t n = 0; n < count; n++) {
            const char *const key = json_tree_key(value, n, NULL);
            expect(j, JSON_KEY);
            if (strcmp(key, j->text) != 0 ||
                json_tree_member(value, key) != json_tree_element(value, n))
                fuzz_die("another key");
            compare(j, json_tree_element(value, n));
        }
        expect(j, JSON_OBJECT_END);
    }
}

static bool fuzz_one(const uint8_t *bytes, size_t size)
{
    size = size < TEXT_MAX ? size : TEXT_MAX;
    fuzz f = fuzz_begin(bytes, 0);
    char *const text = fuzz_buffer(&f, size);
    if (size)
        memcpy(text, bytes, size);
    char message[300] = "";
    json_tree *tree;
    const mha_status status = json_tree_parse(&tree, "text", text, size, message, sizeof message);
    if (status != MHA_OK && (status != MHA_ERR_FORMAT || tree || strlen(message) < 10))
        fuzz_die(message);
    if (tree) {
        json_reader j = json_reader_begin(text, size);
        compare(&j, json_tree_root(tree));
        expect(&j, JSON_END);
        json_reader_free(&j);
    }
    json_tree_free(tree);
    fuzz_finish(&f, status);
    return status == MHA_OK;
}

/* Up to 12 random pieces, for which there is room. */
static size_t random_text(test_random *random, char *text, size_t room)
{
    static const char *const pieces[] = {"{",
                                         "}",
                                         "[",
                                         "]",
                                         ",",
                                         ":",
                                         "\"a\"",
                                         "\"b\":",
                                         "\"a\":",
                                         "1",
                                         "-1.5",
                                         "2e9",
                                         "1e3",
                                         "0.0",
                                         "true",
                                         "false",
                                         "null",
                                         " ",
                                         "\"\\n\"",
                                         "[]",
                                         "{}",
                                         "[1,2]",
                                         ",1",
                                         ",\"x\":0",
                                         "\"\\u00e9\"",
                                         "[[[",
                                         "]]]",
                                         "[{\"k\":[",
                                         "]}]",
                                         "[true,[",
                                         "9223372036854775807",
                                         "\"[{,:\""};
    enum { PIECES = sizeof pieces / sizeof pieces[0] };
    const int64_t count = 1 + test_random_below(random, 12);
    size_t used = 0;
    for (int64_t n = 0; n < count; n++)
        used += (size_t)snprintf(text + used, room - used, "%s",
                                 pieces[test_random_below(random, PIECES)]);
    return used;
}

static void pseudo_random_texts(void)
{
    char text[400];
    test_random random = {test_seed(78)};
    const int64_t rounds = test_effort(200000);
    int64_t valid = 0;
    for (int64_t n = 0; n < rounds; n++)
        valid += fuzz_one((const uint8_t *)text, random_text(&random, text, sizeof text));
    CHECK(rounds < 1000 || valid > rounds / 200, "only %lld of %lld were JSON", (long long)valid,
          (long long)rounds);
}

FUZZ_TARGET(fuzz_one, pseudo_random_texts)
