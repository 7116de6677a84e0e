/* SPDX-License-Identifier: MIT */
/*
 * Tests of the JSON reader: the tokens of valid texts, refusal of invalid and truncated ones,
 * duplicate keys, running time on hostile texts, and UTF-8 validation.
 */
#include "format/json_reader.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A copy of exactly this length, so that a sanitizer notices reads past its end. */
static char *copy_of(const char *text, size_t length)
{
    char *const copy = malloc(length ? length : 1);
    if (length)
        memcpy(copy, text, length);
    return copy;
}

/* Writes the tokens of a text, one letter per token, followed by the string or number if it has
 * one. */
static void tokens_of(const char *text, size_t length, char *out, size_t size)
{
    static const char letters[] = "!.{}[]ksntfz";
    char *const copy = copy_of(text, length);
    json_reader j = json_reader_begin(copy, length);
    json_reader_token token;
    size_t used = 0;
    do {
        token = json_reader_next(&j);
        used += (size_t)snprintf(out + used, size - used, "%c", letters[token]);
        if (token == JSON_KEY || token == JSON_STRING)
            used += (size_t)snprintf(out + used, size - used, "<%s>", j.text);
        uint64_t number;
        if (token == JSON_NUMBER && json_reader_integer(&j, &number))
            used += (size_t)snprintf(out + used, size - used, "%llu", (unsigned long long)number);
    } while (token > JSON_END && used < size - 80);
    json_reader_free(&j);
    free(copy);
}

static void every_token(void)
{
    static const struct {
        const char *text, *tokens;
    } cases[] = {
        {"{}", "{}."},
        {"[]", "[]."},
        {" [ ] ", "[]."},
        {"\"\"", "s<>."},
        {"true", "t."},
        {"false", "f."},
        {"null", "z."},
        {"0", "n0."},
        {"-0", "n."},
        {"10", "n10."},
        {"-7", "n."},
        {"1.5", "n."},
        {"1e5", "n."},
        {"1E-5", "n."},
        {"1.25e+5", "n."},
        {"18446744073709551615", "n18446744073709551615."},
        {"18446744073709551616", "n."},
        {"99999999999999999999999999", "n."},
        {"[1,[2,[]],{}]", "[n1[n2[]]{}]."},
        {"{\"a\":{\"b\":[null]},\"c\":\"d\"}", "{k<a>{k<b>[z]}k<c>s<d>}."},
        {"{\"a\":1,\"b\":{\"a\":1}}", "{k<a>n1k<b>{k<a>n1}}."},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "s<\"\\/\b\f\n\r\t>."},
        {"\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"", "s<A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80>."},
        {"\"\\ufffe\\uffff\\ud7ff\\ue000\"",
         "s<\xef\xbf\xbe\xef\xbf\xbf\xed\x9f\xbf\xee\x80\x80>."},
        {"\"\\udbff\\udfff\"", "s<\xf4\x8f\xbf\xbf>."},
        {"", "!"},
        {" ", "!"},
        {"{", "{!"},
        {"[", "[!"},
        {"]", "!"},
        {"}", "!"},
        {"[1", "[n1!"},
        {"[1,", "[n1!"},
        {"[1,]", "[n1!"},
        {"[,1]", "[!"},
        {"[1 2]", "[n1!"},
        {"[1}", "[n1!"},
        {"{\"a\"]", "{!"},
        {"{\"a\":}", "{k<a>!"},
        {"{\"a\":1]", "{k<a>n1!"},
        {"{1:2}", "{!"},
        {"{\"a\":1,\"a\":2}", "{k<a>n1k<a>n2!"},
        {"[] []", "[]!"},
        {"01", "!"},
        {"-", "!"},
        {"-a", "!"},
        {"1.", "!"},
        {".5", "!"},
        {"+1", "!"},
        {"1e", "!"},
        {"1e+", "!"},
        {"1x", "n1!"},
        {"NaN", "!"},
        {"tru", "!"},
        {"True", "!"},
        {"nul", "!"},
        {"\"", "!"},
        {"\"\\", "!"},
        {"\"\\\"", "!"},
        {"\"\\a\"", "!"},
        {"\"\\u\"", "!"},
        {"\"\\u004\"", "!"},
        {"\"\\u0000\"", "!"},
        {"\"\\ud800\"", "!"},
        {"\"\\ud800\\n\"", "!"},
        {"\"\\ud800\\u0041\"", "!"},
        {"\"\\udc00\"", "!"},
        {"\"\t\"", "!"},
        {"\"\n\"", "!"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        char got[256];
        tokens_of(cases[n].text, strlen(cases[n].text), got, sizeof got);
        CHECK(strcmp(got, cases[n].tokens) == 0, "%s: %s, not %s", cases[n].text, got,
              cases[n].tokens);
    }
}

/* Every proper prefix of a valid text is an error. */
static void cut_texts(void)
{
    static const char text[] =
        "{\"key\\u00e9\":[-1.5e+3,true,false,null,\"\\ud83d\\ude00\\n\",{\"a\":{},\"b\":[]}]}";
    for (size_t length = 0; length < sizeof text; length++) {
        char got[512];
        tokens_of(text, length, got, sizeof got);
        const char last = got[strlen(got) - 1];
        CHECK(last == (length == sizeof text - 1 ? '.' : '!'), "%zu bytes: %s", length, got);
    }
}

static void errors_stay(void)
{
    char text[] = "[1 2";
    json_reader j = json_reader_begin(text, strlen(text));
    CHECK(json_reader_next(&j) == JSON_ARRAY, "array");
    CHECK(json_reader_next(&j) == JSON_NUMBER, "number");
    for (int n = 0; n < 3; n++)
        CHECK(json_reader_next(&j) == JSON_ERROR && j.fault == JSON_SYNTAX && j.position == 3 &&
                  j.problem,
              "error %d", n);
    CHECK(!json_reader_skip(&j), "skip after an error");
    json_reader_free(&j);
}

static void skipping(void)
{
    char text[] = "{\"a\":{\"b\":[1,{\"c\":2}]},\"d\":3}";
    json_reader j = json_reader_begin(text, strlen(text));
    CHECK(json_reader_next(&j) == JSON_OBJECT, "object");
    CHECK(json_reader_next(&j) == JSON_KEY && json_reader_skip(&j), "skip an object");
    CHECK(json_reader_next(&j) == JSON_KEY && strcmp(j.text, "d") == 0, "the next key");
    CHECK(json_reader_skip(&j), "skip a number");
    CHECK(json_reader_next(&j) == JSON_OBJECT_END && json_reader_next(&j) == JSON_END, "end");
    json_reader_free(&j);
}

/* Among 5,000 keys a duplicate is found, wherever it is, and different keys are accepted. */
static void many_keys(void)
{
    enum { KEYS = 5000, ROOM = KEYS * 16 };
    char *const text = malloc(ROOM);
    test_random random = {test_seed(5)};
    for (int round = 0; round < 20; round++) {
        const bool twice = round % 2;
        const int64_t one = test_random_below(&random, KEYS);
        int64_t other = test_random_below(&random, KEYS - 1);
        other += other >= one;
        size_t used = 0;
        for (int64_t n = 0; n < KEYS; n++)
            used += (size_t)snprintf(text + used, ROOM - used, "%s\"k%lld\":0", n ? "," : "{",
                                     (long long)(twice && n == other ? one : n));
        text[used++] = '}';
        json_reader j = json_reader_begin(text, used);
        CHECK(json_reader_skip(&j) == !twice, "round %d", round);
        char wanted[32];
        snprintf(wanted, sizeof wanted, "k%lld", (long long)one);
        CHECK(!twice || (j.fault == JSON_DUPLICATE && strcmp(j.text, wanted) == 0), "round %d: %s",
              round, j.text);
        json_reader_free(&j);
    }
    free(text);
}

/* Unterminated strings, unlimited nesting, numbers as long as the text: the time per byte stays
 * bounded. */
static void hostile_texts(void)
{
    static const char *const pieces[] = {"[",  "{\"\":", "\"",    "\\\"", "9",
                                         "[]", "1,",     "\\u00", " ",    "{\"a\":[{\"b\":"};
    enum { LENGTH = 4000000 };
    char *const text = malloc(LENGTH);
    for (size_t n = 0; n < sizeof pieces / sizeof pieces[0]; n++) {
        const size_t size = strlen(pieces[n]);
        for (size_t at = 0; at < LENGTH; at++)
            text[at] = pieces[n][at % size];
        const clock_t start = clock();
        json_reader j = json_reader_begin(text, LENGTH);
        while (json_reader_next(&j) > JSON_END)
            ;
        json_reader_free(&j);
        const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        CHECK(seconds < 2, "%s repeated: %g s", pieces[n], seconds);
    }
    free(text);
}

static void utf8(void)
{
    static const struct {
        const char *text;
        bool valid;
    } cases[] = {
        {"", true},
        {"plain text, longer than a word", true},
        {"\x7f\xc2\x80\xdf\xbf", true},
        {"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", true},
        {"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", true},
        {"\x80", false},
        {"\xbf", false},
        {"\xc0\x80", false},
        {"\xc1\xbf", false},
        {"\xc2", false},
        {"\xc2\x7f", false},
        {"\xc2\xc0", false},
        {"\xe0\x9f\xbf", false},
        {"\xe1\x80", false},
        {"\xe1\x80\x7f", false},
        {"\xed\xa0\x80", false},
        {"\xf0\x8f\xbf\xbf", false},
        {"\xf0\x90\x80", false},
        {"\xf1\x80\x80\xc0", false},
        {"\xf4\x90\x80\x80", false},
        {"\xf5\x80\x80\x80", false},
        {"\xff", false},
        {"seven..\xff", false},
        {"eight...\xff", false},
        {"\xc3\xa9ight by\xc3", false},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        const size_t length = strlen(cases[n].text);
        char *const copy = copy_of(cases[n].text, length);
        CHECK(mhai_utf8_valid(copy, length) == cases[n].valid, "case %zu", n);
        free(copy);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(every_token);
    RUN(cut_texts);
    RUN(errors_stay);
    RUN(skipping);
    RUN(many_keys);
    RUN(hostile_texts);
    RUN(utf8);
    return test_end();
}
