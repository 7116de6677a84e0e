/* SPDX-License-Identifier: MIT */
/* What models of captions and detectors have in common in "mha see" (see_scenes.h). */
#include "program/see_scenes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/args.h"
#include "program/options.h"
#include "program/see_heads.h"
#include "program/session.h"

int see_scenes_split(const scenes_request *r, corpus_split *split)
{
    *split = CORPUS_TEST;
    return r->split != NULL ? option_split("see", r->split, split) : EXIT_GO_ON;
}

int scene_session_open(scene_session *s, const scenes_request *request,
                       const scene_model_kind *kind, const model_request *model, const char *folder)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    mha_model_config storage = {.size = sizeof storage};
    *s = (scene_session){.request = request};
    if (model->store != NULL)
        return args_wrong("see: --store is for classifiers; models of scenes are computed in f32");
    int code = model_storage_read("see", NULL, model->arithmetic, &storage);
    if (code == EXIT_GO_ON)
        code = session_open_pool(&s->pool, model->threads);
    if (code != EXIT_GO_ON)
        return code;
    s->model = scene_model_load(kind, folder, storage.arithmetic, s->pool, message);
    return s->model != NULL ? EXIT_GO_ON : args_failed("%s", message);
}

void scene_session_close(scene_session *s)
{
    scene_model_free(s->model);
    mha_pool_free(s->pool);
}

/* --------------------------------------------------------------- pictures ----- */

static int say_file(const scene_session *s, json *j, const char *path, const char *key,
                    int (*say)(const scene_session *s, json *j, const see_picture *p))
{
    const transformer_config *const c = &s->model->config;
    see_picture p;
    int code = see_picture_load(&p, path, c->vision.side, c->vision.channels, &s->model->scale);
    if (code == EXIT_GO_ON && s->request->as_json) {
        json_open_object(j, NULL);
        json_string(j, "picture", path);
        json_open_array(j, key);
        code = say(s, j, &p);
        json_close(j);
        json_close(j);
    } else if (code == EXIT_GO_ON) {
        printf("%s\n", path);
        code = say(s, NULL, &p);
    }
    see_picture_free(&p);
    return code;
}

int see_scenes_files(const scene_session *s, int count, char **paths, const char *key,
                     int (*say)(const scene_session *s, json *j, const see_picture *p))
{
    int code = EXIT_GO_ON;
    json j = json_begin(stdout);
    if (s->request->as_json)
        json_open_array(&j, NULL);
    for (int n = 0; n < count && code == EXIT_GO_ON; n++)
        code = say_file(s, &j, paths[n], key, say);
    if (s->request->as_json)
        json_close(&j);
    return code == EXIT_GO_ON ? EXIT_FINE : code;
}

int see_scenes_heads(const scene_session *s, const see_picture *p, float *weights, int rows,
                     const char *const *names, const char *title)
{
    const transformer_config *const c = &s->model->config;
    head_maps maps = {.layers = rows,
                      .heads = (int)scene_model_maps(s->model),
                      .across = vision_across(&c->vision),
                      .side = c->vision.side,
                      .patch = c->vision.patch,
                      .stride = c->vision.stride,
                      .shares = weights,
                      .seen = &p->seen,
                      .words = names,
                      .heads_of_layer = c->heads};
    int code = head_maps_count(&maps);
    const bool printed = strcmp(s->request->heads, "-") == 0;
    if (code == EXIT_GO_ON &&
        (printed ? head_maps_print(&maps) : head_maps_write(&maps, s->request->heads, title)) !=
            EXIT_FINE)
        code = EXIT_FAILED;
    head_maps_free(&maps);
    return code;
}

/* ---------------------------------------------------------------- pointing ----- */

void see_pointing_print(const pointing_result *p)
{
    printf("  %-16s %6.2f %% +- %.2f\n", "best fixed place", 100.0 * p->control.mean,
           100.0 * p->control.half);
    for (int n = 0; n < p->layers * p->heads; n++) {
        char name[32];
        snprintf(name, sizeof name, "cross %d.%d", n / p->heads + 1, n % p->heads + 1);
        printf("  %-16s %6.2f %% +- %.2f\n", name, 100.0 * p->shares[n].mean,
               100.0 * p->shares[n].half);
    }
}

static void put_interval(json *j, const mean_interval *interval)
{
    json_number(j, "share", interval->mean);
    json_number(j, "half_interval", interval->half);
    json_close(j);
}

void see_pointing_put(json *j, const pointing_result *p)
{
    json_open_object(j, "best_fixed_place");
    put_interval(j, &p->control);
    json_open_array(j, "cross_heads");
    for (int n = 0; n < p->layers * p->heads; n++) {
        json_open_object(j, NULL);
        json_integer(j, "layer", n / p->heads + 1);
        json_integer(j, "head", n % p->heads + 1);
        put_interval(j, &p->shares[n]);
    }
    json_close(j);
}

int see_scenes_failed(mha_status status)
{
    return status == MHA_ERR_SHAPE
               ? args_failed("the model does not read pictures of the size of scenes, or has fewer "
                             "rows than they need")
               : args_failed("%s", mha_status_string(status));
}
