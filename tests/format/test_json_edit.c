/* SPDX-License-Identifier: MIT */
/* Members of JSON texts are replaced or added, and nothing else changes; what is not an object in
 * UTF-8 is refused. */
#include "format/json_edit.h"

#include <stdlib.h>
#include <string.h>

#include "format/json_tree.h"
#include "support/test.h"

static const json_change changes[] = {{"a", "[1, 2]"}, {"key", "{\"x\": {}}"}};

static const struct edited {
    const char *text, *result; /* NULL: refused */
} texts[] = {
    {"{}", "{\n  \"a\": [1, 2],\n  \"key\": {\"x\": {}}\n}"},
    {" { } \n", " {\n  \"a\": [1, 2],\n  \"key\": {\"x\": {}}\n} \n"},
    {"{\"a\":0}", "{\"a\":[1, 2],\n  \"key\": {\"x\": {}}\n}"},
    {"{\n  \"a\" : \"b\\\"}\" ,\n  \"b\": 1\n}\n",
     "{\n  \"a\" : [1, 2] ,\n  \"b\": 1,\n  \"key\": {\"x\": {}}\n}\n"},
    {"{\"key\": [{\"a\": 1}], \"b\": {\"a\": 2}, \"a\": null}",
     "{\"key\": {\"x\": {}}, \"b\": {\"a\": 2}, \"a\": [1, 2]\n}"},
    {"{\"\\u0061\": 3, \"key\": -1.5e3}", "{\"\\u0061\": [1, 2], \"key\": {\"x\": {}}\n}"},
    {"{\"\xc3\xa9\": \"\xe2\x82\xac\", \"a\": true, \"key\": \"\"}",
     "{\"\xc3\xa9\": \"\xe2\x82\xac\", \"a\": [1, 2], \"key\": {\"x\": {}}\n}"},
    {"", NULL},
    {"[]", NULL},
    {"{", NULL},
    {"{\"a\"", NULL},
    {"{\"a\":", NULL},
    {"{\"a\": 1", NULL},
    {"{\"a\": 1,}", NULL},
    {"{\"a\": 1, \"a\": 2}", NULL},
    {"{\"a\": 1} x", NULL},
    {"{\"b\": \"\xff\"}", NULL},
};

static void members_are_changed(void)
{
    for (size_t n = 0; n < sizeof texts / sizeof texts[0]; n++) {
        char message[200] = "", *result;
        const size_t length = strlen(texts[n].text);
        /* Bytes after the text must not be read. */
        char *const text = malloc(length + !length);
        if (!text)
            abort();
        memcpy(text, texts[n].text, length);
        const mha_status status =
            json_edit(&result, "config.json", text, length, changes, 2, message, sizeof message);
        if (texts[n].result)
            CHECK(status == MHA_OK && strcmp(result, texts[n].result) == 0, "%s: %s%s",
                  texts[n].text, message, status ? "" : result);
        else
            CHECK(status == MHA_ERR_FORMAT && !result &&
                      strcmp(message, "config.json: the text is not a JSON object in UTF-8") == 0,
                  "%s: %s", texts[n].text, message);
        json_tree *tree = NULL;
        CHECK(status || json_tree_parse(&tree, "", result, strlen(result), NULL, 0) == MHA_OK,
              "%s: the result is not JSON", texts[n].text);
        json_tree_free(tree);
        free(result);
        free(text);
    }
}

static void without_changes(void)
{
    char *result = NULL;
    CHECK(json_edit(&result, "", "{\"a\": 1}", 8, NULL, 0, NULL, 0) == MHA_OK &&
              strcmp(result, "{\"a\": 1\n}") == 0,
          "%s", result ? result : "");
    free(result);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(members_are_changed);
    RUN(without_changes);
    return test_end();
}
