/* SPDX-License-Identifier: MIT */
/* What commands about heads need first: a session, and sentence pairs of the corpus. */
#ifndef PROGRAM_HEADS_SETUP_H
#define PROGRAM_HEADS_SETUP_H

#include "heads/head_pairs.h"
#include "program/args.h"
#include "program/session.h"
#include "program/texts.h"

typedef struct heads_setup {
    /* From the options; NULL and 0: not given. */
    const char *model_file, *split_name, *texts_file, *pairs_file, *images_folder;
    shipped_model usual; /* if no model is given; with pairs of real sentences the translator */
    const char *text;    /* the user's text, on which other models than translators are measured */
    int64_t sentences, threads;
    uint64_t seed;
    const char *needs; /* what to give if there is no text: "--texts FILE"; NULL: or a TEXT */
    bool own_text;     /* the heads are measured on the user's text, not on the corpus */
    bool corpus_only;  /* of other models than translators no sentences will do */
    bool role_text; /* `text` is shown; heads are measured on the sentences of the model, and only
                     * if it has none on `text` */

    /* Made by heads_setup_open(). */
    session session;
    corpus_split split;
    head_pair *pairs;                         /* [sentences] */
    text_set set;                             /* of a file, or of `text`; then there are no pairs */
    subject_texts texts;                      /* the pairs or the set */
    char sentences_file[MODEL_SENTENCES_MAX]; /* of the model, if they are read */
} heads_setup;

/* A row of the option tables of these commands. */
#define HEADS_SENTENCES(setup) \
    "sentences", ARG_NUMBER, &(setup).sentences, "N", "sentences to measure on (200)", 1, 100000

/* EXIT_GO_ON, or the exit code after a message on stderr. heads_setup_close() either way.
 *
 *      --pairs FILE          the sentence pairs of the file
 *      --texts FILE          the texts of the file
 *      --images SET          pictures of the set
 *      translator            sentences of the corpus
 *      any other model       the user's text, or the sentences that come with the model, which are
 *                            then `pairs_file`
 */
int heads_setup_open(heads_setup *setup, const char *command);
void heads_setup_close(heads_setup *setup);

/* The file of texts or of sentence pairs, or the set of pictures; NULL: none was given. */
const char *heads_setup_file(const heads_setup *setup);
/* What it has: "sentence pair", "picture" or "text"; and its key in JSON: "pairs", "images" or
 * "texts". */
const char *heads_setup_unit(const heads_setup *setup);
const char *heads_setup_key(const heads_setup *setup);

/* Shows progress on stderr. */
void heads_watch(int done, int count);

/* Refuses options of the corpus and its grammar, named by `names`, for a model that is no
 * translator, and those of sentences of the corpus with --texts or --pairs. */
int heads_setup_refuse(const heads_setup *setup, const arg_command *command, const char *names);

/* EXIT_GO_ON if the model has this kind of attention, or for ATTENTION_KINDS; else EXIT_USAGE after
 * a message that names the option and its value. */
int heads_setup_kind(const heads_setup *setup, const char *command, const char *option,
                     const char *value, int kind);

/* Reports that the model is too short for sentences of the corpus; returns EXIT_FAILED. */
int heads_too_short(const translator *model);

/* Reports that the model cannot be run; returns EXIT_FAILED. */
int heads_failed(mha_status status);

#endif
