/* SPDX-License-Identifier: MIT */
/*
 * What a command needs before it can compute: an instruction set, threads, and a model. All
 * commands get them here, so that each failure has one message.
 *
 * Functions that return int return EXIT_GO_ON, or the exit code after a message on stderr.
 */
#ifndef PROGRAM_SESSION_H
#define PROGRAM_SESSION_H

#include <mha/mha_model.h>

#include "heads/subject.h"
#include "translator/model_path.h"
#include "translator/translator.h"

typedef struct session {
    char path[MODEL_PATH_MAX];  /* the model's file */
    translator *model;          /* NULL: another model */
    mha_model *any;             /* the other model */
    subject subject;            /* the heads of either */
    const char **class_names;   /* of a classifier of pictures; NULL: none */
    void *class_memory;         /* of the names */
    struct scene_model *scenes; /* of session_open_view() */
    mha_pool *pool;
} session;

/* Finds and loads the model and starts the threads. The model is any whose heads can be looked at:
 * a translator of "mha train", or what mha_model_open() opens. `usual` is the model if neither
 * `model_file` nor the environment names one; `threads` is 0 for the environment's choice, else one
 * per CPU. Either way the session wants session_close(). */
int session_open(session *session, const char *model_file, shipped_model usual, int64_t threads);

/* The same for a command that can do without the heads: a model that cannot show them, such as one
 * whose layers have different numbers of heads, has a subject without methods. Its weights are
 * stored and multiplied as `storage` says, which is not for translators of "mha train". */
int session_open_text(session *session, const char *model_file, shipped_model usual,
                      int64_t threads, const mha_model_config *storage);

/* The same as session_open() for the page of "mha view", which also shows models of scenes
 * (scene_subject.h). */
int session_open_view(session *session, const char *model_file, shipped_model usual,
                      int64_t threads);
void session_close(session *session);

/* The threads alone, for commands without a model: *pool is NULL after a failure. */
int session_open_pool(mha_pool **pool, int64_t threads);

/* mha_isa_name(); NULL after a message on stderr if MHA_ISA names a set that cannot be used. */
const char *require_isa(void);

#endif
