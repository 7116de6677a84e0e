/* SPDX-License-Identifier: MIT */
/*
 * The study of a page: head_study.c measures all heads on sentences of the test split or on texts
 * of a file, head_roles.c names their roles, head_eval.c finds the importance of those of a
 * translator. Progress is shown on a terminal.
 */
#include "page/page_study.h"

#include <math.h>
#include <stdlib.h>

#include "base/terminal.h"
#include "heads/head_eval.h"
#include "heads/picture_study.h"
#include "page/page_measures.h"

enum { STUDY_SEED = 1 };

static void watch(int done, int count)
{
    progress("sentence %d of %d", done, count);
}

static void watch_pictures(int done, int count)
{
    progress("picture %d of %d", done, count);
}

/* Fills `importance` of all heads. */
static bool find_importance(page_study *study, const translator *model, const head_pair *pairs,
                            mha_pool *pool)
{
    double *const raw = malloc((size_t)study->count * 2 * sizeof *raw);
    head_eval *const eval = head_eval_create(model, pairs, study->sentences, pool);
    const bool fine = raw != NULL && eval != NULL &&
                      head_eval_importance(eval, NULL, raw, raw + study->count) == MHA_OK;
    for (int n = 0; fine && n < study->count; n++)
        study->heads[n].importance = raw[study->count + n];
    head_eval_free(eval);
    free(raw);
    return fine;
}

/* Allocates the heads of a study and fills their names and roles. */
static bool find_roles(page_study *study, const subject *model, const subject_texts *texts,
                       mha_pool *pool)
{
    study->heads = calloc((size_t)study->count, sizeof *study->heads);
    head_study *const all =
        study->heads != NULL ? head_study_create(model, texts, pool, watch) : NULL;
    progress_end();
    if (all == NULL)
        return false;
    for (int n = 0; n < study->count; n++) {
        study->heads[n].name = head_at(all->shape, n);
        study->heads[n].role = head_role_find(all, n);
        study->heads[n].importance = NAN;
    }
    head_study_free(all);
    return true;
}

/* The same on pictures. */
static bool find_picture_roles(page_study *study, const subject *model, const subject_texts *texts,
                               mha_pool *pool)
{
    study->on_pictures = true;
    study->heads = calloc((size_t)study->count, sizeof *study->heads);
    picture_study *const all =
        study->heads != NULL ? picture_study_create(model, texts, pool, watch_pictures) : NULL;
    progress_end();
    if (all == NULL)
        return false;
    for (int n = 0; n < study->count; n++) {
        page_study_head *const head = &study->heads[n];
        head->name = head_at(all->shape, n);
        head->picture_role = picture_study_role(all, n);
        if (all->pictures > 1)
            head->interval = picture_study_interval(all, n, head->picture_role.measure);
        else
            head->interval = (head_interval){NAN, NAN};
        head->count = picture_study_count(all, n, head->picture_role.measure);
        head->importance = NAN;
    }
    picture_study_free(all);
    return true;
}

mha_status page_study_make(page_study *study, const subject *model, int sentences, mha_pool *pool)
{
    const translator *const own = model->translator;
    *study = (page_study){.sentences = sentences, .count = head_count(model->shape)};
    head_pair *const pairs = head_pairs_of_corpus(own, STUDY_SEED, CORPUS_TEST, sentences);
    const subject_texts texts = {.pairs = pairs, .count = sentences};
    mha_status status = MHA_ERR_MEMORY;
    if (pairs != NULL && !head_pairs_fit(own, pairs, sentences))
        status = MHA_ERR_LENGTH;
    else if (pairs != NULL && find_roles(study, model, &texts, pool) &&
             find_importance(study, own, pairs, pool))
        status = MHA_OK;
    free(pairs);
    return status;
}

mha_status page_study_texts(page_study *study, const subject *model, const subject_texts *texts,
                            const char *file, mha_pool *pool)
{
    *study =
        (page_study){.sentences = texts->count, .count = head_count(model->shape), .file = file};
    const bool fine = model->reads_pictures ? find_picture_roles(study, model, texts, pool)
                                            : find_roles(study, model, texts, pool);
    return fine ? MHA_OK : MHA_ERR_MEMORY;
}

void page_study_free(page_study *study)
{
    free(study->heads);
}

static void put_head(json *j, const page_study_head *head, bool on_pictures)
{
    json_open_object(j, NULL);
    json_string(j, "kind", attention_kind_name(head->name.kind));
    json_integer(j, "layer", head->name.layer + 1);
    json_integer(j, "head", head->name.head + 1);
    if (on_pictures)
        page_picture_role_put(j, &head->picture_role, head->interval, head->count);
    else
        page_role_put(j, &head->role);
    json_number(j, "importance", head->importance);
    json_close(j);
}

void page_study_put(json *j, const page_study *study)
{
    json_open_object(j, "study");
    json_integer(j, "sentences", study->sentences);
    if (study->file != NULL) {
        json_string(j, "file", study->file);
    } else {
        json_string(j, "split", corpus_split_name(CORPUS_TEST));
        json_integer(j, "seed", STUDY_SEED);
    }
    json_open_array(j, "heads");
    for (int n = 0; n < study->count; n++)
        put_head(j, &study->heads[n], study->on_pictures);
    json_close(j);
    json_close(j);
}
