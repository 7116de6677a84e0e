/* SPDX-License-Identifier: MIT */
/* The files of "mha train --pairs" (train_text.h). */
#include "program/train_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/terminal.h"
#include "program/args.h"
#include "program/pair_files.h"
#include "text/bpe_learn.h"

enum { TOKENIZER_MAX = 1 << 26 };

/* ----------------------------------------------------------- tokenizer ----- */

static mha_status add_lines(bpe_learner *learner, const pair_file *file)
{
    mha_status status = MHA_OK;
    for (int64_t n = 0; n < file->count && status == MHA_OK; n++)
        for (int side = 0; side < TRANSFORMER_SIDES && status == MHA_OK; side++) {
            const pair_text *const pair = &file->pairs[n];
            status = bpe_learner_add(learner, pair->text[side], pair->length[side]);
        }
    return status;
}

static mha_status learn(train_text *t, int pieces, char *message, size_t size)
{
    const bpe_learn_options options = {.vocabulary_size = pieces};
    bpe_learner *learner = NULL;
    bpe_learned learned = {.json = NULL};
    mha_status status = bpe_learner_create(&learner, message, size);
    if (status == MHA_OK)
        status = add_lines(learner, &t->train);
    if (status == MHA_OK)
        status = bpe_learner_finish(learner, &options, &learned, message, size);
    if (status == MHA_OK)
        status = bpe_learned_open(&learned, &t->tokenizer, message, size);
    if (status == MHA_OK) {
        t->json = learned.json;
        learned.json = NULL;
    }
    bpe_learned_free(&learned);
    bpe_learner_free(learner);
    return status;
}

static mha_status read_tokenizer(train_text *t, const char *path, char *message, size_t size)
{
    size_t length;
    const mha_status status =
        mapped_file_read(&t->json, &length, path, TOKENIZER_MAX, message, size);
    return status ? status : mha_tokenizer_open(&t->tokenizer, path, message, size);
}

/* Writes the vocabulary to the folder of the model, where --resume finds it. */
static int keep_tokenizer(const train_text *t, const char *path)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    const bpe_learned learned = {.json = t->json, .length = strlen(t->json)};
    return bpe_learned_save(&learned, path, message, sizeof message) == MHA_OK
               ? EXIT_GO_ON
               : args_failed("%s", message);
}

static int open_tokenizer(train_text *t, const train_request *r)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "", kept[TRAIN_PATH_MAX + 32];
    char started[TRAIN_PATH_MAX + 32];
    struct stat there;
    snprintf(kept, sizeof kept, "%s/tokenizer.json", r->output);
    snprintf(started, sizeof started, "%s/tokenizer.json", r->start != NULL ? r->start : "");
    const char *const given = r->tokenizer != NULL                   ? r->tokenizer
                              : r->resume && stat(kept, &there) == 0 ? kept
                              : r->start != NULL                     ? started
                                                                     : NULL;
    if (given == NULL && !r->quiet)
        progress("learning %d subwords of %" PRId64 " pairs ...",
                 r->config.model.words[TRANSFORMER_TARGET], t->train.count);
    const mha_status status = given != NULL ? read_tokenizer(t, given, message, sizeof message)
                                            : learn(t, r->config.model.words[TRANSFORMER_TARGET],
                                                    message, sizeof message);
    progress_end();
    if (status != MHA_OK)
        return args_failed("no vocabulary: %s", message[0] ? message : mha_status_string(status));
    return given == kept || train_follows(r) ? EXIT_GO_ON : keep_tokenizer(t, kept);
}

/* ---------------------------------------------------------------- data ----- */

static void say_counts(const char *path, const text_counts *c)
{
    fprintf(stderr, "%s: %" PRId64 " pairs, %" PRId64 " + %" PRId64 " tokens", path, c->pairs,
            c->tokens[TRANSFORMER_SOURCE], c->tokens[TRANSFORMER_TARGET]);
    if (c->too_long > 0)
        fprintf(stderr, "; %" PRId64 " pairs are longer than --positions and left out",
                c->too_long);
    fputc('\n', stderr);
}

static int make_data(train_text *t, const train_request *r, mha_pool *pool)
{
    text_counts counts[2];
    const mha_status status = text_data_create(&t->data, &t->train, &t->valid, t->tokenizer,
                                               r->config.model.positions, pool, counts);
    if (status == MHA_ERR_LENGTH)
        return args_failed("no pair is shorter than --positions %d", r->config.model.positions);
    if (status == MHA_ERR_INDEX)
        return args_failed("the tokenizer has no mark <pad> or </s>");
    if (status != MHA_OK)
        return args_failed("the pairs cannot be converted to tokens: %s",
                           mha_status_string(status));
    if (!r->quiet) {
        say_counts(r->pairs, &counts[0]);
        say_counts(r->valid, &counts[1]);
    }
    return EXIT_GO_ON;
}

int train_text_open(train_text *t, train_request *r, mha_pool *pool)
{
    int code = pair_files_open(&t->train, r->pairs);
    if (code == EXIT_GO_ON)
        code = pair_files_open(&t->valid, r->valid);
    if (code == EXIT_GO_ON)
        code = open_tokenizer(t, r);
    if (code != EXIT_GO_ON)
        return code;
    const int words = (int)mha_tokenizer_size(t->tokenizer);
    if (r->start != NULL && words != r->config.model.words[TRANSFORMER_TARGET])
        return args_failed("%s: config.json has %d words, tokenizer.json has %d", r->start,
                           r->config.model.words[TRANSFORMER_TARGET], words);
    r->config.model.words[TRANSFORMER_SOURCE] = r->config.model.words[TRANSFORMER_TARGET] = words;
    return make_data(t, r, pool);
}

void train_text_close(train_text *t)
{
    pair_file_close(&t->train);
    pair_file_close(&t->valid);
    free(t->json);
    mha_tokenizer_free(t->tokenizer);
    text_data_free(t->data);
    *t = (train_text){.json = NULL};
}
