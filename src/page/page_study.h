/* SPDX-License-Identifier: MIT */
/* What "mha heads" knows of every head, over many sentences, for the page of "mha view". */
#ifndef PAGE_STUDY_H
#define PAGE_STUDY_H

#include "format/json_writer.h"
#include "heads/head_roles.h"

typedef struct view_head {
    head_name name;
    head_role role;
    double importance; /* as a share of its layer's, see head_eval.h */
} view_head;

typedef struct view_study {
    int sentences, count;
    view_head *heads; /* [count] */
} view_study;

/* The first `sentences` of the test split. MHA_ERR_MEMORY; MHA_ERR_LENGTH: the model has too few
 * positions for one of them. view_study_free() either way. */
mha_status view_study_make(view_study *study, const translator *model, int sentences,
                           mha_pool *pool);
void view_study_free(view_study *study);

/* An object "study". */
void view_study_put(json *j, const view_study *study);

#endif
