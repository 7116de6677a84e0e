/* SPDX-License-Identifier: MIT */
#include "program/heads_setup.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/terminal.h"
#include "program/commands.h"
#include "program/split_name.h"

arg_option heads_option(heads_setup *s, heads_row_name which)
{
    const arg_option rows[] = {
        [HEADS_MODEL] = {"model", ARG_TEXT, &s->model_file, "FILE",
                         "the model (models/en-fr.safetensors)", 0, 0},
        [HEADS_SENTENCES] = {"sentences", ARG_NUMBER, &s->sentences, "N",
                             "sentences to measure on (200)", 1, 100000},
        [HEADS_SPLIT] = {"split", ARG_TEXT, &s->split_name, "S", "of train, valid or test (test)",
                         0, 0},
        [HEADS_SEED] = {"seed", ARG_SEED, &s->seed, "N", "seed of these sentences (1)", 0, 0},
        [HEADS_THREADS] = {"threads", ARG_NUMBER, &s->threads, "T", "threads (one for every CPU)",
                           1, MHA_MAX_THREADS},
    };
    return rows[which];
}

static int open_pool(heads_setup *s, int threads)
{
    const mha_status status = mha_pool_create(&s->pool, threads > 0 ? threads : 0);
    if (status == MHA_OK)
        return EXIT_GO_ON;
    fprintf(stderr, "mha: no threads: %s\n", mha_status_string(status));
    return EXIT_FAILED;
}

int heads_setup_open(heads_setup *s, const char *command)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    const int code = split_find(command, s->split_name, &s->split);
    const int threads = args_threads(s->threads, -1);
    if (code != EXIT_GO_ON || threads == 0)
        return EXIT_USAGE;
    if (require_isa() == NULL || !model_path_find(s->model_file, s->path))
        return EXIT_FAILED;
    if ((s->model = translator_load(s->path, message)) == NULL) {
        fprintf(stderr, "mha: %s\n", message);
        return EXIT_FAILED;
    }
    s->pairs = head_pairs_of_corpus(s->model, s->seed, s->split, (int)s->sentences);
    if (s->pairs == NULL)
        return heads_failed(MHA_ERR_MEMORY);
    if (!s->own_text && !head_pairs_fit(s->model, s->pairs, (int)s->sentences))
        return heads_too_short(s->model);
    return open_pool(s, threads);
}

void heads_setup_close(heads_setup *s)
{
    free(s->pairs);
    mha_pool_free(s->pool);
    translator_free(s->model);
}

void heads_watch(int done, int count)
{
    progress("%d of %d", done, count);
}

int heads_too_short(const translator *model)
{
    fprintf(stderr, "mha: the model has %d positions: too few for sentences of the corpus\n",
            translator_longest(model));
    return EXIT_FAILED;
}

int heads_failed(mha_status status)
{
    fprintf(stderr, "mha: the model cannot be run: %s\n", mha_status_string(status));
    return EXIT_FAILED;
}
