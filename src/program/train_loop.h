/* SPDX-License-Identifier: MIT */
/* The steps of a training with everything around them: progress on stderr, validation, checkpoints,
 * pictures, and what an interrupt does. */
#ifndef PROGRAM_TRAIN_LOOP_H
#define PROGRAM_TRAIN_LOOP_H

#include "model/training.h"

typedef struct train_loop_job {
    training *training;
    const char *checkpoint;  /* where to save */
    const char *curve, *log; /* SVG and CSV; NULL: none */
    int64_t every_steps;     /* between checkpoints; 0: time decides */
    double every_seconds;
    int64_t validation; /* sentences, every 1 % of the steps */
    bool quiet;
} train_loop_job;

/*
 * Goes on until all steps are done: EXIT_GO_ON. After an error, said on stderr, EXIT_FAILED. After
 * SIGINT or SIGTERM there is a checkpoint, and 128 + the signal's number is returned; the same
 * signal once more, while that is under way, ends the program. Afterwards both signals end the
 * program again.
 */
int train_loop(const train_loop_job *job);

/* Checkpoint; curve and log. EXIT_FINE or, with a message on stderr, EXIT_FAILED. */
int train_loop_save(const train_loop_job *job);
int train_loop_draw(const train_loop_job *job);

#endif
