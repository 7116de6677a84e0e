/* SPDX-License-Identifier: MIT */
/* Batches of scenes with their captions (caption_data.h). */
#include "vision/caption_data.h"

#include <stdlib.h>

enum { TARGET_MAX = CAPTION_WORDS_MAX + 1 };

void caption_data_configure(transformer_config *config)
{
    scene_pixels_configure(config);
    config->words[TRANSFORMER_TARGET] = WORDS_SPECIAL + caption_word_count();
    config->positions = TARGET_MAX;
}

/* --------------------------------------------------------------- batches ----- */

/* One scene while a batch is made: its pixels are kept as bytes until the batch is there. */
typedef struct captioned {
    scene scene;
    scene_caption caption;
    int ids[CAPTION_WORDS_MAX];
} captioned;

static void make(captioned *c, uint64_t seed, corpus_split split, int64_t index, caption_ids *ids)
{
    const scene_language language = caption_language(index);
    scene_generate(seed, split, (uint64_t)index, &c->scene);
    scene_caption_make(&c->scene, language, &c->caption);
    for (int n = 0; n < c->caption.count; n++)
        c->ids[n] = WORDS_SPECIAL + c->caption.words[n];
    *ids = (caption_ids){c->ids, c->caption.count, WORDS_SPECIAL + (int)language};
}

batch *caption_batch(const transformer_config *config, const pixel_scale *scale, uint64_t seed,
                     corpus_split split, int64_t first, int count, scene *scenes,
                     scene_caption *captions)
{
    captioned *const made = malloc((size_t)count * sizeof *made);
    caption_ids *const ids = calloc((size_t)count, sizeof *ids);
    batch *b = NULL;
    for (int n = 0; made && ids && n < count; n++)
        make(&made[n], seed, split, first + n, &ids[n]);
    if (made && ids)
        b = batch_of_captions(ids, count, WORD_END, vision_tokens(&config->vision),
                              SCENE_CHANNELS * SCENE_PIXELS);
    for (int n = 0; b && n < count; n++) {
        scene_pixels_fill(&made[n].scene, scale, b->pixels + (size_t)n * b->picture_floats);
        if (scenes)
            scenes[n] = made[n].scene;
        if (captions)
            captions[n] = made[n].caption;
    }
    free(made);
    free(ids);
    return b;
}

static batch *step(training_data *base, const training_config *config, int64_t number)
{
    const caption_data *const d = (const caption_data *)base;
    return caption_batch(&config->model, &d->scale, config->seed, CORPUS_TRAIN,
                         number * config->batch, config->batch, NULL, NULL);
}

static batch *some(training_data *base, const training_config *config, corpus_split split,
                   int64_t first, int count)
{
    const caption_data *const d = (const caption_data *)base;
    return caption_batch(&config->model, &d->scale, config->seed, split, first, count, NULL, NULL);
}

/* Of the words, and of a scene: a checkpoint belongs to these. */
static uint64_t content_hash(void)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int n = 0; n < caption_word_count(); n++)
        hash = corpus_hash(hash, caption_word(n));
    return scene_pixels_hash(hash);
}

void caption_data_init(caption_data *data)
{
    data->base =
        (training_data){.step = step, .some = some, .form = FORM_CAPTIONS, .hash = content_hash()};
    scene_scale_fill(&data->scale);
}
