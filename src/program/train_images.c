/* SPDX-License-Identifier: MIT */
/* Pictures for a training, and a judgement of its model (train_images.h). */
#include "program/train_images.h"

#include <mha/mha_model.h>
#include <stdio.h>
#include <string.h>

#include "program/args.h"
#include "program/judge_images.h"
#include "program/model_session.h"
#include "program/options.h"
#include "vision/vision_folder.h"

/* --------------------------------------------------------------- reading ----- */

/* The next of the names that commas separate; NULL at the end. */
static const char *next_name(const char *text, picture_class_name name, bool *fits)
{
    const size_t length = strcspn(text, ",");
    *fits = length > 0 && length < PICTURE_SET_NAME_MAX;
    snprintf(name, PICTURE_SET_NAME_MAX, "%.*s", (int)length, text);
    return text[length] == ',' ? text + length + 1 : NULL;
}

/* --classes: as many different names as there are classes. */
static int name_classes(train_images *images, const char *text)
{
    picture_set *const set = &images->train;
    int count = 0;
    const char *at = text;
    for (; at != NULL && count < set->classes; count++) {
        bool fits;
        at = next_name(at, set->names[count], &fits);
        for (int other = 0; other < count; other++)
            fits = fits && strcmp(set->names[other], set->names[count]) != 0;
        if (!fits)
            return args_wrong("train: --classes: \"%s\" is empty, too long or there twice",
                              set->names[count]);
    }
    return count == set->classes && at == NULL
               ? EXIT_GO_ON
               : args_wrong("train: --classes must have %d names, separated by commas",
                            set->classes);
}

/* The stride of patches is their size unless it is given. */
static int settle(train_images *images, train_request *r)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    vision_shape *const v = &r->config.model.vision;
    const int size = training_setting_find("image-size");
    if (r->given[training_setting_find("stride")] == NULL)
        v->stride = v->patch;
    if (r->given[size] != NULL && v->side != images->train.rows)
        return args_wrong("train: --image-size %d: the pictures of this set have %d pixels a side; "
                          "only PNG files are scaled",
                          v->side, images->train.rows);
    vision_data_configure(images->data, &r->config.model);
    if (!r->resume && !training_config_check(&r->config, message))
        return args_wrong("train: %s%s", option_setting_dashes(message), message);
    return EXIT_GO_ON;
}

int train_images_open(train_images *images, train_request *r)
{
    char message[PICTURE_MESSAGE_MAX];
    const int size = training_setting_find("image-size");
    const int side = r->given[size] != NULL ? r->config.model.vision.side : 0;
    if (side > PICTURE_SET_SIDE_MAX || side < 0)
        return args_wrong("train: --image-size %d: it must be from 1 to %d", side,
                          PICTURE_SET_SIDE_MAX);
    if (!picture_set_open(r->images, side, &images->train, &images->test, message))
        return args_failed("%s", message);
    const int code = r->classes != NULL ? name_classes(images, r->classes) : EXIT_GO_ON;
    if (code != EXIT_GO_ON)
        return code;
    images->data = vision_data_create(&images->train, &images->test, message);
    if (images->data == NULL)
        return args_failed("%s: %s", r->images, message);
    if (!r->quiet)
        fprintf(stderr, "%s: %td pictures of %d x %d in %d classes, %td more for the test\n",
                r->images, images->train.count, images->train.columns, images->train.rows,
                images->train.classes, images->test.count);
    return settle(images, r);
}

void train_images_close(train_images *images)
{
    vision_data_free(images->data);
    picture_set_free(&images->train);
    picture_set_free(&images->test);
}

/* --------------------------------------------------------------- writing ----- */

mha_status train_images_write(const train_images *images, const train_request *r, const training *t,
                              const safetensors_pair *notes, size_t note_count, const char *folder,
                              char message[TRANSFORMER_MESSAGE_MAX])
{
    const vision_content content = {.config = &training_get_config(t)->model,
                                    .values = training_values(t),
                                    .type = r->type,
                                    .scale = vision_data_scale(images->data),
                                    .names = images->train.names,
                                    .notes = notes,
                                    .note_count = note_count};
    return vision_folder_write(folder, &content, message);
}

/* --------------------------------------------------------------- judging ----- */

typedef struct judged_split {
    const train_images *images;
    corpus_split split;
} judged_split;

static bool fill_from_data(const void *arg, int64_t first, int count, float *pixels, int *classes)
{
    const judged_split *const from = arg;
    training_data *const data = vision_data_base(from->images->data);
    training_config config = {.batch = count};
    config.model.positions = 1;
    batch *const b = data->some(data, &config, from->split, first, count);
    if (b == NULL)
        return false;
    memcpy(pixels, b->pixels, (size_t)count * b->picture_floats * sizeof *pixels);
    memcpy(classes, b->expected, (size_t)count * sizeof *classes);
    batch_free(b);
    return true;
}

int train_images_judge(const train_images *images, const train_request *r, mha_pool *pool)
{
    char message[MODEL_MESSAGE_MAX] = "";
    const mha_model_config config = {
        .size = sizeof config, .message = message, .message_size = sizeof message};
    mha_model *model = NULL;
    if (mha_model_open(&model, r->output, &config) != MHA_OK)
        return args_failed("%s", message);
    const bool tests = images->test.count > 0;
    const int64_t valid = vision_data_base(images->data)->valid;
    const judged_split from = {images, tests ? CORPUS_TEST : CORPUS_VALID};
    const judged_images what = {.count = tests                 ? images->test.count
                                         : r->evaluate < valid ? r->evaluate
                                                               : valid,
                                .classes = images->train.classes,
                                .names = images->train.names,
                                .floats = picture_set_bytes(&images->train),
                                .from = tests ? "test" : "validation",
                                .fill = fill_from_data,
                                .arg = &from};
    confusion counts;
    int code = judge_images(&what, model, pool, &counts);
    if (code == EXIT_GO_ON) {
        judge_images_print(&what, &counts);
        code = r->confusion != NULL ? judge_images_draw(&what, &counts, r->confusion) : EXIT_FINE;
    }
    confusion_free(&counts);
    mha_model_free(model);
    return code;
}
