/* SPDX-License-Identifier: MIT */
/* What "mha see" does with any model that reads scenes: captions (see_captions.h) and boxes
 * (see_boxes.h). */
#ifndef PROGRAM_SEE_SCENES_H
#define PROGRAM_SEE_SCENES_H

#include "format/json_writer.h"
#include "program/model_session.h"
#include "program/see_picture.h"
#include "vision/pointing.h"
#include "vision/scene_model.h"

typedef struct scenes_request {
    const char *language; /* of captions; NULL: all */
    const char *boxes;    /* of a detector: where to draw them; NULL: nowhere */
    int64_t least;        /* the lowest score of a box that is shown, in percent */
    int64_t scenes;       /* to measure; 0: none */
    const char *split;    /* of these; NULL: test */
    uint64_t seed;
    const char *heads; /* where to draw them; NULL: nowhere */
    bool as_json;
} scenes_request;

/* A model in use. */
typedef struct scene_session {
    const scenes_request *request;
    scene_model *model;
    mha_pool *pool;
} scene_session;

/* The split of the scenes to measure. All functions that return int return EXIT_GO_ON, or the exit
 * code after a message. */
int see_scenes_split(const scenes_request *request, corpus_split *split);

/* scene_session_close() is needed in any case. */
int scene_session_open(scene_session *s, const scenes_request *request,
                       const scene_model_kind *kind, const model_request *model,
                       const char *folder);
void scene_session_close(scene_session *s);

/* Calls `say` for the picture of every file; it prints lines, or adds to the array `key` of an
 * object of JSON, if there is one. Returns EXIT_FINE in the end. */
int see_scenes_files(const scene_session *s, int count, char **paths, const char *key,
                     int (*say)(const scene_session *s, json *j, const see_picture *p));

/* Draws the cross heads of all layers, where --heads says: weights[rows][layers][heads][patches],
 * with the names of the rows. Frees the weights. */
int see_scenes_heads(const scene_session *s, const see_picture *p, float *weights, int rows,
                     const char *const *names, const char *title);

/* How often cross heads look at the right shape. */
void see_pointing_print(const pointing_result *pointing);
void see_pointing_put(json *j, const pointing_result *pointing);

/* A measurement could not be made. */
int see_scenes_failed(mha_status status);

#endif
