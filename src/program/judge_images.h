/* SPDX-License-Identifier: MIT */
/* How well a classifier recognises many pictures, and what it takes them for: at the end of "mha
 * train --images", and for "mha see --images". */
#ifndef PROGRAM_JUDGE_IMAGES_H
#define PROGRAM_JUDGE_IMAGES_H

#include <mha/mha_model.h>

#include "format/json_writer.h"
#include "picture/picture_set.h"
#include "vision/confusion.h"

/* The pictures to judge by. */
typedef struct judged_images {
    int64_t count;
    int classes;
    const picture_class_name *names; /* [classes] */
    size_t floats;                   /* of one picture: channels * side * side */
    const char *from;                /* the split they are of: "test" */

    /* pixels[count][floats] and classes[count] of pictures from `first` on, as the model reads
     * them; false if out of memory. */
    bool (*fill)(const void *arg, int64_t first, int count, float *pixels, int *classes);
    const void *arg;
} judged_images;

/* Lets the model classify all of them, and initialises and fills `c`, which the caller frees in any
 * case. Returns EXIT_GO_ON, or EXIT_FAILED after a message. */
int judge_images(const judged_images *what, const mha_model *model, mha_pool *pool, confusion *c);

/* The share of right ones, and for every class what it is most often taken for. */
void judge_images_print(const judged_images *what, const confusion *c);
void judge_images_put(json *j, const judged_images *what, const confusion *c);

/* The confusion matrix as SVG. Returns EXIT_FINE, or EXIT_FAILED after a message. */
int judge_images_draw(const judged_images *what, const confusion *c, const char *path);

#endif
