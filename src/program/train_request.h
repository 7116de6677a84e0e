/* SPDX-License-Identifier: MIT */
/*
 * What "mha train" is asked to do, and the parts of the command:
 *
 *      train_options.c     the command line --> train_request
 *      train_files.c       which files it writes, and that none is lost by mistake
 *      train_loop.c        the steps
 *      train_finish.c      the model, and the report
 *      command_train.c     all of it in order
 *
 * Functions that return int return EXIT_GO_ON, or the exit code after a message on stderr.
 */
#ifndef PROGRAM_TRAIN_REQUEST_H
#define PROGRAM_TRAIN_REQUEST_H

#include "translator/training.h"

#define TRAIN_OUTPUT "models/en-fr.safetensors"

enum { TRAIN_PATH_MAX = 4096 };

typedef struct train_request {
    const char *given[TRAINING_SETTINGS]; /* NULL: not given */
    const char *layers;                   /* of encoder and decoder */
    const char *output, *checkpoint, *curve, *log, *every, *type_name;
    int64_t threads, evaluate;
    bool resume, force, quiet;

    char checkpoint_path[TRAIN_PATH_MAX]; /* where none is given */
    int64_t every_steps;
    double every_seconds;
    mha_dtype type;
    training_config config; /* without --resume */
} train_request;

/* Reads and checks the command line. */
int train_options_read(train_request *request, int argc, char **argv);

/* Names the checkpoint after the model unless it has a name. */
int train_files_name(train_request *request);

/* No two files have one place, and all can be written: known before hours are spent on them. */
int train_files_check(const train_request *request);

/* Refuses to replace a model or checkpoint without --force or --resume, and to resume without a
 * checkpoint. To be called while the locks are held: the files may be another training's. */
int train_files_protect(const train_request *request);

#endif
