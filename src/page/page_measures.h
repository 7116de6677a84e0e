/* SPDX-License-Identifier: MIT */
/* The numbers and the role of a head on one sentence, as JSON for the page: those of "mha heads",
 * by the same functions and under the same names. */
#ifndef PAGE_MEASURES_H
#define PAGE_MEASURES_H

#include "format/json_writer.h"
#include "heads/head_roles.h"
#include "heads/picture_roles.h"

/* One head on one sentence. */
typedef struct page_measured {
    double means[MEASURES]; /* NaN: not measured */
    head_role role;
    bool on_picture; /* then the role and most of the measures are these */
    double picture_means[PICTURE_MEASURES];
    picture_role picture_role;
    double count; /* rows that the score of this role is a mean over */
} page_measured;

/* Measures a head. baselines: of this sentence; NULL: not known. picture: what the rows and columns
 * are patches of; NULL: they are words. False: out of memory. */
bool page_measure_head(page_measured *head, const head_matrix *m, const head_scene *scene,
                       const head_baselines *baselines, const subject_picture *picture);

/* Writes an object "measures" with an array for each measure, and an array "roles"; the arrays have
 * an element per head. */
void page_measures_put(json *j, const page_measured *heads, int count);

/* Writes the fields of a role into the open object: found, rule, name, score, threshold, low,
 * high, count, next, next_score. */
void page_role_put(json *j, const head_role *role);

/* The same of a head that reads a picture; its rule is "picture". interval: of the score, NaN if it
 * is not known. */
void page_picture_role_put(json *j, const picture_role *role, head_interval interval, double count);

#endif
