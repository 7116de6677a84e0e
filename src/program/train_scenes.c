/* SPDX-License-Identifier: MIT */
/* Scenes for a training, and a judgement of its model (train_scenes.h). */
#include "program/train_scenes.h"

#include <inttypes.h>
#include <stdio.h>

#include "program/args.h"
#include "program/options.h"
#include "vision/caption_study.h"
#include "vision/detection_study.h"
#include "vision/detector.h"

static const scene_model_kind *kind_of(const train_request *r)
{
    return r->detect ? &detector_kind : &captioner_kind;
}

/* Patches overlap by half unless their stride is given: shapes are then learnt much sooner. */
int train_scenes_open(train_scenes *scenes, train_request *r)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    transformer_config *const model = &r->config.model;
    caption_data_init(&scenes->captions);
    detection_data_init(&scenes->things);
    if (r->detect)
        detection_data_configure(model);
    else
        caption_data_configure(model);
    if (r->given[training_setting_find("stride")] == NULL)
        model->vision.stride = (model->vision.patch + 1) / 2;
    if (r->detect && model->positions < SCENE_SHAPES_MAX)
        return args_wrong(
            "train: --queries %d: scenes have up to %d shapes, and each needs a query",
            model->positions, SCENE_SHAPES_MAX);
    if (!r->resume && !training_config_check(&r->config, message))
        return args_wrong("train: %s%s", option_setting_dashes(message), message);
    return EXIT_GO_ON;
}

training_data *train_scenes_base(train_scenes *scenes, const train_request *r)
{
    return r->detect ? &scenes->things.base : &scenes->captions.base;
}

mha_status train_scenes_write(const train_scenes *scenes, const train_request *r, const training *t,
                              const safetensors_pair *notes, size_t note_count, const char *folder,
                              char message[TRANSFORMER_MESSAGE_MAX])
{
    const scene_model_content content = {.config = &training_get_config(t)->model,
                                         .values = training_values(t),
                                         .type = r->type,
                                         .scale = &scenes->things.scale,
                                         .notes = notes,
                                         .note_count = note_count};
    return scene_model_write(kind_of(r), folder, &content, message);
}

static mha_status judge_captions(const train_request *r, const scene_model *model, uint64_t seed)
{
    caption_study study;
    const mha_status status = caption_study_measure(&study, model, seed, CORPUS_VALID, r->evaluate);
    if (status == MHA_OK) {
        const int64_t right = study.right[SCENE_ENGLISH] + study.right[SCENE_FRENCH];
        printf("captions right     %.2f %% (%" PRId64 " of %" PRId64
               " of the validation set, every word)\n",
               100.0 * (double)right / (double)r->evaluate, right, r->evaluate);
    }
    caption_study_free(&study);
    return status;
}

static mha_status judge_boxes(const train_request *r, const scene_model *model, uint64_t seed)
{
    detection_study study;
    const mha_status status =
        detection_study_measure(&study, model, seed, CORPUS_VALID, r->evaluate);
    if (status == MHA_OK)
        printf("average precision  %.2f %% at an overlap of 0.5 (%" PRId64
               " scenes of the validation set)\n",
               100.0 * study.mean, r->evaluate);
    detection_study_free(&study);
    return status;
}

int train_scenes_judge(const train_request *r, uint64_t seed, mha_pool *pool)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    scene_model *const model = scene_model_load(kind_of(r), r->output, MHA_EXACT, pool, message);
    if (model == NULL)
        return args_failed("%s", message);
    const mha_status status =
        r->detect ? judge_boxes(r, model, seed) : judge_captions(r, model, seed);
    scene_model_free(model);
    return status == MHA_OK ? EXIT_FINE
                            : args_failed("the model says nothing: %s", mha_status_string(status));
}
