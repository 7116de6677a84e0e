/* SPDX-License-Identifier: MIT */
/* Captions of pictures (see_captions.h). */
#include "program/see_captions.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/json_writer.h"
#include "program/args.h"
#include "program/options.h"
#include "program/see_heads.h"
#include "program/see_picture.h"
#include "program/session.h"
#include "vision/caption_study.h"

typedef struct speaker {
    captioner *model;
    mha_pool *pool;
    bool says[SCENE_LANGUAGES];
    const char *heads;
    bool as_json;
} speaker;

static int read_languages(const captions_request *r, bool says[SCENE_LANGUAGES])
{
    const char *names[SCENE_LANGUAGES];
    for (int n = 0; n < SCENE_LANGUAGES; n++) {
        names[n] = scene_language_name((scene_language)n);
        says[n] = r->language == NULL;
    }
    if (r->language == NULL)
        return EXIT_GO_ON;
    const int chosen = option_choose("see", "language", r->language, names, SCENE_LANGUAGES);
    if (chosen < 0)
        return EXIT_USAGE;
    says[chosen] = true;
    return EXIT_GO_ON;
}

static int read_split(const captions_request *r, corpus_split *split)
{
    *split = CORPUS_TEST;
    return r->split != NULL ? option_split("see", r->split, split) : EXIT_GO_ON;
}

int see_captions_check(const captions_request *r)
{
    bool says[SCENE_LANGUAGES];
    corpus_split split;
    const int code = read_languages(r, says);
    return code == EXIT_GO_ON ? read_split(r, &split) : code;
}

/* --------------------------------------------------------------- pictures ----- */

static void put_caption(json *j, scene_language language, const caption_said *said)
{
    char text[CAPTION_TEXT_MAX];
    caption_text(said->words, said->count, text);
    if (j == NULL) {
        printf("  %6.2f %%  %-8s  %s%s\n", 100.0 * exp(said->score), scene_language_name(language),
               text, said->complete ? "" : " ...");
        return;
    }
    json_open_object(j, NULL);
    json_string(j, "language", scene_language_name(language));
    json_string(j, "caption", text);
    json_number(j, "probability", exp(said->score));
    json_number(j, "score", said->score);
    json_bool(j, "complete", said->complete);
    json_close(j);
}

/* Rows are the words and the end, columns the cross heads of all layers. */
static int draw_heads(const speaker *s, const see_picture *p, scene_language language,
                      const caption_said *said)
{
    const transformer_config *const c = &s->model->config;
    const char *words[CAPTION_WORDS_MAX + 1];
    char title[CAPTION_TEXT_MAX];
    head_maps maps = {.layers = said->count + 1,
                      .heads = c->layers[TRANSFORMER_TARGET] * c->heads,
                      .across = vision_across(&c->vision),
                      .side = c->vision.side,
                      .patch = c->vision.patch,
                      .stride = c->vision.stride,
                      .seen = &p->seen,
                      .words = words,
                      .heads_of_layer = c->heads};
    int code = head_maps_allocate(&maps);
    for (int n = 0; n < maps.layers; n++) {
        const char *const word = n < said->count ? caption_word(said->words[n]) : "(end)";
        words[n] = word != NULL ? word : "?";
    }
    caption_text(said->words, said->count, title);
    const mha_status status =
        code == EXIT_GO_ON ? captioner_weights(s->model, p->pixels, language, said, maps.shares)
                           : MHA_OK;
    if (status != MHA_OK)
        code = args_failed("%s", mha_status_string(status));
    if (code == EXIT_GO_ON && strcmp(s->heads, "-") == 0)
        head_maps_print(&maps);
    else if (code == EXIT_GO_ON && head_maps_write(&maps, s->heads, title) != EXIT_FINE)
        code = EXIT_FAILED;
    head_maps_free(&maps);
    return code;
}

static int say(const speaker *s, json *j, const see_picture *p)
{
    bool drawn = s->heads == NULL;
    for (int n = 0; n < SCENE_LANGUAGES; n++) {
        caption_said said;
        if (!s->says[n])
            continue;
        const mha_status status = captioner_say(s->model, p->pixels, (scene_language)n, &said);
        if (status != MHA_OK)
            return args_failed("%s", mha_status_string(status));
        put_caption(j, (scene_language)n, &said);
        const int code = drawn ? EXIT_GO_ON : draw_heads(s, p, (scene_language)n, &said);
        if (code != EXIT_GO_ON)
            return code;
        drawn = true; /* in the first language */
    }
    return EXIT_GO_ON;
}

static int say_file(const speaker *s, json *j, const char *path)
{
    const transformer_config *const c = &s->model->config;
    see_picture p;
    int code = see_picture_load(&p, path, c->vision.side, c->vision.channels, &s->model->scale);
    if (code == EXIT_GO_ON && s->as_json) {
        json_open_object(j, NULL);
        json_string(j, "picture", path);
        json_open_array(j, "captions");
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

static int say_files(const speaker *s, int count, char **paths)
{
    int code = EXIT_GO_ON;
    json j = json_begin(stdout);
    if (s->as_json)
        json_open_array(&j, NULL);
    for (int n = 0; n < count && code == EXIT_GO_ON; n++)
        code = say_file(s, &j, paths[n]);
    if (s->as_json)
        json_close(&j);
    return code == EXIT_GO_ON ? EXIT_FINE : code;
}

/* ----------------------------------------------------------------- scenes ----- */

static double percent(int64_t part, int64_t all)
{
    return all > 0 ? 100.0 * (double)part / (double)all : 0.0;
}

static void print_study(const caption_study *s, corpus_split split)
{
    const int64_t right = s->right[SCENE_ENGLISH] + s->right[SCENE_FRENCH];
    const int64_t scenes = s->scenes[SCENE_ENGLISH] + s->scenes[SCENE_FRENCH];
    printf("captions right     %6.2f %%  (%" PRId64 " of %" PRId64 " scenes of %s, every word)\n",
           percent(right, scenes), right, scenes, corpus_split_name(split));
    for (int n = 0; n < SCENE_LANGUAGES; n++)
        printf("  %-16s %6.2f %%  (%" PRId64 " of %" PRId64 ")\n",
               scene_language_name((scene_language)n), percent(s->right[n], s->scenes[n]),
               s->right[n], s->scenes[n]);
    printf("words right        %6.2f %%  (%" PRId64 " of %" PRId64 ", ends included)\n",
           percent(s->words_right, s->words), s->words_right, s->words);
    printf("\nLooks at the shape that a word is about (%" PRId64 " words for sizes, colours and "
           "kinds)\n",
           s->pointed);
    printf("  %-16s %6.2f %% +- %.2f\n", "best fixed place", 100.0 * s->control.mean,
           100.0 * s->control.half);
    for (int n = 0; n < s->layers * s->heads; n++) {
        char name[32];
        snprintf(name, sizeof name, "cross %d.%d", n / s->heads + 1, n % s->heads + 1);
        printf("  %-16s %6.2f %% +- %.2f\n", name, 100.0 * s->pointing[n].mean,
               100.0 * s->pointing[n].half);
    }
}

static void put_interval(json *j, const char *key, const mean_interval *interval)
{
    json_open_object(j, key);
    json_number(j, "share", interval->mean);
    json_number(j, "half_interval", interval->half);
    json_close(j);
}

static void put_study(const caption_study *s, corpus_split split)
{
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_string(&j, "split", corpus_split_name(split));
    for (int n = 0; n < SCENE_LANGUAGES; n++) {
        json_open_object(&j, scene_language_name((scene_language)n));
        json_integer(&j, "scenes", s->scenes[n]);
        json_integer(&j, "right", s->right[n]);
        json_close(&j);
    }
    json_integer(&j, "words", s->words);
    json_integer(&j, "words_right", s->words_right);
    json_integer(&j, "pointing_words", s->pointed);
    put_interval(&j, "best_fixed_place", &s->control);
    json_open_array(&j, "cross_heads");
    for (int n = 0; n < s->layers * s->heads; n++) {
        json_open_object(&j, NULL);
        json_integer(&j, "layer", n / s->heads + 1);
        json_integer(&j, "head", n % s->heads + 1);
        json_number(&j, "share", s->pointing[n].mean);
        json_number(&j, "half_interval", s->pointing[n].half);
        json_close(&j);
    }
    json_close(&j);
    json_close(&j);
}

static int measure(const speaker *s, const captions_request *r, corpus_split split)
{
    caption_study study;
    const mha_status status = caption_study_measure(&study, s->model, r->seed, split, r->scenes);
    if (status == MHA_OK && s->as_json)
        put_study(&study, split);
    else if (status == MHA_OK)
        print_study(&study, split);
    caption_study_free(&study);
    if (status == MHA_ERR_SHAPE)
        return args_failed("the model does not read pictures of the size of scenes");
    return status == MHA_OK ? EXIT_FINE : args_failed("%s", mha_status_string(status));
}

/* ---------------------------------------------------------------- command ----- */

static int open_speaker(speaker *s, const model_request *model, const char *folder)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    mha_model_config storage = {.size = sizeof storage};
    if (model->store != NULL)
        return args_wrong("see: --store is for classifiers; captions are computed in f32");
    int code = model_storage_read("see", NULL, model->arithmetic, &storage);
    if (code == EXIT_GO_ON)
        code = session_open_pool(&s->pool, model->threads);
    if (code != EXIT_GO_ON)
        return code;
    s->model = captioner_load(folder, storage.arithmetic, s->pool, message);
    return s->model != NULL ? EXIT_GO_ON : args_failed("%s", message);
}

int see_captions(const captions_request *r, const model_request *model, const char *folder,
                 const char *heads, bool as_json, int count, char **paths)
{
    speaker s = {.heads = heads, .as_json = as_json};
    corpus_split split;
    int code = read_languages(r, s.says);
    if (code == EXIT_GO_ON)
        code = read_split(r, &split);
    if (code == EXIT_GO_ON)
        code = open_speaker(&s, model, folder);
    if (code == EXIT_GO_ON)
        code = r->scenes > 0 ? measure(&s, r, split) : say_files(&s, count, paths);
    captioner_free(s.model);
    mha_pool_free(s.pool);
    return code;
}
