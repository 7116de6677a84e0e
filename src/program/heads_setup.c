/* SPDX-License-Identifier: MIT */
/* A session (session.h) and pairs of the corpus for the commands about heads, with the messages
 * that they share. */
#include "program/heads_setup.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/terminal.h"
#include "program/options.h"

const char *heads_setup_file(const heads_setup *s)
{
    return s->pairs_file != NULL   ? s->pairs_file
           : s->texts_file != NULL ? s->texts_file
                                   : s->images_folder;
}

const char *heads_setup_unit(const heads_setup *s)
{
    return s->pairs_file != NULL               ? "sentence pair"
           : s->session.subject.reads_pictures ? "picture"
                                               : "text";
}

const char *heads_setup_key(const heads_setup *s)
{
    return s->pairs_file != NULL ? "pairs" : s->images_folder != NULL ? "images" : "texts";
}

/* What the user gives to be measured on, checked against the model. */
static int check_texts(const heads_setup *s, const char *command)
{
    const bool reads_pairs = s->session.subject.shape.layers[ATTENTION_CROSS] > 0;
    if (s->pairs_file != NULL && !reads_pairs)
        return args_wrong("%s: --pairs: the model reads one text, not a sentence and its "
                          "translation; give --texts FILE",
                          command);
    if (heads_setup_file(s) == NULL && s->text == NULL)
        return texts_needed(command, s->session.subject.reads_pictures
                                         ? "a picture, --images SET, or --texts FILE"
                                     : s->needs != NULL ? s->needs
                                     : reads_pairs      ? "a TEXT, --texts FILE or --pairs FILE"
                                                        : "a TEXT, or --texts FILE");
    return EXIT_GO_ON;
}

/* Takes the sentences that come with the model, unless the user gave something else. */
static void take_sentences(heads_setup *s)
{
    const bool wanted = s->text == NULL || (s->role_text && !s->own_text);
    if (wanted && !s->corpus_only && heads_setup_file(s) == NULL &&
        model_sentences(&s->session, s->sentences_file))
        s->pairs_file = s->sentences_file;
}

static int read_texts(heads_setup *s, const char *command)
{
    take_sentences(s);
    int code = check_texts(s, command);
    if (code != EXIT_GO_ON)
        return code;
    if (s->pairs_file != NULL)
        code = text_set_read_pairs(&s->set, &s->session, s->pairs_file, s->sentences);
    else if (s->images_folder != NULL)
        code = text_set_read_images(&s->set, &s->session, s->images_folder, s->sentences);
    else if (s->texts_file != NULL)
        code = text_set_read(&s->set, &s->session, s->texts_file, s->sentences);
    else
        code = text_set_one(&s->set, &s->session, s->text);
    s->texts = text_set_texts(&s->set);
    s->sentences = s->set.count;
    return code;
}

int heads_setup_open(heads_setup *s, const char *command)
{
    int code = option_split(command, s->split_name, &s->split);
    if (code == EXIT_GO_ON && s->pairs_file != NULL && s->texts_file != NULL)
        code = args_wrong("%s: give either --pairs or --texts", command);
    if (code == EXIT_GO_ON && s->images_folder != NULL &&
        (s->pairs_file != NULL || s->texts_file != NULL))
        code = args_wrong("%s: give --images alone, without --pairs and --texts", command);
    if (code == EXIT_GO_ON)
        code = session_open(&s->session, s->model_file,
                            s->pairs_file != NULL ? SHIPPED_TRANSLATOR : s->usual, s->threads);
    if (code != EXIT_GO_ON)
        return code;
    if (heads_setup_file(s) != NULL || s->session.model == NULL)
        return read_texts(s, command);
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
    text_set_free(&s->set, &s->session);
    free(s->pairs);
    session_close(&s->session);
}

int heads_setup_refuse(const heads_setup *s, const arg_command *command, const char *names)
{
    int code = EXIT_GO_ON;
    if (s->session.model == NULL)
        code = args_refuse(command, names,
                           "is about the corpus of our translator; leave it out with this model");
    if (code == EXIT_GO_ON && heads_setup_file(s) != NULL)
        code = args_refuse(command, "split seed",
                           s->pairs_file != NULL
                               ? "selects sentences of the corpus; leave it out with --pairs"
                               : "selects sentences of the corpus; leave it out with --texts "
                                 "and --images");
    return code;
}

int heads_setup_kind(const heads_setup *s, const char *command, const char *option,
                     const char *value, int kind)
{
    static const char *const parts[ATTENTION_KINDS] = {
        [ATTENTION_ENCODER] = "encoder",
        [ATTENTION_DECODER] = "decoder",
        [ATTENTION_CROSS] = "cross-attention",
    };
    if (kind == ATTENTION_KINDS || s->session.subject.shape.layers[kind] > 0)
        return EXIT_GO_ON;
    return args_wrong("%s: --%s %s: the model has no %s", command, option, value, parts[kind]);
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
