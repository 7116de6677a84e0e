/* SPDX-License-Identifier: MIT */
/* Scenes for a training, and a judgement of its model (train_scenes.h). */
#include "program/train_scenes.h"

#include <inttypes.h>
#include <stdio.h>

#include "program/args.h"
#include "program/options.h"
#include "vision/caption_study.h"

/* Patches overlap by half unless their stride is given: shapes are then learnt much sooner. */
int train_scenes_open(caption_data *scenes, train_request *r)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    transformer_config *const model = &r->config.model;
    caption_data_init(scenes);
    caption_data_configure(model);
    if (r->given[training_setting_find("stride")] == NULL)
        model->vision.stride = (model->vision.patch + 1) / 2;
    if (!r->resume && !training_config_check(&r->config, message))
        return args_wrong("train: %s%s", option_setting_dashes(message), message);
    return EXIT_GO_ON;
}

mha_status train_scenes_write(const caption_data *scenes, const train_request *r, const training *t,
                              const safetensors_pair *notes, size_t note_count, const char *folder,
                              char message[TRANSFORMER_MESSAGE_MAX])
{
    const captioner_content content = {.config = &training_get_config(t)->model,
                                       .values = training_values(t),
                                       .type = r->type,
                                       .scale = &scenes->scale,
                                       .notes = notes,
                                       .note_count = note_count};
    return captioner_write(folder, &content, message);
}

int train_scenes_judge(const train_request *r, uint64_t seed, mha_pool *pool)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    caption_study study;
    captioner *const model = captioner_load(r->output, MHA_EXACT, pool, message);
    if (model == NULL)
        return args_failed("%s", message);
    const mha_status status = caption_study_measure(&study, model, seed, CORPUS_VALID, r->evaluate);
    captioner_free(model);
    if (status == MHA_OK) {
        const int64_t right = study.right[SCENE_ENGLISH] + study.right[SCENE_FRENCH];
        printf("captions right     %.2f %% (%" PRId64 " of %" PRId64
               " of the validation set, every word)\n",
               100.0 * (double)right / (double)r->evaluate, right, r->evaluate);
    }
    caption_study_free(&study);
    return status == MHA_OK ? EXIT_FINE
                            : args_failed("the model says nothing: %s", mha_status_string(status));
}
