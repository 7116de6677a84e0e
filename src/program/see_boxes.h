/* SPDX-License-Identifier: MIT */
/* "mha see" with a detector: boxes of the shapes in files, where the cross heads of its queries
 * look, and its average precision on scenes. */
#ifndef PROGRAM_SEE_BOXES_H
#define PROGRAM_SEE_BOXES_H

#include "program/see_scenes.h"

/* Finds shapes in the pictures of `count` files, or measures scenes. Returns the exit code. */
int see_boxes(const scenes_request *request, const model_request *model, const char *folder,
              int count, char **paths);

#endif
