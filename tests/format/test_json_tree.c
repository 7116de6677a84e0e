/* SPDX-License-Identifier: MIT */
/*
 * Tests of JSON trees: every getter on every type, members in file order, numbers at the limits of
 * their types and in a locale with a decimal comma, invalid texts and files, and the memory and
 * time of hostile texts.
 */
#include "format/json_tree.h"
#include "support/temp_files.h"
#include "support/test.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* Ends the program if the text is not accepted. */
static json_tree *tree_of(const char *text)
{
    char message[200] = "";
    json_tree *tree;
    const mha_status status =
        json_tree_parse(&tree, "text", text, strlen(text), message, sizeof message);
    if (!CHECK(status == MHA_OK, "%s: %s", text, message))
        exit(1);
    return tree;
}

static void members_and_elements(void)
{
    json_tree *const tree =
        tree_of(" {\"model\": {\"layers\": 12, \"eps\": 1e-5, \"name\": \"\\u00e9\","
                "\"no\": false, \"yes\": true, \"none\": null},"
                "\"list\": [[], {}, [1, [2, 3]], \"x\"], \"\": 7} ");
    const json_value *const root = json_tree_root(tree);
    const json_value *const model = json_tree_member(root, "model");
    int64_t layers = 0;
    double eps = 0;
    const char *name = NULL;
    size_t length = 0;
    bool no = true, yes = false;
    CHECK(json_tree_type_of(root) == JSON_TREE_OBJECT && json_tree_count(root) == 3, "root");
    CHECK(json_tree_get_integer(json_tree_member(model, "layers"), &layers) && layers == 12,
          "layers");
    CHECK(json_tree_get_number(json_tree_member(model, "eps"), &eps) && eps == 1e-5, "eps");
    CHECK(json_tree_get_string(json_tree_member(model, "name"), &name, &length) && length == 2 &&
              strcmp(name, "\xc3\xa9") == 0,
          "name");
    CHECK(json_tree_get_bool(json_tree_member(model, "no"), &no) && !no, "no");
    CHECK(json_tree_get_bool(json_tree_member(model, "yes"), &yes) && yes, "yes");
    const json_value *const none = json_tree_member(model, "none");
    CHECK(none && json_tree_type_of(none) == JSON_TREE_NULL, "none");
    CHECK(!json_tree_member(model, "layer") && !json_tree_member(model, "layers2"), "absent");

    static const char *const keys[] = {"model", "list", ""};
    for (size_t n = 0; n < 3; n++) {
        const char *const key = json_tree_key(root, n, &length);
        CHECK(key && strcmp(key, keys[n]) == 0 && length == strlen(keys[n]), "key %zu", n);
        CHECK(json_tree_element(root, n) == json_tree_member(root, keys[n]), "member %zu", n);
    }
    const json_value *const list = json_tree_member(root, "list");
    const json_value *const inner = json_tree_element(list, 2);
    int64_t three = 0;
    CHECK(json_tree_count(list) == 4 && json_tree_count(json_tree_element(list, 0)) == 0 &&
              json_tree_type_of(json_tree_element(list, 0)) == JSON_TREE_ARRAY &&
              json_tree_type_of(json_tree_element(list, 1)) == JSON_TREE_OBJECT,
          "empty values");
    CHECK(json_tree_get_integer(json_tree_element(json_tree_element(inner, 1), 1), &three) &&
              three == 3,
          "nested elements");
    json_tree_free(tree);
}

/* Whatever is not there, or of another type, gives NULL, 0 or false and leaves the result alone. */
static void wrong_types(void)
{
    json_tree *const tree = tree_of("[null, true, 1, \"s\", [1], {\"k\": 1}]");
    const json_value *const root = json_tree_root(tree);
    for (size_t n = 0; n <= 6; n++) {
        const json_value *const value = json_tree_element(root, n);
        const json_tree_type type = json_tree_type_of(value);
        int64_t integer = 42;
        double number = 42;
        bool truth = true;
        const char *text = "old";
        CHECK(type == (n < 6 ? (json_tree_type)n : JSON_TREE_NULL), "type %zu", n);
        CHECK((value != NULL) == (n < 6), "value %zu", n);
        CHECK(json_tree_get_integer(value, &integer) == (type == JSON_TREE_NUMBER) &&
                  integer == (type == JSON_TREE_NUMBER ? 1 : 42),
              "integer %zu", n);
        CHECK(json_tree_get_number(value, &number) == (type == JSON_TREE_NUMBER) &&
                  number == (type == JSON_TREE_NUMBER ? 1.0 : 42.0),
              "number %zu", n);
        CHECK(json_tree_get_bool(value, &truth) == (type == JSON_TREE_BOOL) && truth, "bool %zu",
              n);
        CHECK(json_tree_get_string(value, &text, NULL) == (type == JSON_TREE_STRING) &&
                  strcmp(text, type == JSON_TREE_STRING ? "s" : "old") == 0,
              "string %zu", n);
        CHECK(json_tree_count(value) == (n == 4 || n == 5), "count %zu", n);
        CHECK((json_tree_element(value, 0) != NULL) == (n == 4 || n == 5), "element %zu", n);
        CHECK(!json_tree_element(value, 1) && !json_tree_key(value, 1, NULL), "past the end %zu",
              n);
        CHECK((json_tree_key(value, 0, NULL) != NULL) == (n == 5), "key %zu", n);
        CHECK((json_tree_member(value, "k") != NULL) == (n == 5), "member %zu", n);
    }
    json_tree_free(tree);
    json_tree_free(NULL);
}

static void numbers(void)
{
    static const struct {
        const char *text;
        bool is_integer;
        int64_t integer;
        bool is_number;
        double number;
    } cases[] = {
        {"0", true, 0, true, 0},
        {"-0", true, 0, true, 0},
        {"-7", true, -7, true, -7},
        {"9223372036854775807", true, INT64_MAX, true, 0x1p63},
        {"-9223372036854775808", true, INT64_MIN, true, -0x1p63},
        {"9223372036854775808", false, 0, true, 0x1p63},
        {"-9223372036854775809", false, 0, true, -0x1p63},
        {"1000000000000000019884624838656", false, 0, true, 1e30},
        {"18446744073709551616", false, 0, true, 0x1p64},
        {"2.0", true, 2, true, 2},
        {"1e3", true, 1000, true, 1000},
        {"-25E-1", false, 0, true, -2.5},
        {"1e16", false, 0, true, 1e16},
        {"0.1", false, 0, true, 0.1},
        {"1e308", false, 0, true, 1e308},
        {"1e309", false, 0, false, 0},
        {"-1e400", false, 0, false, 0},
        {"1e-400", true, 0, true, 0},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        int64_t integer = 0;
        double number = 0;
        json_tree *const tree = tree_of(cases[n].text);
        const json_value *const root = json_tree_root(tree);
        CHECK(json_tree_get_integer(root, &integer) == cases[n].is_integer &&
                  integer == cases[n].integer,
              "%s as an integer: %lld", cases[n].text, (long long)integer);
        CHECK(json_tree_get_number(root, &number) == cases[n].is_number &&
                  number == cases[n].number,
              "%s as a number: %g", cases[n].text, number);
        json_tree_free(tree);
    }
}

static void decimal_comma(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "nl_NL.UTF-8", "de_DE"};
    size_t n = 0;
    while (n < 4 && !setlocale(LC_NUMERIC, names[n]))
        n++;
    if (n == 4) {
        test_skip("no locale with a decimal comma is installed");
        return;
    }
    json_tree *const tree = tree_of("[1.5,25]");
    double number = 0;
    CHECK(json_tree_get_number(json_tree_element(json_tree_root(tree), 0), &number) &&
              number == 1.5,
          "1.5 is read as %g", number);
    json_tree_free(tree);
    setlocale(LC_NUMERIC, "C");
}

/* Reads a text of exactly this length, and expects an error with this message. */
static void expect_refusal(const char *text, size_t length, const char *says)
{
    char message[200] = "";
    json_tree *tree = (json_tree *)1;
    char *const copy = malloc(length ? length : 1);
    if (length)
        memcpy(copy, text, length);
    const mha_status status = json_tree_parse(&tree, "text", copy, length, message, sizeof message);
    CHECK(status == MHA_ERR_FORMAT && !tree, "%.*s: %s", (int)length, text,
          mha_status_string(status));
    CHECK(strncmp(message, "text: ", 6) == 0 && strstr(message, says), "%.*s: %s", (int)length,
          text, message);
    free(copy);
}

static void invalid_texts(void)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "not JSON at byte 0: a value is expected"},
        {"{\"a\":1,\"a\":2}", "\"a\" occurs twice in an object"},
        {"[1,,2]", "not JSON at byte 3: a value is expected"},
        {"[1] x", "not JSON at byte 4: more text after the value"},
        {"\"\xff\"", "not UTF-8"},
        {"\"\\u0000\"", "\\u0000"},
        {"[1,", "a value is expected"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++)
        expect_refusal(cases[n].text, strlen(cases[n].text), cases[n].says);
    char deep[2 * 65];
    memset(deep, '[', 65);
    memset(deep + 65, ']', 65);
    expect_refusal(deep, sizeof deep, "more than 64 levels");
    json_tree *tree;
    CHECK(json_tree_parse(&tree, "text", deep + 1, sizeof deep - 2, NULL, 0) == MHA_OK,
          "64 levels");
    json_tree_free(tree);
}

static void cut_texts(void)
{
    static const char text[] = "{\"a\":[-1.5e+3,true,false,null,\"\\ud83d\\ude00\",{\"b\":{}},[]]}";
    for (size_t length = 0; length + 1 < sizeof text; length++)
        expect_refusal(text, length, "not JSON");
}

static void files(void)
{
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "config.json");
    char message[300] = "";
    json_tree *tree;
    CHECK(json_tree_read_file(&tree, path, message, sizeof message) == MHA_ERR_FILE && !tree &&
              strstr(message, "config.json: cannot be opened"),
          "no file: %s", message);
    CHECK(file_make(path, "", 0), "make");
    CHECK(json_tree_read_file(&tree, path, message, sizeof message) == MHA_ERR_FORMAT && !tree &&
              strstr(message, "the file is empty"),
          "empty: %s", message);
    CHECK(file_make(path, "{", 1), "make");
    CHECK(json_tree_read_file(&tree, path, message, sizeof message) == MHA_ERR_FORMAT && !tree &&
              strstr(message, "config.json: not JSON at byte 1"),
          "cut: %s", message);
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:00\n";
    CHECK(file_make(path, pointer, sizeof pointer - 1), "make");
    CHECK(json_tree_read_file(&tree, path, message, sizeof message) == MHA_ERR_FORMAT && !tree &&
              strstr(message, "this is a Git LFS pointer, not the file"),
          "pointer: %s", message);
    CHECK(json_tree_read_file(&tree, folder.path, message, sizeof message) == MHA_ERR_FILE &&
              !tree && strstr(message, "is not a regular file"),
          "a folder: %s", message);
    CHECK(mkfifo(temp_path(&folder, "pipe"), 0600) == 0, "mkfifo");
    CHECK(json_tree_read_file(&tree, temp_path(&folder, "pipe"), message, sizeof message) ==
                  MHA_ERR_FILE &&
              !tree && strstr(message, "is not a regular file"),
          "a pipe, which must not block: %s", message);
    CHECK(file_make(temp_path(&folder, "config.json"), "[3]", 3), "make");
    int64_t three = 0;
    if (CHECK(json_tree_read_file(&tree, temp_path(&folder, "config.json"), NULL, 0) == MHA_OK,
              "read"))
        CHECK(json_tree_get_integer(json_tree_element(json_tree_root(tree), 0), &three) &&
                  three == 3,
              "value");
    json_tree_free(tree);
    temp_folder_free(&folder);
}

static void too_long(void)
{
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "long.json");
    char message[300] = "";
    json_tree *tree;
    FILE *const file = fopen(path, "wb");
    CHECK(file && fseek(file, JSON_TREE_MAX, SEEK_SET) == 0 && fputc('1', file) == '1', "make");
    if (file)
        fclose(file);
    CHECK(json_tree_read_file(&tree, path, message, sizeof message) == MHA_ERR_FORMAT && !tree &&
              strstr(message, "67108864 are allowed"),
          "file: %s", message);
    /* The text is not read. */
    CHECK(json_tree_parse(&tree, "text", "1", (size_t)JSON_TREE_MAX + 1, message, sizeof message) ==
                  MHA_ERR_FORMAT &&
              !tree && strstr(message, "67108864 are allowed"),
          "text: %s", message);
    temp_folder_free(&folder);
}

/* A text of 4 MB of the same pieces, valid or not, is read or refused in a time that does not grow
 * with the square of its length: that would be hours, and an emulator needs seconds. */
static void hostile_texts(void)
{
    static const char *const pieces[] = {"[",   "{\"\":", "\"", "\\\"",  "9",
                                         "[],", "1,",     ",:", "[\"\","};
    enum { LENGTH = 4000000 };
    char *const text = malloc(LENGTH);
    for (size_t n = 0; n < sizeof pieces / sizeof pieces[0]; n++) {
        const char *const piece = pieces[n];
        for (size_t at = 0; at < LENGTH; at++)
            text[at] = at ? piece[(at - 1) % strlen(piece)] : '[';
        const clock_t start = clock();
        json_tree *tree;
        json_tree_parse(&tree, "text", text, LENGTH, NULL, 0);
        json_tree_free(tree);
        const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        CHECK(seconds < 60, "%s repeated: %g s", piece, seconds);
    }
    free(text);
}

static void large_array(void)
{
    enum { COUNT = 500000 };
    char *const text = malloc(COUNT * 8 + 2), *at = text;
    *at++ = '[';
    for (int n = 0; n < COUNT; n++)
        at += sprintf(at, "%s%d", n ? "," : "", n);
    *at++ = ']';
    json_tree *tree;
    CHECK(json_tree_parse(&tree, "text", text, (size_t)(at - text), NULL, 0) == MHA_OK, "parse");
    const json_value *const root = json_tree_root(tree);
    CHECK(json_tree_count(root) == COUNT, "count");
    int64_t sum = 0, value = 0;
    for (size_t n = 0; n < COUNT; n++)
        sum += json_tree_get_integer(json_tree_element(root, n), &value) && value == (int64_t)n;
    CHECK(sum == COUNT, "only %lld elements are right", (long long)sum);
    json_tree_free(tree);
    free(text);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(members_and_elements);
    RUN(wrong_types);
    RUN(numbers);
    RUN(decimal_comma);
    RUN(invalid_texts);
    RUN(cut_texts);
    RUN(files);
    RUN(too_long);
    RUN(hostile_texts);
    RUN(large_array);
    return test_end();
}
