/* SPDX-License-Identifier: MIT */
/* The chart of "mha prune --curve": what the model still does, over the number of disabled heads.
 */
#include "program/prune_curve.h"

#include "draw/chart.h"

static double words(const head_total *t)
{
    return 100.0 * (double)t->right / (double)t->words;
}

static double exact(const head_total *t)
{
    return 100.0 * t->exact / t->sentences;
}

static void put_axes(FILE *file, const prune_curve *c)
{
    const int apart = c->heads <= 12 ? 1 : (c->heads + 11) / 12;
    char text[32];
    for (int percent = 0; percent <= 100; percent += 20) {
        snprintf(text, sizeof text, "%d %%", percent);
        chart_level(file, chart_y(percent, 100.0), text);
    }
    for (int disabled = 0; disabled <= c->heads; disabled += apart)
        chart_tick(file, chart_x(disabled, c->heads), disabled, false);
    snprintf(text, sizeof text, "heads disabled, of %d", c->heads);
    chart_axis(file);
    chart_axis_name(file, text);
}

static void put_curve(FILE *file, const prune_curve *c, const char *class,
                      double (*value)(const head_total *total))
{
    chart_curve_begin(file, class);
    for (int n = 0; n < c->count; n++)
        chart_curve_point(file, chart_x(n, c->heads), chart_y(value(&c->steps[n].total), 100.0));
    chart_curve_end(file);
}

void prune_curve_svg(FILE *file, const void *curve)
{
    const prune_curve *const c = curve;
    char heading[128];
    snprintf(heading, sizeof heading,
             "Accuracy as the least important heads are disabled, %d sentences of %s",
             c->steps[0].total.sentences, corpus_split_name(c->split));
    chart_begin(file, "Accuracy as heads are disabled", heading, true);
    put_axes(file, c);
    put_curve(file, c, "t", words);
    put_curve(file, c, "v", exact);
    chart_key(file, 0, "t", "words right");
    chart_key(file, 200, "v", "sentences exact");
    svg_end(file);
}
