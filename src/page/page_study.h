/* SPDX-License-Identifier: MIT */
/* The role and the importance of every head over many sentences, as "mha heads" finds them. */
#ifndef PAGE_STUDY_H
#define PAGE_STUDY_H

#include "format/json_writer.h"
#include "heads/head_roles.h"
#include "heads/picture_roles.h"

typedef struct page_study_head {
    head_name name;
    head_role role;
    picture_role picture_role; /* instead of it, of a model that reads pictures */
    head_interval interval;    /* of the score of that role */
    double count;              /* rows that it is a mean over */
    double importance; /* normalised within its layer, see head_eval_importance(); NaN: not known */
} page_study_head;

typedef struct page_study {
    int sentences, count;
    page_study_head *heads; /* [count] */
    bool on_pictures;
    const char *file; /* with the texts; NULL: the corpus */
} page_study;

/* The number of sentences unless the user chooses another one. */
enum { PAGE_STUDY_SENTENCES = 200 };

/* Studies the first `sentences` of the test split, for a translator. MHA_ERR_MEMORY;
 * MHA_ERR_LENGTH: the model has too few positions for one of them. page_study_free() is called in
 * either case. */
mha_status page_study_make(page_study *study, const subject *model, int sentences, mha_pool *pool);
/* Studies these texts of a file; importance, which needs gradients, is not known. */
mha_status page_study_texts(page_study *study, const subject *model, const subject_texts *texts,
                            const char *file, mha_pool *pool);
void page_study_free(page_study *study);

/* Writes the object "study". */
void page_study_put(json *j, const page_study *study);

#endif
