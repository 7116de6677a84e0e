/* SPDX-License-Identifier: MIT */
/*
 * Bytes as JSON. Whatever they are, the reader ends, reads nothing outside them, and its tokens
 * make sense; what it accepts, written out again, gives the same tokens again.
 *
 *      clang -fsanitize=fuzzer,address ... fuzz_json.c    a libFuzzer target
 *      cc -DFUZZ_STANDALONE ... fuzz_json.c test.c        a test with pseudo-random bytes
 */
#include "format/json_reader.h"
#include "support/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 4096, COPY_MAX = 8 * TEXT_MAX };

/* What is written again. */
typedef struct copy {
    char text[COPY_MAX];
    size_t used;
    json_reader_token before;
} copy;

static void put(copy *c, const char *text, size_t length)
{
    if (c->used + length > COPY_MAX)
        fuzz_die("a text became too long");
    memcpy(c->text + c->used, text, length);
    c->used += length;
}

static void put_string(copy *c, const char *text)
{
    put(c, "\"", 1);
    for (; *text; text++) {
        char escape[8];
        const unsigned char byte = (unsigned char)*text;
        const bool plain = byte >= 0x20 && byte != '"' && byte != '\\';
        const int length = snprintf(escape, sizeof escape, "\\u%04x", byte);
        put(c, plain ? text : escape, plain ? 1 : (size_t)length);
    }
    put(c, "\"", 1);
}

static bool opens(json_reader_token token)
{
    return token == JSON_OBJECT || token == JSON_ARRAY;
}

static bool closes(json_reader_token token)
{
    return token == JSON_OBJECT_END || token == JSON_ARRAY_END;
}

static void put_token(copy *c, const json_reader *j, json_reader_token token)
{
    static const char *const words[] = {
        [JSON_OBJECT] = "{",  [JSON_OBJECT_END] = "}", [JSON_ARRAY] = "[",  [JSON_ARRAY_END] = "]",
        [JSON_TRUE] = "true", [JSON_FALSE] = "false",  [JSON_NULL] = "null"};
    if (c->used && !opens(c->before) && c->before != JSON_KEY && !closes(token))
        put(c, ",", 1);
    if (token == JSON_KEY || token == JSON_STRING)
        put_string(c, j->text);
    else if (token == JSON_NUMBER)
        put(c, j->text, (size_t)(j->begin + j->position - j->text));
    else
        put(c, words[token], strlen(words[token]));
    if (token == JSON_KEY)
        put(c, ":", 1);
    c->before = token;
}

/* Reads a text and writes it again; true if it is JSON. */
static bool read_and_write(char *text, size_t length, copy *c)
{
    json_reader j = json_reader_begin(text, length);
    json_reader_token token;
    int depth = 0;
    size_t position = 0;
    c->used = 0;
    while ((token = json_reader_next(&j)) > JSON_END) {
        depth += opens(token) - closes(token);
        if (j.depth != depth || depth < 0 || depth > JSON_DEPTH)
            fuzz_die("depth");
        if (j.position <= position || j.position > length)
            fuzz_die("position");
        position = j.position;
        put_token(c, &j, token);
    }
    if ((token == JSON_ERROR) != (j.fault != JSON_FINE) || json_reader_next(&j) != token)
        fuzz_die("an end that is none");
    json_reader_free(&j);
    return token == JSON_END;
}

static bool fuzz_one(const uint8_t *bytes, size_t size)
{
    static copy first, second;
    size = size < TEXT_MAX ? size : TEXT_MAX;
    if (!mhai_utf8_valid((const char *)bytes, size))
        return false;
    fuzz f = fuzz_begin(bytes, 0);
    char *const text = fuzz_buffer(&f, size);
    if (size)
        memcpy(text, bytes, size);
    const bool valid = read_and_write(text, size, &first);
    fuzz_finish(&f, MHA_OK);
    if (!valid)
        return false;
    char *const again = malloc(first.used + 1);
    memcpy(again, first.text, first.used);
    if (!read_and_write(again, first.used, &second))
        fuzz_die("what was written is not JSON");
    if (first.used != second.used || memcmp(first.text, second.text, first.used) != 0)
        fuzz_die("what was written reads otherwise");
    free(again);
    return true;
}

/* Up to 12 random pieces, for which there is room. */
static size_t random_text(test_random *random, char *text, size_t room)
{
    static const char *const pieces[] = {"{",       "}",        "[",           "]",       ",",
                                         ":",       "\"a\"",    "\"b\":",      "\"a\":",  "1",
                                         "-1.5",    "2e9",      "true",        "false",   "null",
                                         " ",       "\n",       "\"\\u00e9\"", "\"",      "\\\"",
                                         "\\ud83d", "0",        "[]",          "{}",      "[1,2]",
                                         ",1",      ",\"x\":0", "\xc3\xa9",    "{\"k\":", "[[[",
                                         "]]]",     "},\"c\":{"};
    enum { PIECES = sizeof pieces / sizeof pieces[0] };
    const int64_t count = 1 + test_random_below(random, 12);
    size_t used = 0;
    for (int64_t n = 0; n < count; n++) {
        const char *const piece = pieces[test_random_below(random, PIECES)];
        used += (size_t)snprintf(text + used, room - used, "%s", piece);
    }
    if (test_random_below(random, 4) == 0)
        text[test_random_below(random, (int64_t)used)] = (char)test_random_u64(random);
    return used;
}

static void pseudo_random_texts(void)
{
    char text[256];
    test_random random = {test_seed(77)};
    const int64_t rounds = test_effort(200000);
    int64_t valid = 0;
    for (int64_t n = 0; n < rounds; n++)
        valid += fuzz_one((const uint8_t *)text, random_text(&random, text, sizeof text));
    CHECK(rounds < 1000 || valid > rounds / 200, "only %lld of %lld were JSON", (long long)valid,
          (long long)rounds);
}

FUZZ_TARGET(fuzz_one, pseudo_random_texts)
