/* SPDX-License-Identifier: MIT */
/* Learning a vocabulary when memory allocation fails (faults.h): each step returns MHA_ERR_MEMORY
 * and leaks nothing. A pattern that cannot be compiled just in time is only slower, so such a
 * request may fail without a consequence. */
#include "support/faults.h"
#include "support/temp_files.h"
#include "support/test.h"
#include "text/bpe_dropout.h"
#include "text/bpe_learn.h"

#include <stdio.h>
#include <string.h>

static mha_status add_lines(bpe_learner *learner)
{
    static const char *const lines[] = {
        "I don't think it's Tom's.", "L'homme qu'il n'aime pas, e\xcc\x81t\xc3\xa9 \xe2\x82\xac",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ababab"};
    mha_status status = MHA_OK;
    for (int n = 0; n < 6 && status == MHA_OK; n++)
        status = bpe_learner_add(learner, lines[n % 3], strlen(lines[n % 3]));
    return status;
}

static mha_status use(const bpe_learned *learned, const char *path, char message[300])
{
    mha_tokenizer *tokenizer;
    mha_status status = bpe_learned_save(learned, path, message, 300);
    if (status == MHA_OK)
        status = bpe_learned_open(learned, &tokenizer, message, 300);
    if (status == MHA_OK) {
        mha_tokens tokens;
        status = tokenizer_encode_dropout(tokenizer, "I don't aaaaaaaaaaaaaaaaaaaaaaaaa", 33, 0,
                                          &(bpe_dropout){0.9, 1}, &tokens);
        snprintf(message, 300, "encoding failed");
        mha_tokens_free(&tokens);
        mha_tokenizer_free(tokenizer);
    }
    return status;
}

static mha_status learn(const char *path)
{
    static const bpe_learn_options options = {330, 2, 2};
    char message[300] = "";
    bpe_learner *learner;
    bpe_learned learned = {0};
    mha_status status = bpe_learner_create(&learner, message, sizeof message);
    CHECK((status == MHA_OK) == (learner != NULL), "learner and status disagree");
    if (status == MHA_OK) {
        status = add_lines(learner);
        if (status == MHA_OK) {
            status = bpe_learner_finish(learner, &options, &learned, message, sizeof message);
            CHECK((status == MHA_OK) == (learned.json != NULL), "text and status disagree");
            if (status == MHA_OK)
                status = use(&learned, path, message);
        }
        CHECK(status == MHA_OK || message[0] || !learned.json, "no message");
    }
    bpe_learned_free(&learned);
    bpe_learner_free(learner);
    return status;
}

static void every_request_fails(void)
{
    const temp_folder folder = temp_folder_new();
    char path[200];
    snprintf(path, sizeof path, "%s", temp_path(&folder, "tokenizer.json"));
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        int failures = 0, n = 1;
        for (bool met = true; met && n < 20000; n++) {
            faults_arm(MEMORY, n, for_ever);
            const mha_status status = learn(path);
            faults_disarm();
            met = faults_requests(MEMORY) >= n;
            failures += status == MHA_ERR_MEMORY;
            CHECK(status == MHA_ERR_MEMORY || status == MHA_OK, "request %d: status %d", n,
                  (int)status);
            CHECK(faults_left(MEMORY) == 0, "request %d: %d blocks left", n, faults_left(MEMORY));
        }
        CHECK(n > 200 && failures > n * 3 / 4, "only %d of %d requests matter", failures, n);
    }
    CHECK(temp_folder_count(&folder) == 1, "%d files", temp_folder_count(&folder));
    temp_folder_free(&folder);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(every_request_fails);
    return test_end();
}
