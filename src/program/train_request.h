/* SPDX-License-Identifier: MIT */
/*
 * What "mha train" is asked to do, and the parts of the command:
 *
 *      train_options.c     the command line --> train_request
 *      train_files.c       which files it writes, and that none is lost by mistake
 *      train_text.c        the pairs of files, and their tokenizer
 *      train_images.c      the pictures of a set, and how well they are recognised
 *      train_scenes.c      scenes with captions or boxes, and how many are right
 *      train_model.c       the model as files, and how well it translates
 *      train_loop.c        the steps
 *      train_finish.c      the model, and the report
 *      command_train.c     all of it in order
 *
 * Functions that return int return EXIT_GO_ON, or the exit code after a message on stderr.
 */
#ifndef PROGRAM_TRAIN_REQUEST_H
#define PROGRAM_TRAIN_REQUEST_H

#include "translator/model_path.h"
#include "translator/training.h"

#define TRAIN_OUTPUT MODEL_LABORATORY
#define TRAIN_MODEL_FILE "model.safetensors" /* in the folder of a model of files */
#define TRAIN_VALIDATION ".validation"       /* after its name: a folder while it is measured */

enum { TRAIN_PATH_MAX = 4096 };

typedef struct train_request {
    const char *given[TRAINING_SETTINGS];  /* NULL: not given */
    const char *layers;                    /* of encoder and decoder */
    const char *pairs, *valid, *tokenizer; /* NULL: the laboratory; a vocabulary is learnt */
    const char *images, *classes;          /* a set of pictures, names of its classes; NULL */
    const char *confusion;                 /* its confusion matrix as SVG; NULL: none */
    const char *start;                     /* folder of the model to begin with; NULL: none */
    const char *output, *checkpoint, *curve, *log, *every, *type_name;
    int64_t threads, evaluate, translate; /* sentences at the end, and during the training */
    int64_t vocabulary, positions;        /* 0: not given */
    bool scenes, detect;                  /* train on scenes with captions; with boxes */
    bool resume, force, quiet;

    char checkpoint_path[TRAIN_PATH_MAX]; /* where none is given */
    char output_path[TRAIN_PATH_MAX];     /* the output without a slash at its end */
    int64_t every_steps;
    double every_seconds;
    mha_dtype type;
    training_config config; /* without --resume */

    const training_team *team; /* processes that train together; NULL: one alone */
} train_request;

/* Whether the model is a folder: that of pairs, pictures or scenes. */
static inline bool train_makes_folder(const train_request *request)
{
    return request->pairs != NULL || request->images != NULL || request->scenes;
}

/* Whether another process of the team writes the files and prints the progress. */
static inline bool train_follows(const train_request *request)
{
    return request->team != NULL && request->team->rank > 0;
}

/* "mha train" as one of a team, which may be NULL. Returns the exit code, which is the same for
 * all; what is printed is printed by the process of rank 0, and errors also by the others. */
int train_together(int argc, char **argv, const training_team *team);

/* Reads and checks the command line. */
int train_options_read(train_request *request, int argc, char **argv);

/* Names the checkpoint after the model unless it has a name. */
int train_files_name(train_request *request);

/* No two files have one place, and all can be written: known before hours are spent on them. */
int train_files_check(const train_request *request);

/* Refuses to replace a model or checkpoint without --force or --resume, and to resume without a
 * checkpoint. To be called while the locks are held: the files may be another training's. */
int train_files_protect(const train_request *request);

/* Removes new files that a training of the same names left when it was killed. To be called while
 * the locks are held. */
void train_files_clean(const train_request *request);

/* The n-th file of the folder of a model; NULL if there are not so many. */
const char *train_files_in_folder(int n);

#endif
