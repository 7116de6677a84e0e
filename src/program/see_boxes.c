/* SPDX-License-Identifier: MIT */
/* Boxes in pictures (see_boxes.h). */
#include "program/see_boxes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assignment.h"
#include "program/args.h"
#include "program/box_drawing.h"
#include "vision/detection_study.h"

/* --------------------------------------------------------------- pictures ----- */

/* Left, top, right and bottom in pixels of the file. */
static void corners_of(const see_picture *p, const box *b, double corners[4])
{
    for (int n = 0; n < 4; n++) {
        const double side = (double)(n % 2 == 0 ? p->columns : p->rows);
        const double half = b->at[BOX_WIDTH + n % 2] / 2.0;
        corners[n] = side * (b->at[n % 2] + (n < 2 ? -half : half));
    }
}

static void put_box(json *j, const see_picture *p, const detection *found, int query)
{
    static const char *const sides[] = {"left", "top", "right", "bottom"};
    char name[DETECTION_NAME_MAX];
    double corners[4];
    corners_of(p, &found->box, corners);
    detection_name(found->class, name);
    if (j == NULL) {
        printf("  %6.2f %%  %-16s %7.1f %7.1f %7.1f %7.1f  %5d\n", 100.0 * found->score, name,
               corners[0], corners[1], corners[2], corners[3], query + 1);
        return;
    }
    json_open_object(j, NULL);
    json_string(j, "class", name);
    json_number(j, "score", found->score);
    for (int n = 0; n < 4; n++)
        json_number(j, sides[n], corners[n]);
    json_integer(j, "query", query + 1);
    json_close(j);
}

static bool is_shown(const scene_session *s, const detection *found)
{
    return 100.0 * found->score >= (double)s->request->least;
}

/* The queries whose boxes are shown, by falling scores; returns their number. */
static int rank(const scene_session *s, const detection *found, int order[ASSIGNMENT_MAX])
{
    int count = 0;
    for (int q = 0; q < s->model->config.positions; q++) {
        int place = count;
        if (!is_shown(s, &found[q]))
            continue;
        for (; place > 0 && found[order[place - 1]].score < found[q].score; place--)
            order[place] = order[place - 1];
        order[place] = q;
        count++;
    }
    return count;
}

/* A row for every query, also for those that find nothing. */
static int draw_heads(const scene_session *s, const see_picture *p, const detection *found)
{
    enum { ROW_NAME_MAX = DETECTION_NAME_MAX + 8 };
    char texts[ASSIGNMENT_MAX][ROW_NAME_MAX];
    const char *names[ASSIGNMENT_MAX];
    const int queries = s->model->config.positions;
    const size_t patches = (size_t)vision_tokens(&s->model->config.vision);
    float *const weights =
        malloc((size_t)queries * scene_model_maps(s->model) * patches * sizeof *weights);
    for (int q = 0; q < queries; q++) {
        char name[DETECTION_NAME_MAX] = "nothing";
        if (is_shown(s, &found[q]))
            detection_name(found[q].class, name);
        snprintf(texts[q], ROW_NAME_MAX, "%d %s", q + 1, name);
        names[q] = texts[q];
    }
    const mha_status status =
        weights != NULL ? detector_weights(s->model, p->pixels, weights) : MHA_ERR_MEMORY;
    if (status == MHA_OK)
        return see_scenes_heads(s, p, weights, queries, names, "Where each query looks");
    free(weights);
    return args_failed("%s", mha_status_string(status));
}

static int draw_boxes(const scene_session *s, const see_picture *p, const detection *found,
                      const int *order, int count)
{
    drawn_box boxes[ASSIGNMENT_MAX];
    for (int n = 0; n < count; n++) {
        char name[DETECTION_NAME_MAX];
        boxes[n].box = found[order[n]].box;
        detection_name(found[order[n]].class, name);
        snprintf(boxes[n].label, sizeof boxes[n].label, "%s %.0f %%", name,
                 100.0 * found[order[n]].score);
    }
    return box_drawing_write(&p->seen, boxes, count, s->request->boxes);
}

static int find(const scene_session *s, json *j, const see_picture *p)
{
    detection found[ASSIGNMENT_MAX];
    int order[ASSIGNMENT_MAX];
    const mha_status status = detector_find(s->model, p->pixels, found);
    if (status != MHA_OK)
        return args_failed("%s", mha_status_string(status));
    const int count = rank(s, found, order);
    if (j == NULL && count > 0)
        printf("     score  %-16s %7s %7s %7s %7s  query\n", "shape", "left", "top", "right",
               "bottom");
    else if (j == NULL)
        printf("  nothing with a score of at least %" PRId64 " %%\n", s->request->least);
    for (int n = 0; n < count; n++)
        put_box(j, p, &found[order[n]], order[n]);
    int code = EXIT_GO_ON;
    if (s->request->boxes != NULL)
        code = draw_boxes(s, p, found, order, count);
    if (code == EXIT_GO_ON && s->request->heads != NULL)
        code = draw_heads(s, p, found);
    return code;
}

/* ----------------------------------------------------------------- scenes ----- */

static void print_study(const detection_study *s, corpus_split split)
{
    printf("average precision  %6.2f %%  (at an overlap of %.1f, %" PRId64 " scenes of %s)\n",
           100.0 * s->mean, PRECISION_OVERLAP, s->scenes, corpus_split_name(split));
    for (int n = 0; n < SCENE_THINGS; n++) {
        char name[DETECTION_NAME_MAX];
        detection_name(n, name);
        if (s->class_things[n] > 0)
            printf("  %-16s %6.2f %%  (%" PRId64 " shape%s)\n", name, 100.0 * s->of_class[n],
                   s->class_things[n], s->class_things[n] == 1 ? "" : "s");
    }
    printf("found              %6.2f %%  (%" PRId64 " of %" PRId64 ", whatever the score)\n",
           100.0 * (double)s->right / (double)s->things, s->right, s->things);
    printf(
        "\nWhere the shapes are that each query finds: centre in %% of the side, and deviation\n");
    for (int q = 0; q < s->queries; q++) {
        const query_study *const own = &s->of_query[q];
        printf("  query %-3d %9" PRId64, q + 1, own->right);
        if (own->right > 0)
            printf("   x %4.1f +- %4.1f   y %4.1f +- %4.1f", 100.0 * own->x,
                   100.0 * own->x_deviation, 100.0 * own->y, 100.0 * own->y_deviation);
        putchar('\n');
    }
    printf("\nLooks at the shape that its query has found (%" PRId64 " shapes)\n",
           s->pointing.rows);
    see_pointing_print(&s->pointing);
}

static void put_queries(json *j, const detection_study *s)
{
    json_open_array(j, "queries");
    for (int q = 0; q < s->queries; q++) {
        const query_study *const own = &s->of_query[q];
        json_open_object(j, NULL);
        json_integer(j, "found", own->right);
        json_number(j, "x", own->x); /* null: it found nothing */
        json_number(j, "y", own->y);
        json_number(j, "x_deviation", own->x_deviation);
        json_number(j, "y_deviation", own->y_deviation);
        json_close(j);
    }
    json_close(j);
}

static void put_study(const detection_study *s, corpus_split split)
{
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_string(&j, "split", corpus_split_name(split));
    json_integer(&j, "scenes", s->scenes);
    json_integer(&j, "shapes", s->things);
    json_integer(&j, "found", s->right);
    json_number(&j, "average_precision", s->mean);
    json_open_array(&j, "classes");
    for (int n = 0; n < SCENE_THINGS; n++) {
        char name[DETECTION_NAME_MAX];
        detection_name(n, name);
        json_open_object(&j, NULL);
        json_string(&j, "class", name);
        json_integer(&j, "shapes", s->class_things[n]);
        json_number(&j, "average_precision", s->of_class[n]); /* null: there is none */
        json_close(&j);
    }
    json_close(&j);
    put_queries(&j, s);
    see_pointing_put(&j, &s->pointing);
    json_close(&j);
}

static int measure(const scene_session *s, corpus_split split)
{
    const scenes_request *const r = s->request;
    detection_study study;
    const mha_status status = detection_study_measure(&study, s->model, r->seed, split, r->scenes);
    if (status == MHA_OK && r->as_json)
        put_study(&study, split);
    else if (status == MHA_OK)
        print_study(&study, split);
    detection_study_free(&study);
    return status == MHA_OK ? EXIT_FINE : see_scenes_failed(status);
}

int see_boxes(const scenes_request *r, const model_request *model, const char *folder, int count,
              char **paths)
{
    corpus_split split;
    scene_session s;
    int code = see_scenes_split(r, &split);
    if (code != EXIT_GO_ON)
        return code;
    code = scene_session_open(&s, r, &detector_kind, model, folder);
    if (code == EXIT_GO_ON)
        code =
            r->scenes > 0 ? measure(&s, split) : see_scenes_files(&s, count, paths, "boxes", find);
    scene_session_close(&s);
    return code;
}
