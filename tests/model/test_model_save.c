/* SPDX-License-Identifier: MIT */
/*
 * Models that lost some heads, saved and opened again: the same heads and the same bits, for
 * matrices that are fused, transposed, grouped or shared, and again after more heads are removed;
 * what config.json says; zeros in place of heads, also in GGUF and llama2.c files; the other files
 * of a folder; places that are not replaced. Whatever fails leaves nothing behind.
 * tests/model/check_pruned.py compares with transformers.
 */
#include <mha/mha_model.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/leftover_files.h"
#include "support/faults.h"
#include "support/file_faults.h"
#include "support/gguf_builder.h"
#include "support/model_builder.h"
#include "support/saved_models.h"
#include "support/test.h"
#include "text/unicode_library.h"

enum { WIDTH = 8, ROWS = 9, HEADS_MAX = 64 };

/* ------------------------------------------------------------------- models ----- */

static mha_model *open_model(const char *path, mha_model_storage storage)
{
    char message[500] = "";
    mha_model *model;
    const mha_model_config config = {.size = sizeof config,
                                     .storage = storage,
                                     .message = message,
                                     .message_size = sizeof message};
    CHECK(mha_model_open(&model, path, &config) == MHA_OK, "%s", message);
    return model;
}

/* Two texts, or a source for each of them too. */
static bool run_model(const mha_model *model, bool pair, float hidden[ROWS * WIDTH])
{
    static const int32_t ids[ROWS] = {3, 4, 5, 6, 7, 8, 9, 10, 1};
    static const int64_t starts[3] = {0, 4, ROWS};
    char message[300] = "";
    const mha_model_call call = {.size = sizeof call,
                                 .B = 2,
                                 .starts = starts,
                                 .ids = ids,
                                 .source_starts = pair ? starts : NULL,
                                 .source_ids = pair ? ids : NULL,
                                 .hidden = hidden,
                                 .message = message,
                                 .message_size = sizeof message};
    return CHECK(mha_model_run(model, &call, NULL, 0, NULL) == MHA_OK, "%s", message);
}

static double distance(const float *x, const float *y)
{
    double most = 0;
    for (int n = 0; n < ROWS * WIDTH; n++) {
        const double difference = fabs((double)x[n] - (double)y[n]);
        most = difference > most || isnan(difference) ? difference : most;
    }
    return most;
}

/* Removes the heads that are 0 in `keep`, which is the same list for all kinds but for cross. */
static mha_model *prune_model(const mha_model *model, const uint8_t *keep, const uint8_t *decoder,
                              const uint8_t *cross)
{
    const uint8_t *const lists[MHA_ATTENTION_KINDS] = {keep, decoder, cross};
    char message[300] = "";
    mha_model *pruned;
    CHECK(mha_model_prune(&pruned, model, lists, message, sizeof message) == MHA_OK, "%s", message);
    return pruned;
}

static mha_status save_model(const mha_model *model, const char *path, bool zeros, bool replace,
                             char message[500])
{
    const mha_save_config config = {.size = sizeof config,
                                    .zeros = zeros,
                                    .replace = replace,
                                    .message = message,
                                    .message_size = 500};
    message[0] = '\0';
    return mha_model_save(model, path, &config);
}

static bool saves(const mha_model *model, const char *path, bool zeros)
{
    char message[500];
    const mha_status status = save_model(model, path, zeros, false, message);
    return CHECK(status == MHA_OK, "%s: %s", mha_status_string(status), message);
}

static void same_heads(const char *name, const mha_model *a, const mha_model *b)
{
    for (int kind = 0; kind < MHA_ATTENTION_KINDS; kind++)
        for (int layer = 0; layer < 3; layer++)
            CHECK(mha_model_heads(a, (mha_attention_kind)kind, layer) ==
                      mha_model_heads(b, (mha_attention_kind)kind, layer),
                  "%s: heads of kind %d, layer %d", name, kind, layer);
}

/* ------------------------------------------------------------------ folders ----- */

static const uint8_t *keep_of(const saved_model *m, int kind)
{
    /* Two layers of 4, 6 or 3 heads. */
    static const uint8_t four[HEADS_MAX] = {1, 0, 1, 1, 0, 1, 1, 0};
    static const uint8_t six[HEADS_MAX] = {1, 0, 1, 1, 1, 1, 0, 1, 1, 0, 1, 0};
    static const uint8_t three[MHA_ATTENTION_KINDS][HEADS_MAX] = {
        {1, 0, 1, 0, 1, 1}, {0, 1, 0, 1, 0, 1}, {0, 1, 1, 0, 1, 0}};
    return m->pair ? three[kind] : strstr(m->name, "Llama") ? six : four;
}

static void check_config(const saved_model *m, const temp_folder *folder, const char *name)
{
    char path[60];
    size_t size = 0;
    snprintf(path, sizeof path, "%s/config.json", name);
    unsigned char *const text = file_bytes(temp_path(folder, path), &size);
    if (CHECK(text, "%s: config.json", m->name)) {
        text[size] = '\0';
        CHECK(strstr((const char *)text, m->says), "%s: %s", m->name, (const char *)text);
    }
    free(text);
}

/* Saved and opened again: the same heads and the same bits, twice. */
static void check_smaller(const saved_model *m, const temp_folder *folder, const mha_model *pruned,
                          const float *expected)
{
    static const uint8_t first[HEADS_MAX] = {0, 1, 1, 1, 1, 1, 1, 1};
    float hidden[ROWS * WIDTH];
    if (!saves(pruned, temp_path(folder, "small"), false))
        return;
    check_config(m, folder, "small");
    mha_model *const opened = open_model(temp_path(folder, "small"), MHA_STORE_AS_FILE);
    if (!opened)
        return;
    same_heads(m->name, opened, pruned);
    if (run_model(opened, m->pair, hidden))
        CHECK(memcmp(hidden, expected, sizeof hidden) == 0, "%s: %g from the model in memory",
              m->name, distance(hidden, expected));
    mha_model *const both = prune_model(pruned, first, m->pair ? NULL : first, NULL);
    mha_model *const again = prune_model(opened, first, m->pair ? NULL : first, NULL);
    float twice[ROWS * WIDTH];
    if (both && again && run_model(both, m->pair, twice) &&
        saves(again, temp_path(folder, "smaller"), false)) {
        mha_model *const last = open_model(temp_path(folder, "smaller"), MHA_STORE_AS_FILE);
        if (last && run_model(last, m->pair, hidden)) {
            same_heads(m->name, last, both);
            CHECK(memcmp(hidden, twice, sizeof hidden) == 0, "%s: pruned twice: %g", m->name,
                  distance(hidden, twice));
        }
        mha_model_free(last);
    }
    mha_model_free(both);
    mha_model_free(again);
    mha_model_free(opened);
}

static void check_zeros(const saved_model *m, const temp_folder *folder, const mha_model *plain,
                        const mha_model *pruned, const float *expected)
{
    float hidden[ROWS * WIDTH];
    if (!saves(pruned, temp_path(folder, "zeros"), true))
        return;
    mha_model *const opened = open_model(temp_path(folder, "zeros"), MHA_STORE_AS_FILE);
    if (opened && run_model(opened, m->pair, hidden)) {
        same_heads(m->name, opened, plain);
        CHECK(distance(hidden, expected) < 1e-5, "%s: zeros: %g", m->name,
              distance(hidden, expected));
    }
    mha_model_free(opened);
}

static void check_model(const saved_model *m)
{
    const temp_folder folder = temp_folder_new();
    float whole[ROWS * WIDTH], expected[ROWS * WIDTH], hidden[ROWS * WIDTH];
    model_builder_random(&folder, m->config, m->tensors, 2, m->half);
    mha_model *const plain = open_model(folder.path, MHA_STORE_AS_FILE);
    mha_model *const pruned =
        plain ? prune_model(plain, keep_of(m, 0), keep_of(m, 1), keep_of(m, 2)) : NULL;
    if (pruned && run_model(plain, m->pair, whole) && run_model(pruned, m->pair, expected)) {
        CHECK(distance(whole, expected) > 1e-3, "%s: nothing changes", m->name);
        check_smaller(m, &folder, pruned, expected);
        check_zeros(m, &folder, plain, pruned, expected);
        if (saves(plain, temp_path(&folder, "copy"), false)) {
            mha_model *const copy = open_model(temp_path(&folder, "copy"), MHA_STORE_AS_FILE);
            if (copy && run_model(copy, m->pair, hidden))
                CHECK(memcmp(hidden, whole, sizeof whole) == 0, "%s: a copy differs", m->name);
            mha_model_free(copy);
        }
    }
    mha_model_free(pruned);
    mha_model_free(plain);
    temp_folder_free(&folder);
}

static void saved_models_are_the_same(void)
{
    for (int n = 0; n < SAVED_MODELS; n++)
        check_model(&saved_models[n]);
}

/* ALBERT without the same heads in all layers still shares its weights. */
static void shared_layers_stay_shared(void)
{
    static const uint8_t keep[8] = {1, 0, 1, 1, 1, 0, 1, 1};
    static const saved_model m = {.name = "ALBERT", .says = "\"pruned_heads\": {\"0\": [1]}"};
    const temp_folder folder = temp_folder_new();
    float expected[ROWS * WIDTH], hidden[ROWS * WIDTH];
    model_builder_random(&folder, saved_models[SAVED_ALBERT].config,
                         saved_models[SAVED_ALBERT].tensors, 2, false);
    mha_model *const plain = open_model(folder.path, MHA_STORE_AS_FILE);
    mha_model *const pruned = prune_model(plain, keep, NULL, NULL);
    if (pruned && run_model(pruned, false, expected) &&
        saves(pruned, temp_path(&folder, "small"), false)) {
        check_config(&m, &folder, "small");
        mha_model *const opened = open_model(temp_path(&folder, "small"), MHA_STORE_AS_FILE);
        mha_model_info before = {.size = sizeof before}, after = {.size = sizeof after};
        if (opened && run_model(opened, false, hidden))
            CHECK(memcmp(hidden, expected, sizeof hidden) == 0, "other bits");
        mha_model_get_info(plain, &before);
        mha_model_get_info(opened, &after);
        CHECK(after.parameters < before.parameters, "%lld parameters", (long long)after.parameters);
        mha_model_free(opened);
    }
    mha_model_free(pruned);
    mha_model_free(plain);
    temp_folder_free(&folder);
}

/* Layers of Llama with the same number of heads need no key of our own. */
static void even_layers_have_other_numbers(void)
{
    static const uint8_t keep[12] = {1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
    static const saved_model m = {
        .name = "Llama",
        .says = "\"num_attention_heads\":2,\"num_key_value_heads\":2,\"intermediate_size\":12,"
                "\"head_dim\":4"};
    const temp_folder folder = temp_folder_new();
    float expected[ROWS * WIDTH], hidden[ROWS * WIDTH];
    model_builder_random(&folder, saved_models[SAVED_LLAMA].config,
                         saved_models[SAVED_LLAMA].tensors, 2, false);
    mha_model *const plain = open_model(folder.path, MHA_STORE_AS_FILE);
    mha_model *const pruned = prune_model(plain, NULL, keep, NULL);
    if (pruned && run_model(pruned, false, expected) &&
        saves(pruned, temp_path(&folder, "small"), false)) {
        check_config(&m, &folder, "small");
        mha_model *const opened = open_model(temp_path(&folder, "small"), MHA_STORE_AS_FILE);
        mha_model_info info = {.size = sizeof info};
        if (opened && run_model(opened, false, hidden))
            CHECK(memcmp(hidden, expected, sizeof hidden) == 0, "other bits");
        CHECK(mha_model_get_info(opened, &info) == MHA_OK && info.heads == 2 && info.key_heads == 2,
              "info");
        mha_model_free(opened);
    }
    mha_model_free(pruned);
    mha_model_free(plain);
    temp_folder_free(&folder);
}

/* -------------------------------------------------------------- other files ----- */

static void make_text(const temp_folder *folder, const char *name, const char *text)
{
    CHECK(file_make(temp_path(folder, name), text, strlen(text)), "%s", name);
}

static bool has(const temp_folder *folder, const char *name)
{
    return access(temp_path(folder, name), F_OK) == 0;
}

static void other_files_are_copied(void)
{
    if (!text_libraries_present()) {
        test_skip("this build has no tokenizers");
        return;
    }
    const temp_folder folder = temp_folder_new();
    model_builder_random(&folder, saved_models[SAVED_BERT].config, saved_models[SAVED_BERT].tensors,
                         2, false);
    make_text(&folder, "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\ne\nf\n");
    make_text(&folder, "LICENSE", "free");
    make_text(&folder, "pytorch_model.bin", "weights");
    make_text(&folder, ".gitattributes", "hidden");
    make_text(&folder, "modules.json",
              "[{\"path\":\"\",\"type\":\"sentence_transformers.models.Transformer\"},"
              "{\"path\":\"1_Pooling\",\"type\":\"sentence_transformers.models.Pooling\"},"
              "{\"path\":\"2_Normalize\",\"type\":\"sentence_transformers.models.Normalize\"}]");
    CHECK(mkdir(temp_path(&folder, "1_Pooling"), 0777) == 0, "mkdir");
    CHECK(mkdir(temp_path(&folder, "other"), 0777) == 0, "mkdir");
    make_text(&folder, "1_Pooling/config.json", "{\"pooling_mode_cls_token\":true}");
    make_text(&folder, "other/file", "not of the model");
    if (TEST_WINDOWS)
        make_text(&folder, "COPYING", "free");
    else
        CHECK(symlink("LICENSE", temp_path(&folder, "COPYING")) == 0, "link");
    mha_model *const plain = open_model(folder.path, MHA_STORE_AS_FILE);
    if (plain && saves(plain, temp_path(&folder, "new/"), false)) {
        CHECK(has(&folder, "new/vocab.txt") && has(&folder, "new/LICENSE") &&
                  has(&folder, "new/COPYING") && has(&folder, "new/1_Pooling/config.json") &&
                  has(&folder, "new/model.safetensors"),
              "files are missing");
        CHECK(!has(&folder, "new/pytorch_model.bin") && !has(&folder, "new/.gitattributes") &&
                  !has(&folder, "new/other") && !has(&folder, "new/2_Normalize"),
              "too many files");
        mha_model *const opened = open_model(temp_path(&folder, "new"), MHA_STORE_AS_FILE);
        CHECK(opened && mha_model_tokenizer(opened), "no tokenizer");
        static const char *const text = "a b";
        float x[WIDTH], y[WIDTH];
        CHECK(mha_model_encode(plain, &text, 1, NULL, x, NULL) == MHA_OK &&
                  mha_model_encode(opened, &text, 1, NULL, y, NULL) == MHA_OK &&
                  memcmp(x, y, sizeof x) == 0,
              "vectors");
        mha_model_free(opened);
    }
    if (!TEST_WINDOWS) {
        char message[500];
        CHECK(symlink("/etc/passwd", temp_path(&folder, "notes")) == 0, "link");
        CHECK(save_model(plain, temp_path(&folder, "link"), false, false, message) ==
                      MHA_ERR_FORMAT &&
                  strstr(message, "\"notes\" is a link that leads out"),
              "%s", message);
        CHECK(!has(&folder, "link"), "a folder that is not complete");
    }
    mha_model_free(plain);
    temp_folder_free(&folder);
}

/* ------------------------------------------------------------------- places ----- */

static void is_refused(const mha_model *model, const char *path, bool replace, mha_status wanted,
                       const char *says)
{
    char message[500];
    const mha_status status = save_model(model, path, false, replace, message);
    CHECK(status == wanted && strstr(message, says), "%s: %s: %s", path, mha_status_string(status),
          message);
}

static void places_are_not_overwritten(void)
{
    const temp_folder folder = temp_folder_new();
    model_builder_random(&folder, saved_models[SAVED_BERT].config, saved_models[SAVED_BERT].tensors,
                         2, false);
    mha_model *const model = open_model(folder.path, MHA_STORE_AS_FILE);
    make_text(&folder, "file", "mine");
    is_refused(model, temp_path(&folder, "file"), false, MHA_ERR_FILE, "exists already");
    is_refused(model, temp_path(&folder, "file"), true, MHA_ERR_FILE, "is not a folder");
    is_refused(model, folder.path, true, MHA_ERR_FILE, "is the model itself");
    is_refused(model, temp_path(&folder, "no/folder"), false, MHA_ERR_FILE, "No such file");
    CHECK(mkdir(temp_path(&folder, "out"), 0777) == 0, "mkdir");
    CHECK(saves(model, temp_path(&folder, "out"), false), "into an empty folder");
    is_refused(model, temp_path(&folder, "out"), false, MHA_ERR_FILE, "exists already");
    make_text(&folder, "out/old", "of the model before");
    const int entries = temp_folder_count(&folder);
    char message[500];
    CHECK(save_model(model, temp_path(&folder, "out"), false, true, message) == MHA_OK, "%s",
          message);
    CHECK(!has(&folder, "out/old") && has(&folder, "out/config.json"), "not replaced");
    CHECK(mkdir(temp_path(&folder, "mine"), 0777) == 0, "mkdir");
    make_text(&folder, "mine/letter", "dear");
    is_refused(model, temp_path(&folder, "mine"), true, MHA_ERR_FILE, "not the folder of a model");
    make_text(&folder, "mine/config.json", "{}");
    CHECK(mkdir(temp_path(&folder, "mine/a"), 0777) == 0, "mkdir");
    CHECK(mkdir(temp_path(&folder, "mine/a/b"), 0777) == 0, "mkdir");
    is_refused(model, temp_path(&folder, "mine"), true, MHA_ERR_FILE, "folders in folders");
    CHECK(has(&folder, "mine/letter") && has(&folder, "mine/a/b"), "something is gone");
    CHECK(temp_folder_count(&folder) == entries + 1, "files are left over");
    mha_model_free(model);
    temp_folder_free(&folder);
}

static void wrong_arguments(void)
{
    const mha_save_config wrong = {.size = 3};
    mha_model *const translator = open_model(MHA_MODEL_FILE, MHA_STORE_AS_FILE);
    CHECK(mha_model_save(NULL, "x", NULL) == MHA_ERR_NULL, "no model");
    CHECK(mha_model_save(translator, NULL, NULL) == MHA_ERR_NULL, "no path");
    CHECK(mha_model_save(translator, "x", &wrong) == MHA_ERR_STRUCT, "size");
    is_refused(translator, "/tmp/never", false, MHA_ERR_FLAG, "mha prune -o");
    mha_model_free(translator);
}

/* ------------------------------------------------------------- single files ----- */

/* 2 layers, 2 heads of width 256, Q6_K. */
static void write_gguf(const char *path)
{
    gguf_builder g = {.bytes = NULL};
    gguf_builder_text(&g, "general.architecture", "llama");
    gguf_builder_integer(&g, "llama.block_count", 2);
    gguf_builder_integer(&g, "llama.embedding_length", 256);
    gguf_builder_integer(&g, "llama.feed_forward_length", 256);
    gguf_builder_integer(&g, "llama.context_length", 16);
    gguf_builder_integer(&g, "llama.attention.head_count", 2);
    gguf_builder_integer(&g, "llama.attention.key_length", 256);
    gguf_builder_real(&g, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    gguf_builder_tensors(&g,
                         "output_norm.weight 256\nblk.#.attn_norm.weight 256\n"
                         "blk.#.ffn_norm.weight 256\n",
                         2, 1.0f);
    gguf_builder_blocks(&g,
                        "token_embd.weight 11 256\nblk.#.attn_q.weight 512 256\n"
                        "blk.#.attn_k.weight 512 256\nblk.#.attn_v.weight 512 256\n"
                        "blk.#.attn_output.weight 256 512\nblk.#.ffn_gate.weight 256 256\n"
                        "blk.#.ffn_up.weight 256 256\nblk.#.ffn_down.weight 256 256\n",
                        2, MHA_Q6_K);
    gguf_builder_write(&g, path);
    gguf_builder_free(&g);
}

/* Width 8, inner 12, 2 layers, 4 heads, 2 key/value heads, 11 words, 16 positions. */
static void write_llama2c(const char *path)
{
    static const int32_t numbers[7] = {8, 12, 2, 4, 2, 11, 16};
    enum {
        FLOATS = 11 * 8 + 2 * (8 + 64 + 64 + 64 + 8 + 3 * 96) + 8 + 16 * 2,
        BYTES = 28 + 4 * FLOATS
    };
    static unsigned char bytes[BYTES];
    test_random random = {5};
    memcpy(bytes, numbers, sizeof numbers);
    for (int n = 0; n < FLOATS; n++) {
        const float x = 0.5f * test_random_normal(&random);
        memcpy(bytes + 28 + 4 * n, &x, sizeof x);
    }
    CHECK(file_make(path, bytes, BYTES), "write");
}

/* Hidden states of 4 tokens. */
static bool run_decoder(const mha_model *model, float *hidden)
{
    static const int32_t ids[4] = {3, 4, 5, 6};
    static const int64_t starts[2] = {0, 4};
    const mha_model_call call = {
        .size = sizeof call, .B = 1, .starts = starts, .ids = ids, .hidden = hidden};
    return CHECK(mha_model_run(model, &call, NULL, 0, NULL) == MHA_OK, "run");
}

/* NaN if there is one. */
static double largest_difference(const float *a, const float *b, ptrdiff_t count)
{
    double most = 0;
    for (ptrdiff_t n = 0; n < count; n++) {
        const double difference = fabs((double)a[n] - (double)b[n]);
        if (isnan(difference))
            return difference;
        if (difference > most)
            most = difference;
    }
    return most;
}

static void check_file(const temp_folder *folder, const char *name, ptrdiff_t width,
                       const uint8_t *keep)
{
    static float whole[4 * 256], expected[4 * 256], hidden[4 * 256];
    char copy[80], message[500];
    double far = 0, apart = 0;
    snprintf(copy, sizeof copy, "copy-%s", name);
    mha_model *const plain = open_model(temp_path(folder, name), MHA_STORE_AS_FILE);
    mha_model *const pruned = prune_model(plain, NULL, keep, NULL);
    is_refused(pruned, temp_path(folder, copy), false, MHA_ERR_FLAG, "one number of heads");
    CHECK(!has(folder, copy), "%s: a file", name);
    if (!saves(pruned, temp_path(folder, copy), true))
        return;
    CHECK(save_model(pruned, temp_path(folder, copy), true, false, message) == MHA_ERR_FILE &&
              strstr(message, "exists already"),
          "%s: %s", name, message);
    CHECK(save_model(pruned, temp_path(folder, copy), true, true, message) == MHA_OK, "%s",
          message);
    is_refused(plain, temp_path(folder, name), true, MHA_ERR_FILE, "the model itself");
    mha_model *const opened = open_model(temp_path(folder, copy), MHA_STORE_AS_FILE);
    if (opened && run_decoder(plain, whole) && run_decoder(pruned, expected) &&
        run_decoder(opened, hidden)) {
        far = largest_difference(hidden, expected, 4 * width);
        apart = largest_difference(whole, expected, 4 * width);
    }
    CHECK(far < 1e-5 && apart > 1e-3, "%s: %g, without a change %g", name, far, apart);
    same_heads(name, opened, plain);
    mha_model_free(opened);
    mha_model_free(pruned);
    mha_model_free(plain);
}

static void single_files_get_zeros(void)
{
    static const uint8_t two[4] = {1, 0, 0, 1}, four[8] = {1, 0, 1, 1, 0, 0, 1, 0};
    const temp_folder folder = temp_folder_new();
    write_gguf(temp_path(&folder, "m.gguf"));
    write_llama2c(temp_path(&folder, "m.bin"));
    check_file(&folder, "m.gguf", 256, two);
    check_file(&folder, "m.bin", 8, four);
    CHECK(temp_folder_count(&folder) == 4, "files are left over");
    temp_folder_free(&folder);
}

/* ------------------------------------------------------------------- faults ----- */

/* Saves with request n failing. Returns whether there were that many. */
static bool meet_failure(const temp_folder *folder, const mha_model *model, const char *name,
                         bool zeros, bool memory, bool for_ever, int n)
{
    const int before = temp_folder_count(folder);
    char message[500];
    file_faults_arm(memory ? 0 : n, for_ever, false);
    faults_arm(MEMORY, memory ? n : 0, memory && n % 2 == 0);
    const mha_status status = save_model(model, temp_path(folder, name), zeros, true, message);
    faults_disarm();
    file_faults_disarm();
    const bool met = (memory ? faults_requests(MEMORY) : file_faults_calls()) >= n;
    CHECK(faults_left(MEMORY) == 0, "%s, request %d: %d blocks left", name, n, faults_left(MEMORY));
    CHECK(file_faults_left() == 0, "%s, request %d: %d files left", name, n, file_faults_left());
    /* What is read may be closed with an error, and an old folder may stay. */
    CHECK(status == (!met     ? MHA_OK
                     : memory ? MHA_ERR_MEMORY
                              : MHA_ERR_FILE) ||
              (met && !memory && status == MHA_OK),
          "%s, request %d: %s %s", name, n, mha_status_string(status), message);
    /* As the next command does. Where folders are not exchanged in one step, and a disk that fails
     * for ever keeps the old one from taking its name back, it waits for this. */
    if (for_ever)
        leftover_files_remove(temp_path(folder, name));
    CHECK(temp_folder_count(folder) == before, "%s, request %d: files are left over", name, n);
    mha_model *opened = NULL;
    CHECK(mha_model_open(&opened, temp_path(folder, name), NULL) == MHA_OK,
          "%s, request %d: no model is there", name, n);
    mha_model_free(opened);
    return met;
}

static void everything_may_fail(void)
{
    if (!text_libraries_present()) {
        test_skip("this build has no tokenizers");
        return;
    }
    const temp_folder folder = temp_folder_new(), out = temp_folder_new();
    model_builder_random(&folder, saved_models[SAVED_ALBERT].config,
                         saved_models[SAVED_ALBERT].tensors, 2, false);
    make_text(&folder, "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\ne\nf\n");
    write_llama2c(temp_path(&folder, "m.bin"));
    mha_model *const whole[2] = {open_model(folder.path, MHA_STORE_AS_FILE),
                                 open_model(temp_path(&folder, "m.bin"), MHA_STORE_AS_FILE)};
    for (int k = 0; k < 2; k++) {
        static const char *const names[2] = {"folder", "m.bin"};
        mha_model *const model = prune_model(whole[k], keep_of(&saved_models[SAVED_BERT], 0),
                                             keep_of(&saved_models[SAVED_BERT], 1), NULL);
        CHECK(saves(model, temp_path(&out, names[k]), k == 1), "%s", names[k]);
        for (int round = 0; round < 3; round++) {
            int n = 1;
            while (n < 2000 &&
                   meet_failure(&out, model, names[k], k == 1, round == 1, round == 2, n))
                n++;
            CHECK(n > 4 && n < 2000, "%s: %d requests", names[k], n);
        }
        mha_model_free(model);
        mha_model_free(whole[k]);
    }
    temp_folder_free(&folder);
    temp_folder_free(&out);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(saved_models_are_the_same);
    RUN(shared_layers_stay_shared);
    RUN(even_layers_have_other_numbers);
    RUN(other_files_are_copied);
    RUN(places_are_not_overwritten);
    RUN(wrong_arguments);
    RUN(single_files_get_zeros);
    RUN(everything_may_fail);
    return test_end();
}
