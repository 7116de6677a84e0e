/* SPDX-License-Identifier: MIT */
/* The steps of a training with progress on stderr, validation, checkpoints, pictures, and an
 * orderly end after an interrupt. */
#ifndef PROGRAM_TRAIN_LOOP_H
#define PROGRAM_TRAIN_LOOP_H

#include "program/train_model.h"

typedef struct train_loop_job {
    training *training;
    const train_model *model;
    const char *checkpoint;  /* where to save */
    const char *curve, *log; /* SVG and CSV; NULL: none */
    int64_t every_steps;     /* between checkpoints; 0: time decides */
    double every_seconds;
    int64_t validation; /* sentences or pictures, every 1 % of the steps */
    int64_t translate;  /* sentences to translate, every 10 % of the steps; 0: none */
    bool quiet;
} train_loop_job;

/*
 * Runs until all steps are done, or patience ends it, and returns EXIT_GO_ON, or EXIT_FAILED after
 * an error, which is reported on stderr. After SIGINT or SIGTERM a checkpoint is saved and 128 +
 * the signal's number is returned; a second signal meanwhile ends the program at once. When the
 * function returns, both signals act as before.
 */
int train_loop(const train_loop_job *job);

/* Checkpoint; curve and log. EXIT_FINE or, with a message on stderr, EXIT_FAILED. */
int train_loop_save(const train_loop_job *job);
int train_loop_draw(const train_loop_job *job);

#endif
