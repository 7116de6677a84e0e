/* SPDX-License-Identifier: MIT */
/* A copy of a model with smaller weights, in a folder that exists as long as a command needs it. */
#ifndef PROGRAM_SMALL_MODEL_H
#define PROGRAM_SMALL_MODEL_H

#include <limits.h>

typedef struct small_model {
    char place[PATH_MAX]; /* beside which the folder is */
    char path[PATH_MAX];  /* the folder, to be opened as a model; "": there is none */
    int held;             /* keeps others from removing it */
} small_model;

/* Makes the copy of the model that --model or the environment names, with matrices of 8 bits, next
 * to the file `output`. EXIT_GO_ON, or the exit code after a message. small_model_remove() either
 * way. */
int small_model_make(small_model *copy, const char *model_file, const char *output);
void small_model_remove(small_model *copy);

#endif
