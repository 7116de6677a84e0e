/* SPDX-License-Identifier: MIT */
/* A session (session.h) and pairs of the corpus for the commands about heads, with the messages
 * that they share. */
#include "program/heads_setup.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/terminal.h"
#include "program/options.h"

int heads_setup_open(heads_setup *s, const char *command)
{
    int code = option_split(command, s->split_name, &s->split);
    if (code == EXIT_GO_ON)
        code = session_open_any(&s->session, s->model_file, s->threads);
    if (code != EXIT_GO_ON)
        return code;
    const translator *const model = s->session.model;
    s->pairs = head_pairs_of_corpus(model, s->seed, s->split, (int)s->sentences);
    if (s->pairs == NULL)
        return heads_failed(MHA_ERR_MEMORY);
    s->texts = (subject_texts){.pairs = s->pairs, .count = (int)s->sentences};
    if (!s->own_text && !head_pairs_fit(model, s->pairs, (int)s->sentences))
        return heads_too_short(model);
    return EXIT_GO_ON;
}

void heads_setup_close(heads_setup *s)
{
    free(s->pairs);
    session_close(&s->session);
}

void heads_watch(int done, int count)
{
    progress("%d of %d", done, count);
}

int heads_too_short(const translator *model)
{
    return args_failed("the model has %d positions, too few for sentences of the corpus",
                       translator_longest(model));
}

int heads_failed(mha_status status)
{
    return args_failed("the model cannot be run: %s", mha_status_string(status));
}
