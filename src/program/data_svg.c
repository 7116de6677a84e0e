/* SPDX-License-Identifier: MIT */
/* Draws a study of claim 8: one panel per task, errors over the number of pictures, both axes
 * logarithmic (data_svg.h). */
#include "program/data_svg.h"

#include <math.h>

#include "draw/panel.h"
#include "draw/svg.h"

enum { LEFT = 60, TOP = 112, PANEL_WIDTH = 262, PANEL_HEIGHT = 240, STEP = 336, DODGE = 4 };
enum { WIDTH = STUDY_TASKS * STEP + 8, HEIGHT = TOP + PANEL_HEIGHT + 66 };

static const int colors[LEARNER_KINDS] = {1, 5}; /* blue, orange */

/* Intervals that reach below half of their mean are cut there: the axis is logarithmic. */
static double low_end(const mean_interval *i)
{
    return fmax(i->mean - i->half, 0.5 * i->mean);
}

static void set_range(panel *p, const study_result *r, study_task task)
{
    double least = INFINITY, most = 0.0;
    for (int n = 0; n < r->plan.size_count * LEARNER_KINDS; n++) {
        const mean_interval i =
            study_mean(r, task, n / LEARNER_KINDS, (learner_kind)(n % LEARNER_KINDS));
        if (!(i.mean > 0.0))
            continue;
        least = fmin(least, low_end(&i));
        most = fmax(most, i.mean + i.half);
    }
    panel_range(p, most > 0.0 ? least : 1.0, most > 0.0 ? most : 1.0);
}

static void put_curve(const panel *p, const study_result *r, study_task task, learner_kind kind)
{
    const double aside = kind == LEARN_CONVOLUTION ? -DODGE : DODGE;
    panel_line_begin(p, colors[kind], 0);
    for (int n = 0; n < r->plan.size_count; n++)
        panel_line_point(p, panel_x(p, n) + aside, panel_y(p, study_mean(r, task, n, kind).mean));
    panel_line_end(p);
    for (int n = 0; n < r->plan.size_count; n++) {
        const mean_interval i = study_mean(r, task, n, kind);
        const double x = panel_x(p, n) + aside;
        panel_bar(p, colors[kind], x, panel_y(p, low_end(&i)), panel_y(p, i.mean + i.half));
        panel_dot(p, colors[kind], x, panel_y(p, i.mean));
    }
}

static void put_task(FILE *file, const study_result *r, study_task task)
{
    static const char *const titles[STUDY_TASKS] = {"Imitate a 3 x 3 filter: squares lost",
                                                    "Three taps further away: squares lost",
                                                    "Tell four textures apart: wrong"};
    panel p = {.file = file,
               .left = LEFT + (int)task * STEP,
               .top = TOP,
               .width = PANEL_WIDTH,
               .height = PANEL_HEIGHT,
               .first = -0.5,
               .last = r->plan.size_count - 0.5};
    char text[16];
    set_range(&p, r, task);
    panel_frame(&p, titles[task], "pictures to learn from");
    for (int n = 0; n < r->plan.size_count; n++) {
        snprintf(text, sizeof text, "%d", r->plan.sizes[n]);
        panel_tick(&p, n, text);
    }
    for (int kind = 0; kind < LEARNER_KINDS; kind++)
        put_curve(&p, r, task, (learner_kind)kind);
}

void data_svg(FILE *file, const void *result)
{
    const study_result *const r = result;
    char text[128];
    svg_begin(file, WIDTH, HEIGHT, "Errors of a convolution and of attention over data");
    panel_style(file, WIDTH, HEIGHT);
    snprintf(text, sizeof text,
             "Error on new pictures, %d steps, means and 95 %% intervals of %d seeds",
             r->plan.steps, r->plan.seeds);
    svg_text(file, LEFT, 32, " class=\"h\"", text);
    panel_key(file, LEFT, 60, colors[LEARN_CONVOLUTION], 0, "3 x 3 convolution");
    panel_key(file, LEFT + 200, 60, colors[LEARN_ATTENTION], 0,
              "attention: 9 heads with relative positions");
    for (int task = 0; task < STUDY_TASKS; task++)
        put_task(file, r, (study_task)task);
    svg_end(file);
}
