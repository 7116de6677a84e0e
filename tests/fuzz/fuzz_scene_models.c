/* SPDX-License-Identifier: MIT */
/*
 * Bytes as the config.json of a model of captions, and of a detector. Whatever they are, reading
 * ends with a status and a message, and sizes that are accepted keep the limits that the network
 * relies on.
 *
 *      clang -fsanitize=fuzzer,address ... fuzz_scene_models.c    a libFuzzer target
 *      cc -DFUZZ_STANDALONE ... fuzz_scene_models.c test.c        a test with pseudo-random texts
 */
#include <stdio.h>
#include <string.h>

#include "base/assignment.h"
#include "support/fuzz.h"
#include "vision/captioner.h"
#include "vision/detector.h"

enum { TEXT_MAX = 4096, KINDS = 2 };

static const scene_model_kind *const kinds[KINDS] = {&captioner_kind, &detector_kind};

static void check_classes(const transformer_config *c, bool detects)
{
    if (c->form != (detects ? FORM_DETECTION : FORM_CAPTIONS))
        fuzz_die("another form");
    if (detects && (c->positions > ASSIGNMENT_MAX || c->words[TRANSFORMER_SOURCE] != SCENE_COLORS ||
                    c->words[TRANSFORMER_TARGET] != SCENE_KINDS + 1))
        fuzz_die("other classes");
    if (!detects &&
        (c->positions < 2 || c->words[TRANSFORMER_TARGET] != WORDS_SPECIAL + caption_word_count()))
        fuzz_die("other words");
}

static void check_config(const transformer_config *c)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    const vision_shape *const v = &c->vision;
    if (!transformer_config_check(c, message))
        fuzz_die("a configuration that is none");
    if (v->channels != SCENE_CHANNELS || v->patch > v->side || v->stride > v->patch ||
        vision_tokens(v) < 2 || c->positions < 1 || c->width % c->heads != 0)
        fuzz_die("sizes that do not fit");
}

/* As one kind of model. */
static bool fuzz_kind(const uint8_t *bytes, size_t size, int kind)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    folder_config r = {.path = "fuzz", .message = message};
    transformer_config config = {.width = -1};
    if (json_tree_parse(&r.tree, "fuzz", (const char *)bytes, size, message, sizeof message))
        return false;
    const mha_status status = scene_model_read_config(kinds[kind], &r, &config);
    if ((status == MHA_OK) != (message[0] == '\0') || (status == MHA_OK) != (config.width > 0))
        fuzz_die("status, message and result disagree");
    if (status == MHA_OK) {
        check_config(&config);
        check_classes(&config, kinds[kind] == &detector_kind);
    }
    return status == MHA_OK;
}

static bool fuzz_one(const uint8_t *bytes, size_t size)
{
    int accepted = 0;
    size = size < TEXT_MAX ? size : TEXT_MAX;
    for (int kind = 0; kind < KINDS; kind++)
        accepted += fuzz_kind(bytes, size, kind);
    if (accepted > 1)
        fuzz_die("a model of two kinds");
    return accepted > 0;
}

static const char *color_name(int n)
{
    return scene_color_name((scene_color)n);
}

static const char *kind_name(int n)
{
    return scene_kind_name((scene_kind)n);
}

/* A list of names, of which sometimes one is wrong. */
static size_t put_list(test_random *random, char *text, size_t room, const char *key,
                       const char *(*name)(int), int count)
{
    const int64_t wrong = test_random_below(random, 4) ? -1 : test_random_below(random, count + 4);
    size_t used = (size_t)snprintf(text, room, ",\"%s\":[", key);
    for (int n = 0; n < count; n++)
        used += (size_t)snprintf(text + used, room - used, "%s\"%s\"", n > 0 ? "," : "",
                                 n == wrong ? "word" : name(n));
    return used + (size_t)snprintf(text + used, room - used, "]");
}

/* A configuration in which some values are odd, and sometimes a name or a byte. */
static size_t random_text(test_random *random, char *text, size_t room)
{
    static const struct {
        const char *key, *usual;
    } keys[] = {{"hidden_size", "32"},
                {"num_attention_heads", "4"},
                {"intermediate_size", "64"},
                {"encoder_layers", "2"},
                {"decoder_layers", "2"},
                {"image_size", "40"},
                {"num_channels", "3"},
                {"patch_size", "5"},
                {"patch_stride", "5"},
                {"places", "\"sines\""},
                {"max_position_embeddings", "22"},
                {"num_queries", "8"}};
    static const char *const odd[] = {"1",    "2",     "7",          "16",  "17",          "0",
                                      "-1",   "1e9",   "2147483648", "0.5", "1048576",     "65537",
                                      "null", "false", "[]",         "{}",  "\"learned\"", "\"\""};
    enum { KEYS = sizeof keys / sizeof keys[0], ODD = sizeof odd / sizeof odd[0] };
    const int kind = (int)test_random_below(random, KINDS);
    size_t used = (size_t)snprintf(text, room, "{\"model_type\":\"%s\"", kinds[kind]->type);
    for (int n = 0; n < KEYS; n++) {
        const bool is_odd = test_random_below(random, 8) == 0;
        used += (size_t)snprintf(text + used, room - used, ",\"%s\":%s", keys[n].key,
                                 is_odd ? odd[test_random_below(random, ODD)] : keys[n].usual);
    }
    used += put_list(random, text + used, room - used, "words", caption_word, caption_word_count());
    used += put_list(random, text + used, room - used, "colors", color_name, SCENE_COLORS);
    used += put_list(random, text + used, room - used, "kinds", kind_name, SCENE_KINDS);
    used += (size_t)snprintf(text + used, room - used, "}");
    if (test_random_below(random, 8) == 0)
        text[test_random_below(random, (int64_t)used)] = (char)test_random_u64(random);
    return used;
}

static void pseudo_random_texts(void)
{
    char text[2048];
    test_random random = {test_seed(79)};
    const int64_t rounds = test_effort(20000);
    int64_t valid = 0;
    for (int64_t n = 0; n < rounds; n++)
        valid += fuzz_one((const uint8_t *)text, random_text(&random, text, sizeof text));
    CHECK(rounds < 1000 || (valid > rounds / 20 && valid < rounds / 2),
          "%lld of %lld were accepted", (long long)valid, (long long)rounds);
}

FUZZ_TARGET(fuzz_one, pseudo_random_texts)
