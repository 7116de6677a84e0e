/* SPDX-License-Identifier: MIT */
/* "mha see" with a model that says what is in pictures: captions of files, where its cross heads
 * look at each word, and how many captions of scenes are right. */
#ifndef PROGRAM_SEE_CAPTIONS_H
#define PROGRAM_SEE_CAPTIONS_H

#include "program/see_scenes.h"

/* Checks the language before anything is opened. */
int see_captions_check(const scenes_request *request);

/* Says what is in the pictures of `count` files, or measures scenes. Returns the exit code. */
int see_captions(const scenes_request *request, const model_request *model, const char *folder,
                 int count, char **paths);

#endif
