/* SPDX-License-Identifier: MIT */
/*
 * The charts of "mha sweep". At the top the losses over the number of heads, with a colour for each
 * number of sentence pairs: validation with its intervals, training dashed. Below, for each number
 * of sentence pairs, the learning curves, with a colour for each number of heads.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "draw/panel.h"
#include "draw/round_number.h"
#include "draw/svg.h"
#include "program/sweep_request.h"

enum {
    WIDTH = 760,
    LEFT = 56,
    RIGHT = 20,
    LOSS_TOP = 96,
    LOSS_HEIGHT = 230,
    CURVES_TOP = LOSS_TOP + LOSS_HEIGHT + 116, /* of the first row */
    CURVE_HEIGHT = 190,
    ROW = CURVE_HEIGHT + 84,
    COLUMN = WIDTH / 2,
    DODGE = 5, /* pixels between bars of different data */
    TICKS = 5
};

typedef struct sweep_chart {
    FILE *file;
    const sweep_report *report;
    const sweep_grid *grid;
} sweep_chart;

/* Blue, orange, green, violet ...: neighbours can be told apart. */
static int data_color(int data)
{
    static const int order[] = {1, 5, 3, 0, 6, 2, 4, 7};
    return order[data % PANEL_COLORS];
}

/* From violet to orange, as far apart as their number allows; many heads take all colours. */
static int head_color(const sweep_grid *grid, int heads)
{
    const int others = grid->head_count - 1, far = 5;
    return others > 0 && others <= far ? heads * far / others : heads;
}

static mean_interval mean_of(const sweep_chart *c, int data, int heads, sweep_measure measure)
{
    return sweep_mean(c->report->table, c->grid, data, heads, measure, NAN);
}

/* The mean over seeds of the validation loss at a point of the learning curves. */
static double curve_mean(const sweep_chart *c, int data, int heads, int point)
{
    double sum = 0.0;
    int count = 0;
    for (int seed = 0; seed < c->grid->seeds; seed++) {
        const sweep_key key = {c->grid->data[data], c->grid->heads[heads],
                               c->grid->first_seed + (uint64_t)seed};
        const sweep_result *const r = sweep_table_find(c->report->table, &key);
        sum += r != NULL ? r->valid[point] : 0.0;
        count += r != NULL;
    }
    return sum / count;
}

static void include(double loss, double *least, double *most)
{
    if (!(loss > 0.0 && isfinite(loss)))
        return;
    *least = loss < *least ? loss : *least;
    *most = loss > *most ? loss : *most;
}

/* -------------------------------------------------------- loss by heads ----- */

/* Intervals that reach below half of their mean are cut there, so that one of them cannot stretch a
 * logarithmic axis without end. */
static double bar_low(const mean_interval *i)
{
    const double low = i->mean - i->half;
    return low > 0.5 * i->mean ? low : 0.5 * i->mean;
}

static double bar_high(const mean_interval *i)
{
    const double high = i->mean + i->half;
    return high < 2.0 * i->mean ? high : 2.0 * i->mean;
}

static void set_loss_range(const sweep_chart *c, panel *p)
{
    double least = INFINITY, most = 0.0;
    for (int data = 0; data < c->grid->data_count; data++)
        for (int heads = 0; heads < c->grid->head_count; heads++) {
            const mean_interval valid = mean_of(c, data, heads, SWEEP_VALID);
            include(bar_low(&valid), &least, &most);
            include(bar_high(&valid), &least, &most);
            include(mean_of(c, data, heads, SWEEP_TRAIN).mean, &least, &most);
        }
    panel_range(p, most > 0.0 ? least : 1.0, most > 0.0 ? most : 1.0);
}

static void put_losses(const panel *p, const sweep_chart *c, int data, sweep_measure measure)
{
    const int color = data_color(data), dashed = measure == SWEEP_TRAIN;
    const double aside = DODGE * (data - 0.5 * (c->grid->data_count - 1));
    panel_line_begin(p, color, dashed);
    for (int heads = 0; heads < c->grid->head_count; heads++)
        panel_line_point(p, panel_x(p, heads) + aside,
                         panel_y(p, mean_of(c, data, heads, measure).mean));
    panel_line_end(p);
    for (int heads = 0; heads < c->grid->head_count && !dashed; heads++) {
        const mean_interval i = mean_of(c, data, heads, measure);
        const double x = panel_x(p, heads) + aside;
        if (isfinite(i.half))
            panel_bar(p, color, x, panel_y(p, bar_low(&i)), panel_y(p, bar_high(&i)));
        panel_dot(p, color, x, panel_y(p, i.mean));
    }
}

static void put_loss_keys(const sweep_chart *c)
{
    int x = LEFT;
    for (int data = 0; data < c->grid->data_count; data++) {
        char text[64];
        sweep_data_text(c->grid->data[data], text);
        panel_key(c->file, x, 52, data_color(data), 0, text);
        x += WIDTH / 4;
    }
}

static void put_loss_panel(const sweep_chart *c)
{
    panel p = {.file = c->file,
               .left = LEFT,
               .top = LOSS_TOP,
               .width = WIDTH - LEFT - RIGHT,
               .height = LOSS_HEIGHT,
               .first = -0.5,
               .last = c->grid->head_count - 0.5};
    char text[128];
    set_loss_range(c, &p);
    snprintf(text, sizeof text, "Validation with 95 %% intervals over %d seed%s, training dashed",
             c->grid->seeds, c->grid->seeds == 1 ? "" : "s");
    panel_frame(&p, text, "heads");
    for (int heads = 0; heads < c->grid->head_count; heads++) {
        snprintf(text, sizeof text, "%d", c->grid->heads[heads]);
        panel_tick(&p, heads, text);
    }
    for (int data = 0; data < c->grid->data_count; data++) {
        put_losses(&p, c, data, SWEEP_TRAIN);
        put_losses(&p, c, data, SWEEP_VALID);
    }
    put_loss_keys(c);
}

/* ------------------------------------------------------ learning curves ----- */

static void set_curve_range(const sweep_chart *c, panel *p)
{
    double least = INFINITY, most = 0.0;
    for (int data = 0; data < c->grid->data_count; data++)
        for (int heads = 0; heads < c->grid->head_count; heads++)
            for (int n = 0; n < c->report->table->settings.points; n++)
                include(curve_mean(c, data, heads, n), &least, &most);
    panel_range(p, most > 0.0 ? least : 1.0, most > 0.0 ? most : 1.0);
}

static void put_steps(const panel *p, int64_t steps)
{
    int n = 0;
    while (round_number(n) * TICKS < (double)steps)
        n++;
    for (int64_t step = 0; step <= steps; step += (int64_t)round_number(n)) {
        char text[32];
        snprintf(text, sizeof text, "%" PRId64, step);
        panel_tick(p, (double)step, text);
    }
}

static void put_curve(const panel *p, const sweep_chart *c, int data, int heads)
{
    const sweep_settings *const s = &c->report->table->settings;
    panel_line_begin(p, head_color(c->grid, heads), 0);
    for (int n = 0; n < s->points; n++)
        panel_line_point(p, panel_x(p, (double)sweep_step(s, n)),
                         panel_y(p, curve_mean(c, data, heads, n)));
    panel_line_end(p);
}

/* All of them have the same axes. */
static void put_curve_panel(const sweep_chart *c, int data)
{
    const int64_t steps = c->report->table->settings.config.steps;
    panel p = {.file = c->file,
               .left = LEFT + data % 2 * COLUMN,
               .top = CURVES_TOP + data / 2 * ROW,
               .width = COLUMN - LEFT - RIGHT,
               .height = CURVE_HEIGHT,
               .last = (double)steps};
    char title[64];
    set_curve_range(c, &p);
    sweep_data_text(c->grid->data[data], title);
    panel_frame(&p, title, "steps");
    put_steps(&p, steps);
    for (int heads = 0; heads < c->grid->head_count; heads++)
        put_curve(&p, c, data, heads);
}

static void put_curve_keys(const sweep_chart *c)
{
    const int y = CURVES_TOP - 46;
    svg_text(c->file, LEFT, y, " class=\"h\"", "Learning curves: validation loss");
    const int room = WIDTH - RIGHT - LEFT - 240, apart = room / c->grid->head_count;
    for (int heads = 0; heads < c->grid->head_count; heads++) {
        char text[32];
        snprintf(text, sizeof text, "%d%s", c->grid->heads[heads],
                 heads > 0 || apart < 70      ? ""
                 : c->grid->heads[heads] == 1 ? " head"
                                              : " heads");
        panel_key(c->file, LEFT + 240 + heads * (apart < 96 ? apart : 96), y,
                  head_color(c->grid, heads), 0, text);
    }
}

void sweep_svg(FILE *file, const void *shown)
{
    const sweep_report *const report = shown;
    const sweep_chart c = {file, report, &report->request->grid};
    const int rows = (c.grid->data_count + 1) / 2, height = CURVES_TOP + rows * ROW - 32;
    const training_config *const config = &report->request->settings.config;
    char heading[160];
    svg_begin(file, WIDTH, height, "Losses of trainings with different numbers of heads");
    panel_style(file, WIDTH, height);
    snprintf(heading, sizeof heading,
             "Loss per word in nats: width %d, %" PRId64
             " steps of %d pairs, different numbers of heads",
             config->model.width, config->steps, config->batch);
    svg_text(file, LEFT, 28, " class=\"h\"", heading);
    put_loss_panel(&c);
    put_curve_keys(&c);
    for (int data = 0; data < c.grid->data_count; data++)
        put_curve_panel(&c, data);
    svg_end(file);
}
