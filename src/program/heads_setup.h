/* SPDX-License-Identifier: MIT */
/* What commands about heads need first: a session, and sentence pairs of the corpus. */
#ifndef PROGRAM_HEADS_SETUP_H
#define PROGRAM_HEADS_SETUP_H

#include "heads/head_pairs.h"
#include "program/session.h"

typedef struct heads_setup {
    /* From the options; NULL and 0: not given. */
    const char *model_file, *split_name;
    int64_t sentences, threads;
    uint64_t seed;
    bool own_text; /* the heads are measured on the user's text, not on the corpus */

    /* Made by heads_setup_open(). */
    session session;
    corpus_split split;
    head_pair *pairs; /* [sentences] */
    subject_texts texts;
} heads_setup;

/* A row of the option tables of these commands. */
#define HEADS_SENTENCES(setup) \
    "sentences", ARG_NUMBER, &(setup).sentences, "N", "sentences to measure on (200)", 1, 100000

/* EXIT_GO_ON, or the exit code after a message on stderr. heads_setup_close() either way. */
int heads_setup_open(heads_setup *setup, const char *command);
void heads_setup_close(heads_setup *setup);

/* Shows progress on stderr. */
void heads_watch(int done, int count);

/* Reports that the model is too short for sentences of the corpus; returns EXIT_FAILED. */
int heads_too_short(const translator *model);

/* Reports that the model cannot be run; returns EXIT_FAILED. */
int heads_failed(mha_status status);

#endif
