/* SPDX-License-Identifier: MIT */
/* Captions of pictures (see_captions.h). */
#include "program/see_captions.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "program/args.h"
#include "program/options.h"
#include "vision/caption_study.h"

static int read_languages(const scenes_request *r, bool says[SCENE_LANGUAGES])
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

int see_captions_check(const scenes_request *r)
{
    bool says[SCENE_LANGUAGES];
    return read_languages(r, says);
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

/* Rows are the words and the end. */
static int draw_heads(const scene_session *s, const see_picture *p, scene_language language,
                      const caption_said *said)
{
    const char *words[CAPTION_WORDS_MAX + 1];
    char title[CAPTION_TEXT_MAX];
    const size_t rows = (size_t)said->count + 1;
    const size_t patches = (size_t)vision_tokens(&s->model->config.vision);
    float *const weights = malloc(rows * scene_model_maps(s->model) * patches * sizeof *weights);
    for (int n = 0; n <= said->count; n++) {
        const char *const word = n < said->count ? caption_word(said->words[n]) : "(end)";
        words[n] = word != NULL ? word : "?";
    }
    caption_text(said->words, said->count, title);
    const mha_status status = weights != NULL
                                  ? captioner_weights(s->model, p->pixels, language, said, weights)
                                  : MHA_ERR_MEMORY;
    if (status == MHA_OK)
        return see_scenes_heads(s, p, weights, (int)rows, words, title);
    free(weights);
    return args_failed("%s", mha_status_string(status));
}

static int say(const scene_session *s, json *j, const see_picture *p)
{
    bool drawn = s->request->heads == NULL, says[SCENE_LANGUAGES];
    int code = read_languages(s->request, says);
    for (int n = 0; n < SCENE_LANGUAGES && code == EXIT_GO_ON; n++) {
        caption_said said;
        if (!says[n])
            continue;
        const mha_status status = captioner_say(s->model, p->pixels, (scene_language)n, &said);
        if (status != MHA_OK)
            return args_failed("%s", mha_status_string(status));
        put_caption(j, (scene_language)n, &said);
        if (!drawn)
            code = draw_heads(s, p, (scene_language)n, &said);
        drawn = true; /* in the first language */
    }
    return code;
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
           s->pointing.rows);
    see_pointing_print(&s->pointing);
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
    json_integer(&j, "pointing_words", s->pointing.rows);
    see_pointing_put(&j, &s->pointing);
    json_close(&j);
}

static int measure(const scene_session *s, corpus_split split)
{
    const scenes_request *const r = s->request;
    caption_study study;
    const mha_status status = caption_study_measure(&study, s->model, r->seed, split, r->scenes);
    if (status == MHA_OK && r->as_json)
        put_study(&study, split);
    else if (status == MHA_OK)
        print_study(&study, split);
    caption_study_free(&study);
    return status == MHA_OK ? EXIT_FINE : see_scenes_failed(status);
}

int see_captions(const scenes_request *r, const model_request *model, const char *folder, int count,
                 char **paths)
{
    corpus_split split;
    scene_session s;
    int code = see_scenes_split(r, &split);
    if (code != EXIT_GO_ON)
        return code;
    code = scene_session_open(&s, r, &captioner_kind, model, folder);
    if (code == EXIT_GO_ON)
        code = r->scenes > 0 ? measure(&s, split)
                             : see_scenes_files(&s, count, paths, "captions", say);
    scene_session_close(&s);
    return code;
}
