/* SPDX-License-Identifier: MIT */
/*
 * mha see: what a model says of pictures, and where its heads look. Models of captions are in
 * see_captions.h, detectors in see_boxes.h; of a classifier:
 *
 *      PNG of any size --> scaled to the model's input, as its files say --> logits
 *      the most probable classes; with --heads every head over the picture (see_heads.h)
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output_file.h"
#include "format/json_writer.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/model_session.h"
#include "program/options.h"
#include "program/see_boxes.h"
#include "program/see_captions.h"
#include "program/see_heads.h"
#include "program/see_images.h"
#include "program/see_picture.h"
#include "translator/model_path.h"
#include "vision/captioner.h"
#include "vision/classes.h"
#include "vision/detector.h"

enum { BAR = 24, TOP = 3, LEAST = 50 };

static const char details[] =
    "Three models come with the program: captions, the default, says in English and French what "
    "is\n"
    "in a picture of coloured shapes (\"mha scenes\" draws some), detector finds the shapes, the\n"
    "default for --boxes, and vit-fashion recognises clothes, the default for --images.\n"
    "\n"
    "A classifier is a folder of ViT or DeiT, or one of \"mha train --images\". The picture is "
    "scaled\n"
    "to the size that the model reads, and its pixels as preprocessor_config.json says; without "
    "that\n"
    "file they go from -1 to 1. --images measures it on a set, such as \"mha train --images\" "
    "reads.\n"
    "\n"
    "A model of \"mha train --scenes\" says in English and "
    "French what is in a picture, with\n"
    "the probability of the whole caption. --scenes N measures it on "
    "pictures of \"mha scenes\" with\n"
    "combinations that no training has: captions that are right in every "
    "word, and how often each cross\n"
    "head looks at the shape that a word is about, compared with always "
    "looking at the best fixed\n"
    "place. --heads then draws the cross heads, a row for each word.\n"
    "\n"
    "A model of \"mha train --scenes --detect\" finds shapes: "
    "what each is, the probability\n"
    "of that, and a box in pixels of the file. --boxes draws them, "
    "--heads the cross heads, a row for\n"
    "each query. --scenes N measures the average precision at an overlap "
    "of 0.5, and how often a cross\n"
    "head looks at the shape that its query has found.\n"
    "\n"
    "--heads draws every head over the picture, a row for each layer: "
    "the weights of the token that\n"
    "is classified by or, of a model that takes the mean, the mean of "
    "all rows. FILE ends in .png or\n"
    ".svg; \"-\" draws in the terminal, over the picture where it has colours.\n"
    "\n"
    "Examples:\n"
    "  mha scenes --split test --count 3 -o scenes\n"
    "  mha see scenes/test-000000.png --heads -\n"
    "  mha see scenes/test-*[0-9].png --language french\n"
    "  mha see --scenes 1000\n"
    "  mha see scenes/test-000000.png --boxes boxes.svg\n"
    "  mha see shoe.png --model vit-fashion --heads heads.png\n"
    "  mha see *.png --model vit --top 1\n"
    "  mha see --images /usr/share/datasets/fashion-mnist\n";

typedef struct see_request {
    model_request model;
    scenes_request scenes;
    see_images_request images;
    int64_t top;
} see_request;

/* A classifier with what its folder says. */
typedef struct seer {
    model_session session;
    int side, channels, classes;
    pixel_scale scale;
    picture_class_name *names;
} seer;

/* What it says of one picture. */
typedef struct sight {
    see_picture picture;
    float *logits;
    int *order; /* classes, the most probable first */
    double *shares;
} sight;

/* ---------------------------------------------------------------- opening ----- */

static int open_seer(seer *s, const see_request *r)
{
    char message[PICTURE_MESSAGE_MAX];
    int code = model_session_open(&s->session, "see", &r->model);
    if (code != EXIT_GO_ON)
        return code;
    const mha_model_info *const info = &s->session.info;
    const char *const path = r->model.path;
    if (info->kind != MHA_MODEL_IMAGE_ENCODER)
        return args_failed("%s reads texts, not pictures; give a ViT or DeiT", path);
    if (info->labels < 2 || info->channels > AUGMENT_CHANNELS_MAX || info->channels == 2)
        return args_failed("%s is no classifier of grey or coloured pictures", path);
    s->side = (int)info->image_size;
    s->channels = (int)info->channels;
    s->classes = (int)info->labels;
    s->names = calloc((size_t)s->classes, sizeof *s->names);
    if (s->names == NULL)
        return args_failed("out of memory");
    if (!classes_read(path, s->names, s->classes, message) ||
        !classes_read_scale(path, &s->scale, s->channels, message))
        return args_failed("%s", message);
    return EXIT_GO_ON;
}

static void close_seer(seer *s)
{
    free(s->names);
    model_session_close(&s->session);
}

/* --------------------------------------------------------------- pictures ----- */

/* Softmax and order of the logits. */
static void rank(const seer *s, sight *v)
{
    double sum = 0.0, largest = -INFINITY;
    for (int n = 0; n < s->classes; n++)
        largest = (double)v->logits[n] > largest ? (double)v->logits[n] : largest;
    for (int n = 0; n < s->classes; n++)
        sum += v->shares[n] = exp((double)v->logits[n] - largest);
    for (int n = 0; n < s->classes; n++) {
        int place = n;
        v->shares[n] /= sum;
        for (; place > 0 && v->shares[v->order[place - 1]] < v->shares[n]; place--)
            v->order[place] = v->order[place - 1];
        v->order[place] = n;
    }
}

static int look(const seer *s, const char *path, sight *v)
{
    char message[MODEL_MESSAGE_MAX] = "";
    const int code = see_picture_load(&v->picture, path, s->side, s->channels, &s->scale);
    if (code != EXIT_GO_ON)
        return code;
    v->logits = malloc((size_t)s->classes * sizeof *v->logits);
    v->order = malloc((size_t)s->classes * sizeof *v->order);
    v->shares = malloc((size_t)s->classes * sizeof *v->shares);
    if (!v->logits || !v->order || !v->shares)
        return args_failed("out of memory");
    const mha_model_call call = {.size = sizeof call,
                                 .B = 1,
                                 .pixels = v->picture.pixels,
                                 .labels = v->logits,
                                 .message = message,
                                 .message_size = sizeof message};
    const mha_status status = mha_model_run(s->session.model, &call, NULL, 0, s->session.pool);
    if (status != MHA_OK)
        return args_failed("%s", *message ? message : mha_status_string(status));
    rank(s, v);
    return EXIT_GO_ON;
}

static void free_sight(sight *v)
{
    see_picture_free(&v->picture);
    free(v->logits);
    free(v->order);
    free(v->shares);
}

/* ----------------------------------------------------------------- output ----- */

static int shown(const seer *s, const see_request *r)
{
    return r->top < s->classes ? (int)r->top : s->classes;
}

static void print_text(const seer *s, const see_request *r, const char *path, const sight *v)
{
    printf("%s\n", path);
    for (int n = 0; n < shown(s, r); n++) {
        const int class = v->order[n], filled = (int)(v->shares[class] * BAR + 0.5);
        printf("  %6.2f %%  ", 100.0 * v->shares[class]);
        for (int k = 0; k < BAR; k++)
            putchar(k < filled ? '#' : '.');
        printf("  %s\n", s->names[class]);
    }
}

static void print_json(json *j, const seer *s, const see_request *r, const char *path,
                       const sight *v)
{
    json_open_object(j, NULL);
    json_string(j, "picture", path);
    json_open_array(j, "classes");
    for (int n = 0; n < shown(s, r); n++) {
        json_open_object(j, NULL);
        json_string(j, "class", s->names[v->order[n]]);
        json_integer(j, "number", v->order[n]);
        json_number(j, "probability", v->shares[v->order[n]]);
        json_number(j, "logit", (double)v->logits[v->order[n]]);
        json_close(j);
    }
    json_close(j);
    json_close(j);
}

static int draw_heads(const seer *s, const see_request *r, const char *path, const sight *v)
{
    char title[256];
    head_maps maps;
    int code = head_maps_make(&maps, s->session.model, &s->session.info, v->picture.pixels,
                              &v->picture.seen, s->session.pool);
    snprintf(title, sizeof title, "%.120s: %s, %.1f %%", path, s->names[v->order[0]],
             100.0 * v->shares[v->order[0]]);
    const bool printed = strcmp(r->scenes.heads, "-") == 0;
    if (code == EXIT_GO_ON &&
        (printed ? head_maps_print(&maps) : head_maps_write(&maps, r->scenes.heads, title)) !=
            EXIT_FINE)
        code = EXIT_FAILED;
    head_maps_free(&maps);
    return code;
}

/* ------------------------------------------------------------------ command ----- */

static int see_set(const see_request *r)
{
    seer s = {.names = NULL};
    see_images_request images = r->images;
    images.as_json = r->scenes.as_json;
    int code = open_seer(&s, r);
    if (code == EXIT_GO_ON)
        code = see_images(&images, &s.session, s.names, &s.scale);
    close_seer(&s);
    return code;
}

static int see_all(const see_request *r, int count, char **paths)
{
    seer s = {.names = NULL};
    int code = open_seer(&s, r);
    json j = json_begin(stdout);
    if (code == EXIT_GO_ON && r->scenes.as_json)
        json_open_array(&j, NULL);
    const bool opened = code == EXIT_GO_ON;
    for (int n = 0; n < count && code == EXIT_GO_ON; n++) {
        sight v = {.logits = NULL};
        code = look(&s, paths[n], &v);
        if (code == EXIT_GO_ON && r->scenes.as_json)
            print_json(&j, &s, r, paths[n], &v);
        else if (code == EXIT_GO_ON)
            print_text(&s, r, paths[n], &v);
        if (code == EXIT_GO_ON && r->scenes.heads != NULL)
            code = draw_heads(&s, r, paths[n], &v);
        free_sight(&v);
    }
    if (opened && r->scenes.as_json)
        json_close(&j);
    close_seer(&s);
    return code == EXIT_GO_ON ? EXIT_FINE : code;
}

/* A file to draw to, NULL if there is none. */
static int check_drawing(const char *option, const char *path, int count)
{
    if (path == NULL)
        return EXIT_GO_ON;
    const size_t length = strlen(path);
    const char *const end = length > 4 ? path + length - 4 : "";
    if (strcmp(end, ".png") != 0 && strcmp(end, ".svg") != 0)
        return args_wrong("see: --%s %s: the name must end in .png or .svg%s", option, path,
                          strcmp(option, "heads") == 0 ? ", or be -" : "");
    if (count > 1)
        return args_wrong("see: --%s FILE is for one picture, not %d", option, count);
    return output_file_check(path) ? EXIT_GO_ON : EXIT_FAILED;
}

static int check(const see_request *r, int count)
{
    const scenes_request *const s = &r->scenes;
    const bool here = s->heads != NULL && strcmp(s->heads, "-") == 0;
    if (here && s->as_json)
        return args_wrong("see: --json and --heads - exclude each other");
    if (s->boxes != NULL && s->heads != NULL && strcmp(s->boxes, s->heads) == 0)
        return args_wrong("see: %s is given for two different files", s->boxes);
    const int code = check_drawing("heads", here ? NULL : s->heads, count);
    return code == EXIT_GO_ON ? check_drawing("boxes", s->boxes, count) : code;
}

/* --scenes and --images have pictures of their own. */
static int check_pictures(const arg_command *command, const see_request *r, int count)
{
    const bool scenes = r->scenes.scenes > 0, images = r->images.images != NULL;
    if (scenes && images)
        return args_wrong("see: --scenes and --images exclude each other");
    if (!scenes && !images && count == 0)
        return args_wrong("see: which picture? Give PNG files, --scenes N or --images SET");
    if ((scenes || images) && count > 0)
        return args_wrong("see: --%s has pictures of its own; leave out the files",
                          scenes ? "scenes" : "images");
    int code = images ? EXIT_GO_ON : args_refuse(command, "count confusion", "is for --images");
    if (code == EXIT_GO_ON && !scenes)
        code = args_refuse(command, "split seed", "is for --scenes");
    return code == EXIT_GO_ON && (scenes || images)
               ? args_refuse(command, "heads boxes least top language",
                             scenes ? "is for files; --scenes only measures"
                                    : "is for files; --images only measures")
               : code;
}

static int check_scenes(const see_request *r)
{
    corpus_split split;
    const int code = see_captions_check(&r->scenes);
    return code == EXIT_GO_ON ? see_scenes_split(&r->scenes, &split) : code;
}

/* The model that is taken if none is named. */
static shipped_model usual_model(const see_request *r)
{
    return r->images.images != NULL  ? SHIPPED_CLASSIFIER
           : r->scenes.boxes != NULL ? SHIPPED_DETECTOR
                                     : SHIPPED_CAPTIONS;
}

/* Whether a model of captions is meant, by its files or by the options. */
static bool is_for_captions(const see_request *r)
{
    return r->scenes.scenes > 0 || r->scenes.language != NULL ||
           scene_model_is_folder(&captioner_kind, r->model.path);
}

static int see(const arg_command *command, const see_request *r, int count, char **paths)
{
    const char *const folder = r->model.path;
    int code;
    if (scene_model_is_folder(&detector_kind, folder)) {
        code = args_refuse(command, "top language images", "is not for detectors");
        return code == EXIT_GO_ON ? see_boxes(&r->scenes, &r->model, folder, count, paths) : code;
    }
    code = args_refuse(command, "boxes least", "is for detectors");
    if (code != EXIT_GO_ON)
        return code;
    if (!is_for_captions(r))
        return r->images.images != NULL ? see_set(r) : see_all(r, count, paths);
    code = args_refuse(command, "top images", "is for classifiers, not for captions");
    return code == EXIT_GO_ON ? see_captions(&r->scenes, &r->model, folder, count, paths) : code;
}

int command_see(int argc, char **argv)
{
    see_request request = {.top = TOP, .scenes = {.seed = 1, .least = LEAST}};
    char path[MODEL_PATH_MAX];
    uint64_t given = 0;
    int count = 0;
    const arg_option options[] = {
        {"model", ARG_TEXT, &request.model.path, "PATH",
         "captions, detector, vit-fashion, or a folder", 0, 0},
        {"heads", ARG_TEXT, &request.scenes.heads, "FILE",
         "draw every head over the picture; -: here", 0, 0},
        {"top", ARG_NUMBER, &request.top, "N", "classes to print (3)", 1, 1000},
        {"language", ARG_TEXT, &request.scenes.language, "L",
         "of captions: english or french (both)", 0, 0},
        {"boxes", ARG_TEXT, &request.scenes.boxes, "FILE",
         "of a detector: draw the boxes over the picture", 0, 0},
        {"least", ARG_NUMBER, &request.scenes.least, "N",
         "of a detector: the lowest score of a box, in % (50)", 0, 100},
        {"scenes", ARG_NUMBER, &request.scenes.scenes, "N",
         "measure a model of captions, or a detector, on N scenes", 1, 100000},
        {"split", ARG_TEXT, &request.scenes.split, "S",
         "of these scenes: train, valid or test (test)", 0, 0},
        {"seed", ARG_SEED, &request.scenes.seed, "N", "of these scenes (1)", 0, 0},
        {"images", ARG_TEXT, &request.images.images, "SET",
         "measure a classifier on the pictures of this folder", 0, 0},
        {"count", ARG_NUMBER, &request.images.count, "N", "of these pictures, the first (all)", 1,
         100000000},
        {"confusion", ARG_TEXT, &request.images.confusion, "FILE",
         "with --images: draw what is taken for what, as SVG", 0, 0},
        {OPTION_STORE(&request.model.store)},
        {OPTION_ARITHMETIC(&request.model.arithmetic)},
        {OPTION_THREADS(&request.model.threads)},
        {OPTION_JSON(&request.scenes.as_json)},
    };
    const arg_command command = {
        .name = "see",
        .usage = "PICTURE.png... | --scenes N | --images SET [OPTION...]",
        .summary = "Say what is in pictures, and draw every head over them.",
        .details = details,
        ARG_OPTIONS(options),
        .words_max = 10000,
        .given = &given,
    };
    int code = args_parse(&command, argc, argv, &count);
    if (code == EXIT_GO_ON)
        code = check_scenes(&request);
    if (code == EXIT_GO_ON)
        code = check_pictures(&command, &request, count);
    if (code == EXIT_GO_ON)
        code = check(&request, count);
    if (code == EXIT_GO_ON && !model_path_find(request.model.path, usual_model(&request), path))
        code = EXIT_FAILED;
    request.model.path = path;
    return code == EXIT_GO_ON ? see(&command, &request, count, argv + 1) : code;
}
