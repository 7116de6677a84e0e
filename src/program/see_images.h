/* SPDX-License-Identifier: MIT */
/* mha see --images: how well a classifier recognises the pictures of a set. */
#ifndef PROGRAM_SEE_IMAGES_H
#define PROGRAM_SEE_IMAGES_H

#include "picture/picture_set.h"
#include "program/model_session.h"
#include "vision/augment.h"

typedef struct see_images_request {
    const char *images;    /* the folder of the set; NULL: none is given */
    int64_t count;         /* pictures to classify, the first ones; 0: all */
    const char *confusion; /* where to draw the confusion matrix; NULL: nowhere */
    bool as_json;
} see_images_request;

/* Classifies the pictures for the test or, if the set has none, those for training, and prints how
 * many are right. `names` are those of the classes of the model. Returns the exit code. */
int see_images(const see_images_request *request, const model_session *session,
               const picture_class_name *names, const pixel_scale *scale);

#endif
