/* SPDX-License-Identifier: MIT */
/*
 * The translator when memory allocation fails (faults.h): creating, translating, saving and loading
 * return MHA_ERR_MEMORY or a message, leak nothing, and work again afterwards.
 */
#include "translator/translator.h"

#include <stdlib.h>
#include <string.h>

#include "support/faults.h"
#include "support/temp_files.h"
#include "support/test.h"
#include "support/tiny_model.h"

enum { SENTENCES = 3 };

static temp_folder folder;
static transformer_config config;
static float *values;
static translator *model;
static tiny_sentences sentences;

/* A job returns whether it succeeded, and checks the message of a failure itself. */
typedef bool (*job)(void);

static bool make(void)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    translator *const t = translator_create(&config, values, message);
    CHECK(t || message[0], "no translator and no message");
    translator_free(t);
    return t;
}

static bool translate_with(const translation_options *options)
{
    translation results[SENTENCES];
    const mha_status status = translator_translate(
        model, sentences.sources + 4, sentences.lengths + 4, SENTENCES, options, results, NULL);
    CHECK(status == MHA_OK || status == MHA_ERR_MEMORY, "%s", mha_status_string(status));
    for (int n = 0; n < SENTENCES; n++) {
        CHECK(!results[n].weights == (status != MHA_OK), "weights after %s",
              mha_status_string(status));
        free(results[n].weights);
    }
    return status == MHA_OK;
}

static bool translate(void)
{
    static const translation_options options = {.beam = 2, .weights = true};
    return translate_with(&options);
}

static bool translate_again(void)
{
    static const translation_options options = {.beam = 2, .weights = true, .no_cache = true};
    return translate_with(&options);
}

static bool save(void)
{
    static const translator_note note = {"steps", "12"};
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    const mha_status status =
        translator_save(temp_path(&folder, "again"), &config, values, MHA_F16, &note, 1, message);
    CHECK(status == MHA_OK || (status == MHA_ERR_MEMORY && message[0]), "%s, \"%s\"",
          mha_status_string(status), message);
    return status == MHA_OK;
}

static bool save_changed(void)
{
    static const translator_note note = {"steps", "12"};
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    const mha_status status = translator_save_changed(temp_path(&folder, "again"), model, values,
                                                      MHA_F16, &note, 1, message);
    CHECK(status == MHA_OK || (status == MHA_ERR_MEMORY && message[0]), "%s, \"%s\"",
          mha_status_string(status), message);
    return status == MHA_OK;
}

static bool load(void)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    translator *const t = translator_load(temp_path(&folder, "model"), message);
    CHECK(t || message[0], "no translator and no message");
    translator_free(t);
    return t;
}

static void meet_failures(job work)
{
    for (int for_ever = 0; for_ever < 2; for_ever++)
        for (int n = 1;; n += n < 400 ? 1 : 37) {
            faults_arm(MEMORY, n, for_ever);
            const bool done = work();
            faults_disarm();
            const bool met = faults_requests(MEMORY) >= n;
            CHECK(done == !met, "request %d refused: %s", n, done ? "done" : "not done");
            CHECK(faults_left(MEMORY) == 0, "request %d refused: %d blocks are left", n,
                  faults_left(MEMORY));
            if (!met)
                break;
        }
}

static void making(void)
{
    meet_failures(make);
}

static void translating(void)
{
    meet_failures(translate);
    meet_failures(translate_again);
}

static void saving(void)
{
    meet_failures(save);
    meet_failures(save_changed);
}

static void loading(void)
{
    meet_failures(load);
}

int main(int argc, char **argv)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    test_begin(argc, argv);
    folder = temp_folder_new();
    config = tiny_corpus_config();
    values = tiny_values(&config, 3);
    model = translator_create(&config, values, message);
    tiny_sentences_fill(&sentences, &config, 4);
    if (model && translator_save(temp_path(&folder, "model"), &config, values, MHA_F16, NULL, 0,
                                 message) == MHA_OK) {
        RUN(making);
        RUN(translating);
        RUN(saving);
        RUN(loading);
    }
    translator_free(model);
    free(values);
    temp_folder_free(&folder);
    return test_end();
}
