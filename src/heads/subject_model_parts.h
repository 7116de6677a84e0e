/* SPDX-License-Identifier: MIT */
/* Shared by subject_model.c, which reads texts, and subject_model_run.c, which runs a model. */
#ifndef HEADS_SUBJECT_MODEL_PARTS_H
#define HEADS_SUBJECT_MODEL_PARTS_H

#include <mha/mha_model.h>

#include "heads/subject.h"

/* The memory of one side of a text: of a subject_side, with the words themselves. */
typedef struct model_side {
    subject_side side;
    int32_t *ids; /* [count] */
    char (*room)[SUBJECT_WORD_MAX];
} model_side;

/* The memory of a text. */
typedef struct model_text {
    model_side sides[TRANSFORMER_SIDES];
    const char **expected;
    int32_t end; /* the token that is expected after the last one; -1: not known */
    char end_word[SUBJECT_WORD_MAX];
    char *text, *given, *translation;
    float *pixels; /* of a model that reads pictures, [channels][size][size] */
} model_text;

static inline const mha_model *model_of(const subject *s)
{
    return s->model;
}

/* Makes room for the tokens of a side. False, with a message: out of memory. */
bool model_side_make(model_side *side, int count, char *message);

/* Reads a picture as the text of a model that reads pictures (subject_picture.c). */
bool subject_picture_read(const subject *subject, const char *path, model_text *text,
                          char *message);

/* subject_methods.run of a model. */
capture *subject_model_run(const subject *subject, const subject_text *text,
                           const capture_options *options, mha_pool *pool);

/* Changes of heads in the form of the library. `memory` is for free(). */
typedef struct model_changes {
    mha_head_settings settings;
    float *gates;
    uint8_t *modes;
} model_changes;

/* False: out of memory. model_changes_free() either way. `changes` and `means` as in
 * capture_options. */
bool model_changes_make(model_changes *changes, head_shape shape,
                        const uint8_t *const modes[ATTENTION_KINDS],
                        const float *const means[ATTENTION_KINDS]);
void model_changes_free(model_changes *changes);

#endif
