/* SPDX-License-Identifier: MIT */
/*
 * A model of scenes, which says what is in a picture (captioner.h) or where (detector.h), as a
 * subject for the page of "mha view": its cross heads, whose columns are the patches of a picture,
 * and whose rows are the words that it says, or the queries. Nothing of it can be changed.
 */
#ifndef PROGRAM_SCENE_SUBJECT_H
#define PROGRAM_SCENE_SUBJECT_H

#include "heads/subject.h"
#include "vision/scene_model.h"

/* Whether a folder is such a model. */
bool scene_subject_is_folder(const char *folder);

/* Opens it; the threads must stay until scene_model_free(). NULL after a message on stderr. */
scene_model *scene_subject_open(subject *subject, const char *folder, mha_pool *pool);

#endif
