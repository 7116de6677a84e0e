/* SPDX-License-Identifier: MIT */
/* Judges a classifier by a set of pictures (see_images.h). */
#include "program/see_images.h"

#include <stdio.h>

#include "base/output_file.h"
#include "program/args.h"
#include "program/judge_images.h"

typedef struct scaled_set {
    const picture_set *set;
    const pixel_scale *scale;
} scaled_set;

static bool fill_from_set(const void *arg, int64_t first, int count, float *pixels, int *classes)
{
    const scaled_set *const from = arg;
    const picture_set *const set = from->set;
    const size_t size = (size_t)set->rows * (size_t)set->columns;
    const uint8_t *byte = set->pixels + (size_t)first * picture_set_bytes(set);
    for (int n = 0; n < count; n++) {
        classes[n] = set->labels[first + n];
        for (int channel = 0; channel < set->channels; channel++)
            for (size_t k = 0; k < size; k++)
                *pixels++ = from->scale->table[channel][*byte++];
    }
    return true;
}

/* Can the model read the pictures of this set? */
static int check_set(const see_images_request *r, const picture_set *set,
                     const mha_model_info *info)
{
    if (set->rows != info->image_size || set->columns != info->image_size)
        return args_failed("%s has pictures of %d x %d pixels, and the model reads %d x %d",
                           r->images, set->columns, set->rows, (int)info->image_size,
                           (int)info->image_size);
    if (set->channels != info->channels)
        return args_failed("%s has %s pictures, and the model reads %s ones", r->images,
                           set->channels == 1 ? "grey" : "coloured",
                           info->channels == 1 ? "grey" : "coloured");
    return set->classes == info->labels ? EXIT_GO_ON
                                        : args_failed("%s has %d classes, and the model knows %d",
                                                      r->images, set->classes, (int)info->labels);
}

static int judge(const see_images_request *r, const judged_images *what, const mha_model *model,
                 mha_pool *pool)
{
    confusion counts;
    int code = judge_images(what, model, pool, &counts);
    if (code == EXIT_GO_ON && r->as_json) {
        json j = json_begin(stdout);
        judge_images_put(&j, what, &counts);
    } else if (code == EXIT_GO_ON) {
        judge_images_print(what, &counts);
    }
    if (code == EXIT_GO_ON)
        code = r->confusion != NULL ? judge_images_draw(what, &counts, r->confusion) : EXIT_FINE;
    confusion_free(&counts);
    return code;
}

int see_images(const see_images_request *r, const model_session *session,
               const picture_class_name *names, const pixel_scale *scale)
{
    char message[PICTURE_MESSAGE_MAX];
    picture_set train, test;
    if (r->confusion != NULL && !output_file_check(r->confusion))
        return EXIT_FAILED;
    if (!picture_set_open(r->images, (int)session->info.image_size, &train, &test, message))
        return args_failed("%s", message);
    const picture_set *const set = test.count > 0 ? &test : &train;
    const scaled_set from = {set, scale};
    const judged_images what = {.count =
                                    r->count > 0 && r->count < set->count ? r->count : set->count,
                                .classes = set->classes,
                                .names = names,
                                .floats = picture_set_bytes(set),
                                .from = test.count > 0 ? "test" : "training",
                                .fill = fill_from_set,
                                .arg = &from};
    int code = check_set(r, set, &session->info);
    if (code == EXIT_GO_ON)
        code = judge(r, &what, session->model, session->pool);
    picture_set_free(&train);
    picture_set_free(&test);
    return code;
}
