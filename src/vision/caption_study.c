/* SPDX-License-Identifier: MIT */
/* Measures captions and what cross heads look at (caption_study.h). */
#include "vision/caption_study.h"

#include <stdlib.h>

#include "vision/caption_data.h"

enum { AT_ONCE = 64, ROWS = CAPTION_WORDS_MAX };

typedef struct studying {
    caption_study *study;
    const scene_model *model;
    pointing *pointing;
    float *cross; /* of the batch */
    scene *shown; /* [AT_ONCE] */
    scene_caption *captions;
} studying;

static void study_scene(studying *t, const batch *b, int n, int64_t number)
{
    const row_score *const scores =
        network_scores(t->model->network) + b->starts[TRANSFORMER_TARGET][n];
    const scene_caption *const caption = &t->captions[n];
    const scene_language language = caption_language(number);
    bool right = true;
    for (int row = 0; row <= caption->count; row++) {
        right = right && scores[row].right;
        t->study->words++;
        t->study->words_right += scores[row].right;
        if (row < caption->count && scores[row].right && caption->shapes[row] >= 0)
            pointing_add(t->pointing, &t->shown[n], number, (int)language * ROWS + row,
                         caption->shapes[row], b, n, row, t->cross);
    }
    t->study->scenes[language]++;
    t->study->right[language] += right;
}

static mha_status study_some(studying *t, uint64_t seed, corpus_split split, int64_t first,
                             int count)
{
    const scene_model *const m = t->model;
    const network_mode mode = {.cross = t->cross};
    network_loss loss;
    batch *const b =
        caption_batch(&m->config, &m->scale, seed, split, first, count, t->shown, t->captions);
    if (!b)
        return MHA_ERR_MEMORY;
    const mha_status status = network_forward(m->network, b, &mode, &loss);
    for (int n = 0; n < count && status == MHA_OK; n++)
        study_scene(t, b, n, first + n);
    batch_free(b);
    return status;
}

static mha_status study_all(studying *t, uint64_t seed, corpus_split split, int64_t scenes)
{
    for (int64_t first = 0; first < scenes; first += AT_ONCE) {
        const int64_t left = scenes - first;
        const mha_status status =
            study_some(t, seed, split, first, (int)(left < AT_ONCE ? left : AT_ONCE));
        if (status != MHA_OK)
            return status;
    }
    return pointing_finish(t->pointing, &t->study->pointing);
}

mha_status caption_study_measure(caption_study *study, const scene_model *model, uint64_t seed,
                                 corpus_split split, int64_t count)
{
    const transformer_config *const c = &model->config;
    *study = (caption_study){.words = 0};
    if (c->vision.side != SCENE_SIDE || c->positions < ROWS + 1)
        return MHA_ERR_SHAPE;
    const size_t patches = (size_t)vision_tokens(&c->vision);
    studying t = {
        .study = study,
        .model = model,
        .pointing = pointing_new(c, count, count * ROWS, SCENE_LANGUAGES * ROWS),
        .cross = calloc(scene_model_maps(model) * AT_ONCE * (ROWS + 1), patches * sizeof *t.cross),
        .shown = malloc(AT_ONCE * sizeof *t.shown),
        .captions = malloc(AT_ONCE * sizeof *t.captions)};
    const bool fine = t.pointing && t.cross && t.shown && t.captions;
    const mha_status status = fine ? study_all(&t, seed, split, count) : MHA_ERR_MEMORY;
    pointing_free(t.pointing);
    free(t.cross);
    free(t.shown);
    free(t.captions);
    return status;
}

void caption_study_free(caption_study *study)
{
    pointing_result_free(&study->pointing);
}
