/* SPDX-License-Identifier: MIT */
/* Measures heads on pictures and reports them (heads_pictures.h): the table of heads, roles that
 * were counted, and how far the heads of each layer look. */
#include "program/heads_pictures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/terminal.h"
#include "format/json_writer.h"
#include "heads/head_roles.h"
#include "heads/picture_study.h"

/* The measures of the table, in its order. */
static const picture_measure columns[] = {PICTURE_CLASS,  PICTURE_SELF,    PICTURE_ABOVE,
                                          PICTURE_BELOW,  PICTURE_LEFT,    PICTURE_RIGHT,
                                          PICTURE_AROUND, PICTURE_BORDER,  PICTURE_SAME,
                                          PICTURE_OBJECT, PICTURE_BREADTH, PICTURE_DISTANCE};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static const char *role_name(const picture_role *role)
{
    return role->found ? role->name : ROLE_NONE;
}

/* ------------------------------------------------------------------ text ----- */

/* Columns are as wide as their names, but wide enough for "-0.20". */
static int width_of(picture_measure measure)
{
    const int length = (int)strlen(picture_measure_name(measure));
    return length > 5 ? length : 5;
}

static void print_number(double value, int width)
{
    if (isnan(value))
        printf(" %*s", width, "-");
    else
        printf(" %*.2f", width, value);
}

static void print_head(const picture_study *s, int head)
{
    char label[HEAD_LABEL_MAX];
    const picture_role role = picture_study_role(s, head);
    head_label(head_at(s->shape, head), label);
    printf("%-12s %-12s", label, role_name(&role));
    if (role.found) {
        const head_interval i = picture_study_interval(s, head, role.measure);
        printf(" %5.2f", role.score);
        if (s->pictures > 1)
            printf("  %5.2f..%4.2f", i.low, i.high);
        else
            printf("  %11s", "-");
    } else {
        printf(" %5s  %11s", "", "");
    }
    for (int n = 0; n < COLUMNS; n++)
        print_number(picture_study_mean(s, head, columns[n]), width_of(columns[n]));
    printf("\n");
}

static void print_table(const picture_study *s, const terminal *screen)
{
    terminal_style(stdout, screen, STYLE_BOLD);
    printf("%-12s %-12s %5s  %11s", "head", "role", "score", "95 %");
    for (int n = 0; n < COLUMNS; n++)
        printf(" %*s", width_of(columns[n]), picture_measure_name(columns[n]));
    terminal_plain(stdout, screen);
    printf("\n");
    for (int head = 0; head < s->heads; head++)
        print_head(s, head);
}

/* Counts the heads of every role, in the order in which roles first occur. */
static void print_roles(const picture_study *s)
{
    printf("Roles:");
    for (int n = 0; n < s->heads; n++) {
        const picture_role own = picture_study_role(s, n);
        bool before = false;
        int same = 0;
        for (int k = 0; k < s->heads; k++) {
            const picture_role other = picture_study_role(s, k);
            const bool equal = strcmp(role_name(&own), role_name(&other)) == 0;
            before |= equal && k < n;
            same += equal;
        }
        if (!before)
            printf("%s %d %s", n > 0 ? "," : "", same, role_name(&own));
    }
    printf(".\n");
}

static void print_distances(const picture_study *s)
{
    printf("How far the heads of a layer look, in patches; equal weights on all %d x %d: %.2f\n",
           s->across, s->across, picture_even_distance(s->across));
    for (int layer = 0; layer < s->shape.layers[ATTENTION_ENCODER]; layer++) {
        const head_interval i = picture_study_layer_interval(s, layer, PICTURE_DISTANCE);
        printf("  layer %d: %.2f", layer + 1, picture_study_layer_mean(s, layer, PICTURE_DISTANCE));
        if (s->pictures > 1)
            printf(" (%.2f..%.2f)", i.low, i.high);
        printf("\n");
    }
}

static void print_text(const heads_setup *setup, const picture_study *s)
{
    const terminal screen = terminal_query(stdout);
    printf("%s: %d heads on %d %s\n\n", setup->session.path, s->heads, s->pictures,
           s->pictures == 1 ? "picture" : "pictures");
    print_table(s, &screen);
    printf("\nBorder, same_part and object are what a head has more than equal weights on all "
           "patches would have.\nWhat is object and what is ground is known of %d pictures with a "
           "plain ground.\n",
           s->with_object);
    print_roles(s);
    print_distances(s);
}

/* ------------------------------------------------------------------ JSON ----- */

static void put_interval(json *j, head_interval i, bool known)
{
    if (!known)
        return;
    json_open_array(j, "interval");
    json_number(j, NULL, i.low);
    json_number(j, NULL, i.high);
    json_close(j);
}

static void put_head(json *j, const picture_study *s, int head)
{
    const head_name name = head_at(s->shape, head);
    const picture_role role = picture_study_role(s, head);
    json_open_object(j, NULL);
    json_integer(j, "layer", name.layer + 1);
    json_integer(j, "head", name.head + 1);
    json_string(j, "role", role_name(&role));
    json_string(j, "nearest", role.name);
    json_number(j, "score", role.score);
    json_number(j, "threshold", role.threshold);
    put_interval(j, picture_study_interval(s, head, role.measure), s->pictures > 1);
    for (int n = 0; n < PICTURE_MEASURES; n++)
        json_number(j, picture_measure_name((picture_measure)n),
                    picture_study_mean(s, head, (picture_measure)n));
    json_close(j);
}

static void put_layer(json *j, const picture_study *s, int layer)
{
    json_open_object(j, NULL);
    json_integer(j, "layer", layer + 1);
    json_number(j, "distance", picture_study_layer_mean(s, layer, PICTURE_DISTANCE));
    put_interval(j, picture_study_layer_interval(s, layer, PICTURE_DISTANCE), s->pictures > 1);
    json_close(j);
}

static void print_json(const heads_setup *setup, const picture_study *s)
{
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_string(&j, "model", setup->session.path);
    json_integer(&j, "pictures", s->pictures);
    json_integer(&j, "pictures_with_object", s->with_object);
    json_integer(&j, "counted_from", 1);
    json_integer(&j, "across", s->across);
    json_number(&j, "even_distance", picture_even_distance(s->across));
    json_open_array(&j, "heads");
    for (int head = 0; head < s->heads; head++)
        put_head(&j, s, head);
    json_close(&j);
    json_open_array(&j, "layers");
    for (int layer = 0; layer < s->shape.layers[ATTENTION_ENCODER]; layer++)
        put_layer(&j, s, layer);
    json_close(&j);
    json_close(&j);
}

int heads_pictures(const heads_setup *setup, bool as_json)
{
    const session *const open = &setup->session;
    picture_study *const study =
        picture_study_create(&open->subject, &setup->texts, open->pool, heads_watch);
    progress_end();
    if (study == NULL)
        return heads_failed(MHA_ERR_MEMORY);
    if (as_json)
        print_json(setup, study);
    else
        print_text(setup, study);
    picture_study_free(study);
    return EXIT_FINE;
}
