/* SPDX-License-Identifier: MIT */
/* The bodies of requests to "mha serve": good ones are read, every wrong one is refused with a
 * message, and damaged ones never crash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page/serve_request.h"
#include "support/test.h"
#include "support/tiny_model.h"

static serve_request request;
static char message[SUBJECT_MESSAGE_MAX];

/* Reads a copy of the body with only a 0 after it, so that a sanitizer finds reads past its end.
 * The texts of the request point into the copy, which the next call frees. */
static bool read_bytes(const char *body, size_t length)
{
    static char *copy;
    const transformer_config config = tiny_config();
    free(copy);
    copy = malloc(length + 1);
    memcpy(copy, body, length + 1);
    message[0] = '\0';
    return serve_request_read(&request, head_shape_of(&config), copy, length, message);
}

static bool read_body(const char *body)
{
    return read_bytes(body, strlen(body));
}

static void a_text_is_enough(void)
{
    CHECK(read_body("{\"text\": \"the c\\u0061t\"}"), "%s", message);
    CHECK(strcmp(request.request.text, "the cat") == 0, "%s", request.request.text);
    CHECK(request.request.target == NULL && !request.changed, "nothing else is requested");
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        CHECK(request.request.changes[kind] == NULL, "kind %d", kind);
}

static void changes_reach_their_heads(void)
{
    CHECK(read_body("{\"changes\": [{\"kind\": \"cross\", \"layer\": 2, \"head\": 3, "
                    "\"change\": \"zero\"}, {\"change\": \"uniform\", \"head\": 4, \"layer\": 1, "
                    "\"kind\": \"decoder\"}], \"to\": \"le chat\", \"text\": \"the cat\"}"),
          "%s", message);
    CHECK(request.changed && strcmp(request.request.target, "le chat") == 0, "the target");
    CHECK(request.request.changes[ATTENTION_ENCODER] == NULL, "the encoder is as it was");
    for (int n = 0; n < 8; n++) {
        CHECK(request.changes[ATTENTION_CROSS][n] == (n == 6 ? HEAD_ZERO : HEAD_NORMAL), "%d", n);
        CHECK(request.changes[ATTENTION_DECODER][n] == (n == 3 ? HEAD_UNIFORM : HEAD_NORMAL), "%d",
              n);
    }
}

static void a_picture_has_its_size(void)
{
    CHECK(read_body("{\"text\": \"a\", \"picture\": {\"rows\": 2, \"columns\": 1, \"channels\": 3, "
                    "\"bytes\": \"AAECAwQF\"}}"),
          "%s", message);
    CHECK(request.picture.rows == 2 && request.picture.columns == 1 &&
              request.picture.channels == 3 && strcmp(request.picture.bytes, "AAECAwQF") == 0,
          "what was sent");
    CHECK(read_body("{\"text\": \"a\"}") && request.picture.bytes == NULL, "no picture");
}

static void effects_are_requested_unless_declined(void)
{
    CHECK(read_body("{\"text\": \"a\"}") && request.effects, "%s", message);
    CHECK(read_body("{\"text\": \"a\", \"effects\": true}") && request.effects, "%s", message);
    CHECK(read_body("{\"text\": \"a\", \"effects\": false}") && !request.effects, "%s", message);
}

static void wrong_bodies_are_refused_with_a_message(void)
{
    static const char *const cases[][2] = {
        {"", "not JSON"},
        {"{\"text\": \"a\"", "not JSON"},
        {"{\"text\": \"a\"} 1", "not JSON"},
        {"{\"text\": \"a\", \"text\": \"b\"}", "twice"},
        {"\xff", "UTF-8"},
        {"[]", "an object"},
        {"{}", "no \"text\""},
        {"{\"text\": 1}", "a text was expected"},
        {"{\"text\": \"a\", \"model\": \"b\"}", "unknown key; the keys are text"},
        {"{\"text\": \"a\", \"effects\": 0}", "true or false"},
        {"{\"text\": \"a\", \"changes\": {}}", "an array"},
        {"{\"text\": \"a\", \"picture\": []}", "must be an object"},
        {"{\"text\": \"a\", \"picture\": {}}", "are needed"},
        {"{\"text\": \"a\", \"picture\": {\"file\": \"a.png\"}}", "unknown key; the keys are rows"},
        {"{\"text\": \"a\", \"picture\": {\"rows\": 0, \"columns\": 1, \"channels\": 1, "
         "\"bytes\": \"\"}}",
         "none of them 0"},
        {"{\"text\": \"a\", \"picture\": {\"rows\": -1}}", "whole number"},
        {"{\"text\": \"a\", \"picture\": {\"rows\": 1025, \"columns\": 1, \"channels\": 1, "
         "\"bytes\": \"AA==\"}}",
         "at most 1024"},
        {"{\"text\": \"a\", \"picture\": {\"rows\": 18446744073709551615, \"columns\": "
         "18446744073709551615, \"channels\": 1, \"bytes\": \"AA==\"}}",
         "at most 1024"},
        {"{\"text\": \"a\", \"picture\": {\"rows\": 1, \"columns\": 1, \"channels\": 2, "
         "\"bytes\": \"AAA=\"}}",
         "must be 1 (grey) or 3"},
        {"{\"text\": \"a\", \"picture\": {\"rows\": 2, \"columns\": 2, \"channels\": 1, "
         "\"bytes\": \"AAAA\"}}",
         "rows x columns x channels"},
        {"{\"text\": \"a\", \"changes\": [[]]}", "objects"},
        {"{\"text\": \"a\", \"changes\": [{}]}", "kind"},
        {"{\"text\": \"a\", \"changes\": [{\"kind\": \"cross\", \"layer\": 3, \"head\": 1, "
         "\"change\": \"zero\"}]}",
         "no such head"},
        {"{\"text\": \"a\", \"changes\": [{\"kind\": \"cross\", \"layer\": 1, \"head\": 5, "
         "\"change\": \"zero\"}]}",
         "no such head"},
        {"{\"text\": \"a\", \"changes\": [{\"kind\": \"cross\", \"layer\": 1, \"head\": 0.5, "
         "\"change\": \"zero\"}]}",
         "whole number"},
        {"{\"text\": \"a\", \"changes\": [{\"kind\": \"cross\", \"layer\": 1, \"head\": 1}]}",
         "zero or uniform"},
        {"{\"text\": \"a\", \"compute\": []}", "must be an object"},
        {"{\"text\": \"a\", \"compute\": {\"layer\": 1}}", "kind"},
        {"{\"text\": \"a\", \"compute\": {\"kind\": \"cross\"}}", "no such layer"},
        {"{\"text\": \"a\", \"compute\": {\"kind\": \"cross\", \"layer\": 3}}", "no such layer"},
        {"{\"text\": \"a\", \"compute\": {\"kind\": \"cross\", \"head\": 1}}", "unknown key"},
        {"{\"text\": \"a\", \"probe\": 1}", "must be an object"},
        {"{\"text\": \"a\", \"probe\": {\"hide\": []}}", "unknown key"},
        {"{\"text\": \"a\", \"probe\": {\"hidden\": 1}}", "must be an array"},
        {"{\"text\": \"a\", \"probe\": {\"hidden\": [-1]}}", "whole numbers"},
        {"{\"text\": \"a\", \"probe\": {\"hidden\": [1.5]}}", "whole numbers"},
        {"{\"text\": \"a\", \"probe\": {\"hidden\": [\"1\"]}}", "whole numbers"},
        {"{\"text\": \"a\", \"probe\": {\"hidden\": [[]]}}", "whole numbers"},
        {"{\"text\": \"a\", \"probe\": {\"hidden\": [18446744073709551615]}}", "no such word"},
        {"{\"text\": \"a\", \"probe\": {\"hidden\": [4096]}}", "no such word"},
        {"{\"text\": \"a\", \"probe\": {\"row\": -1}}", "whole number"},
        {"{\"text\": \"a\", \"probe\": {\"lens\": 1}}", "true or false"},
        {"{\"text\": \"a\", \"probe\": {\"patch\": []}}", "must be an object"},
        {"{\"text\": \"a\", \"probe\": {\"patch\": {}}}", "at least one"},
        {"{\"text\": \"a\", \"probe\": {\"patch\": {\"text\": \"b\"}}}", "at least one"},
        {"{\"text\": \"a\", \"probe\": {\"patch\": {\"text\": \"b\", \"heads\": []}}}",
         "at least one"},
        {"{\"text\": \"a\", \"probe\": {\"patch\": {\"text\": 1}}}", "a text"},
        {"{\"text\": \"a\", \"probe\": {\"patch\": {\"heads\": 1}}}", "an array"},
        {"{\"text\": \"a\", \"probe\": {\"patch\": {\"heads\": [1]}}}", "objects"},
        {"{\"text\": \"a\", \"probe\": {\"patch\": {\"head\": 1}}}", "unknown key"},
        {"{\"text\": \"a\", \"probe\": {\"patch\": {\"heads\": [{\"change\": \"zero\"}]}}}",
         "unknown key"},
        {"{\"text\": \"a\", \"probe\": {\"patch\": {\"heads\": [{\"kind\": \"self\"}]}}}",
         "patch: \"kind\""},
        {"{\"text\": \"a\", \"probe\": {\"patch\": {\"heads\": [{\"kind\": \"cross\", \"layer\": "
         "3, \"head\": 1}]}}}",
         "no such head"},
        {"{\"text\": \"a\", \"probe\": {\"patch\": {\"heads\": [{\"kind\": \"cross\", \"layer\": "
         "1}]}}}",
         "no such head"},
        {"{\"text\": \"a\", \"probe\": {\"word\": \"chat\"}}", "whole number"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++)
        CHECK(!read_body(cases[n][0]) && strstr(message, cases[n][1]) != NULL, "%s: %s",
              cases[n][0], message);
}

static void steps_are_requested(void)
{
    CHECK(read_body("{\"text\": \"a\", \"compute\": {\"kind\": \"cross\", \"layer\": 2}}"), "%s",
          message);
    CHECK(request.compute && request.kind == ATTENTION_CROSS && request.layer == 1,
          "%d %d of layer %d", request.compute, (int)request.kind, request.layer);
    CHECK(read_body("{\"text\": \"a\"}") && !request.compute, "none without the key");
}

static void experiments_are_requested(void)
{
    CHECK(read_body("{\"text\": \"a\", \"probe\": {\"hidden\": [3, 1, 3]}}"), "%s", message);
    CHECK(request.probe.asked && request.probe.hidden_end == 4 && request.probe.hidden[1] &&
              !request.probe.hidden[2] && request.probe.hidden[3],
          "hidden up to %d", request.probe.hidden_end);
    CHECK(request.probe.row == -1 && request.probe.word == -1, "no word");
    CHECK(read_body("{\"text\": \"a\", \"probe\": {\"row\": 2, \"word\": 5}}"), "%s", message);
    CHECK(request.probe.row == 2 && request.probe.word == 5, "row %d", request.probe.row);
    CHECK(read_body(
              "{\"text\": \"a\", \"probe\": {\"patch\": {\"text\": \"b\", \"heads\": [{\"kind\": "
              "\"cross\", \"layer\": 2, \"head\": 3}]}}}"),
          "%s", message);
    CHECK(strcmp(request.probe.patch_text, "b") == 0 && request.probe.patch_target == NULL, "text");
    for (int n = 0; n < 8; n++)
        CHECK(request.probe.patched[ATTENTION_CROSS][n] == (n == 6), "head %d", n);
    CHECK(read_body("{\"text\": \"a\"}") && !request.probe.asked, "none without the key");
}

/* Bytes of a good body are changed, left out and doubled: no crash, no refusal without a message,
 * no change of a head that does not exist. */
static void damaged_bodies(void)
{
    static const char good[] =
        "{\"text\": \"a\", \"changes\": [{\"kind\": \"cross\", \"layer\": 2, \"head\": 3, "
        "\"change\": \"zero\"}], \"to\": \"\\u00e9\", \"probe\": {\"hidden\": [1, 20]}}";
    test_random random = {test_seed(7)};
    for (int64_t n = test_effort(20000); n > 0; n--) {
        char body[sizeof good + 8];
        size_t length = strlen(good);
        memcpy(body, good, sizeof good);
        for (int64_t hits = test_random_below(&random, 4); hits >= 0; hits--) {
            const size_t at = (size_t)test_random_below(&random, (int64_t)length);
            switch (test_random_below(&random, 3)) {
            case 0:
                body[at] = (char)(test_random_below(&random, 255) + 1);
                break;
            case 1:
                memmove(body + at, body + at + 1, length-- - at);
                break;
            default:
                memmove(body + at + 1, body + at, ++length - at);
                break;
            }
        }
        const bool taken = read_bytes(body, length);
        CHECK(taken || message[0] != '\0', "no word about %s", body);
        for (int kind = 0; taken && kind < ATTENTION_KINDS; kind++)
            for (int head = 8; head < SERVE_HEADS_MAX; head++)
                if (request.changes[kind][head] != HEAD_NORMAL)
                    CHECK(false, "head %d by %s", head, body);
    }
    read_body("");
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(a_text_is_enough);
    RUN(changes_reach_their_heads);
    RUN(a_picture_has_its_size);
    RUN(effects_are_requested_unless_declined);
    RUN(wrong_bodies_are_refused_with_a_message);
    RUN(steps_are_requested);
    RUN(experiments_are_requested);
    RUN(damaged_bodies);
    return test_end();
}
