/* SPDX-License-Identifier: MIT */
/* What "mha heads" knows of every head, over many sentences, for the page of "mha view". */
#ifndef PAGE_STUDY_H
#define PAGE_STUDY_H

#include "format/json_writer.h"
#include "heads/head_roles.h"

typedef struct page_study_head {
    head_name name;
    head_role role;
    double importance; /* as a share of its layer's, see head_eval.h */
} page_study_head;

typedef struct page_study {
    int sentences, count;
    page_study_head *heads; /* [count] */
} page_study;

/* The first `sentences` of the test split. MHA_ERR_MEMORY; MHA_ERR_LENGTH: the model has too few
 * positions for one of them. page_study_free() either way. */
mha_status page_study_make(page_study *study, const translator *model, int sentences,
                           mha_pool *pool);
void page_study_free(page_study *study);

/* An object "study". */
void page_study_put(json *j, const page_study *study);

#endif
