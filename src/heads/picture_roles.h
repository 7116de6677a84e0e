/* SPDX-License-Identifier: MIT */
/*
 * What a head that reads the patches of a picture attends to, and the role that this makes. Rows
 * are patches; the rows of marks, such as the class token, do not count. The role is the first of
 * these rules that holds:
 *
 *      class token     at least half of the weight on the marks
 *      self            half of it on the patch itself
 *      above, below, left, right       0.3 of it on this neighbour, or the largest weight of half
 * of the rows there, the patch itself left out neighbours      half of it on the eight patches
 * around same row, same column           half of it there, the patch itself left out border 0.3
 * more of it on the outermost patches than equal weights would have there same part       0.2 more
 * than equal weights would have on patches that show the object, from a patch that does, and on the
 * ground, from a patch of the ground object          0.2 more than equal weights would have on
 * patches that show the object, from wherever broad           entropy at least 0.9 of that of equal
 * weights far             mean distance at least 1.2 times that of equal weights
 *
 * and "mixed" if none holds. Weights on patches are shares of what is not on marks, but for the
 * first rule. What is object and what ground is known of pictures with a plain ground only
 * (picture_object.h). The thresholds are our choice.
 */
#ifndef HEADS_PICTURE_ROLES_H
#define HEADS_PICTURE_ROLES_H

#include "heads/head_measures.h"
#include "heads/subject.h"

typedef enum picture_measure {
    PICTURE_CLASS,
    PICTURE_SELF,
    PICTURE_ABOVE, /* weight on the neighbour, of rows that have one */
    PICTURE_BELOW,
    PICTURE_LEFT,
    PICTURE_RIGHT,
    PICTURE_MOST_ABOVE, /* share of these rows whose largest other weight is there */
    PICTURE_MOST_BELOW,
    PICTURE_MOST_LEFT,
    PICTURE_MOST_RIGHT,
    PICTURE_AROUND,
    PICTURE_ROW,
    PICTURE_COLUMN,
    PICTURE_BORDER, /* above that of equal weights */
    PICTURE_SAME,   /* above that of equal weights */
    PICTURE_OBJECT, /* above that of equal weights */
    PICTURE_BREADTH,
    PICTURE_REACH,    /* distance divided by that of equal weights */
    PICTURE_DISTANCE, /* in patches, from centre to centre */
    PICTURE_MEASURES
} picture_measure;

/* The name of a measure in tables and JSON. */
const char *picture_measure_name(picture_measure measure);

/* Every measure of one head on one picture; a count of 0: not measured. The weights of rows sum to
 * 1. */
void picture_measure_head(const head_matrix *weights, const subject_picture *picture,
                          head_sample samples[PICTURE_MEASURES]);

enum { PICTURE_ROLE_MAX = 16 };

typedef struct picture_role {
    bool found; /* else it is mixed, and this is the nearest rule */
    const char *name;
    picture_measure measure;
    double score, threshold;
} picture_role;

/* The role of a head with these means; NaN: not measured. */
picture_role picture_role_choose(const double means[PICTURE_MEASURES]);

#endif
