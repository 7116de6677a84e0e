/* SPDX-License-Identifier: MIT */
/*
 * Models when memory allocation fails (faults.h): every function returns MHA_ERR_MEMORY, changes
 * nothing, leaks nothing, and works again afterwards.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_parts.h"
#include "support/faults.h"
#include "support/temp_files.h"
#include "support/test.h"
#include "support/tiny_models.h"

enum { WORDS = 60, WIDTH = 64 };

static temp_folder folder;
static mha_model *model, *pair, *encoder;
static mha_state *state;
static int32_t ids[16];
static const int64_t starts[3] = {0, 5, 9};

/* A job returns a status; everything that it made is freed again. */
typedef mha_status job(void);

static mha_status run(void)
{
    static float logits[9 * WORDS];
    const mha_model_call call = {
        .size = sizeof call, .B = 2, .starts = starts, .ids = ids, .logits = logits};
    return mha_model_run(model, &call, NULL, 0, NULL);
}

static mha_status run_state(void)
{
    const int64_t one[2] = {0, 1};
    const mha_model_call call = {
        .size = sizeof call, .B = 1, .starts = one, .ids = ids, .state = state};
    const ptrdiff_t before = mha_state_length(state, 0);
    const mha_status status = mha_model_run(model, &call, NULL, 0, NULL);
    CHECK(mha_state_length(state, 0) == before + (status == MHA_OK), "length");
    if (status == MHA_OK)
        CHECK(mha_state_truncate(state, 0, before) == MHA_OK, "truncate");
    return status;
}

static mha_status make_state(void)
{
    mha_state *made;
    const mha_status status = mha_state_create(&made, pair, NULL);
    CHECK(!made == (status != MHA_OK), "state");
    mha_state_free(made);
    return status;
}

static mha_status reorder(void)
{
    static const int64_t parents[1] = {0};
    return mha_state_reorder(state, parents);
}

static mha_status save(void)
{
    const mha_status status = mha_state_save(state, temp_path(&folder, "again"), NULL, 0);
    CHECK(temp_folder_count(&folder) == 1 + (status == MHA_OK), "files are left over");
    if (status == MHA_OK)
        remove(temp_path(&folder, "again"));
    return status;
}

static mha_status load(void)
{
    mha_state *made;
    const mha_status status = mha_state_load(&made, model, temp_path(&folder, "state"), NULL, 0);
    CHECK(!made == (status != MHA_OK), "state");
    mha_state_free(made);
    return status;
}

static mha_status generate_with(const mha_model *with)
{
    const mha_generate_config config = {
        .size = sizeof config, .most = 3, .sampling = {.temperature = 1}};
    mha_generation results[2];
    const mha_status status = mha_model_generate(with, 2, starts, ids, &config, results, NULL);
    for (int b = 0; b < 2; b++) {
        CHECK(!results[b].ids == (status != MHA_OK), "results");
        mha_generation_free(&results[b]);
    }
    return status;
}

static mha_status generate(void)
{
    return generate_with(model);
}

static mha_status generate_pair(void)
{
    return generate_with(pair);
}

static mha_status generate_beams(void)
{
    const mha_generate_config config = {.size = sizeof config, .most = 3, .beams = 3, .best = 2};
    mha_generation results[4];
    const mha_status status = mha_model_generate(pair, 2, starts, ids, &config, results, NULL);
    for (int n = 0; n < 4; n++) {
        CHECK(!results[n].ids == (status != MHA_OK), "results");
        mha_generation_free(&results[n]);
    }
    return status;
}

static mha_status score(void)
{
    double scores[9];
    return mha_model_score(model, 2, starts, ids, NULL, scores, NULL, 0, NULL);
}

static mha_status encode(void)
{
    static const char *const texts[2] = {"a b", "b a b"};
    float vectors[2 * WIDTH];
    return mha_model_encode(encoder, texts, 2, NULL, vectors, NULL);
}

static mha_status prune(void)
{
    uint8_t keep[12];
    const uint8_t *const lists[MHA_ATTENTION_KINDS] = {keep, keep, keep};
    mha_model *pruned;
    memset(keep, 1, sizeof keep);
    keep[1] = keep[6] = 0;
    const mha_status status = mha_model_prune(&pruned, pair, lists, NULL, 0);
    CHECK(!pruned == (status != MHA_OK), "model");
    mha_model_free(pruned);
    return status;
}

/* Fails one request after another, until there are no more. */
static void fail_everywhere(job *work, const char *name)
{
    int requests = 0;
    for (int n = 1; n < 4000; n++) {
        faults_arm(MEMORY, n, n % 2 == 0);
        const mha_status status = work();
        requests = faults_requests(MEMORY);
        const int left = faults_left(MEMORY);
        faults_disarm();
        CHECK(left == 0, "%s, request %d: %d blocks are not freed", name, n, left);
        if (n > requests) {
            CHECK(status == MHA_OK, "%s: %s", name, mha_status_string(status));
            return;
        }
        CHECK(status == MHA_ERR_MEMORY, "%s, request %d of %d: %s", name, n, requests,
              mha_status_string(status));
    }
    CHECK(false, "%s: no end after %d requests", name, requests);
}

/* A failed attempt leaves the files to the caller, who can try again. */
static void models_are_built_or_not(void)
{
    static const mha_model_config config = {.size = sizeof config};
    model_files files = tiny_files(TINY_T5, MHA_F32, 3);
    for (int n = 1;; n++) {
        mha_model *made;
        faults_arm(MEMORY, n, n % 2 == 0);
        const mha_status status = model_build(&made, &files, &config);
        const int left = faults_left(MEMORY), requests = faults_requests(MEMORY);
        faults_disarm();
        if (status == MHA_OK) {
            CHECK(n > requests, "request %d of %d failed without an error", n, requests);
            mha_model_free(made);
            return;
        }
        CHECK(status == MHA_ERR_MEMORY && !made, "request %d: %s", n, mha_status_string(status));
        CHECK(left == 0, "request %d: %d blocks are not freed", n, left);
    }
}

static void memory_may_fail_anywhere(void)
{
    static const struct {
        job *work;
        const char *name;
    } jobs[] = {{run, "run"},
                {run_state, "run with a state"},
                {make_state, "state"},
                {reorder, "reorder"},
                {save, "save"},
                {load, "load"},
                {generate, "generate"},
                {generate_pair, "translate"},
                {generate_beams, "beams"},
                {score, "score"},
                {encode, "encode"},
                {prune, "prune"}};
    for (size_t n = 0; n < sizeof jobs / sizeof jobs[0]; n++)
        fail_everywhere(jobs[n].work, jobs[n].name);
}

int main(int argc, char **argv)
{
    static const char lines[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n";
    test_begin(argc, argv);
    folder = temp_folder_new();
    model = tiny_model_new(TINY_LLAMA, MHA_STORE_AS_FILE, 1, NULL);
    pair = tiny_model_new(TINY_T5, MHA_STORE_AS_FILE, 1, NULL);
    encoder = tiny_model_new(TINY_BERT, MHA_STORE_AS_FILE, 1, NULL);
    tiny_ids(ids, 16, WORDS, 2);
    if (!file_make(temp_path(&folder, "vocab.txt"), lines, strlen(lines)) ||
        mha_tokenizer_open(&encoder->tokenizer, temp_path(&folder, "vocab.txt"), NULL, 0) ||
        remove(temp_path(&folder, "vocab.txt")) || mha_state_create(&state, model, NULL) ||
        run_state() || mha_state_save(state, temp_path(&folder, "state"), NULL, 0))
        abort();
    encoder->target_tokenizer = encoder->tokenizer;
    RUN(models_are_built_or_not);
    RUN(memory_may_fail_anywhere);
    mha_state_free(state);
    mha_model_free(model);
    mha_model_free(pair);
    mha_model_free(encoder);
    temp_folder_free(&folder);
    return test_end();
}
