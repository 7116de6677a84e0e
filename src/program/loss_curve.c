/* SPDX-License-Identifier: MIT */
/* The chart and table of a training's losses. The axis of losses is logarithmic and ends at round
 * numbers; a long training is drawn with POINTS points, each the mean of some steps. */
#include "program/loss_curve.h"

#include <inttypes.h>
#include <math.h>

#include "draw/chart.h"
#include "draw/round_number.h"
#include "translator/optimizer.h"

enum { POINTS = 320, TICKS_ACROSS = 8 };

typedef struct loss_chart {
    FILE *file;
    training_history history;
    int64_t done, steps; /* steps so far, and in all */
    double low, high;    /* ends of the axis of losses, logarithms to the base 10 */
} loss_chart;

/* ---------------------------------------------------------------- axes ----- */

/* Whether a loss has a place on a logarithmic axis. */
static bool counts(double loss)
{
    return isfinite(loss) && loss > 0.0;
}

static void include(double loss, double *least, double *most)
{
    if (!counts(loss))
        return;
    *least = loss < *least ? loss : *least;
    *most = loss > *most ? loss : *most;
}

/* Number of steps that one point of the curve stands for. */
static int64_t steps_per_point(const loss_chart *p)
{
    return p->done <= POINTS ? 1 : (p->done + POINTS - 1) / POINTS;
}

static double mean_loss(const loss_chart *p, int64_t first, int64_t count)
{
    double sum = 0.0;
    for (int64_t n = 0; n < count; n++)
        sum += (double)p->history.losses[first + n];
    return sum / (double)count;
}

static int64_t count_at(const loss_chart *p, int64_t first)
{
    const int64_t step = steps_per_point(p), left = p->done - first;
    return left < step ? left : step;
}

/* The axis of losses spans all points and validations, widened to round numbers. */
static void find_range(loss_chart *p)
{
    double least = INFINITY, most = 0.0;
    for (int64_t first = 0; first < p->done; first += steps_per_point(p))
        include(mean_loss(p, first, count_at(p, first)), &least, &most);
    for (size_t n = 0; n < p->history.mark_count; n++)
        include(p->history.marks[n].loss, &least, &most);
    if (most == 0.0)
        least = most = 1.0;
    const int low = round_number_near(least, false), high = round_number_near(most, true);
    p->low = log10(round_number(low));
    p->high = log10(round_number(high > low ? high : low + 1));
}

static double x_of(const loss_chart *p, int64_t step)
{
    return chart_x((double)step, (double)p->steps);
}

static double y_of(const loss_chart *p, double loss)
{
    return chart_y((log10(loss) - p->low) / (p->high - p->low), 1.0);
}

/* At most TICKS_ACROSS round steps on the axis at the bottom. */
static void put_steps(const loss_chart *p)
{
    int n = 0;
    while (round_number(n) * TICKS_ACROSS < (double)p->steps)
        n++;
    const int64_t apart = (int64_t)round_number(n);
    for (int64_t step = 0; step <= p->steps; step += apart)
        chart_tick(p->file, x_of(p, step), step, true);
    chart_axis_name(p->file, "steps");
}

/* A level at every round number of the axis of losses. */
static void put_losses(const loss_chart *p)
{
    const int high = round_number_near(pow(10.0, p->high), false);
    for (int n = round_number_near(pow(10.0, p->low), false); n <= high; n++) {
        char label[32];
        snprintf(label, sizeof label, "%g", round_number(n));
        chart_level(p->file, y_of(p, round_number(n)), label);
    }
    chart_axis(p->file);
}

/* -------------------------------------------------------------- curves ----- */

static void put_point(const loss_chart *p, int64_t step, double loss)
{
    if (counts(loss))
        chart_curve_point(p->file, x_of(p, step), y_of(p, loss));
}

/* The mean losses of training, then the losses of validations. */
static void put_curves(const loss_chart *p)
{
    chart_curve_begin(p->file, "t");
    for (int64_t first = 0; first < p->done; first += steps_per_point(p)) {
        const int64_t count = count_at(p, first);
        put_point(p, first + (count + 1) / 2, mean_loss(p, first, count));
    }
    chart_curve_end(p->file);
    chart_curve_begin(p->file, "v");
    for (size_t n = 0; n < p->history.mark_count; n++)
        put_point(p, p->history.marks[n].step, p->history.marks[n].loss);
    chart_curve_end(p->file);
}

static void put_key(const loss_chart *p, int right, const char *class, const char *name,
                    double loss)
{
    char text[64];
    snprintf(text, sizeof text, counts(loss) ? "%s, at last %.3g" : "%s", name, loss);
    chart_key(p->file, right, class, text);
}

/* Names of the curves with their last values; for training the mean of the last 50 steps. */
static void put_keys(const loss_chart *p)
{
    const int64_t tail = p->done < 50 ? p->done : 50;
    const size_t marks = p->history.mark_count;
    put_key(p, 0, "t", "training", tail > 0 ? mean_loss(p, p->done - tail, tail) : NAN);
    put_key(p, 280, "v", "validation", marks > 0 ? p->history.marks[marks - 1].loss : NAN);
}

void loss_curve_svg(FILE *file, const void *shown)
{
    const training *const t = shown;
    const transformer_form form = training_get_config(t)->model.form;
    loss_chart p = {.file = file,
                    .history = training_get_history(t),
                    .done = training_steps_done(t),
                    .steps = training_get_config(t)->steps};
    p.steps = p.done > p.steps ? p.done : p.steps;
    find_range(&p);
    chart_begin(file, "Loss of a training",
                form == FORM_VISION      ? "Loss per picture, in nats"
                : form == FORM_DETECTION ? "Loss per query"
                                         : "Loss per word, in nats",
                false);
    put_losses(&p);
    put_steps(&p);
    put_curves(&p);
    put_keys(&p);
    svg_end(file);
}

/* --------------------------------------------------------------- table ----- */

void loss_curve_csv(FILE *file, const void *shown)
{
    const training *const t = shown;
    const training_history history = training_get_history(t);
    const int64_t done = training_steps_done(t);
    size_t mark = 0;
    const transformer_form form = training_get_config(t)->model.form;
    fprintf(file, "step,learning_rate,loss,valid_loss,valid_%s\n",
            form == FORM_VISION      ? "pictures_right"
            : form == FORM_DETECTION ? "average_precision"
                                     : "words_right");
    for (int64_t step = 1; step <= done; step++) {
        fprintf(file, "%" PRId64 ",%.6g,%.6g,", step,
                optimizer_rate(training_get_config(t), step - 1), (double)history.losses[step - 1]);
        while (mark < history.mark_count && history.marks[mark].step < step)
            mark++;
        if (mark < history.mark_count && history.marks[mark].step == step)
            fprintf(file, "%.6g,%.6g\n", history.marks[mark].loss, history.marks[mark].words_right);
        else
            fputs(",\n", file);
    }
}
