/* SPDX-License-Identifier: MIT */
/* What commands about heads begin with: a model, threads, and sentences of the corpus. */
#ifndef PROGRAM_HEADS_SETUP_H
#define PROGRAM_HEADS_SETUP_H

#include "heads/head_pairs.h"
#include "program/session.h"

typedef struct heads_setup {
    /* Asked for; NULL and 0: not given. */
    const char *model_file, *split_name;
    int64_t sentences, threads;
    uint64_t seed;
    bool own_text; /* the pair is not to be one of the corpus */

    /* Made of it. */
    session session;
    corpus_split split;
    head_pair *pairs; /* [sentences] */
} heads_setup;

/* A row of the option tables of these commands. */
#define HEADS_SENTENCES(setup) \
    "sentences", ARG_NUMBER, &(setup).sentences, "N", "sentences to measure on (200)", 1, 100000

/* EXIT_GO_ON, or what to exit with after a message on stderr. In both cases it wants
 * heads_setup_close(). */
int heads_setup_open(heads_setup *setup, const char *command);
void heads_setup_close(heads_setup *setup);

/* Tells how far something is: a line on stderr. */
void heads_watch(int done, int count);

/* On stderr: that the model is too short for sentences of the corpus; returns EXIT_FAILED. */
int heads_too_short(const translator *model);

/* "mha: cannot ...: status" on stderr; returns EXIT_FAILED. */
int heads_failed(mha_status status);

#endif
